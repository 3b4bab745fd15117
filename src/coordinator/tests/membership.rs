//! Joining, sharing, leaving, and what becomes of members that are not heard of.

use protocol::ErrorCode;
use protocol::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};

use crate::bench::{Bench, joining, syncing, text};

#[test]
fn two_members_share_and_the_standby_takes_over() {
    let mut bench = Bench::new();
    let first = bench.stable_group("g");
    let (second, waits) = bench.new_member("g");
    assert_eq!(bench.joined(waits), None);
    assert_eq!(bench.beat("g", &first, 1), ErrorCode::REBALANCE_IN_PROGRESS);
    let again = bench.join(5, &joining("g", &first));
    let (leader, follower) = (bench.joined(again).unwrap(), bench.joined(waits).unwrap());
    assert_eq!((leader.generation_id, follower.generation_id), (2, 2));
    assert_eq!((&leader.leader, &follower.leader), (&first, &first));
    assert_eq!((leader.members.len(), follower.members.len()), (2, 0));
    let early = bench.sync(&syncing("g", &second, 2, &[]));
    assert_eq!(bench.synced(early), None);
    let done = bench.sync(&syncing("g", &first, 2, &[(&first, "a"), (&second, "b"), ("x", "c")]));
    assert_eq!(bench.synced(done).unwrap().assignment, "a");
    assert_eq!(bench.synced(early).unwrap().assignment, "b");
    bench.check_replay();

    bench.pass(9_000);
    assert_eq!(bench.beat("g", &second, 2), ErrorCode::NONE);
    bench.pass(2_000);
    assert_eq!(bench.beat("g", &second, 2), ErrorCode::REBALANCE_IN_PROGRESS);
    let alone = bench.join(5, &joining("g", &second));
    let alone = bench.joined(alone).unwrap();
    assert_eq!((alone.generation_id, alone.leader, alone.members.len()), (3, second, 1));
    assert_eq!(bench.beat("g", &first, 2), ErrorCode::UNKNOWN_MEMBER_ID);
}

/// Who supports what is counted, also for whom changes its mind, goes, or names a protocol twice.
#[test]
fn a_newcomer_has_to_support_what_all_members_do_by_now() {
    let mut bench = Bench::new();
    let offering = |member: &str, names: &[&str]| JoinGroupRequest {
        protocols: names
            .iter()
            .map(|name| JoinGroupRequestProtocol { name: text(name), ..Default::default() })
            .collect(),
        ..joining("g", member)
    };
    // Version 3 gets no id first.
    let alone = bench.join(3, &offering("", &["a", "b", "b"]));
    bench.pass(0);
    let first = bench.joined(alone).unwrap().member_id;
    let newcomer = bench.join(3, &offering("", &["b"]));
    let again = bench.join(3, &offering(&first, &["a", "b", "a"]));
    let (first_told, told) = (bench.joined(again).unwrap(), bench.joined(newcomer).unwrap());
    assert_eq!((first_told.protocol_name.as_deref(), told.generation_id), (Some("b"), 2));
    let refused = |bench: &mut Bench, member: &str, names: &[&str]| {
        let ticket = bench.join(3, &offering(member, names));
        bench.joined(ticket).is_some_and(|it| it.error_code.is_error())
    };
    assert!(refused(&mut bench, "", &["a"]), "the second member does not support it");
    assert_eq!(bench.leave("g", &told.member_id), ErrorCode::NONE);
    let again = bench.join(3, &offering(&first, &["a"]));
    assert_eq!(bench.joined(again).unwrap().protocol_name.as_deref(), Some("a"));
    assert!(refused(&mut bench, "", &["b"]), "the first member does no more");
    assert!(!refused(&mut bench, "", &["b", "a"]));
}

#[test]
fn the_first_rebalance_waits_for_more_members() {
    let mut bench = Bench::new();
    bench.settings.initial_rebalance_delay_ms = 3_000;
    let (_, first) = bench.new_member("g");
    bench.pass(2_000);
    let (_, second) = bench.new_member("g");
    bench.pass(3_999);
    assert_eq!(bench.joined(first), None);
    bench.pass(1);
    assert_eq!(bench.joined(first).unwrap().generation_id, 1);
    assert_eq!(bench.joined(second).unwrap().generation_id, 1);
}

#[test]
fn those_who_do_not_get_in_are_not_waited_for() {
    let mut bench = Bench::new();
    bench.settings.members_max = 2;
    let first = bench.stable_group("g");
    let ids: Vec<_> = (0..3)
        .map(|_| {
            let asked = bench.join(5, &joining("g", ""));
            bench.joined(asked).unwrap().member_id
        })
        .collect();
    let joins: Vec<_> = ids.iter().map(|id| bench.join(5, &joining("g", id))).collect();
    let late = bench.join(5, &joining("g", &first));
    for refused in [joins[2], late] {
        let answer = bench.joined(refused).unwrap();
        assert_eq!(answer.error_code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    }
    for joined in &joins[..2] {
        assert_eq!(bench.joined(*joined).unwrap().generation_id, 2);
    }
}

#[test]
fn an_assignment_that_no_record_can_hold_is_refused() {
    let mut bench = Bench::new();
    let (first, joined) = bench.new_member("g");
    bench.pass(0);
    let generation = bench.joined(joined).unwrap().generation_id;
    let large = "x".repeat(10_000);
    let asked = bench.sync(&syncing("g", &first, generation, &[(&first, &large)]));
    assert_eq!(bench.synced(asked).unwrap().error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
    assert_eq!(bench.beat("g", &first, generation), ErrorCode::REBALANCE_IN_PROGRESS);
    let again = bench.join(5, &joining("g", &first));
    let generation = bench.joined(again).unwrap().generation_id;
    let asked = bench.sync(&syncing("g", &first, generation, &[(&first, "x")]));
    assert_eq!(bench.synced(asked).unwrap().assignment, "x");
    bench.check_replay();
}

#[test]
fn a_member_that_does_not_come_back_is_left_behind() {
    let mut bench = Bench::new();
    let first = bench.stable_group("g");
    let (_, second) = bench.new_member("g");
    for _ in 0..4 {
        bench.pass(7_000);
        assert_eq!(bench.beat("g", &first, 1), ErrorCode::REBALANCE_IN_PROGRESS);
    }
    bench.pass(2_000);
    assert_eq!(bench.joined(second).unwrap().members.len(), 1);
    assert_eq!(bench.beat("g", &first, 1), ErrorCode::UNKNOWN_MEMBER_ID);
}

/// KAFKA-7610: clients that only ever ask for an id hold a rebalance up for their session at most.
#[test]
fn ids_that_are_never_used_expire() {
    let mut bench = Bench::new();
    let first = bench.stable_group("g");
    for _ in 0..50 {
        let ask = bench.join(5, &joining("g", ""));
        assert_eq!(bench.joined(ask).unwrap().error_code, ErrorCode::MEMBER_ID_REQUIRED);
    }
    let (_, second) = bench.new_member("g");
    let again = bench.join(5, &joining("g", &first));
    bench.pass(9_999);
    assert_eq!(bench.joined(again), None);
    bench.pass(1);
    assert_eq!(bench.joined(again).unwrap().members.len(), 2);
    assert_eq!(bench.joined(second).unwrap().generation_id, 2);
}

#[test]
fn mistakes_are_named() {
    let mut bench = Bench::new();
    let member = bench.stable_group("g");
    let mut request = joining("g", "");
    request.session_timeout_ms = 999;
    let ticket = bench.join(5, &request);
    let error = bench.joined(ticket).unwrap().error_code;
    assert_eq!(error, ErrorCode::INVALID_SESSION_TIMEOUT);
    let mut request = joining("g", "");
    request.protocol_type = text("connect");
    let ticket = bench.join(5, &request);
    let error = bench.joined(ticket).unwrap().error_code;
    assert_eq!(error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let ticket = bench.join(5, &joining("g", "nobody"));
    assert_eq!(bench.joined(ticket).unwrap().error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    let ticket = bench.sync(&syncing("g", &member, 7, &[]));
    assert_eq!(bench.synced(ticket).unwrap().error_code, ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(bench.beat("g", &member, 0), ErrorCode::ILLEGAL_GENERATION);
    bench.settings.members_max = 1;
    let ticket = bench.join(3, &joining("g", ""));
    let error = bench.joined(ticket).unwrap().error_code;
    assert_eq!(error, ErrorCode::GROUP_MAX_SIZE_REACHED);
}

/// KIP-345 and KIP-814.
#[test]
fn a_static_member_takes_its_own_place() {
    let mut bench = Bench::new();
    let mut request = joining("g", "");
    request.group_instance_id = Some(text("one"));
    let ticket = bench.join(9, &request);
    bench.pass(0);
    let first = bench.joined(ticket).unwrap();
    bench.sync(&syncing("g", &first.member_id, 1, &[(&first.member_id, "all")]));
    let ticket = bench.join(9, &request);
    let second = bench.joined(ticket).unwrap();
    assert_eq!((second.generation_id, second.skip_assignment), (1, true));
    assert!(second.member_id != first.member_id && second.leader == second.member_id);
    let mut old = joining("g", &first.member_id);
    old.group_instance_id = Some(text("one"));
    let ticket = bench.join(9, &old);
    assert_eq!(bench.joined(ticket).unwrap().error_code, ErrorCode::FENCED_INSTANCE_ID);
    let ticket = bench.sync(&syncing("g", &second.member_id, 1, &[]));
    assert_eq!(bench.synced(ticket).unwrap().assignment, "all");
    bench.check_replay();
}

#[test]
fn a_group_goes_on_after_a_restart() {
    let mut bench = Bench::new();
    let member = bench.stable_group("g");
    bench.restart();
    assert_eq!(bench.beat("g", &member, 1), ErrorCode::NONE);
    bench.pass(10_001);
    assert_eq!(bench.beat("g", &member, 1), ErrorCode::UNKNOWN_MEMBER_ID);
    bench.check_replay();
}
