//! Leader epochs: protocol behaviours 49, 50 and what truncation leaves.

use storage::epochs::{EpochEnd, EpochStart, LeaderEpochs};

fn epochs(starts: &[(i32, i64)]) -> LeaderEpochs {
    let mut epochs = LeaderEpochs::new();
    for (epoch, start_offset) in starts.iter().copied() {
        assert!(epochs.assign(EpochStart { epoch, start_offset }));
    }
    epochs
}

fn end(epochs: &LeaderEpochs, epoch: i32) -> (i32, i64) {
    let EpochEnd { epoch, end_offset } = epochs.end_offset_for(epoch, 100);
    (epoch, end_offset)
}

#[test]
fn behaviour_50_where_an_epoch_ended() {
    let known = epochs(&[(2, 10), (4, 30), (7, 60)]);
    assert_eq!(end(&known, 7), (7, 100), "the current one ends at the log's end");
    assert_eq!(end(&known, 4), (4, 60));
    assert_eq!(end(&known, 5), (4, 60), "between two: the end of the older");
    assert_eq!(end(&known, 3), (2, 30));
    assert_eq!(end(&known, 1), (1, 10), "below all: the start of the next");
    assert_eq!(end(&known, 0), (0, 10));
    assert_eq!(end(&known, 8), (-1, -1), "still to come");
    assert_eq!(end(&known, -1), (-1, -1), "asked for nothing");
    assert_eq!(end(&known, -2), (-2, 10), "as Kafka answers it");
    assert_eq!(end(&LeaderEpochs::new(), 0), (-1, -1));
}

#[test]
fn offsets_have_the_epoch_that_began_before_them() {
    let known = epochs(&[(2, 10), (4, 30)]);
    let at = [9, 10, 29, 30, 1_000].map(|offset| known.epoch_at(offset));
    assert_eq!(at, [None, Some(2), Some(2), Some(4), Some(4)]);
    assert_eq!(
        [2, 3, 4, 5].map(|epoch| known.epoch_before(epoch)),
        [None, Some(2), Some(2), Some(4)]
    );
}

#[test]
fn an_epoch_begins_once_and_replaces_what_contradicts_it() {
    let mut known = epochs(&[(1, 0), (2, 10), (3, 20)]);
    assert!(!known.assign(EpochStart { epoch: 3, start_offset: 20 }));
    assert!(!known.assign(EpochStart { epoch: 3, start_offset: 25 }));
    assert!(known.assign(EpochStart { epoch: 3, start_offset: 15 }), "it began earlier");
    assert_eq!(known, epochs(&[(1, 0), (2, 10), (3, 15)]));
    assert!(known.assign(EpochStart { epoch: 4, start_offset: 10 }));
    assert_eq!(known, epochs(&[(1, 0), (4, 10)]), "nothing was written under 2 and 3");
    assert!(known.assign(EpochStart { epoch: 2, start_offset: 12 }));
    assert_eq!(known, epochs(&[(1, 0), (2, 12)]), "what the leader says counts");
}

#[test]
fn truncation_at_either_end() {
    let all = epochs(&[(1, 5), (2, 10), (3, 20)]);
    let from_end = |end_offset| {
        let mut known = all.clone();
        (known.truncate_from_end(end_offset), known)
    };
    assert_eq!(from_end(21), (false, all.clone()));
    assert_eq!(from_end(20), (true, epochs(&[(1, 5), (2, 10)])));
    assert_eq!(from_end(11), (true, epochs(&[(1, 5), (2, 10)])));
    assert_eq!(from_end(5), (true, LeaderEpochs::new()));
    let from_start = |start_offset| {
        let mut known = all.clone();
        (known.truncate_from_start(start_offset), known)
    };
    assert_eq!(from_start(4), (false, all.clone()));
    assert_eq!(from_start(5), (false, all.clone()));
    assert_eq!(from_start(7), (true, epochs(&[(1, 7), (2, 10), (3, 20)])));
    assert_eq!(from_start(10), (true, epochs(&[(2, 10), (3, 20)])));
    assert_eq!(from_start(50), (true, epochs(&[(3, 50)])));
}

#[test]
fn the_checkpoint_survives_and_damage_asks_for_a_rebuild() {
    for known in
        [LeaderEpochs::new(), epochs(&[(0, 0)]), epochs(&[(1, 5), (2, 10), (900, 1 << 40)])]
    {
        assert_eq!(LeaderEpochs::from_file(&known.to_file()), Ok(known));
    }
    let file = epochs(&[(1, 5), (2, 10)]).to_file();
    for at in 0..file.len() {
        let mut flipped = file.clone();
        flipped[at] ^= 0x10;
        assert!(LeaderEpochs::from_file(&flipped).is_err(), "byte {at}");
        assert!(LeaderEpochs::from_file(&file[..at]).is_err(), "cut to {at}");
    }
}
