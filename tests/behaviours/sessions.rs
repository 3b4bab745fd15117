//! Incremental fetch sessions (KIP-227) over the wire.

use protocol::ErrorCode;
use protocol::messages::fetch::{FetchRequest, FetchResponse, ForgottenTopic};

use crate::broker::Broker;
use crate::scenario::{Topic, batch, fetch_request, fetched, new_name, values};
use crate::wire::Connection;

/// Kafka protocol behaviour 46: a session answers everything once, and only what changed after
/// that.
#[test]
fn a_session_returns_only_news() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "news");
    let mut leader = topic.leader(broker, 0);
    let session = open(&mut leader, &[(&topic, 0, 0)]);
    let answer = leader.ask(12, &follow(session, 1, &[]));
    assert_eq!((answer.error_code, answer.session_id), (ErrorCode::NONE, session));
    assert!(answer.responses.is_empty(), "nothing has changed");

    leader.write(&topic, 0, batch(&["news"]));
    let answer = leader.ask(12, &follow(session, 2, &[]));
    assert_eq!(values(fetched(&answer)[0].1.records.as_ref()).len(), 1);
    // Until the client moves on the data is told again.
    let answer = leader.ask(12, &follow(session, 3, &[]));
    assert_eq!(values(fetched(&answer)[0].1.records.as_ref()).len(), 1);
    let answer = leader.ask(12, &follow(session, 4, &[(&topic, 0, 1)]));
    assert!(answer.responses.is_empty(), "{answer:?}");
}

/// Kafka protocol behaviour 46: a wrong epoch, an unknown id, and a change between names and ids
/// each have their error.
#[test]
fn sessions_are_followed_exactly() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "exact");
    let mut leader = topic.leader(broker, 0);
    let session = open(&mut leader, &[(&topic, 0, 0)]);
    let mut error = |version, id, epoch| leader.ask(version, &follow(id, epoch, &[])).error_code;
    assert_eq!(error(12, session, 2), ErrorCode::INVALID_FETCH_SESSION_EPOCH);
    assert_eq!(error(12, session ^ 1, 1), ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    assert_eq!(error(12, 0, 5), ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    assert_eq!(error(13, session, 1), ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
    assert_eq!(error(12, session, 1), ErrorCode::NONE, "the session itself goes on");
}

/// Kafka protocol behaviour 46: epoch -1 ends a session; epoch 0 begins one, whatever id is named.
#[test]
fn sessions_end_and_begin() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "ends");
    let mut leader = topic.leader(broker, 0);
    let session = open(&mut leader, &[(&topic, 0, 0)]);
    let last = leader.ask(12, &follow(session, -1, &[(&topic, 0, 0)]));
    assert_eq!((last.error_code, last.session_id, last.responses.len()), (ErrorCode::NONE, 0, 1));
    let gone = leader.ask(12, &follow(session, 1, &[]));
    assert_eq!(gone.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    let anew = leader.ask(12, &follow(session, 0, &[(&topic, 0, 0)]));
    assert_eq!(anew.error_code, ErrorCode::NONE);
    assert!(anew.session_id != 0);
}

/// Kafka protocol behaviour 46: an error makes the next good answer news again.
#[test]
fn recovery_from_an_error_is_told() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "recovers");
    let mut leader = topic.leader(broker, 0);
    let session = open(&mut leader, &[(&topic, 0, 0)]);
    let answer = leader.ask(12, &follow(session, 1, &[(&topic, 0, 99)]));
    assert_eq!(fetched(&answer)[0].1.error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    let answer = leader.ask(12, &follow(session, 2, &[(&topic, 0, 0)]));
    assert_eq!(fetched(&answer)[0].1.error_code, ErrorCode::NONE);
    assert!(leader.ask(12, &follow(session, 3, &[])).responses.is_empty());
}

/// Kafka protocol behaviour 46: partitions that are forgotten leave the session.
#[test]
fn forgotten_partitions_leave() {
    let broker = Broker::shared();
    let topic = Topic::create(broker, new_name("forgotten"), 4, &[]);
    let mine: Vec<i32> = (0..4).filter(|&index| topic.leaders[index as usize] == 0).collect();
    let [first, second] = mine.as_slice() else { panic!("{:?}", topic.leaders) };
    let mut leader = broker.connect(0);
    let session = open(&mut leader, &[(&topic, *first, 0), (&topic, *second, 0)]);
    let gone = ForgottenTopic {
        topic: topic.name.clone(),
        partitions: vec![*first],
        ..Default::default()
    };
    let forget = FetchRequest { forgotten_topics_data: vec![gone], ..follow(session, 1, &[]) };
    assert!(leader.ask(12, &forget).responses.is_empty());
    for partition in [*first, *second] {
        leader.write(&topic, partition, batch(&["x"]));
    }
    let answer = leader.ask(12, &follow(session, 2, &[]));
    let told: Vec<i32> = fetched(&answer).iter().map(|it| it.1.partition_index).collect();
    assert_eq!(told, [*second]);
}

/// Kafka protocol behaviour 43: a partition that returned data goes to the end of its session, so
/// that none starves behind a byte limit.
#[test]
fn no_partition_of_a_session_starves() {
    let broker = Broker::shared();
    let topic = Topic::create(broker, new_name("starves"), 4, &[]);
    let mine: Vec<i32> = (0..4).filter(|&index| topic.leaders[index as usize] == 0).collect();
    let mut leader = broker.connect(0);
    let wanted: Vec<_> = mine.iter().map(|&index| (&topic, index, 0)).collect();
    let session = open(&mut leader, &wanted);
    for &partition in &mine {
        leader.write(&topic, partition, batch(&["x"]));
    }
    let mut seen = Vec::new();
    for epoch in 1..=2 {
        let answer = leader.ask(12, &FetchRequest { max_bytes: 1, ..follow(session, epoch, &[]) });
        let found = fetched(&answer);
        let with_data = found.iter().filter(|it| !values(it.1.records.as_ref()).is_empty());
        seen.extend(with_data.map(|it| it.1.partition_index));
    }
    assert_eq!(seen, mine, "one after the other although neither was moved on");
}

/// Kafka protocol behaviour 47: in a session by id a deleted topic is an unknown partition, and one
/// made anew under its name an INCONSISTENT_TOPIC_ID.
#[test]
fn a_session_notices_that_a_topic_was_made_anew() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "anew");
    let mut leader = topic.leader(broker, 0);
    let request = FetchRequest { session_epoch: 0, ..fetch_request(&[(&topic, 0, 0)]) };
    let session = leader.ask(13, &request).session_id;
    assert!(session != 0);
    topic.delete(broker);
    let answer = leader.ask(13, &follow(session, 1, &[]));
    assert_eq!(fetched(&answer)[0].1.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    Topic::create(broker, topic.name.clone(), 1, &[]);
    let answer = leader.ask(13, &follow(session, 2, &[]));
    assert_eq!(fetched(&answer)[0].1.error_code, ErrorCode::INCONSISTENT_TOPIC_ID);
}

/// With no slots in the session cache every fetch is a whole one and no session is offered.
#[test]
fn sessions_need_room_in_the_cache() {
    let broker = Broker::start_with(&["max.incremental.fetch.session.cache.slots=0"]);
    let topic = Topic::new(&broker, "no-room");
    let mut leader = topic.leader(&broker, 0);
    let request = FetchRequest { session_epoch: 0, ..fetch_request(&[(&topic, 0, 0)]) };
    let answer = leader.ask(12, &request);
    assert_eq!(
        (answer.error_code, answer.session_id, answer.responses.len()),
        (ErrorCode::NONE, 0, 1)
    );
}

/// Fifty thousand partitions, most of which do not exist: all are answered in their order, and each
/// has its place in the session whatever is changed in between.
#[test]
fn a_session_of_very_many_partitions() {
    const MANY: i32 = 50_000;
    let broker = Broker::shared();
    let topic = Topic::new(broker, "very-many");
    let mut leader = topic.leader(broker, 0);
    let wanted: Vec<_> = (0..MANY).map(|index| (&topic, index, 0)).collect();
    let session = open(&mut leader, &wanted);
    let told = |answer: &FetchResponse| -> Vec<(i32, ErrorCode)> {
        let each = fetched(answer).into_iter();
        each.map(|(_, it)| (it.partition_index, it.error_code)).collect()
    };
    let missing = |index| (index, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    // An error is news each time, the only partition that exists is not.
    let answer = leader.ask(12, &follow(session, 1, &[]));
    assert!(told(&answer).into_iter().eq((1..MANY).map(missing)));
    leader.write(&topic, 0, batch(&["a"]));
    let gone = ForgottenTopic {
        topic: topic.name.clone(),
        partitions: (2..MANY - 1).collect(),
        ..ForgottenTopic::default()
    };
    let forget = FetchRequest { forgotten_topics_data: vec![gone], ..follow(session, 2, &[]) };
    let answer = leader.ask(12, &forget);
    assert_eq!(told(&answer), [(0, ErrorCode::NONE), missing(1), missing(MANY - 1)]);
    let answer = leader.ask(12, &follow(session, 3, &[(&topic, 0, 1)]));
    assert_eq!(told(&answer), [missing(1), missing(MANY - 1)]);
    let last = leader.ask(12, &follow(session, -1, &[(&topic, 0, 0)]));
    assert_eq!((told(&last), last.session_id), (vec![(0, ErrorCode::NONE)], 0));
}

/// Opens a session and gives its id.
fn open(leader: &mut Connection, wanted: &[(&Topic, i32, i64)]) -> i32 {
    let request = FetchRequest { session_epoch: 0, ..fetch_request(wanted) };
    let answer = leader.ask(12, &request);
    assert_eq!(answer.error_code, ErrorCode::NONE);
    assert_eq!(fetched(&answer).len(), wanted.len(), "a new session answers everything");
    assert!(answer.session_id != 0);
    answer.session_id
}

/// The next request of a session, with what changes.
fn follow(session_id: i32, session_epoch: i32, wanted: &[(&Topic, i32, i64)]) -> FetchRequest {
    FetchRequest { session_id, session_epoch, ..fetch_request(wanted) }
}
