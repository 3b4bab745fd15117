//! Offset and time index against a scan over every batch.

use storage::index::{
    IndexDamage, IndexFiles, IndexPolicy, IndexedBatch, OffsetIndex, SegmentIndex, TimeIndex,
};

use crate::Random;

const BASE: i64 = 1_000_000_000_000;
const POLICY: IndexPolicy = IndexPolicy { interval_bytes: 4096, bytes_max: 10 << 20 };

fn batches(seed: u64, count: usize) -> Vec<IndexedBatch> {
    let mut random = Random(seed);
    let (mut next_offset, mut position) = (BASE, 0);
    let mut batch = || {
        let size_bytes = 61 + random.below(3_000) as u32;
        let last_offset = next_offset + random.below(50) as i64;
        // Timestamps jump about; some batches have none.
        let max_timestamp = if random.below(10) == 0 { -1 } else { random.below(10_000) as i64 };
        let batch = IndexedBatch { last_offset, position, size_bytes, max_timestamp };
        next_offset = last_offset + 1;
        position += size_bytes;
        batch
    };
    (0..count).map(|_| batch()).collect()
}

fn index_of(batches: &[IndexedBatch]) -> SegmentIndex {
    let mut index = SegmentIndex::new(BASE, POLICY);
    batches.iter().for_each(|batch| index.on_batch(*batch));
    index
}

fn log_bytes(batches: &[IndexedBatch]) -> u64 {
    batches.last().map_or(0, |last| u64::from(last.position + last.size_bytes))
}

fn parse(index: &SegmentIndex, log_bytes: u64) -> Result<SegmentIndex, IndexDamage> {
    let (offsets, times) = (index.offsets().to_file(0), index.times().to_file(0));
    SegmentIndex::parse(BASE, POLICY, IndexFiles { offsets: &offsets, times: &times, log_bytes })
}

#[test]
fn a_scan_from_the_floor_finds_the_batch_of_every_offset() {
    for seed in 0..20 {
        let batches = batches(seed, 200);
        let index = index_of(&batches);
        assert!(index.offsets().len() > 50);
        let end = batches.last().expect("batches").last_offset;
        for offset in BASE..=end {
            let wanted = batches.iter().find(|b| b.last_offset >= offset).expect("it is there");
            let start = index.scan_start_for_offset(offset);
            assert!(start.position <= wanted.position, "seed {seed}, offset {offset}");
            assert!(batches.iter().any(|batch| batch.position == start.position));
            // At most one interval and one batch on either side is scanned in vain.
            assert!(wanted.position - start.position <= 4096 + 2 * 3_061, "seed {seed}");
        }
    }
}

#[test]
fn a_scan_from_the_floor_finds_the_first_batch_of_every_timestamp() {
    for seed in 0..50 {
        let batches = batches(seed, 100);
        let mut index = index_of(&batches);
        index.seal();
        for timestamp in 0..10_000 {
            let start = index.scan_start_for_timestamp(timestamp);
            let first = batches.iter().find(|b| b.max_timestamp >= timestamp);
            let scanned = batches.iter().filter(|b| b.position >= start.position);
            let found = scanned.filter(|b| b.last_offset >= start.offset);
            let found = found.into_iter().find(|b| b.max_timestamp >= timestamp);
            assert_eq!(found, first, "seed {seed}, timestamp {timestamp}");
        }
    }
}

#[test]
fn the_largest_timestamp_belongs_to_its_first_batch() {
    let batches = batches(3, 300);
    let largest = index_of(&batches).largest_timestamp().expect("some have one");
    let max = batches.iter().map(|b| b.max_timestamp).max().expect("batches");
    let first = batches.iter().find(|b| b.max_timestamp == max).expect("it is there");
    assert_eq!((largest.timestamp, largest.last_offset), (max, first.last_offset));
    let mut sealed = index_of(&batches);
    sealed.seal();
    assert_eq!(sealed.times().last(), Some(largest));
}

#[test]
fn files_survive_and_resuming_completes_them() {
    for seed in 0..20 {
        let batches = batches(seed, 150);
        let whole = index_of(&batches);
        let mut resumed = parse(&whole, log_bytes(&batches)).expect("sound files");
        let from = resumed.resume_position();
        batches.iter().filter(|b| b.position >= from).for_each(|b| resumed.on_batch(*b));
        assert_eq!(resumed, whole, "seed {seed}");
    }
}

#[test]
fn truncation_and_replay_give_the_index_of_the_shorter_segment() {
    for seed in 0..20 {
        let batches = batches(seed, 150);
        let mut random = Random(seed);
        for _ in 0..20 {
            let kept = random.below(150) as usize;
            let mut index = index_of(&batches);
            index.seal();
            let end = batches[..kept].last().map_or(BASE, |last| last.last_offset + 1);
            let from = index.truncate_to(end);
            batches[..kept].iter().filter(|b| b.position >= from).for_each(|b| index.on_batch(*b));
            let mut expected = index_of(&batches[..kept]);
            // Sealing may have written a last time entry early; then it stays.
            expected.seal();
            index.seal();
            assert_eq!(index, expected, "seed {seed}, {kept} batches");
        }
    }
}

#[test]
fn entries_are_written_in_kafkas_format() {
    let mut index = SegmentIndex::new(10, IndexPolicy { interval_bytes: 0, bytes_max: 1024 });
    let batch = |last_offset, position, max_timestamp| IndexedBatch {
        last_offset,
        position,
        size_bytes: 100,
        max_timestamp,
    };
    index.on_batch(batch(14, 0, 5));
    index.on_batch(batch(17, 100, 7));
    index.on_batch(batch(0x0102, 200, 6));
    // The segment's first batch needs no entry: every scan can begin there.
    assert_eq!(index.offsets().to_file(0), [0, 0, 0, 7, 0, 0, 0, 100, 0, 0, 0, 0xf8, 0, 0, 0, 200]);
    assert_eq!(index.times().to_file(0), [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 7]);
    assert_eq!(index.offsets().to_file(1).len(), OffsetIndex::ENTRY_BYTES);
}

#[test]
fn a_full_index_asks_for_a_new_segment_before_it_overflows() {
    let policy = IndexPolicy { interval_bytes: 0, bytes_max: 120 };
    let mut index = SegmentIndex::new(0, policy);
    let mut count = 0u32;
    while !index.is_full() {
        index.on_batch(IndexedBatch {
            last_offset: i64::from(count),
            position: count * 100,
            size_bytes: 100,
            max_timestamp: i64::from(count),
        });
        count += 1;
    }
    index.seal();
    assert!(index.offsets().to_file(0).len() <= 120 && index.times().to_file(0).len() <= 120);
    assert_eq!(index.times().len(), 9, "one entry is left for sealing");
}

#[test]
fn what_does_not_rise_or_fit_is_damage() {
    let offsets = |entries: &[[u32; 2]]| {
        let bytes = |word: &u32| word.to_be_bytes();
        let file: Vec<u8> = entries.iter().flatten().flat_map(bytes).collect();
        OffsetIndex::parse(BASE, &file, 1_000).map(|index| index.len())
    };
    assert_eq!(offsets(&[[1, 0], [5, 400], [6, 999]]), Ok(3));
    assert_eq!(offsets(&[[1, 0], [1, 400]]), Err(IndexDamage::NotRising { entry: 1 }));
    assert_eq!(offsets(&[[1, 400], [2, 400]]), Err(IndexDamage::NotRising { entry: 1 }));
    assert_eq!(offsets(&[[1, 0], [5, 1_000]]), Err(IndexDamage::OutsideLog { entry: 1 }));
    assert_eq!(offsets(&[[1 << 31, 0]]), Err(IndexDamage::OutsideOffsets { entry: 0 }));
    // What a crash leaves of a file that was allocated ahead.
    assert_eq!(offsets(&[[1, 61], [0, 0]]), Err(IndexDamage::NotRising { entry: 1 }));
    let ragged = IndexDamage::Ragged { bytes: 13, entry_bytes: 12 };
    assert_eq!(TimeIndex::parse(BASE, &[0; 13]), Err(ragged));
}
