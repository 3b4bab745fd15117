//! Committing, who may, and when offsets go.

use protocol::ErrorCode;

use crate::bench::{Bench, joining, text};

#[test]
fn members_commit_in_their_generation_only() {
    let mut bench = Bench::new();
    let member = bench.stable_group("g");
    assert_eq!(bench.commit("g", &member, 1, ("t", 0, 5), ""), ErrorCode::NONE);
    assert_eq!(bench.commit("g", &member, 0, ("t", 0, 9), ""), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(bench.commit("g", "x", 1, ("t", 0, 9), ""), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(bench.commit("g", "", -1, ("t", 0, 9), ""), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(bench.commit("h", &member, 1, ("t", 0, 9), ""), ErrorCode::ILLEGAL_GENERATION);
    let long = "12345678901";
    let refused = bench.commit("g", &member, 1, ("t", 0, 9), long);
    assert_eq!(refused, ErrorCode::OFFSET_METADATA_TOO_LARGE);
    assert_eq!(bench.committed("g", "t", 0), Some(5));
    let rejoin = bench.join(5, &joining("g", &member));
    assert_eq!(bench.joined(rejoin).unwrap().generation_id, 2);
    assert_eq!(bench.commit("g", &member, 2, ("t", 0, 9), ""), ErrorCode::REBALANCE_IN_PROGRESS);
    bench.restart();
    assert_eq!(bench.committed("g", "t", 0), Some(5));
}

#[test]
fn offsets_without_members_expire_counted_from_the_commit() {
    let mut bench = Bench::new();
    assert_eq!(bench.commit("g", "", -1, ("t", 0, 5), ""), ErrorCode::NONE);
    bench.pass(99_999);
    bench.expire();
    assert_eq!(bench.committed("g", "t", 0), Some(5));
    bench.pass(1);
    bench.expire();
    assert_eq!(bench.committed("g", "t", 0), None);
    assert!(bench.coordinator.list(&[], &[]).is_empty());
    bench.check_replay();
}

/// KAFKA-8069, KAFKA-13636: neither a restart nor a rebalance starts or hastens expiry.
#[test]
fn offsets_of_members_expire_counted_from_the_end_of_the_group() {
    let mut bench = Bench::new();
    let member = bench.stable_group("g");
    bench.commit("g", &member, 1, ("t", 0, 5), "");
    for _ in 0..30 {
        bench.pass(9_000);
        assert_eq!(bench.beat("g", &member, 1), ErrorCode::NONE);
        bench.expire();
    }
    assert_eq!(bench.committed("g", "t", 0), Some(5));
    assert_eq!(bench.leave("g", &member), ErrorCode::NONE);
    bench.pass(60_000);
    bench.restart();
    bench.pass(39_999);
    bench.expire();
    assert_eq!(bench.committed("g", "t", 0), Some(5));
    bench.pass(1);
    bench.expire();
    assert_eq!(bench.committed("g", "t", 0), None);
}

/// Ten thousand groups are not looked at in one go, and none is left out.
#[test]
fn a_sweep_goes_in_pieces() {
    let mut bench = Bench::new();
    for number in 0..2_500 {
        for partition in 0..2 {
            bench.commit(&format!("g{number}"), "", -1, ("t", partition, 1), "");
        }
    }
    assert_eq!(bench.expire(), 3 + 2 + 1, "5,000 offsets and 2,500 groups, 2,000 at a time");
    assert_eq!(bench.coordinator.list(&[], &[]).len(), 2_500);
    bench.pass(bench.settings.offsets_retention_ms);
    let written = bench.log.len();
    bench.expire();
    assert!(bench.coordinator.list(&[], &[]).is_empty());
    assert_eq!(bench.log.len() - written, 5_000 + 2_500, "a record for each offset and group");
    bench.check_replay();
}

#[test]
fn groups_and_offsets_are_deleted() {
    let mut bench = Bench::new();
    let member = bench.stable_group("g");
    bench.commit("g", &member, 1, ("t", 0, 5), "");
    bench.commit("g", &member, 1, ("u", 0, 6), "");
    let named = [(text("t"), 0), (text("u"), 0), (text("u"), 1)];
    let outcomes = bench.act(|it, _| it.delete_offsets(&text("g"), &named)).unwrap();
    let subscribed = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
    assert_eq!(outcomes, [subscribed, ErrorCode::NONE, ErrorCode::NONE]);
    assert_eq!((bench.committed("g", "t", 0), bench.committed("g", "u", 0)), (Some(5), None));
    let delete = |bench: &mut Bench| {
        let ticket = bench.delete("g");
        bench.deleted(ticket).unwrap()
    };
    assert_eq!(delete(&mut bench), ErrorCode::NON_EMPTY_GROUP);
    bench.leave("g", &member);
    assert_eq!(delete(&mut bench), ErrorCode::NONE);
    assert_eq!(delete(&mut bench), ErrorCode::GROUP_ID_NOT_FOUND);
    bench.check_replay();
    assert!(bench.replayed().list(&[], &[]).is_empty());
}

/// What cannot be read is named and left out.
#[test]
fn damaged_records_are_errors_and_change_nothing() {
    let mut bench = Bench::new();
    bench.commit("g", "", -1, ("t", 0, 5), "");
    let record = bench.log[0].clone();
    let value = record.value.clone().unwrap();
    let mut again = bench.replayed();
    for length in 0..record.key.len() {
        again.replay(&record.key[..length], Some(&value)).unwrap_err();
    }
    for length in 0..value.len() {
        again.replay(&record.key, Some(&value[..length])).unwrap_err();
    }
    assert_eq!(again.durable_state(), bench.coordinator.durable_state());
}
