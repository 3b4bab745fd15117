//! `coretide group describe`: who is in a group, what each member reads, why one reads nothing, and
//! how far behind each partition is, in records and in time.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use protocol::Str;
use protocol::messages::metadata::MetadataResponseTopic;
use serde_json::{Value, json};

use crate::cli::table::Table;
use crate::cli::topic::Bootstrap;
use crate::client::Client;
use crate::client::group::{self, GroupView, MemberView};
use crate::client::positions::{EARLIEST, LATEST, positions, written_ms};

/// A partition that the group reads, or has read.
struct Row {
    topic: Str,
    partition: i32,
    committed: Option<i64>,
    end: i64,
    /// None while nothing is committed.
    lag_records: Option<i64>,
    /// Age of the oldest record not consumed.
    lag_seconds: Option<f64>,
    member: Option<Str>,
}

type Topics = BTreeMap<Str, Option<MetadataResponseTopic>>;

pub(super) fn run(name: &str, to: &Bootstrap) -> anyhow::Result<()> {
    let mut client = Client::connect(&to.bootstrap)?;
    let node = group::coordinator(&mut client, name)?;
    let view = group::describe(&mut client, node, name)?;
    let topics = topics(&mut client, node, name, &view)?;
    let rows = rows(&mut client, (node, name), &view, &topics)?;
    if to.json {
        println!("{}", as_json(name, node, &view, &topics, &rows));
    } else {
        print(name, node, &view, &topics, &rows);
    }
    Ok(())
}

/// Everything that is subscribed to, assigned or committed; without metadata what does not exist.
fn topics(client: &mut Client, node: i32, name: &str, view: &GroupView) -> anyhow::Result<Topics> {
    let mut topics = Topics::new();
    for member in &view.members {
        let subscribed = member.topics.iter().flatten();
        let assigned = member.partitions.iter().flat_map(BTreeMap::keys);
        topics.extend(subscribed.chain(assigned).map(|it| (it.clone(), None)));
    }
    for it in group::committed(client, node, name)? {
        topics.insert(it.topic, None);
    }
    for (topic, found) in &mut topics {
        let described = client.metadata(&[topic])?.topics.into_iter().next();
        *found = described.filter(|it| !it.error_code.is_error());
    }
    Ok(topics)
}

fn rows(
    client: &mut Client,
    (node, name): (i32, &str),
    view: &GroupView,
    topics: &Topics,
) -> anyhow::Result<Vec<Row>> {
    let mut known: BTreeMap<(Str, i32), (Option<i64>, Option<Str>)> = BTreeMap::new();
    for it in group::committed(client, node, name)? {
        known.insert((it.topic, it.partition), (Some(it.offset), None));
    }
    for member in &view.members {
        for (topic, indexes) in member.partitions.iter().flatten() {
            for &index in indexes {
                let entry = known.entry((topic.clone(), index)).or_default();
                entry.1 = Some(member.id.clone());
            }
        }
    }
    let mut rows = Vec::new();
    for (topic, found) in topics {
        let Some(found) = found else { continue };
        let first = positions(client, found, EARLIEST)?;
        let last = positions(client, found, LATEST)?;
        let here = known.iter().filter(|((of, _), _)| of == topic);
        for ((_, partition), (committed, member)) in here {
            let Some(&end) = last.get(partition) else { continue };
            let lag_records = committed.map(|at| (end - at).max(0));
            let start = first.get(partition).copied().unwrap_or(0);
            let lag_seconds = match (lag_records, committed) {
                (Some(0), _) => Some(0.0),
                (Some(_), Some(at)) => {
                    written_ms(client, found, *partition, (*at).max(start))?.map(seconds_since)
                }
                _ => None,
            };
            let (topic, partition, committed) = (topic.clone(), *partition, *committed);
            let member = member.clone();
            rows.push(Row { topic, partition, committed, end, lag_records, lag_seconds, member });
        }
    }
    Ok(rows)
}

fn seconds_since(timestamp_ms: i64) -> f64 {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_millis() as i64);
    (now_ms - timestamp_ms).max(0) as f64 / 1e3
}

/// Why a member reads nothing; none for one that reads, or of which nothing can be said.
fn why_idle(view: &GroupView, member: &MemberView, topics: &Topics) -> Option<String> {
    if *view.state != *"Stable" {
        return Some(format!("the group is in {}; who reads what is not settled", view.state));
    }
    if member.partitions.as_ref().is_none_or(|it| it.values().any(|it| !it.is_empty())) {
        return None;
    }
    let subscribed = member.topics.as_ref()?;
    if subscribed.is_empty() {
        return Some("it subscribes to no topic".to_owned());
    }
    let names = subscribed.iter().map(|it| &**it).collect::<Vec<_>>().join(", ");
    let counts = subscribed.iter().filter_map(|it| topics.get(it)?.as_ref());
    let partitions: usize = counts.map(|it| it.partitions.len()).sum();
    if partitions == 0 {
        return Some(format!("no topic that it subscribes to exists: {names}"));
    }
    let shares =
        |other: &&MemberView| other.topics.iter().flatten().any(|topic| subscribed.contains(topic));
    let takers = view.members.iter().filter(shares).count();
    Some(match takers > partitions {
        true => {
            let share = match partitions {
                1 => "the only partition".to_owned(),
                many => format!("the {many} partitions"),
            };
            format!("{takers} members share {share} of {names}; more partitions, or fewer members")
        }
        false => format!("the assignor {} gave it none of {names}", view.assignor),
    })
}

fn as_json(name: &str, node: i32, view: &GroupView, topics: &Topics, rows: &[Row]) -> Value {
    let offsets: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "topic": &*row.topic, "partition": row.partition, "committed": row.committed,
                "end": row.end, "lag_records": row.lag_records, "lag_seconds": row.lag_seconds,
                "member": row.member.as_deref(),
            })
        })
        .collect();
    let members: Vec<_> = view
        .members
        .iter()
        .map(|member| {
            let assigned = member.partitions.iter().flatten();
            let partitions: Vec<_> = assigned
                .flat_map(|(topic, indexes)| {
                    indexes.iter().map(move |it| json!({"topic": &**topic, "partition": it}))
                })
                .collect();
            let because = why_idle(view, member, topics);
            json!({
                "member": &*member.id, "instance": member.instance.as_deref(),
                "client": &*member.client, "host": &*member.host, "partitions": partitions,
                "idle": because.is_some(), "idle_because": because,
            })
        })
        .collect();
    let lag_records: i64 = rows.iter().filter_map(|row| row.lag_records).sum();
    let lag_seconds = rows.iter().filter_map(|row| row.lag_seconds).fold(0.0, f64::max);
    json!({
        "group": name, "state": &*view.state, "type": view.kind, "protocol": &*view.assignor,
        "coordinator": node, "members": members, "offsets": offsets,
        "lag_records": lag_records, "lag_seconds": lag_seconds,
    })
}

fn print(name: &str, node: i32, view: &GroupView, topics: &Topics, rows: &[Row]) {
    let assignor = match view.assignor.is_empty() {
        true => String::new(),
        false => format!(", assignor {}", view.assignor),
    };
    println!(
        "group {name}: {}, {} protocol{assignor}, coordinated by node {node}",
        view.state, view.kind
    );
    let idle: Vec<_> = view
        .members
        .iter()
        .filter_map(|member| Some((member, why_idle(view, member, topics)?)))
        .collect();
    println!("members: {}, of which {} idle", view.members.len(), idle.len());
    let mut table = Table::new(&["MEMBER", "CLIENT", "HOST", "PARTITIONS"]);
    for member in &view.members {
        table.row([
            short(member),
            member.client.to_string(),
            member.host.to_string(),
            share(member),
        ]);
    }
    table.print();
    for (member, why) in &idle {
        println!("  {} is idle: {why}", short(member));
    }
    let mut table =
        Table::new(&["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "LAG SECONDS", "MEMBER"]);
    let number = |it: Option<i64>| it.map_or("-".to_owned(), |it| it.to_string());
    for row in rows {
        let member = view.members.iter().find(|it| Some(&it.id) == row.member.as_ref());
        table.row([
            row.topic.to_string(),
            row.partition.to_string(),
            number(row.committed),
            row.end.to_string(),
            number(row.lag_records),
            row.lag_seconds.map_or("-".to_owned(), |it| format!("{it:.1}")),
            member.map_or("-".to_owned(), short),
        ]);
    }
    table.print();
}

/// The name of a static member; of others what is enough of the id to tell them apart.
fn short(member: &MemberView) -> String {
    if let Some(instance) = &member.instance {
        return instance.to_string();
    }
    let id = member.id.strip_prefix(&*member.client).unwrap_or(&member.id);
    let id = id.trim_start_matches('-');
    id.chars().take(SHORT_ID).collect()
}

fn share(member: &MemberView) -> String {
    let Some(partitions) = &member.partitions else { return "unreadable".to_owned() };
    let each = partitions.iter().filter(|(_, indexes)| !indexes.is_empty());
    let each = each.map(|(topic, indexes)| {
        let indexes: Vec<_> = indexes.iter().map(i32::to_string).collect();
        format!("{topic}:{}", indexes.join(","))
    });
    let all: Vec<_> = each.collect();
    if all.is_empty() { "-".to_owned() } else { all.join(" ") }
}

const SHORT_ID: usize = 8;
