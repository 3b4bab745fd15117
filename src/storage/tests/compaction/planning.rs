//! What is cleaned when, and which segments become one (Kafka's rules).

use storage::compaction::plan::{
    Candidate, Cleanable, GroupLimits, Position, Wishes, cleanable, grouped,
};

const WISHES: Wishes = Wishes {
    min_compaction_lag_ms: 0,
    max_compaction_lag_ms: i64::MAX,
    min_cleanable_dirty_ratio: 0.5,
};

/// Segments of ten offsets and `size` bytes each; the segment at 10 n is n · 100 ms old.
fn segments(sizes: &[u64]) -> Vec<Candidate> {
    let candidate = |(number, size): (usize, &u64)| {
        let base_offset = number as i64 * 10;
        let first_ms = number as i64 * 100 + 1;
        Candidate {
            base_offset,
            next_base: base_offset + 10,
            size: *size,
            index_bytes: (8, 12),
            newest_ms: first_ms + 99,
            first_ms,
        }
    };
    sizes.iter().enumerate().map(candidate).collect()
}

fn at(cleaned_to: i64, stable_to: i64) -> Position {
    Position { log_start: 0, cleaned_to, stable_to }
}

fn plan(sizes: &[u64], position: Position, wishes: &Wishes, now_ms: i64) -> Cleanable {
    cleanable(&segments(sizes), position, wishes, now_ms)
}

#[test]
fn the_ratio_is_the_dirty_share() {
    let found = plan(&[30, 10, 20], at(20, 30), &WISHES, 1000);
    assert_eq!((found.first_dirty, found.to), (20, 30));
    assert_eq!((found.clean_bytes, found.dirty_bytes), (40, 20));
    assert!((found.dirty_ratio - 1.0 / 3.0).abs() < 1e-9);
    assert!(!found.is_due(&WISHES));
    assert!(found.is_due(&Wishes { min_cleanable_dirty_ratio: 0.3, ..WISHES }));
    let half = plan(&[20, 20], at(10, 20), &WISHES, 1000);
    assert!(!half.is_due(&WISHES), "the ratio has to be passed, not reached");
    assert!(
        !plan(&[], at(0, 0), &WISHES, 1000)
            .is_due(&Wishes { min_cleanable_dirty_ratio: 0.0, ..WISHES })
    );
}

#[test]
fn nothing_at_or_behind_the_stable_end_is_touched() {
    let found = plan(&[10, 10, 10], at(-1, 25), &WISHES, 1000);
    assert_eq!((found.first_dirty, found.to, found.dirty_bytes), (0, 20, 20));
}

#[test]
fn the_young_wait_for_the_minimum_lag() {
    let wishes = Wishes { min_compaction_lag_ms: 250, ..WISHES };
    // The segments' newest records are of 100, 200 and 300.
    assert_eq!(plan(&[10, 10, 10], at(0, 30), &wishes, 349).to, 0);
    assert_eq!(plan(&[10, 10, 10], at(0, 30), &wishes, 350).to, 10);
    assert_eq!(plan(&[10, 10, 10], at(0, 30), &wishes, 550).to, 30);
    // What is clean already is no matter of age.
    let found = plan(&[10, 10, 10], at(10, 30), &wishes, 349);
    assert_eq!((found.first_dirty, found.to, found.dirty_bytes), (10, 10, 0));
}

#[test]
fn what_waited_for_the_maximum_lag_is_due_whatever_the_ratio() {
    let wishes = Wishes { max_compaction_lag_ms: 300, ..WISHES };
    assert!(!plan(&[90, 10], at(10, 20), &wishes, 401).is_due(&wishes));
    assert!(plan(&[90, 10], at(10, 20), &wishes, 402).is_due(&wishes));
}

#[test]
fn an_impossible_clean_end_means_from_the_start() {
    assert_eq!(plan(&[10, 10], at(50, 20), &WISHES, 1000).first_dirty, 0);
    let position = Position { log_start: 7, cleaned_to: 3, stable_to: 20 };
    assert_eq!(plan(&[10, 10], position, &WISHES, 1000).first_dirty, 7);
}

#[test]
fn neighbours_become_one_segment_up_to_its_limits() {
    let sizes = |groups: Vec<&[Candidate]>| -> Vec<usize> {
        groups.into_iter().map(<[Candidate]>::len).collect()
    };
    let limits = GroupLimits { segment_bytes: 100, index_bytes: 1000 };
    let all = segments(&[40, 40, 40, 150, 10, 90, 1]);
    assert_eq!(sizes(grouped(&all, limits)), [2, 1, 1, 2, 1]);
    let narrow = GroupLimits { index_bytes: 30, ..limits };
    assert_eq!(sizes(grouped(&segments(&[1, 1, 1, 1, 1]), narrow)), [2, 2, 1]);
    let mut far = segments(&[1, 1, 1]);
    far[2].base_offset = i64::from(i32::MAX);
    far[2].next_base = i64::from(i32::MAX) + 2;
    far[1].next_base = far[2].base_offset;
    assert_eq!(sizes(grouped(&far, limits)), [2, 1]);
}
