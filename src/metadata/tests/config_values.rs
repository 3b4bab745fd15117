//! From text to values and back, by Kafka's rules.

use metadata::configs::{Family, VALUE_BYTES_MAX, ValueError};

fn canonical(name: &str, text: &str) -> Result<String, ValueError> {
    let key = Family::Topic.find(name).or_else(|| Family::Broker.find(name)).unwrap();
    key.parse(text).map(|value| value.to_string())
}

#[test]
fn blanks_around_a_value_go() {
    assert_eq!(canonical("max.message.bytes", " 2000 "), Ok("2000".into()));
    assert_eq!(canonical("compression.type", "gzip\n"), Ok("gzip".into()));
    assert_eq!(canonical("cleanup.policy", " delete , compact "), Ok("delete,compact".into()));
}

#[test]
fn whole_numbers_have_a_sign_and_digits() {
    assert_eq!(canonical("max.message.bytes", "+2000"), Ok("2000".into()));
    for text in ["0x10", "2147483648", "1.0", "", "1_000", "1e3", "ten"] {
        let error = canonical("max.message.bytes", text);
        assert_eq!(error, Err(ValueError::NotWhole { bits: 32 }), "{text}");
    }
    assert_eq!(canonical("retention.ms", "9223372036854775807").map(|it| it.len()), Ok(19));
    let too_long = canonical("retention.ms", "9223372036854775808");
    assert_eq!(too_long, Err(ValueError::NotWhole { bits: 64 }));
}

#[test]
fn booleans_ignore_case_and_are_nothing_else() {
    assert_eq!(canonical("preallocate", "TRUE"), Ok("true".into()));
    assert_eq!(canonical("preallocate", "False"), Ok("false".into()));
    for text in ["yes", "1", ""] {
        assert_eq!(canonical("preallocate", text), Err(ValueError::NotBoolean), "{text}");
    }
}

#[test]
fn fractions_are_written_as_java_writes_them() {
    let key = "min.cleanable.dirty.ratio";
    assert_eq!(canonical(key, "1e-1"), Ok("0.1".into()));
    assert_eq!(canonical(key, "0.25f"), Ok("0.25".into()));
    assert_eq!(canonical(key, "1"), Ok("1.0".into()));
    assert_eq!(canonical(key, "0.0001"), Ok("1.0E-4".into()));
    assert_eq!(canonical(key, "2"), Err(ValueError::Outside(0.0, 1.0)));
    for text in ["NaN", "Infinity", "half", "", "inf", "d"] {
        assert_eq!(canonical(key, text), Err(ValueError::NotFraction), "{text}");
    }
    let most = "1.7976931348623157E308";
    assert_eq!(canonical("log.cleaner.io.max.bytes.per.second", most), Ok(most.into()));
}

#[test]
fn lists_say_each_element_once_and_may_be_empty() {
    assert_eq!(canonical("cleanup.policy", "delete,delete"), Ok("delete".into()));
    assert_eq!(canonical("cleanup.policy", ""), Ok(String::new()));
    assert!(matches!(canonical("cleanup.policy", "burn"), Err(ValueError::NotOneOf(_))));
}

#[test]
fn names_are_taken_as_they_are_spelled() {
    assert!(matches!(canonical("compression.type", "GZIP"), Err(ValueError::NotOneOf(_))));
    assert!(matches!(canonical("message.timestamp.type", "Never"), Err(ValueError::NotOneOf(_))));
}

#[test]
fn ranges_hold() {
    assert_eq!(canonical("retention.ms", "-2"), Err(ValueError::TooSmall(-1)));
    assert_eq!(canonical("retention.bytes", "-5"), Ok("-5".into()), "any negative is no limit");
    assert_eq!(canonical("segment.bytes", "10"), Err(ValueError::TooSmall(1_048_576)));
    assert_eq!(canonical("segment.index.bytes", "3"), Err(ValueError::TooSmall(4)));
    assert_eq!(canonical("min.insync.replicas", "0"), Err(ValueError::TooSmall(1)));
    assert_eq!(canonical("compression.zstd.level", "23"), Err(ValueError::TooLarge(22)));
    assert_eq!(canonical("compression.gzip.level", "0"), Err(ValueError::NotGzipLevel));
    assert_eq!(canonical("compression.gzip.level", "-1"), Ok("-1".into()));
}

#[test]
fn throttled_replicas_are_everything_or_pairs() {
    let key = "leader.replication.throttled.replicas";
    assert_eq!(canonical(key, "*"), Ok("*".into()));
    assert_eq!(canonical(key, "0:1000,1:1001"), Ok("0:1000,1:1001".into()));
    assert_eq!(canonical(key, ""), Ok(String::new()));
    for text in ["1:1,x", "*,1:1", "1", ":1", "1:-1"] {
        assert_eq!(canonical(key, text), Err(ValueError::NotThrottledReplicas), "{text}");
    }
}

#[test]
fn address_limits_are_pairs() {
    let key = "max.connections.per.ip.overrides";
    assert!(canonical(key, "127.0.0.1:5, [::1]:7").is_ok());
    for text in ["localhost:1", "127.0.0.1", "127.0.0.1:many", "127.0.0.1:-1"] {
        assert_eq!(canonical(key, text), Err(ValueError::NotAddressLimits), "{text}");
    }
}

/// H62: a megabyte, or a line break, is no value.
#[test]
fn values_are_bounded_and_printable() {
    let long = "x".repeat(VALUE_BYTES_MAX + 1);
    assert_eq!(canonical("broker.rack", &long), Err(ValueError::TooLong));
    assert_eq!(canonical("broker.rack", "a\nb"), Err(ValueError::ControlCharacters));
    assert_eq!(canonical("broker.rack", "a\0b"), Err(ValueError::ControlCharacters));
}
