//! What consumers say to each other through the group protocol.

use std::collections::BTreeMap;

use broker::client::consumer_protocol::{
    Partitions, assign_range, decode_assignment, decode_subscription, encode_assignment,
    encode_subscription,
};
use bytes::Bytes;
use protocol::Str;

fn text(text: &str) -> Str {
    Str::from(text.to_owned())
}

#[test]
fn subscriptions_and_assignments_come_back() {
    let topics = [text("a"), text("b")];
    assert_eq!(decode_subscription(&encode_subscription(&topics)), Some(topics.to_vec()));
    let partitions = Partitions::from([(text("a"), vec![0, 2]), (text("b"), vec![])]);
    assert_eq!(decode_assignment(&encode_assignment(&partitions)), Some(partitions));
}

/// Nothing at all is no partition; what is cut off is unreadable, and never read beyond its end.
#[test]
fn what_is_cut_off_is_unreadable() {
    assert_eq!(decode_assignment(&Bytes::new()), Some(Partitions::new()));
    let partitions = Partitions::from([(text("topic"), vec![0, 1, 2])]);
    let whole = encode_assignment(&partitions);
    let user_data = 4;
    for length in 1..whole.len() - user_data {
        assert_eq!(decode_assignment(&whole.slice(..length)), None, "{length}");
    }
    assert_eq!(decode_subscription(&Bytes::from_static(b"\0\0\x7f\xff\xff\xff")), None);
}

/// Every partition has one owner among those who subscribe, and shares differ by one at most.
#[test]
fn a_range_is_shared_evenly() {
    for count in 0..9 {
        let members: BTreeMap<Str, Vec<Str>> =
            [("m1", "t"), ("m2", "t"), ("m3", "other"), ("m4", "t")]
                .map(|(member, topic)| (text(member), vec![text(topic)]))
                .into();
        let counts = BTreeMap::from([(text("t"), count), (text("other"), 1)]);
        let shares = assign_range(&members, &counts);
        let of = |member: &str| shares[member].get("t").cloned().unwrap_or_default();
        let mut all = [of("m1"), of("m2"), of("m4")].concat();
        assert!(all.is_sorted(), "{shares:?}");
        all.dedup();
        assert_eq!(all, (0..count).collect::<Vec<_>>());
        assert!(of("m1").len() - of("m4").len() <= 1);
        assert_eq!(shares["m3"], Partitions::from([(text("other"), vec![0])]));
    }
}
