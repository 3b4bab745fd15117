//! The error codes against those that `kafka-protocol` knows.

use kafka_protocol::ResponseError;
use protocol::ErrorCode;

#[test]
fn names_and_retriability_are_kafkas() {
    let mut others = Vec::new();
    let mut known = 0;
    for &code in ErrorCode::ALL.iter().filter(|code| code.is_error()) {
        let Some(theirs) = ResponseError::try_from_code(code.0) else { continue };
        if matches!(theirs, ResponseError::Unknown(_)) {
            continue;
        }
        known += 1;
        let name = code.name().replace('_', "").to_lowercase();
        assert_eq!(format!("{theirs:?}").to_lowercase(), name);
        if theirs.is_retriable() != code.retriable() {
            others.push(code);
        }
    }
    assert!(known > 120, "{known} codes compared");
    assert_eq!(others, SINCE_CHANGED);
}

/// Where Kafka 4.4 judges otherwise than the Kafka that the crate follows.
const SINCE_CHANGED: &[ErrorCode] = &[ErrorCode::CONCURRENT_TRANSACTIONS];
