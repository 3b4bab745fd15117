//! Incremental fetch sessions (KIP-227, Kafka protocol behaviours 43 and 46; hostile input H38).

use std::time::Duration;

use broker::fetch::{
    Interest, Kind, News, PartitionKey, Reference, Refused, SessionCache, TopicKey,
};
use protocol::{ErrorCode, Str};
use runtime::time::Instant;

const NOW: Instant = Instant::from_nanos(1);

fn key(index: i32) -> PartitionKey {
    PartitionKey { topic: TopicKey::Name(Str::from_static("t")), index }
}

fn wanted(indexes: &[i32]) -> Vec<(PartitionKey, Interest)> {
    let interest = Interest {
        fetch_offset: 0,
        max_bytes: 100,
        current_leader_epoch: -1,
        last_fetched_epoch: -1,
        name: None,
    };
    indexes.iter().map(|&index| (key(index), interest.clone())).collect()
}

fn news(bytes: usize, high_watermark: i64) -> News {
    News { error: ErrorCode::NONE, bytes, high_watermark, log_start_offset: 0, diverging: false }
}

fn session_of(cache: &mut SessionCache, indexes: &[i32]) -> i32 {
    let wanted = wanted(indexes);
    let told = vec![news(0, 5); wanted.len()];
    let id = cache.create(NOW, 7, false, &wanted, &told);
    assert_ne!(id, 0);
    id
}

fn order(begun: &[(PartitionKey, Interest)]) -> Vec<i32> {
    begun.iter().map(|(key, _)| key.index).collect()
}

#[test]
fn epoch_zero_asks_for_a_session_and_minus_one_for_none() {
    let mut cache = SessionCache::new(10);
    let full = cache.begin(NOW, Reference { id: 0, epoch: 0 }, false, wanted(&[0]), &[]).unwrap();
    assert_eq!((full.kind, full.session), (Kind::Full, 0));
    let none = cache.begin(NOW, Reference { id: 0, epoch: -1 }, false, wanted(&[0]), &[]).unwrap();
    assert_eq!(none.kind, Kind::Sessionless);
}

#[test]
fn an_unknown_session_a_wrong_epoch_and_mixed_names_are_told_apart() {
    let mut cache = SessionCache::new(10);
    let id = session_of(&mut cache, &[0]);
    let refused = |cache: &mut SessionCache, id, epoch, by_id| {
        cache.begin(NOW, Reference { id, epoch }, by_id, Vec::new(), &[]).unwrap_err()
    };
    assert_eq!(refused(&mut cache, 0, 5, false), Refused(ErrorCode::FETCH_SESSION_ID_NOT_FOUND));
    assert_eq!(refused(&mut cache, id, 9, false), Refused(ErrorCode::INVALID_FETCH_SESSION_EPOCH));
    assert_eq!(refused(&mut cache, id, 1, true), Refused(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR));
    assert!(cache.begin(NOW, Reference { id, epoch: 1 }, false, Vec::new(), &[]).is_ok());
}

#[test]
fn an_incremental_answer_names_only_what_is_new() {
    let mut cache = SessionCache::new(10);
    let id = session_of(&mut cache, &[0, 1]);
    assert!(!cache.is_news(id, &key(0), &news(0, 5)));
    assert!(cache.is_news(id, &key(0), &news(0, 6)));
    assert!(!cache.is_news(id, &key(0), &news(0, 6)));
    assert!(cache.is_news(id, &key(1), &news(10, 5)));
    assert!(cache.is_news(id, &key(1), &news(10, 5)), "data is news as long as it is there");
    let failed = News { error: ErrorCode::KAFKA_STORAGE_ERROR, ..news(0, -1) };
    assert!(cache.is_news(id, &key(0), &failed));
    assert!(cache.is_news(id, &key(0), &news(0, 6)), "recovery from an error is told");
}

#[test]
fn a_partition_that_returned_data_goes_to_the_end() {
    let mut cache = SessionCache::new(10);
    let id = session_of(&mut cache, &[0, 1, 2]);
    cache.is_news(id, &key(0), &news(10, 5));
    let begun = cache.begin(NOW, Reference { id, epoch: 1 }, false, Vec::new(), &[]).unwrap();
    assert_eq!(order(&begun.wanted), [1, 2, 0]);
    assert_eq!(begun.kind, Kind::Incremental);
}

#[test]
fn changes_are_merged_and_forgotten_partitions_leave() {
    let mut cache = SessionCache::new(10);
    let id = session_of(&mut cache, &[0, 1]);
    let mut more = wanted(&[1, 5]);
    more[0].1.fetch_offset = 42;
    let begun = cache.begin(NOW, Reference { id, epoch: 1 }, false, more, &[key(0)]).unwrap();
    assert_eq!(order(&begun.wanted), [1, 5]);
    assert_eq!(begun.wanted[0].1.fetch_offset, 42);
    let all = [key(1), key(5)];
    let begun = cache.begin(NOW, Reference { id, epoch: 2 }, false, Vec::new(), &all).unwrap();
    assert_eq!((begun.kind, begun.session), (Kind::Sessionless, 0));
    assert_eq!(cache.count(), 0);
}

#[test]
fn the_cache_is_bounded_and_prefers_large_and_recent_sessions() {
    let mut cache = SessionCache::new(2);
    let small = session_of(&mut cache, &[0]);
    let large = session_of(&mut cache, &[0, 1, 2]);
    assert_eq!(cache.create(NOW, 9, false, &wanted(&[0]), &[news(0, 5)]), 0, "no room");
    let told = vec![news(0, 5); 2];
    assert_ne!(
        cache.create(NOW, 9, false, &wanted(&[0, 1]), &told),
        0,
        "the smaller one gives way"
    );
    let ask = |cache: &mut SessionCache, id| {
        cache.begin(NOW, Reference { id, epoch: 1 }, false, Vec::new(), &[]).is_ok()
    };
    assert!(!ask(&mut cache, small));
    assert!(ask(&mut cache, large));
    let later = NOW + Duration::from_secs(121);
    assert_ne!(
        cache.create(later, 11, false, &wanted(&[0]), &[news(0, 5)]),
        0,
        "idle ones give way"
    );
    assert_eq!(cache.count(), 2);
}

#[test]
fn closing_a_session_frees_it_and_full_fetches_replace_it() {
    let mut cache = SessionCache::new(10);
    for epoch in [-1, 0] {
        let id = session_of(&mut cache, &[0]);
        assert!(cache.begin(NOW, Reference { id, epoch }, false, wanted(&[0]), &[]).is_ok());
        assert_eq!(cache.count(), 0, "epoch {epoch}");
    }
}

#[test]
fn a_partition_named_twice_counts_once_with_its_last_position() {
    let mut cache = SessionCache::new(10);
    let mut twice = wanted(&[0, 1, 0]);
    twice[2].1.fetch_offset = 9;
    let begun = cache.begin(NOW, Reference { id: 0, epoch: 0 }, false, twice, &[]).unwrap();
    assert_eq!(order(&begun.wanted), [0, 1]);
    assert_eq!(begun.wanted[0].1.fetch_offset, 9);
}
