//! Incremental fetch sessions (KIP-227, Kafka protocol behaviours 43 and 46; hostile input H38).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use broker::fetch::{
    Begun, FetchWaiter, Interest, Kind, News, PartitionKey, Reference, Refused, Session,
    SessionCache, TopicKey, Wanted,
};
use protocol::{ErrorCode, Str};
use runtime::local::Event;
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

fn create(cache: &mut SessionCache, now: Instant, random: u64, indexes: &[i32]) -> i32 {
    if !cache.has_room(now, indexes.len()) {
        return 0;
    }
    let mut session = Session::new(now, false);
    wanted(indexes).into_iter().for_each(|(key, it)| session.add(key, it, &news(0, 5)));
    cache.adopt(now, random, session)
}

fn session_of(cache: &mut SessionCache, indexes: &[i32]) -> i32 {
    let id = create(cache, NOW, 7, indexes);
    assert_ne!(id, 0);
    id
}

fn begin(cache: &mut SessionCache, id: i32, epoch: i32) -> Result<Begun, Refused> {
    cache.begin(NOW, Reference { id, epoch }, false)
}

/// What is read in the session, in order.
fn order(cache: &SessionCache, id: i32) -> Vec<i32> {
    cache.wanted(id, 0).map(|(_, key, _)| key.index).collect()
}

#[test]
fn epoch_zero_asks_for_a_session_and_minus_one_for_none() {
    let mut cache = SessionCache::new(10);
    let full = begin(&mut cache, 0, 0).unwrap();
    assert_eq!((full.kind, full.session), (Kind::Full, 0));
    let none = begin(&mut cache, 0, -1).unwrap();
    assert_eq!(none.kind, Kind::Sessionless);
}

#[test]
fn an_unknown_session_a_wrong_epoch_and_mixed_names_are_told_apart() {
    let mut cache = SessionCache::new(10);
    let id = session_of(&mut cache, &[0]);
    let refused = |cache: &mut SessionCache, id, epoch, by_id| {
        cache.begin(NOW, Reference { id, epoch }, by_id).unwrap_err()
    };
    assert_eq!(refused(&mut cache, 0, 5, false), Refused(ErrorCode::FETCH_SESSION_ID_NOT_FOUND));
    assert_eq!(refused(&mut cache, id, 9, false), Refused(ErrorCode::INVALID_FETCH_SESSION_EPOCH));
    assert_eq!(refused(&mut cache, id, 1, true), Refused(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR));
    assert!(begin(&mut cache, id, 1).is_ok());
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
    let begun = begin(&mut cache, id, 1).unwrap();
    assert_eq!(order(&cache, id), [1, 2, 0]);
    assert_eq!((begun.kind, begun.session), (Kind::Incremental, id));
}

#[test]
fn changes_are_merged_and_forgotten_partitions_leave() {
    let mut cache = SessionCache::new(10);
    let id = session_of(&mut cache, &[0, 1]);
    let mut more = wanted(&[1, 5]);
    more[0].1.fetch_offset = 42;
    begin(&mut cache, id, 1).unwrap();
    more.into_iter().for_each(|(key, interest)| cache.update(id, key, interest));
    cache.forget(id, &key(0));
    assert_eq!(order(&cache, id), [1, 5]);
    let (place, _, interest) = cache.wanted(id, 0).next().unwrap();
    assert_eq!(interest.fetch_offset, 42);
    let rest = cache.wanted(id, place + 1).map(|(_, key, _)| key.index);
    assert_eq!(rest.collect::<Vec<_>>(), [5], "a walk goes on where it stopped");
    begin(&mut cache, id, 2).unwrap();
    [1, 5].into_iter().for_each(|index| cache.forget(id, &key(index)));
    assert!(order(&cache, id).is_empty());
    cache.end(id);
    assert_eq!(cache.count(), 0);
}

#[test]
fn the_cache_is_bounded_and_prefers_large_and_recent_sessions() {
    let mut cache = SessionCache::new(2);
    let small = session_of(&mut cache, &[0]);
    let large = session_of(&mut cache, &[0, 1, 2]);
    assert_eq!(create(&mut cache, NOW, 9, &[0]), 0, "no room");
    assert_ne!(create(&mut cache, NOW, 9, &[0, 1]), 0, "the smaller one gives way");
    let ask = |cache: &mut SessionCache, id| begin(cache, id, 1).is_ok();
    assert!(!ask(&mut cache, small));
    assert!(ask(&mut cache, large));
    let later = NOW + Duration::from_secs(121);
    assert_ne!(create(&mut cache, later, 11, &[0]), 0, "idle ones give way");
    assert_eq!(cache.count(), 2);
}

#[test]
fn closing_a_session_frees_it_and_full_fetches_replace_it() {
    let mut cache = SessionCache::new(10);
    for epoch in [-1, 0] {
        let id = session_of(&mut cache, &[0]);
        assert!(begin(&mut cache, id, epoch).is_ok());
        assert_eq!(cache.count(), 0, "epoch {epoch}");
    }
}

#[test]
fn a_partition_named_twice_counts_once_with_its_last_position() {
    let mut twice = wanted(&[0, 1, 0]);
    twice[2].1.fetch_offset = 9;
    let mut listed = Wanted::default();
    twice.into_iter().for_each(|(key, interest)| listed.add(key, interest));
    let told = std::iter::from_fn(|| listed.take_next());
    let told: Vec<_> = told.map(|(key, interest)| (key.index, interest.fetch_offset)).collect();
    assert_eq!(told, [(0, 9), (1, 0)]);
}

/// Whoever ends a large session takes it along, to drop it where nobody waits.
#[test]
fn a_large_session_is_not_dropped_on_the_way() {
    let mut cache = SessionCache::new(1);
    let many: Vec<i32> = (0..50_000).collect();
    let small = session_of(&mut cache, &[0]);
    let large = create(&mut cache, NOW, 8, &many);
    assert!(begin(&mut cache, small, 1).is_err() && cache.take_retired().is_empty());
    assert_eq!(order(&cache, large), many);
    cache.end(large);
    assert_eq!((cache.count(), cache.take_retired().len()), (0, 1));
    assert!(cache.take_retired().is_empty());
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wakes {
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// Fifty thousand partitions are not asked in one turn of the loop, and whichever moves, at
/// whatever moment, is noticed without asking them all again.
#[test]
fn a_wait_for_very_many_partitions_begins_in_pieces() {
    assert_eq!(turns_until_noticed(10, 3), 4, "it was asked already");
    assert_eq!(turns_until_noticed(40_000, 3), 81, "when its turn comes");
    assert_eq!(turns_until_noticed(MANY - 1, 99), 100);
    assert_eq!(turns_until_noticed(25_000, 100), 101, "all were asked");
    let mut nothing = FetchWaiter::default();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(nothing.moved()).poll(&mut cx).is_pending());
}

/// How often a wait is polled until it is over when this one of many moves behind that turn.
fn turns_until_noticed(moving: usize, behind_turn: usize) -> usize {
    let events: Vec<Event> = (0..MANY).map(|_| Event::new()).collect();
    let mut waiter = FetchWaiter::default();
    events.iter().for_each(|event| waiter.listen(event.listen()));
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    let mut cx = Context::from_waker(&waker);
    let mut moved = pin!(waiter.moved());
    let asked = || events.iter().map(Event::waiting).sum::<usize>();
    for turn in 1.. {
        let before = asked();
        if moved.as_mut().poll(&mut cx) == Poll::Ready(()) {
            return turn;
        }
        assert_eq!(asked(), before + AT_A_TIME, "turn {turn}");
        let goes_on = turn < MANY / AT_A_TIME;
        assert_eq!(wakes.take(), usize::from(goes_on), "turn {turn}");
        if turn == behind_turn {
            events[moving].notify_all();
            let was_asked = moving < turn * AT_A_TIME;
            assert_eq!(wakes.take(), usize::from(was_asked), "it says so itself");
        }
    }
    unreachable!("the turns have no end")
}

const MANY: usize = 50_000;
const AT_A_TIME: usize = 500;
