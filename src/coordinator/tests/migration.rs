//! From one protocol to the other while members of both are there (KIP-848).

use bytes::Bytes;
use coordinator::Migration;
use protocol::consumer_protocol::{Assignment, NamedPartitions, Subscription};
use protocol::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use protocol::{ErrorCode, Str};

use crate::bench::{Bench, joining, syncing, text};
use crate::consumer_bench::{Consumer, Share};
use crate::world::{cluster, id, with_topic};

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.image = with_topic(&cluster(), "t", 1, 4);
    bench
}

fn named(indexes: &[i32]) -> Vec<NamedPartitions> {
    match indexes {
        [] => Vec::new(),
        _ => vec![NamedPartitions { topic: text("t"), partitions: indexes.to_vec() }],
    }
}

fn joining_with(member: &str, owned: &[i32]) -> JoinGroupRequest {
    let subscription = Subscription {
        topics: vec![text("t")],
        owned_partitions: named(owned),
        ..Subscription::default()
    };
    JoinGroupRequest {
        protocols: vec![JoinGroupRequestProtocol {
            name: text("cooperative-sticky"),
            metadata: subscription.encode(1),
        }],
        ..joining("g", member)
    }
}

fn share(assignment: Bytes) -> Vec<i32> {
    let topics = Assignment::decode(assignment).unwrap().assigned_partitions;
    topics.into_iter().flat_map(|it| it.partitions).collect()
}

/// Joins and fetches its share; the generation, and the share.
fn rejoin(bench: &mut Bench, member: &Str, owned: &[i32]) -> (i32, Vec<i32>) {
    let ticket = bench.join(5, &joining_with(member, owned));
    let joined = bench.joined(ticket).unwrap();
    assert_eq!(joined.error_code, ErrorCode::NONE);
    let sync = bench.sync(&syncing("g", member, joined.generation_id, &[]));
    let synced = bench.synced(sync).unwrap();
    assert_eq!(synced.error_code, ErrorCode::NONE);
    (joined.generation_id, share(synced.assignment))
}

/// A classic group whose one member has all four partitions.
fn classic_group(bench: &mut Bench) -> Str {
    let ask = bench.join(5, &joining_with("", &[]));
    let member = bench.joined(ask).unwrap().member_id;
    let ticket = bench.join(5, &joining_with(&member, &[]));
    bench.pass(0);
    assert_eq!(bench.joined(ticket).unwrap().generation_id, 1);
    let all = Assignment { assigned_partitions: named(&[0, 1, 2, 3]), user_data: None };
    let mut sync = syncing("g", &member, 1, &[(&member, "")]);
    sync.assignments[0].assignment = all.encode(1);
    let sync = bench.sync(&sync);
    assert_eq!(share(bench.synced(sync).unwrap().assignment), [0, 1, 2, 3]);
    member
}

#[test]
fn a_classic_group_is_upgraded_and_downgraded_while_it_runs() {
    let mut bench = bench();
    let old = classic_group(&mut bench);
    assert_eq!(bench.commit("g", &old, 1, ("t", 0, 5), ""), ErrorCode::NONE);
    let mut new = Consumer::new("new", &["t"]);
    bench.tell(&mut new);
    assert_eq!(bench.state_of("g"), "consumer Reconciling");
    assert_eq!((new.epoch, new.owned.len()), (2, 0));
    bench.check_replay();

    assert_eq!(bench.beat("g", &old, 1), ErrorCode::REBALANCE_IN_PROGRESS);
    let (generation, keeps) = rejoin(&mut bench, &old, &[0, 1, 2, 3]);
    assert_eq!((generation, keeps.len()), (1, 2), "first it gives up");
    assert_eq!(bench.beat("g", &old, 1), ErrorCode::REBALANCE_IN_PROGRESS);
    let (generation, keeps) = rejoin(&mut bench, &old, &keeps);
    assert_eq!((generation, keeps.len()), (2, 2));
    assert_eq!(bench.beat("g", &old, 2), ErrorCode::NONE);
    bench.tell(&mut new);
    assert_eq!(new.owned.len(), 2);
    let theirs: Share = keeps.iter().map(|&index| (id(1), index)).collect();
    assert!(theirs.is_disjoint(&new.owned));
    assert_eq!(bench.state_of("g"), "consumer Stable");
    assert_eq!(bench.commit("g", &old, 2, ("t", 0, 6), ""), ErrorCode::NONE);
    assert_eq!(bench.commit("g", &old, 9, ("t", 0, 7), ""), ErrorCode::ILLEGAL_GENERATION);
    bench.check_replay();
    bench.restart();

    assert_eq!(bench.leave_consumer(&new, -1), ErrorCode::NONE);
    assert_eq!(bench.state_of("g"), "classic PreparingRebalance");
    bench.check_replay();
    assert_eq!(bench.beat("g", &old, 2), ErrorCode::REBALANCE_IN_PROGRESS);
    let ticket = bench.join(5, &joining_with(&old, &keeps));
    let joined = bench.joined(ticket).unwrap();
    assert_eq!((joined.generation_id, joined.leader), (3, old));
    assert_eq!(bench.committed("g", "t", 0), Some(6));
}

#[test]
fn the_policy_says_in_which_direction() {
    let mut bench = bench();
    let old = classic_group(&mut bench);
    let new = Consumer::new("new", &["t"]);
    for policy in [Migration::Disabled, Migration::Downgrade] {
        bench.settings.consumer.migration = policy;
        assert_eq!(bench.refused(&new.request()), ErrorCode::GROUP_ID_NOT_FOUND);
        assert_eq!(bench.beat("g", &old, 1), ErrorCode::NONE);
    }
    bench.settings.consumer.migration = Migration::Upgrade;
    assert_eq!(bench.refused(&new.request()), ErrorCode::NONE);
    assert_eq!(bench.leave_consumer(&new, -1), ErrorCode::NONE);
    assert!(bench.state_of("g").starts_with("consumer"), "{}", bench.state_of("g"));
    bench.settings.consumer.migration = Migration::Disabled;
    let ticket = bench.join(5, &joining_with(&old, &[]));
    let answer = bench.joined(ticket).unwrap();
    assert_eq!(answer.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn empty_groups_of_either_kind_give_way() {
    let mut bench = bench();
    let old = classic_group(&mut bench);
    assert_eq!(bench.leave("g", &old), ErrorCode::NONE);
    let mut new = Consumer::new("new", &["t"]);
    bench.tell(&mut new);
    assert_eq!((bench.state_of("g").as_str(), new.owned.len()), ("consumer Stable", 4));
    bench.check_replay();
    assert_eq!(bench.leave_consumer(&new, -1), ErrorCode::NONE);
    classic_group(&mut bench);
    assert_eq!(bench.state_of("g"), "classic Stable");
    bench.check_replay();
}

#[test]
fn a_static_member_that_goes_back_takes_the_group_along() {
    let mut bench = bench();
    let mut new = Consumer::of_instance("new", "i", &["t"]);
    bench.tell(&mut new);
    let old_way = JoinGroupRequest { group_instance_id: Some(text("i")), ..joining_with("", &[]) };
    let ticket = bench.join(5, &old_way);
    let joined = bench.joined(ticket).unwrap();
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 2));
    assert_eq!(bench.state_of("g"), "classic Stable");
    let mut sync = syncing("g", &joined.member_id, 2, &[]);
    sync.group_instance_id = Some(text("i"));
    let sync = bench.sync(&sync);
    assert_eq!(share(bench.synced(sync).unwrap().assignment), [0, 1, 2, 3]);
    assert_eq!(bench.refused(&new.request()), ErrorCode::GROUP_ID_NOT_FOUND);
    bench.check_replay();
}

#[test]
fn a_classic_member_that_is_told_to_rejoin_and_does_not_is_fenced() {
    let mut bench = bench();
    let old = classic_group(&mut bench);
    let mut new = Consumer::new("new", &["t"]);
    bench.tell(&mut new);
    for _ in 0..6 {
        assert_eq!(bench.beat("g", &old, 1), ErrorCode::REBALANCE_IN_PROGRESS);
        bench.pass(5_000);
        bench.tell(&mut new);
    }
    assert_eq!(bench.beat("g", &old, 1), ErrorCode::UNKNOWN_MEMBER_ID);
    bench.settle(std::slice::from_mut(&mut new));
    assert_eq!(new.owned.len(), 4);
}
