//! How old records are said to be.

use broker::monitor::{Appended, Timeline};

/// Appends every `step_ms` for `total_ms`, ten records each; gives the timeline and when it ended.
fn steady(step_ms: i64, total_ms: i64) -> (Timeline, i64) {
    let mut timeline = Timeline::default();
    let mut now_ms = 1_000_000;
    for place in 0..total_ms / step_ms {
        timeline.note(place * 10, now_ms);
        now_ms += step_ms;
    }
    (timeline, now_ms)
}

/// An age is never told too short, and too long by a tenth or 200 ms at most, however long ago.
#[test]
fn ages_are_told_up_to_a_tenth_too_long() {
    let (step_ms, total_ms) = (50, 3_600_000);
    let (timeline, now_ms) = steady(step_ms, total_ms);
    for offset in (0..total_ms / step_ms * 10).step_by(97) {
        let appended_ms = 1_000_000 + offset / 10 * step_ms;
        let Appended::At(told_ms) = timeline.appended(offset, now_ms) else {
            panic!("{offset} is not known")
        };
        let (age_ms, told_age_ms) = (now_ms - appended_ms, now_ms - told_ms);
        let most = age_ms + (told_age_ms / 10).max(200) + step_ms;
        assert!((age_ms..=most).contains(&told_age_ms), "{offset}: {told_age_ms} for {age_ms}");
    }
}

/// What was appended shortly behind a moment is of that moment, however long nothing came after.
#[test]
fn a_pause_makes_nothing_older() {
    let mut timeline = Timeline::default();
    timeline.note(0, 1_000);
    timeline.note(5, 1_100);
    timeline.note(9, 9_000_000);
    assert_eq!(timeline.appended(5, 9_000_500), Appended::At(1_000));
    assert_eq!(timeline.appended(9, 9_000_500), Appended::At(9_000_000));
}

/// What was there before the first moment has to be looked up; what was looked up holds for that
/// record, and for others only as far as it must be so.
#[test]
fn what_is_looked_up_is_remembered() {
    let mut timeline = Timeline::default();
    assert_eq!(timeline.appended(3, 100_000), Appended::Unknown);
    timeline.note(100, 90_000);
    assert_eq!(timeline.appended(3, 100_000), Appended::Unknown);
    timeline.learn(3, 50_000);
    assert_eq!(timeline.appended(3, 100_000), Appended::At(50_000));
    assert_eq!(timeline.appended(50, 100_000), Appended::After(50_000));
    timeline.learn(50, 88_000);
    assert_eq!(timeline.appended(60, 100_000), Appended::After(88_000));
    timeline.learn(60, 999_999);
    assert_eq!(timeline.appended(60, 100_000), Appended::At(90_000), "times never fall");
    assert_eq!(timeline.appended(2, 100_000), Appended::Unknown);
}
