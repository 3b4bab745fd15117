//! Idempotent producers: protocol behaviours 38 to 41, hostile inputs H30 and H31.

use storage::producer::{
    ProducerBatch, ProducerDescription, ProducerLimits, ProducerSnapshot, Producers, SequenceError,
    Verdict,
};

use crate::Random;

const LIMITS: ProducerLimits = ProducerLimits { expiration_ms: 86_400_000, producers_max: 1_000 };
const ID: i64 = 4_000;

fn batch(producer_epoch: i16, base_sequence: i32, records: i32) -> ProducerBatch {
    ProducerBatch {
        producer_id: ID,
        producer_epoch,
        base_sequence,
        last_offset_delta: records - 1,
        max_timestamp: 17,
        control: false,
    }
}

/// A partition that appends whatever `check` lets it.
struct Partition {
    producers: Producers,
    now_ms: i64,
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Appended(i64),
    Duplicate(i64),
    Refused(SequenceError),
}

impl Partition {
    fn new() -> Self {
        Partition { producers: Producers::new(LIMITS, 0), now_ms: 1_000_000 }
    }

    fn send(&mut self, batch: ProducerBatch) -> Answer {
        match self.producers.check(&batch) {
            Err(error) => Answer::Refused(error),
            Ok(Verdict::Duplicate(same)) => Answer::Duplicate(same.base_offset),
            Ok(Verdict::Append) => {
                let base_offset = self.producers.end_offset();
                self.producers.apply(&batch, base_offset, self.now_ms);
                Answer::Appended(base_offset)
            }
        }
    }
}

fn out_of_order(expected: i32, found: i32) -> Answer {
    Answer::Refused(SequenceError::OutOfOrder { producer_id: ID, expected, found })
}

#[test]
fn behaviour_38_the_last_five_batches_are_answered_with_their_offsets() {
    let mut partition = Partition::new();
    for number in 0..6 {
        assert_eq!(
            partition.send(batch(0, number * 10, 10)),
            Answer::Appended(i64::from(number) * 10)
        );
    }
    for number in 1..6 {
        let again = partition.send(batch(0, number * 10, 10));
        assert_eq!(again, Answer::Duplicate(i64::from(number) * 10), "batch {number}");
    }
    assert_eq!(partition.send(batch(0, 0, 10)), out_of_order(60, 0), "the sixth batch back");
    assert_eq!(partition.producers.end_offset(), 60, "nothing was appended twice");
}

#[test]
fn behaviour_38_gaps_parts_and_overlaps_are_out_of_order() {
    let mut partition = Partition::new();
    assert_eq!(partition.send(batch(0, 0, 10)), Answer::Appended(0));
    assert_eq!(partition.send(batch(0, 10, 10)), Answer::Appended(10));
    assert_eq!(partition.send(batch(0, 21, 10)), out_of_order(20, 21), "a gap");
    assert_eq!(partition.send(batch(0, 10, 5)), out_of_order(20, 10), "the first part");
    assert_eq!(partition.send(batch(0, 15, 5)), out_of_order(20, 15), "the last part");
    assert_eq!(partition.send(batch(0, 15, 10)), out_of_order(20, 15), "an overlap");
    assert_eq!(partition.send(batch(0, 0, 20)), out_of_order(20, 0), "two in one");
    assert_eq!(partition.send(batch(0, 20, 1)), Answer::Appended(20));
}

#[test]
fn behaviour_39_sequences_wrap_to_zero() {
    let mut partition = Partition::new();
    assert_eq!(partition.send(batch(0, i32::MAX - 4, 10)), Answer::Appended(0));
    assert_eq!(batch(0, i32::MAX - 4, 10).last_sequence(), 4);
    assert_eq!(partition.send(batch(0, 5, 1)), Answer::Appended(10));
    assert_eq!(partition.send(batch(0, i32::MAX - 4, 10)), Answer::Duplicate(0));

    let mut exact = Partition::new();
    assert_eq!(exact.send(batch(0, i32::MAX, 1)), Answer::Appended(0));
    assert_eq!(exact.send(batch(0, 1, 1)), out_of_order(0, 1));
    assert_eq!(exact.send(batch(0, 0, 1)), Answer::Appended(1));
}

#[test]
fn behaviour_39_a_new_epoch_starts_at_zero_and_an_unknown_producer_anywhere() {
    let mut partition = Partition::new();
    assert_eq!(partition.send(batch(3, 7, 1)), Answer::Appended(0));
    let not_zero = SequenceError::EpochNotFromZero { producer_id: ID, epoch: 4, found: 8 };
    assert_eq!(partition.send(batch(4, 8, 1)), Answer::Refused(not_zero));
    assert_eq!(partition.send(batch(4, 0, 2)), Answer::Appended(1));
    assert_eq!(partition.send(batch(4, 2, 1)), Answer::Appended(3));
    assert_eq!(partition.send(batch(4, 0, 2)), Answer::Duplicate(1));
}

#[test]
fn behaviour_40_a_stale_epoch_is_refused_even_for_a_repeat() {
    let mut partition = Partition::new();
    partition.send(batch(1, 0, 1));
    partition.send(batch(2, 0, 1));
    let stale = SequenceError::StaleEpoch { producer_id: ID, known: 2, found: 1 };
    assert_eq!(partition.send(batch(1, 0, 1)), Answer::Refused(stale));
    assert_eq!(partition.send(batch(1, 1, 1)), Answer::Refused(stale));
}

#[test]
fn h30_an_id_asks_for_an_epoch_and_a_sequence() {
    let mut partition = Partition::new();
    let stale = SequenceError::StaleEpoch { producer_id: ID, known: 0, found: -1 };
    assert_eq!(partition.send(batch(-1, 0, 1)), Answer::Refused(stale));
    let none = SequenceError::NoSequence { producer_id: ID };
    assert_eq!(partition.send(batch(0, -1, 1)), Answer::Refused(none));
    assert!(partition.producers.is_empty());
}

#[test]
fn checking_changes_nothing() {
    let mut partition = Partition::new();
    partition.send(batch(0, 0, 10));
    let before = partition.producers.clone();
    for (epoch, sequence) in [(0, 0), (0, 10), (0, 99), (5, 0), (5, 1), (-1, 0), (0, -1)] {
        let _ = partition.producers.check(&batch(epoch, sequence, 10));
    }
    assert_eq!(partition.producers, before);
}

#[test]
fn behaviour_41_all_five_batches_survive_in_the_snapshot() {
    let mut random = Random(8);
    let mut producers = Producers::new(LIMITS, 0);
    let mut offset = 0;
    for _ in 0..2_000 {
        let producer_id = random.below(50) as i64;
        let records = 1 + random.below(100) as i32;
        let base_sequence = producers.entry(producer_id).map_or(0, |entry| entry.next_sequence().0);
        let (producer_epoch, max_timestamp) = (producer_id as i16, offset);
        let sent = ProducerBatch {
            producer_id,
            producer_epoch,
            base_sequence,
            last_offset_delta: records - 1,
            max_timestamp,
            control: false,
        };
        assert_eq!(producers.check(&sent), Ok(Verdict::Append));
        producers.apply(&sent, offset, 5_000 + offset);
        offset += i64::from(records);
    }
    let snapshot = ProducerSnapshot::from_file(&producers.to_file()).expect("it is sound");
    assert_eq!((snapshot.end_offset, snapshot.len()), (offset, 50));
    assert_eq!(snapshot.into_producers(LIMITS), producers);
}

#[test]
fn replaying_the_log_behind_a_snapshot_gives_the_same_answers() {
    let mut live = Partition::new();
    let sent: Vec<ProducerBatch> = (0..20).map(|n| batch(0, n * 3, 3)).collect();
    let mut file = live.producers.to_file();
    for (number, batch) in sent.iter().enumerate() {
        live.send(*batch);
        if number == 12 {
            file = live.producers.to_file();
        }
    }
    let snapshot = ProducerSnapshot::from_file(&file).expect("it is sound");
    let mut replayed = snapshot.into_producers(LIMITS);
    for (number, batch) in sent.iter().enumerate().skip(13) {
        replayed.apply(batch, number as i64 * 3, live.now_ms);
    }
    assert_eq!(replayed, live.producers);
}

#[test]
fn every_damaged_snapshot_asks_for_a_replay() {
    let mut partition = Partition::new();
    for number in 0..7 {
        partition.send(batch(0, number, 1));
    }
    let file = partition.producers.to_file();
    for at in 0..file.len() {
        let mut flipped = file.clone();
        flipped[at] ^= 0x40;
        assert!(ProducerSnapshot::from_file(&flipped).is_err(), "byte {at}");
        assert!(ProducerSnapshot::from_file(&file[..at]).is_err(), "cut to {at}");
    }
}

#[test]
fn producers_are_forgotten_by_the_brokers_clock() {
    let mut partition = Partition::new();
    // Its records claim to be from 1970, or from the year 3000: that does not matter.
    partition.send(ProducerBatch { max_timestamp: 0, ..batch(0, 0, 1) });
    partition.now_ms += LIMITS.expiration_ms - 1;
    assert_eq!(partition.producers.expire(partition.now_ms), 0);
    partition.send(ProducerBatch { max_timestamp: i64::MAX, ..batch(0, 1, 1) });
    partition.now_ms += LIMITS.expiration_ms - 1;
    assert_eq!(partition.producers.expire(partition.now_ms), 0);
    assert_eq!(partition.producers.expire(partition.now_ms + 1), 1);
    assert_eq!(partition.send(batch(0, 77, 1)), Answer::Appended(2), "it is unknown again");
}

#[test]
fn the_longest_idle_make_room_for_new_ones() {
    let limits = ProducerLimits { producers_max: 100, ..LIMITS };
    let mut producers = Producers::new(limits, 0);
    for id in 0..1_000i64 {
        let sent = ProducerBatch { producer_id: id, ..batch(0, 0, 1) };
        producers.apply(&sent, id, id);
        assert!(producers.len() <= 100);
    }
    assert!(producers.entry(999).is_some() && producers.entry(920).is_some());
    assert!(producers.entry(0).is_none());
}

#[test]
fn descriptions_show_the_last_batch() {
    let mut partition = Partition::new();
    partition.send(batch(2, 0, 10));
    partition.send(ProducerBatch { max_timestamp: 99, ..batch(2, 10, 5) });
    let described = ProducerDescription {
        producer_id: ID,
        producer_epoch: 2,
        last_sequence: 14,
        last_timestamp: 99,
        coordinator_epoch: -1,
        current_txn_start_offset: -1,
    };
    assert_eq!(partition.producers.describe(), [described]);
}
