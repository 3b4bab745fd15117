//! Which connection goes to which node and takes which partitions. Pure.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};

/// What one connection works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    pub node: i32,
    /// Partitions that the node leads; never empty.
    pub partitions: Vec<i32>,
}

/// Deals partitions, given with their leaders, to connections: evenly over the nodes, and within a
/// node every partition to one connection, unless there are more connections than partitions.
pub fn deal(leaders: &[(i32, i32)], connections: usize) -> anyhow::Result<Vec<Share>> {
    let mut by_node: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for &(partition, node) in leaders {
        ensure!(node >= 0, "partition {partition} has no leader");
        by_node.entry(node).or_default().push(partition);
    }
    let nodes: Vec<(i32, Vec<i32>)> = by_node.into_iter().collect();
    if nodes.is_empty() {
        bail!("the topic has no partitions");
    }
    ensure!(
        connections >= nodes.len(),
        "{connections} connections cannot reach the {} nodes that lead the topic's partitions",
        nodes.len()
    );
    let mut shares = Vec::with_capacity(connections);
    for connection in 0..connections {
        let (node, partitions) = &nodes[connection % nodes.len()];
        let place = connection / nodes.len();
        let surplus = usize::from(connection % nodes.len() < connections % nodes.len());
        let places = connections / nodes.len() + surplus;
        let own: Vec<i32> = if places > partitions.len() {
            vec![partitions[place % partitions.len()]]
        } else {
            partitions.iter().skip(place).step_by(places).copied().collect()
        };
        shares.push(Share { node: *node, partitions: own });
    }
    Ok(shares)
}

/// The part of `total` that falls to `index` of `count`, the first ones taking what is left over.
pub fn part_of(total: u64, index: usize, count: usize) -> u64 {
    let (index, count) = (index as u64, count as u64);
    total / count + u64::from(index < total % count)
}
