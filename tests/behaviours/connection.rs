//! Frames, order and the end of connections.

use protocol::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use protocol::messages::fetch::{FetchRequest, FetchResponse};
use protocol::messages::metadata::{MetadataRequest, MetadataResponse};
use protocol::{ErrorCode, Str};

use crate::broker::Broker;
use crate::scenario::{Topic, batch, fetch_request, produce_request, wait_until};
use crate::wire::Connection;

/// Kafka protocol behaviour 8: a request for an API or a version that is not served ends its
/// connection, since no error body exists for it; other connections go on.
#[test]
fn unknown_apis_and_versions_end_the_connection() {
    let broker = Broker::shared();
    let mut bystander = broker.connect(0);
    assert!(serves(&mut bystander));
    for (api, version) in [(999i16, 0i16), (-1, 0), (3, 99), (3, -1), (0, 99), (24, 0)] {
        let mut connection = broker.connect(0);
        connection.send_frame(&header(api, version));
        connection.expect_end();
    }
    assert!(serves(&mut bystander));
}

/// Kafka protocol behaviour 5: Produce 0 to 2 are advertised, but using one ends the connection.
#[test]
fn produce_below_version_3_ends_the_connection() {
    for version in 0..=2 {
        let mut connection = Broker::shared().connect(0);
        connection.send_frame(&header(0, version));
        connection.expect_end();
    }
}

/// Kafka protocol behaviour 10: replies leave strictly in the order of the requests, also behind
/// one that has to wait.
#[test]
fn answers_keep_the_order_of_requests() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "order");
    let mut connection = topic.leader(broker, 0);
    let waiting = connection.send(12, &parked(&topic, 700));
    let second = connection.send(9, &MetadataRequest::default());
    let third = connection.send(0, &ApiVersionsRequest::default());

    let (id, fetch) = connection.receive_as::<FetchResponse>(12);
    assert_eq!((id, fetch.error_code), (waiting, ErrorCode::NONE));
    let (id, _) = connection.receive_as::<MetadataResponse>(9);
    assert_eq!(id, second);
    let (id, _) = connection.receive_as::<ApiVersionsResponse>(0);
    assert_eq!(id, third);
}

/// Kafka protocol behaviour 10: a pipeline of writes lands in the order in which it was sent.
#[test]
fn pipelined_writes_keep_their_order() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "pipeline");
    let mut connection = topic.leader(broker, 0);
    let sent: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let ids: Vec<i32> = sent
        .iter()
        .map(|value| connection.send(9, &produce_request(-1, &topic, 0, batch(&[value]))))
        .collect();
    for (offset, id) in (0..).zip(ids) {
        let (answered, answer) =
            connection.receive_as::<protocol::messages::produce::ProduceResponse>(9);
        assert_eq!(answered, id);
        let outcome = &answer.responses[0].partition_responses[0];
        assert_eq!((outcome.error_code, outcome.base_offset), (ErrorCode::NONE, offset));
    }
    let read: Vec<String> = connection.read(&topic, 0, 0).into_iter().map(|it| it.1).collect();
    assert_eq!(read, sent);
}

/// Kafka protocol behaviour 9: ApiVersions is answered at once while many others wait.
#[test]
fn api_versions_does_not_wait_behind_others() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "parked");
    let mut waiting: Vec<Connection> = (0..32).map(|_| topic.leader(broker, 0)).collect();
    for connection in &mut waiting {
        connection.send(12, &parked(&topic, 600_000));
    }
    assert!(serves(&mut topic.leader(broker, 0)));
    assert!(waiting.iter_mut().all(Connection::is_silent), "they still wait");
}

/// A client that goes while its fetch waits is let go at once: its socket is not kept for as long
/// as the fetch may wait.
#[test]
fn who_leaves_while_a_fetch_waits_is_let_go() {
    let broker = Broker::start_new();
    let topic = Topic::new(&broker, "left");
    let core = topic.leaders[0];
    let open = || broker.metric("coretide_connections", core);
    wait_until("nobody is connected", || open() == 0.0);
    let mut waiting: Vec<Connection> = (0..8).map(|_| topic.leader(&broker, 0)).collect();
    for connection in &mut waiting {
        connection.send(12, &parked(&topic, 600_000));
    }
    wait_until("all of them are connected", || open() == 8.0);
    assert!(waiting.iter_mut().all(Connection::is_silent), "they wait");
    drop(waiting);
    wait_until("they are gone", || open() == 0.0);
}

/// Kafka protocol behaviour 11: a client may hold a second connection to the same node (as for its
/// group coordinator), which does not wait for the first.
#[test]
fn two_connections_to_one_node_are_independent() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "second");
    let (mut first, mut second) = (topic.leader(broker, 0), topic.leader(broker, 0));
    first.send(12, &parked(&topic, 600_000));
    assert!(serves(&mut second));
    assert!(first.is_silent());
    assert_eq!(second.write(&topic, 0, batch(&["wakes the other"])), 0);
    let (_, woken) = first.receive_as::<FetchResponse>(12);
    assert!(!woken.responses.is_empty());
}

/// Kafka protocol behaviour 12: acks=0 is not answered; what it wrote is there.
#[test]
fn acks_0_is_silent() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "acks0");
    let mut connection = topic.leader(broker, 0);
    connection.send(9, &produce_request(0, &topic, 0, batch(&["fire and forget"])));
    // The next answer on this connection is the one to the next request.
    assert!(serves(&mut connection));
    wait_until("the record is there", || !connection.read(&topic, 0, 0).is_empty());
}

/// Kafka protocol behaviour 12: an error with acks=0 ends the connection.
#[test]
fn an_error_with_acks_0_ends_the_connection() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "acks0-error");
    let mut misdirected = topic.stranger(broker, 0);
    misdirected.send(9, &produce_request(0, &topic, 0, batch(&["x"])));
    misdirected.expect_end();

    let mut corrupt = topic.leader(broker, 0);
    let mut bytes = batch(&["x"]).to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let bytes = bytes::Bytes::from(bytes);
    corrupt.send(9, &produce_request(0, &topic, 0, bytes));
    corrupt.expect_end();
    assert!(topic.leader(broker, 0).read(&topic, 0, 0).is_empty());
}

/// Kafka protocol behaviour 13: every answer says for how long to hold back, and without quotas
/// that is not at all.
#[test]
fn nobody_is_throttled() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "throttle");
    let mut connection = topic.leader(broker, 0);
    let request = produce_request(-1, &topic, 0, batch(&["x"]));
    assert_eq!(connection.ask(9, &request).throttle_time_ms, 0);
    let fetched = connection.ask(12, &fetch_request(&[(&topic, 0, 0)]));
    assert_eq!((fetched.throttle_time_ms, fetched.responses.len()), (0, 1));
    assert_eq!(connection.ask(9, &MetadataRequest::default()).throttle_time_ms, 0);
}

/// Kafka protocol behaviour 15: tagged fields that are not known are skipped, in the header and in
/// the body.
#[test]
fn unknown_tagged_fields_are_skipped() {
    let mut connection = Broker::shared().connect(0);
    let mut frame = header(18, 3);
    frame.extend([2, 77, 3, b'a', b'b', b'c', 78, 0]); // two tagged fields of the header
    frame.extend([2, b'a', 2, b'1']); // software name and version
    frame.extend([1, 99, 2, 0, 0]); // a tagged field of the body
    connection.send_frame(&frame);
    let (id, answer) = connection.receive_as::<ApiVersionsResponse>(3);
    assert_eq!((id, answer.error_code), (7, ErrorCode::NONE));
}

/// Bytes behind the body of a request are left alone, as in Kafka.
#[test]
fn trailing_bytes_are_ignored() {
    let mut connection = Broker::shared().connect(0);
    let mut frame = header(3, 1);
    frame.extend([0, 0, 0, 0]); // no topics
    frame.extend(b"and a tail");
    connection.send_frame(&frame);
    let (id, answer) = connection.receive_as::<MetadataResponse>(1);
    assert_eq!((id, answer.brokers.len()), (7, 2));
    assert!(serves(&mut connection));
}

/// A frame longer than socket.request.max.bytes, or of a negative length, ends its connection
/// before its bytes have come.
#[test]
fn frames_of_impossible_size_end_the_connection() {
    for size in [i32::MAX, -1, i32::MIN, 0] {
        let mut connection = Broker::shared().connect(0);
        connection.send_bytes(&size.to_be_bytes());
        connection.expect_end();
    }
}

/// A request that ends in the middle of its body ends the connection; others go on.
#[test]
fn a_body_cut_short_ends_the_connection() {
    let broker = Broker::shared();
    let mut bystander = broker.connect(1);
    let mut connection = broker.connect(1);
    let mut frame = header(3, 1);
    frame.extend([0, 0, 0, 9, 0]); // nine topics are promised
    connection.send_frame(&frame);
    connection.expect_end();
    assert!(serves(&mut bystander));
}

fn serves(connection: &mut Connection) -> bool {
    connection.ask(0, &ApiVersionsRequest::default()).error_code == ErrorCode::NONE
}

/// A fetch of what is not there yet.
fn parked(topic: &Topic, max_wait_ms: i32) -> FetchRequest {
    FetchRequest { max_wait_ms, ..fetch_request(&[(topic, 0, 0)]) }
}

/// A request header up to the client id; the correlation id is 7.
fn header(api: i16, version: i16) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(api.to_be_bytes());
    frame.extend(version.to_be_bytes());
    frame.extend(7i32.to_be_bytes());
    let client = Str::from_static("raw");
    frame.extend([0, client.len() as u8]);
    frame.extend(client.as_bytes());
    frame
}

/// Frames that need more memory than all of them may hold wait for each other and not for ever;
/// small requests go on meanwhile.
#[test]
fn frames_larger_than_the_memory_for_frames_arrive_one_after_the_other() {
    let broker = Broker::start_new();
    let topic = Topic::new(&broker, "large");
    let large = batch(&[&"x".repeat(20 << 20)]);
    let mut bystander = topic.leader(&broker, 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut connection = topic.leader(&broker, 0);
                let outcome = connection.produce(&topic, large.clone());
                assert_eq!(outcome.error_code, ErrorCode::MESSAGE_TOO_LARGE);
            });
        }
        assert_eq!(bystander.write(&topic, 0, batch(&["small"])), 0);
    });
    assert_eq!(bystander.write(&topic, 0, batch(&["after them"])), 1);
}
