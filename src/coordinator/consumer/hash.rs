//! A number that stands for the topics a group subscribes to: it changes when one comes, goes or
//! grows (KIP-1101). Computed as Kafka does, XXH3 over the fields that matter, so that a log which
//! moves between the two means the same.

use metadata::{Image, Topic};
use protocol::Str;
use xxhash_rust::xxh3::Xxh3Default;

/// 0 for no topics.
pub(super) fn of_topics<'a>(names: impl Iterator<Item = &'a Str>, image: &Image) -> i64 {
    let mut hasher = Xxh3Default::new();
    let mut any = false;
    // Names come in order, as the hash wants them.
    for topic in names.filter_map(|name| image.topic(name)) {
        hasher.update(&of_topic(topic, image).to_le_bytes());
        any = true;
    }
    if any { hasher.digest() as i64 } else { 0 }
}

fn of_topic(topic: &Topic, image: &Image) -> u64 {
    let mut hasher = Xxh3Default::new();
    hasher.update(&[MAGIC]);
    let (high, low) = topic.id.0.split_at(8);
    for half in [high, low] {
        hasher.update(&half.iter().rev().copied().collect::<Vec<u8>>());
    }
    put_text(&mut hasher, &topic.name);
    hasher.update(&(topic.partitions.len() as i32).to_le_bytes());
    for (index, partition) in topic.indexed() {
        hasher.update(&index.to_le_bytes());
        let hosts = partition.replicas.iter().filter_map(|it| image.host(it.host));
        let mut racks: Vec<Str> = hosts.filter_map(|it| it.rack.clone()).collect();
        racks.sort();
        for rack in racks {
            hasher.update(&(rack.encode_utf16().count() as i32).to_le_bytes());
            put_text(&mut hasher, &rack);
        }
    }
    hasher.digest()
}

/// Letters of 16 bits, then how many.
fn put_text(hasher: &mut Xxh3Default, text: &str) {
    let letters: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    hasher.update(&letters);
    hasher.update(&((letters.len() / 2) as i32).to_le_bytes());
}

const MAGIC: u8 = 0;
