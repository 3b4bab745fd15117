//! Writes the seeds of the corpora: a few inputs that lead the fuzzer to every branch quickly.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use protocol::batch::{BatchBuilder, Codec, Compression, NewRecord};
use protocol::group_records::{
    ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue, ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue, ConsumerGroupTargetAssignmentMetadataValue,
    CurrentPartitions, GroupKey, GroupMetadataKey, GroupMetadataValue, Key, MemberKey,
    MemberMetadata, OffsetCommitKey, OffsetCommitValue, PatternKey, TargetPartitions,
};
use protocol::{Str, Uuid};

#[path = "bodies/frames.rs"]
mod frames;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    batches(&corpus.join("batches"))?;
    damages(&corpus.join("recovery"))?;
    groups(&corpus.join("groups"))?;
    empty_messages(&corpus.join("frames"))
}

fn batches(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for codec in Codec::ALL {
        for count in [1, 4] {
            let mut builder = BatchBuilder::new(Compression::of(codec)).producer(7, 1, 5);
            for index in 0..count {
                builder.append(&NewRecord {
                    timestamp: 1_700_000_000_000 - index,
                    key: (index > 0).then_some(b"key"),
                    value: Some(b"value value value"),
                    headers: &[("header", Some(b"x")), ("none", None)],
                });
            }
            // Rules: keep the producer's codec. Repairs: all of them.
            let input = [&[7, 7], &builder.build()[..]].concat();
            fs::write(folder.join(format!("{}-{count}", codec.name())), input)?;
        }
    }
    Ok(())
}

/// One change to each kind of file, and the whole log untouched.
fn damages(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("untouched"), [])?;
    for file in 0..8 {
        for change in [0, 4, 5] {
            let input = [file, change, 1, 44, 3, 0xff, 0, 1];
            fs::write(folder.join(format!("file-{file}-change-{change}")), input)?;
        }
    }
    Ok(())
}

/// Each kind of record of groups, alone and deleted, and a life of each kind of group.
fn groups(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let records = group_records();
    for (name, key, value) in &records {
        let (key, value) = (key.encode(), value.clone());
        fs::write(folder.join(name), input(&[(key.clone(), value.clone())]))?;
        let deleted = input(&[(key.clone(), value), (key, None)]);
        fs::write(folder.join(format!("{name}-deleted")), deleted)?;
    }
    let all: Vec<_> = records.into_iter().map(|(_, key, value)| (key.encode(), value)).collect();
    fs::write(folder.join("classic-life"), input(&all[..2]))?;
    fs::write(folder.join("consumer-life"), input(&all[2..]))
}

fn group_records() -> Vec<(&'static str, Key, Option<Bytes>)> {
    let text = Str::from_static;
    let (group, member, topic_id) = (text("g"), text("m"), Uuid([7; 16]));
    let of_group = || GroupKey { group: group.clone() };
    let of_member = || MemberKey { group: group.clone(), member: member.clone() };
    let offset = OffsetCommitKey { group: group.clone(), topic: text("t"), partition: 3 };
    let classic = GroupMetadataValue {
        protocol_type: text("consumer"),
        generation: 4,
        protocol: Some(text("range")),
        leader: Some(member.clone()),
        members: vec![MemberMetadata {
            member_id: member.clone(),
            session_timeout: 10_000,
            rebalance_timeout: 10_000,
            subscription: Bytes::from_static(b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff"),
            ..MemberMetadata::default()
        }],
        ..GroupMetadataValue::default()
    };
    let described = ConsumerGroupMemberMetadataValue {
        instance_id: Some(text("i")),
        client_id: text("c"),
        subscribed_topic_names: vec![text("t")],
        subscribed_topic_regex: Some(text("t.*")),
        rebalance_timeout_ms: 10_000,
        server_assignor: Some(text("uniform")),
        ..ConsumerGroupMemberMetadataValue::default()
    };
    let target = ConsumerGroupTargetAssignmentMemberValue {
        topic_partitions: vec![TargetPartitions { topic_id, partitions: vec![0, 1] }],
    };
    let held = |partitions| CurrentPartitions { topic_id, partitions, assignment_epochs: None };
    let current = ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch: 5,
        previous_member_epoch: 4,
        state: 1,
        assigned_partitions: vec![held(vec![0])],
        partitions_pending_revocation: vec![held(vec![1])],
    };
    let pattern = ConsumerGroupRegularExpressionValue {
        topics: vec![text("t")],
        version: 3,
        timestamp: 1_700_000_000_000,
    };
    let epoch = ConsumerGroupMetadataValue { epoch: 5, metadata_hash: 9 };
    let target_epoch =
        ConsumerGroupTargetAssignmentMetadataValue { assignment_epoch: 5, assignment_timestamp: 1 };
    let committed = OffsetCommitValue { offset: 8, ..OffsetCommitValue::default() };
    let of_pattern = PatternKey { group: group.clone(), pattern: text("t.*") };
    vec![
        ("offset", Key::Offset(offset), Some(committed.encode())),
        ("group", Key::Group(GroupMetadataKey { group: group.clone() }), Some(classic.encode())),
        ("consumer-group", Key::ConsumerGroup(of_group()), Some(epoch.encode())),
        ("member", Key::Member(of_member()), Some(described.encode())),
        ("target-epoch", Key::TargetEpoch(of_group()), Some(target_epoch.encode())),
        ("target", Key::Target(of_member()), Some(target.encode())),
        ("current", Key::Current(of_member()), Some(current.encode())),
        ("pattern", Key::Pattern(of_pattern), Some(pattern.encode())),
    ]
}

/// An input of the target `groups` made of these records.
fn input(records: &[(Bytes, Option<Bytes>)]) -> Vec<u8> {
    let mut input = Vec::new();
    for (key, value) in records {
        let length = value.as_ref().map_or(u16::MAX, |value| value.len() as u16);
        input.extend((key.len() as u16).to_be_bytes());
        input.extend(length.to_be_bytes());
        input.extend(key);
        input.extend(value.iter().flatten());
    }
    input
}

/// Some messages in their newest version, empty: the others are one changed byte away.
fn empty_messages(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, case) in frames::cases::all().iter().enumerate() {
        let api = case.name.trim_end_matches("Request").trim_end_matches("Response");
        if SEEDED.contains(&api) {
            let version = case.versions.max;
            let body = (case.encode_default)(version);
            let step = (version - case.versions.min) as u8;
            let input = [&[1, number as u8, step], &body[..]].concat();
            fs::write(folder.join(case.name), input)?;
        }
    }
    // A whole request: Metadata, version 1, correlation id 9, client "c", no topics.
    let request = [0, 0, 3, 0, 1, 0, 0, 0, 9, 0, 1, b'c', 0, 0, 0, 0];
    fs::write(folder.join("frame-metadata-1"), request)?;
    // ApiVersions, version 3, with tagged fields in its header.
    let request = [0, 0, 18, 0, 3, 0, 0, 0, 9, 0, 1, b'c', 0, 2, b'n', 2, b'1', 0];
    fs::write(folder.join("frame-api-versions-3"), request)
}

const SEEDED: [&str; 12] = [
    "AddPartitionsToTxn",
    "ApiVersions",
    "ConsumerGroupHeartbeat",
    "CreateTopics",
    "DescribeConfigs",
    "Fetch",
    "JoinGroup",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "Produce",
    "SyncGroup",
];
