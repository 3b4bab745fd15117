//! Negotiation: what a client learns before anything else.

use protocol::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use protocol::messages::metadata::MetadataRequest;
use protocol::{ApiKey, ErrorCode, Str};

use crate::broker::Broker;

/// Kafka protocol behaviour 1: an unknown version is answered in version 0, with
/// UNSUPPORTED_VERSION and the range of ApiVersions itself, and the connection stays.
#[test]
fn an_unknown_version_is_answered_in_version_0() {
    let mut connection = Broker::shared().connect(0);
    for version in [6, 99, i16::MAX, -1] {
        let mut frame = Vec::new();
        frame.extend(18i16.to_be_bytes());
        frame.extend(version.to_be_bytes());
        frame.extend(41i32.to_be_bytes());
        frame.extend([0xff, 0xff]); // no client id
        frame.extend([0, 1, 1, 0]); // whatever the header and body of the future hold
        connection.send_frame(&frame);
        let (id, answer) = connection.receive_as::<ApiVersionsResponse>(0);
        assert_eq!((id, answer.error_code), (41, ErrorCode::UNSUPPORTED_VERSION));
        let [row] = answer.api_keys.as_slice() else { panic!("{answer:?}") };
        assert_eq!((row.api_key, row.min_version, row.max_version), (18, 0, 5));
    }
    assert_eq!(connection.ask(0, &ApiVersionsRequest::default()).error_code, ErrorCode::NONE);
}

/// Kafka protocol behaviour 2: the header of the answer has no tagged fields in any version.
#[test]
fn the_response_header_is_never_flexible() {
    let mut connection = Broker::shared().connect(0);
    for version in 0..=5 {
        let id = connection.send(version, &request());
        let frame = connection.receive().unwrap();
        assert_eq!(frame[..4], id.to_be_bytes());
        assert_eq!(frame[4..6], [0, 0], "the error code follows at once in version {version}");
    }
}

/// Kafka protocol behaviour 3: features whose range begins at 0 are only told from version 4 on.
#[test]
fn features_from_zero_are_left_out_below_version_4() {
    let mut connection = Broker::shared().connect(0);
    let below = connection.ask(3, &request());
    assert!(below.supported_features.iter().all(|it| it.min_version > 0), "{below:?}");
    let from = connection.ask(4, &request());
    assert!(from.supported_features.iter().any(|it| it.min_version == 0), "{from:?}");
    for each in &below.supported_features {
        assert!(from.supported_features.contains(each));
    }
}

/// Kafka protocol behaviour 4: from version 5 on a client may say whom it means, and is told to
/// bootstrap anew when that is not the node it reached. Each slot is a node of its own.
#[test]
fn a_client_that_meant_another_node_is_sent_away() {
    let broker = Broker::shared();
    let mut connection = broker.connect(1);
    let cluster = connection.ask(9, &MetadataRequest::default()).cluster_id.unwrap();
    let mut ask = |cluster_id: Option<&str>, node_id| {
        let cluster_id = cluster_id.map(|id| Str::from(id.to_owned()));
        connection.ask(5, &ApiVersionsRequest { cluster_id, node_id, ..request() }).error_code
    };
    assert_eq!(ask(None, -1), ErrorCode::NONE);
    assert_eq!(ask(Some(&cluster), 1001), ErrorCode::NONE);
    assert_eq!(ask(Some(&cluster), 1000), ErrorCode::REBOOTSTRAP_REQUIRED);
    assert_eq!(ask(Some("another"), 1001), ErrorCode::REBOOTSTRAP_REQUIRED);
    assert_eq!(ask(Some(&cluster), -1), ErrorCode::INVALID_REQUEST);
    assert_eq!(ask(None, 1001), ErrorCode::INVALID_REQUEST);
}

/// Kafka protocol behaviour 5: Produce is advertised from version 0, or librdkafka believes that
/// compression is missing.
#[test]
fn produce_is_advertised_from_version_0() {
    let answer = Broker::shared().connect(0).ask(3, &request());
    let produce = answer.api_keys.iter().find(|it| it.api_key == 0).unwrap();
    assert_eq!((produce.min_version, produce.max_version), (0, 13));
}

/// Kafka protocol behaviour 6: ApiVersions may be asked again on the same connection.
#[test]
fn it_may_be_asked_twice() {
    let mut connection = Broker::shared().connect(0);
    let first = connection.ask(3, &request());
    assert_eq!(connection.ask(3, &request()), first);
}

/// Kafka protocol behaviour 7: names and versions of client software that KIP-511 does not allow
/// are an INVALID_REQUEST, and the connection stays.
#[test]
fn odd_client_software_is_an_invalid_request() {
    let mut connection = Broker::shared().connect(0);
    for name in ["", "a b", "-a", "a-", "a_b", "ü", "a\n"] {
        let odd = Str::from(name.to_owned());
        let named = ApiVersionsRequest { client_software_name: odd.clone(), ..request() };
        assert_eq!(connection.ask(3, &named).error_code, ErrorCode::INVALID_REQUEST, "{name:?}");
        let version = ApiVersionsRequest { client_software_version: odd, ..request() };
        assert_eq!(connection.ask(3, &version).error_code, ErrorCode::INVALID_REQUEST, "{name:?}");
    }
    assert_eq!(connection.ask(3, &request()).error_code, ErrorCode::NONE);
}

/// Only what is served is advertised: groups of the consumer protocol, but neither transactions nor
/// share groups, nor a feature level that would promise them.
#[test]
fn nothing_is_promised_that_is_not_served() {
    let answer = Broker::shared().connect(0).ask(4, &request());
    let missing = [ApiKey::ShareGroupHeartbeat, ApiKey::EndTxn];
    for api in missing {
        assert!(answer.api_keys.iter().all(|it| it.api_key != api.number()), "{}", api.name());
    }
    let level = |name: &str| {
        let found = answer.finalized_features.iter().find(|it| &*it.name == name);
        found.map_or(0, |it| it.max_version_level)
    };
    assert_eq!((level("group.version"), level("transaction.version")), (1, 0));
    assert!(answer.finalized_features_epoch >= 0);
}

/// Every node says the same.
#[test]
fn every_node_serves_the_same_versions() {
    let broker = Broker::shared();
    let first = broker.connect(0).ask(3, &request()).api_keys;
    assert_eq!(broker.connect(1).ask(3, &request()).api_keys, first);
}

fn request() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: Str::from_static("behaviours"),
        client_software_version: Str::from_static("1.0"),
        ..ApiVersionsRequest::default()
    }
}
