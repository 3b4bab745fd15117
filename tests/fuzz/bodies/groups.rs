//! What the fuzz target `groups` does with one input: records of the topic of committed offsets.
//!
//! ```text
//! each record: bytes of the key u16 | bytes of the value u16, 65535 for none | key | value
//! ```
//! Parsing may fail; what it accepts must survive encoding. All records are replayed into a
//! coordinator, which must know afterwards what its own records say again.

use bytes::{Buf, Bytes};
use coordinator::{
    Assignor, ConsumerGroupSettings, Coordinator, GroupSettings, GroupTiming, Migration, Sweep,
    World,
};
use metadata::Image;
use protocol::group_records::{
    ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue, ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue, ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataValue, Key, OffsetCommitValue,
};

const NO_VALUE: u16 = u16::MAX;
const RECORDS_MAX: usize = 64;

pub fn run(input: &[u8]) {
    let mut coordinator = Coordinator::default();
    for (key, value) in records(Bytes::copy_from_slice(input)) {
        let parsed = Key::decode(key.clone());
        if let Ok(key) = &parsed {
            parse_as(key, value.clone());
        }
        let replayed = coordinator.replay(&key, value.as_deref());
        assert!(parsed.is_ok() || replayed.is_err(), "a record without a key was replayed");
    }
    let before = coordinator.durable_state();
    let mut again = Coordinator::default();
    for record in &before.consumers {
        let replayed = again.replay(&record.key, record.value.as_deref());
        assert!(replayed.is_ok(), "its own record: {replayed:?}");
    }
    assert_eq!(again.durable_state().consumers, before.consumers, "replayed to something else");
    live(coordinator);
}

fn records(mut input: Bytes) -> Vec<(Bytes, Option<Bytes>)> {
    let mut records = Vec::new();
    while input.len() >= 4 && records.len() < RECORDS_MAX {
        let (key, value) = (input.get_u16(), input.get_u16());
        let key = input.split_to(input.len().min(usize::from(key)));
        let value = (value != NO_VALUE).then(|| {
            let length = input.len().min(usize::from(value));
            input.split_to(length)
        });
        records.push((key, value));
    }
    records
}

/// Parses a value as its key wants it; what is accepted is encoded and parsed again.
fn parse_as(key: &Key, value: Option<Bytes>) {
    macro_rules! survives {
        ($value:ty, $bytes:expr) => {
            if let Ok(parsed) = <$value>::decode($bytes) {
                let encoded = parsed.encode();
                let again = <$value>::decode(encoded.clone());
                assert_eq!(again.map(|it| it.encode()), Ok(encoded), "changes when encoded twice");
            }
        };
    }
    if let Key::Other(_) = key {
        return;
    }
    let encoded = key.encode();
    let again = Key::decode(encoded.clone()).map(|key| key.encode());
    assert_eq!(again, Ok(encoded), "a key changes when encoded twice");
    let Some(value) = value else { return };
    match key {
        Key::Offset(_) => survives!(OffsetCommitValue, value),
        Key::Group(_) => survives!(GroupMetadataValue, value),
        Key::ConsumerGroup(_) => survives!(ConsumerGroupMetadataValue, value),
        Key::Member(_) => survives!(ConsumerGroupMemberMetadataValue, value),
        Key::TargetEpoch(_) => survives!(ConsumerGroupTargetAssignmentMetadataValue, value),
        Key::Target(_) => survives!(ConsumerGroupTargetAssignmentMemberValue, value),
        Key::Current(_) => survives!(ConsumerGroupCurrentMemberAssignmentValue, value),
        Key::Pattern(_) => survives!(ConsumerGroupRegularExpressionValue, value),
        Key::PartitionMetadata(_) | Key::Other(_) => {}
    }
}

/// What was replayed goes into service: sessions end, offsets expire, groups are shown.
fn live(mut coordinator: Coordinator) {
    let (image, settings) = (Image::default(), settings());
    let world = |now_ms: i64| World {
        now_ms,
        wall_ms: 1_700_000_000_000 + now_ms,
        random: 7,
        settings: &settings,
        image: &image,
    };
    let mut log = coordinator.on_loaded(&world(0)).records;
    for _ in 0..RECORDS_MAX {
        let Some(due_ms) = coordinator.poll_wake() else { break };
        log.extend(coordinator.on_time(&world(due_ms)).records);
    }
    let mut sweep = Some(Sweep::default());
    while let Some(next) = &sweep {
        let (output, next) = coordinator.expire(&world(i64::from(u32::MAX)), next);
        log.extend(output.records);
        sweep = next;
    }
    for record in log {
        let replayed = Coordinator::default().replay(&record.key, record.value.as_deref());
        assert!(replayed.is_ok(), "its own record: {replayed:?}");
    }
}

fn settings() -> GroupSettings {
    let timing = |key, usual| GroupTiming { key, usual, least: 1, most: i32::MAX };
    GroupSettings {
        initial_rebalance_delay_ms: 0,
        session_timeout_min_ms: 1,
        session_timeout_max_ms: i32::MAX,
        members_max: 100,
        offset_metadata_chars_max: 4096,
        offsets_retention_ms: 1000,
        record_bytes_max: 1 << 20,
        consumer: ConsumerGroupSettings {
            session_timeout_ms: timing("consumer.session.timeout.ms", 1000),
            heartbeat_interval_ms: timing("consumer.heartbeat.interval.ms", 100),
            assignment_interval_ms: timing("consumer.assignment.interval.ms", 0),
            members_max: 100,
            assignors: Assignor::named("uniform").into_iter().collect(),
            migration: Migration::Bidirectional,
            pattern_refresh_ms: 600_000,
        },
    }
}
