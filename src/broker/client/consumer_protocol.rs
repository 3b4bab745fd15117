//! What consumers say inside the opaque bytes of the group protocol: subscriptions, assignments,
//! and the range assignor. The formats are Kafka's ConsumerProtocolSubscription and
//! ConsumerProtocolAssignment, version 0, with which every later version begins.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use protocol::Str;

/// Partitions by topic.
pub type Partitions = BTreeMap<Str, Vec<i32>>;

/// What a member that subscribes to these topics says.
pub fn encode_subscription(topics: &[Str]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(0);
    out.put_i32(topics.len() as i32);
    topics.iter().for_each(|topic| put_string(&mut out, topic));
    out.put_i32(NO_USER_DATA);
    out.freeze()
}

/// The topics of a subscription; none when it cannot be read.
pub fn decode_subscription(bytes: &Bytes) -> Option<Vec<Str>> {
    let mut rest = bytes.clone();
    let _version = rest.try_get_i16().ok()?;
    let count = rest.try_get_i32().ok()?;
    (0..count).map(|_| take_string(&mut rest)).collect()
}

pub fn encode_assignment(partitions: &Partitions) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(0);
    out.put_i32(partitions.len() as i32);
    for (topic, indexes) in partitions {
        put_string(&mut out, topic);
        out.put_i32(indexes.len() as i32);
        indexes.iter().for_each(|&index| out.put_i32(index));
    }
    out.put_i32(NO_USER_DATA);
    out.freeze()
}

/// The partitions of an assignment; nothing at all is no partition. None when it cannot be read.
pub fn decode_assignment(bytes: &Bytes) -> Option<Partitions> {
    let mut partitions = Partitions::new();
    let mut rest = bytes.clone();
    if rest.is_empty() {
        return Some(partitions);
    }
    let _version = rest.try_get_i16().ok()?;
    for _ in 0..rest.try_get_i32().ok()? {
        let topic = take_string(&mut rest)?;
        let count = rest.try_get_i32().ok()?;
        let indexes = (0..count).map(|_| rest.try_get_i32().ok()).collect::<Option<Vec<_>>>()?;
        partitions.entry(topic).or_default().extend(indexes);
    }
    Some(partitions)
}

/// Gives every member, named by its id with its topics, a run of neighbouring partitions of each
/// topic; the first ones get one more where they do not come out even.
pub fn assign_range(
    members: &BTreeMap<Str, Vec<Str>>,
    partition_counts: &BTreeMap<Str, i32>,
) -> BTreeMap<Str, Partitions> {
    let mut shares: BTreeMap<Str, Partitions> =
        members.keys().map(|member| (member.clone(), Partitions::new())).collect();
    for (topic, &count) in partition_counts {
        let takers: Vec<&Str> =
            members.iter().filter(|(_, topics)| topics.contains(topic)).map(|it| it.0).collect();
        let Ok(of) = i32::try_from(takers.len()) else { continue };
        let mut next = 0;
        for (place, member) in (0..of).zip(takers) {
            let share = count / of + i32::from(place < count % of);
            if share > 0
                && let Some(partitions) = shares.get_mut(member)
            {
                partitions.insert(topic.clone(), (next..next + share).collect());
            }
            next += share;
        }
    }
    shares
}

fn put_string(out: &mut BytesMut, text: &str) {
    out.put_i16(text.len() as i16);
    out.put_slice(text.as_bytes());
}

fn take_string(rest: &mut Bytes) -> Option<Str> {
    let length = usize::try_from(rest.try_get_i16().ok()?).ok()?;
    (length <= rest.len()).then(|| Str::from_wire(rest.split_to(length)))
}

const NO_USER_DATA: i32 = -1;
