//! Groups of the consumer protocol: joining, sharing, giving up, leaving, being fenced.

use coordinator::Record;
use protocol::ErrorCode;
use protocol::group_records::{ConsumerGroupMetadataValue, Key};
use protocol::messages::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;

use crate::bench::{Bench, text};
use crate::consumer_bench::{Consumer, sizes};
use crate::world::{cluster, id, with_group_config, with_topic, with_topic_of, without_topic};

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.image = with_topic(&cluster(), "t", 1, 6);
    bench
}

#[test]
fn one_member_gets_all_and_survives_a_restart() {
    let mut bench = bench();
    let mut one = Consumer::new("one", &["t"]);
    let first = bench.tell(&mut one);
    assert_eq!((one.epoch, one.owned.len(), first.heartbeat_interval_ms), (2, 6, 5_000));
    assert_eq!(bench.tell(&mut one).assignment, None, "it has not changed");
    assert_eq!(bench.commit_as(&one, 2, 3), ErrorCode::NONE);
    assert_eq!(bench.state_of("g"), "consumer Stable");
    bench.restart();
    bench.tell(&mut one);
    assert_eq!((one.epoch, bench.committed("g", "t", 0)), (2, Some(3)));
    bench.pass(44_999);
    assert_eq!(bench.state_of("g"), "consumer Stable");
    bench.pass(1);
    assert_eq!(bench.state_of("g"), "consumer Empty");
    assert_eq!(bench.refused(&one.request()), ErrorCode::UNKNOWN_MEMBER_ID);
    bench.check_replay();
}

#[test]
fn members_share_and_move_no_more_than_needed() {
    let mut bench = bench();
    let mut members = vec![Consumer::new("one", &["t"])];
    bench.settle(&mut members);
    let all = members[0].owned.clone();
    members.push(Consumer::new("two", &["t"]));
    bench.settle(&mut members);
    assert_eq!(sizes(&members), [3, 3]);
    assert!(members[0].owned.is_subset(&all));
    let before: Vec<_> = members.iter().map(|it| it.owned.clone()).collect();
    members.push(Consumer::new("three", &["t"]));
    bench.settle(&mut members);
    assert_eq!(sizes(&members), [2, 2, 2]);
    assert!(members.iter().zip(before).all(|(member, old)| member.owned.is_subset(&old)));
    assert_eq!(bench.leave_consumer(&members.remove(0), -1), ErrorCode::NONE);
    bench.settle(&mut members);
    assert_eq!(sizes(&members), [3, 3]);
    assert_eq!(bench.state_of("g"), "consumer Stable");
}

#[test]
fn a_partition_is_not_given_out_before_it_is_given_up() {
    let mut bench = bench();
    let mut one = Consumer::new("one", &["t"]);
    bench.tell(&mut one);
    let mut two = Consumer::new("two", &["t"]);
    bench.tell(&mut two);
    assert_eq!((two.epoch, two.owned.len()), (3, 0));
    assert_eq!(bench.state_of("g"), "consumer Reconciling");
    let held = one.owned.clone();
    let answer = bench.send(&one.request());
    let assigned = answer.assignment.clone().unwrap().topic_partitions;
    assert_eq!((answer.member_epoch, assigned[0].partitions.len()), (2, 3));
    // It is told, but has not given anything up yet.
    bench.tell(&mut two);
    assert!(two.owned.is_empty());
    one.owned = held;
    assert_eq!(bench.send(&one.request()).member_epoch, 2);
    one.hear(&answer);
    bench.tell(&mut one);
    assert_eq!(one.epoch, 3);
    bench.tell(&mut two);
    assert_eq!((two.epoch, two.owned.len()), (3, 3));
    bench.check_replay();
}

#[test]
fn who_does_not_give_up_in_time_is_fenced() {
    let mut bench = bench();
    let mut one = Consumer::new("one", &["t"]);
    bench.tell(&mut one);
    let mut two = Consumer::new("two", &["t"]);
    bench.tell(&mut two);
    let stubborn = one.request();
    bench.send(&stubborn);
    for _ in 0..5 {
        bench.pass(5_000);
        assert_eq!(bench.refused(&stubborn), ErrorCode::NONE);
        bench.tell(&mut two);
    }
    bench.pass(5_000);
    assert_eq!(bench.refused(&stubborn), ErrorCode::UNKNOWN_MEMBER_ID);
    bench.settle(std::slice::from_mut(&mut two));
    assert_eq!(two.owned.len(), 6);
}

#[test]
fn a_lost_answer_is_asked_for_again_and_nothing_older() {
    let mut bench = bench();
    let mut one = Consumer::new("one", &["t"]);
    bench.tell(&mut one);
    bench.change_topics(with_topic(&bench.image, "t", 1, 8), &["t"]);
    let again = one.request();
    assert_eq!(bench.send(&again).member_epoch, 3);
    // The answer is lost: the member still says epoch 2 and owns what it had.
    let answer = bench.send(&again);
    assert_eq!((answer.error_code, answer.member_epoch), (ErrorCode::NONE, 3));
    let unclear = ConsumerGroupHeartbeatRequest { topic_partitions: None, ..again.clone() };
    assert_eq!(bench.refused(&unclear), ErrorCode::FENCED_MEMBER_EPOCH);
    let older = ConsumerGroupHeartbeatRequest { member_epoch: 1, ..again.clone() };
    assert_eq!(bench.refused(&older), ErrorCode::FENCED_MEMBER_EPOCH);
    let newer = ConsumerGroupHeartbeatRequest { member_epoch: 9, ..again };
    assert_eq!(bench.refused(&newer), ErrorCode::FENCED_MEMBER_EPOCH);
}

#[test]
fn topics_that_grow_come_and_go_are_followed() {
    let mut bench = bench();
    let mut members =
        vec![Consumer::new("one", &["t", "later"]), Consumer::new("two", &["t", "later"])];
    bench.settle(&mut members);
    assert_eq!(sizes(&members), [3, 3]);
    bench.change_topics(with_topic(&bench.image, "t", 1, 8), &["t"]);
    bench.settle(&mut members);
    assert_eq!(sizes(&members), [4, 4]);
    bench.change_topics(with_topic(&bench.image, "later", 2, 4), &["later"]);
    bench.settle(&mut members);
    assert_eq!(sizes(&members), [6, 6]);
    bench.change_topics(without_topic(&bench.image, 1), &["t"]);
    bench.settle(&mut members);
    assert_eq!(sizes(&members), [2, 2]);
    assert!(members.iter().flat_map(|it| &it.owned).all(|(topic, _)| *topic == id(2)));
    assert_eq!(bench.state_of("g"), "consumer Stable");
}

#[test]
fn assignments_are_no_closer_together_than_the_interval() {
    let mut bench = bench();
    bench.image = with_group_config(&bench.image, "g", "consumer.assignment.interval.ms", "1000");
    let mut one = Consumer::new("one", &["t"]);
    bench.tell(&mut one);
    let mut two = Consumer::new("two", &["t"]);
    bench.pass(999);
    bench.tell(&mut two);
    assert_eq!((two.epoch, bench.state_of("g").as_str()), (2, "consumer Assigning"));
    bench.pass(1);
    bench.tell(&mut one);
    assert_eq!(bench.state_of("g"), "consumer Reconciling");
}

#[test]
fn group_configs_win_over_those_of_the_broker() {
    let mut bench = bench();
    bench.image = with_group_config(&bench.image, "g", "consumer.session.timeout.ms", "2000");
    bench.image = with_group_config(&bench.image, "g", "consumer.heartbeat.interval.ms", "700");
    let mut one = Consumer::new("one", &["t"]);
    assert_eq!(bench.tell(&mut one).heartbeat_interval_ms, 700);
    bench.pass(2_000);
    assert_eq!(bench.state_of("g"), "consumer Empty");
}

#[test]
fn mistakes_are_named() {
    let mut bench = bench();
    let one = Consumer::new("one", &["t"]);
    let join = one.request();
    let with = |change: fn(&mut ConsumerGroupHeartbeatRequest)| {
        let mut request = one.request();
        change(&mut request);
        request
    };
    let invalid = [
        with(|it| it.group_id = text("")),
        with(|it| it.member_id = text("")),
        with(|it| it.instance_id = Some(text(" "))),
        with(|it| it.rack_id = Some(text(""))),
        with(|it| it.rebalance_timeout_ms = -1),
        with(|it| it.topic_partitions = None),
        with(|it| it.subscribed_topic_names = None),
        with(|it| it.member_epoch = -2),
        with(|it| it.member_epoch = -3),
    ];
    for request in &invalid {
        assert_eq!(bench.refused(request), ErrorCode::INVALID_REQUEST, "{request:?}");
    }
    let unknown = with(|it| it.member_epoch = 3);
    assert_eq!(bench.refused(&unknown), ErrorCode::GROUP_ID_NOT_FOUND);
    let assignor = with(|it| it.server_assignor = Some(text("best")));
    assert_eq!(bench.refused(&assignor), ErrorCode::UNSUPPORTED_ASSIGNOR);
    let pattern = with(|it| it.subscribed_topic_regex = Some(text("([")));
    assert_eq!(bench.refused(&pattern), ErrorCode::INVALID_REGULAR_EXPRESSION);
    let mut large = one.request();
    large.subscribed_topic_names = Some(vec![text(&"x".repeat(10_001))]);
    assert_eq!(bench.refused(&large), ErrorCode::INVALID_REQUEST);
    assert!(bench.log.is_empty(), "what is refused leaves nothing behind");
    bench.settings.consumer.members_max = 1;
    assert_eq!(bench.refused(&join), ErrorCode::NONE);
    let second = with(|it| it.member_id = text("two"));
    assert_eq!(bench.refused(&second), ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(bench.refused(&join), ErrorCode::NONE, "who is in may join again");
}

/// KIP-345.
#[test]
fn a_static_member_comes_back_to_what_it_had() {
    let mut bench = bench();
    let mut members =
        vec![Consumer::of_instance("a1", "a", &["t"]), Consumer::of_instance("b1", "b", &["t"])];
    bench.settle(&mut members);
    let epochs = (members[0].epoch, members[1].epoch);
    let had = members[0].owned.clone();
    let impostor = Consumer::of_instance("a2", "a", &["t"]);
    assert_eq!(bench.refused(&impostor.request()), ErrorCode::UNRELEASED_INSTANCE_ID);
    assert_eq!(bench.leave_consumer(&impostor, -2), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(bench.leave_consumer(&members[0], -2), ErrorCode::NONE);
    bench.check_replay();
    bench.tell(&mut members[1]);
    assert_eq!(members[1].owned.len(), 3, "nothing moves while it is away");
    members[0] = impostor;
    bench.settle(&mut members);
    assert_eq!((members[0].epoch, members[1].epoch), epochs);
    assert_eq!(members[0].owned, had);
    let old = Consumer { epoch: epochs.0, ..Consumer::of_instance("a1", "a", &["t"]) };
    assert_eq!(bench.refused(&old.request()), ErrorCode::FENCED_INSTANCE_ID);
    let unknown = Consumer { epoch: 2, ..Consumer::of_instance("c1", "c", &["t"]) };
    assert_eq!(bench.refused(&unknown.request()), ErrorCode::UNKNOWN_MEMBER_ID);
    // Away for longer than its session, it is out.
    assert_eq!(bench.leave_consumer(&members[0], -2), ErrorCode::NONE);
    for _ in 0..10 {
        bench.pass(5_000);
        bench.tell(&mut members[1]);
    }
    assert_eq!(members[1].owned.len(), 6);
}

#[test]
fn the_assignor_that_most_ask_for_decides() {
    let mut bench = bench();
    bench.image = with_topic(&bench.image, "u", 2, 6);
    let mut members = vec![Consumer::new("one", &["t", "u"]), Consumer::new("two", &["t", "u"])];
    members[0].assignor = Some(text("range"));
    bench.settle(&mut members);
    let of = |topic| {
        let mine = members[0].owned.iter().filter(move |(id, _)| *id == topic);
        mine.map(|(_, index)| *index).collect::<Vec<_>>()
    };
    assert_eq!((of(id(1)), of(id(2))), (vec![0, 1, 2], vec![0, 1, 2]));
}

#[test]
fn commits_are_for_those_that_know_their_epoch() {
    let mut bench = bench();
    let mut one = Consumer::new("one", &["t"]);
    bench.tell(&mut one);
    assert_eq!(bench.commit_as(&one, 2, 1), ErrorCode::NONE);
    assert_eq!(bench.commit_as(&one, 3, 2), ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(bench.commit_as(&one, 1, 3), ErrorCode::STALE_MEMBER_EPOCH);
    bench.change_topics(with_topic(&bench.image, "t", 1, 7), &["t"]);
    bench.tell(&mut one);
    assert_eq!(one.epoch, 3);
    // On its way while the epoch rose, for a partition that it has had all along.
    assert_eq!(bench.commit_as(&one, 2, 4), ErrorCode::NONE);
    let stranger = Consumer::new("stranger", &[]);
    assert_eq!(bench.commit_as(&stranger, 2, 5), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(bench.commit("g", "one", 3, ("t", 0, 6), ""), ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(bench.committed("g", "t", 0), Some(4));
    let fetch = |member: Option<&str>, epoch| {
        bench.coordinator.check_fetch("g", member.map(text).as_ref(), epoch).err()
    };
    assert_eq!(fetch(None, -1), None);
    assert_eq!(fetch(Some("one"), 3), None);
    assert_eq!(fetch(Some("one"), 2), Some(ErrorCode::STALE_MEMBER_EPOCH));
    assert_eq!(fetch(Some("nobody"), 3), Some(ErrorCode::UNKNOWN_MEMBER_ID));
}

#[test]
fn a_group_is_deleted_when_nobody_is_in_it() {
    let mut bench = bench();
    let mut one = Consumer::new("one", &["t"]);
    bench.tell(&mut one);
    bench.commit_as(&one, 2, 1);
    let delete = |bench: &mut Bench| {
        let ticket = bench.delete("g");
        bench.deleted(ticket).unwrap()
    };
    assert_eq!(delete(&mut bench), ErrorCode::NON_EMPTY_GROUP);
    assert_eq!(bench.leave_consumer(&one, -1), ErrorCode::NONE);
    assert_eq!(delete(&mut bench), ErrorCode::NONE);
    assert_eq!((bench.state_of("g"), bench.committed("g", "t", 0)), ("none".into(), None));
    assert_eq!(delete(&mut bench), ErrorCode::GROUP_ID_NOT_FOUND);
    bench.check_replay();
}

/// What Kafka 4.4 wrote for a group that subscribed to this very topic.
#[test]
fn topics_are_hashed_as_kafka_hashes_them() {
    let mut bench = Bench::new();
    let topic = "uuoOfhc1QpeSK83MgHQc8w".parse().unwrap();
    bench.image = with_topic_of(&cluster(), "hashed", topic, 3);
    bench.tell(&mut Consumer::new("one", &["hashed"]));
    let of_group =
        |record: &&Record| matches!(Key::decode(record.key.clone()), Ok(Key::ConsumerGroup(_)));
    let value = bench.log.iter().find(of_group).unwrap().value.clone().unwrap();
    let value = ConsumerGroupMetadataValue::decode(value).unwrap();
    assert_eq!((value.epoch, value.metadata_hash), (2, 815_701_915_549_685_204));
}

#[test]
fn patterns_are_matched_again_when_topics_come() {
    let mut bench = bench();
    bench.image = with_topic(&bench.image, "orders.eu", 2, 2);
    let mut one = Consumer::new("one", &[]);
    one.pattern = Some(text(r"\Qorders.\E[a-z]+"));
    bench.settle(std::slice::from_mut(&mut one));
    assert_eq!(one.owned.len(), 2);
    bench.change_topics(with_topic(&bench.image, "orders.us", 3, 3), &["orders.us"]);
    bench.change_topics(with_topic(&bench.image, "orders_eu", 4, 3), &["orders_eu"]);
    bench.settle(std::slice::from_mut(&mut one));
    assert_eq!(one.owned.len(), 2, "not before ten seconds have gone by");
    bench.pass(10_001);
    bench.settle(std::slice::from_mut(&mut one));
    assert_eq!(one.owned.len(), 5);
    bench.restart();
    bench.settle(std::slice::from_mut(&mut one));
    assert_eq!(one.owned.len(), 5);
}

#[test]
fn patterns_are_matched_again_as_often_as_the_broker_is_told_to() {
    let mut bench = bench();
    bench.settings.consumer.pattern_refresh_ms = 30_000;
    bench.image = with_topic(&bench.image, "orders.eu", 2, 2);
    let mut one = Consumer::new("one", &[]);
    one.pattern = Some(text(r"orders\..*"));
    bench.settle(std::slice::from_mut(&mut one));
    let matched = |bench: &Bench| {
        let keys = bench.log.iter().map(|record| Key::decode(record.key.clone()));
        keys.filter(|key| matches!(key, Ok(Key::Pattern(_)))).count()
    };
    let first = matched(&bench);
    for _ in 0..5 {
        bench.pass(5_000);
        bench.settle(std::slice::from_mut(&mut one));
    }
    assert_eq!(matched(&bench), first, "not within 30 s");
    for _ in 0..2 {
        bench.pass(5_000);
        bench.settle(std::slice::from_mut(&mut one));
    }
    assert_eq!(matched(&bench), first + 1);
}

#[test]
fn a_clock_that_is_set_back_holds_up_neither_assignments_nor_patterns() {
    let mut bench = bench();
    bench.settings.consumer.assignment_interval_ms.usual = 1_000;
    bench.image = with_topic(&bench.image, "orders.eu", 2, 2);
    let mut one = Consumer::new("one", &["t"]);
    one.pattern = Some(text(r"orders\..*"));
    bench.settle(std::slice::from_mut(&mut one));
    bench.pass(2_000);
    bench.settle(std::slice::from_mut(&mut one));
    assert_eq!(one.owned.len(), 8);
    bench.set_back_ms = 500_000;
    bench.change_topics(with_topic(&bench.image, "orders.us", 3, 3), &["orders.us"]);
    bench.settle(std::slice::from_mut(&mut one));
    bench.pass(2_000);
    bench.settle(std::slice::from_mut(&mut one));
    assert_eq!(one.owned.len(), 11);
}
