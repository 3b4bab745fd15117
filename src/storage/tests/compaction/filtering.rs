//! What of a batch stays (reference §3.41, §3.56, §3.58; checker 23).

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::batch::compression::Compression;
use protocol::batch::{
    BatchBuilder, BatchHeader, Codec, HEADER_BYTES, NewRecord, RecordIter, decompress,
    header::crc_ok,
};
use storage::compaction::filter::{Rules, Verdict, judge, map_batch};
use storage::compaction::keys::{KeyMap, SLOT_BYTES};
use storage::compaction::transactions::{AbortedTransaction, WalkedTransactions};
use storage::producer::LastOfProducer;

const NOW_MS: i64 = 10_000;

type Record<'a> = (&'a str, Option<&'a str>);

fn rules(mapped_to: i64) -> Rules {
    Rules {
        now_ms: NOW_MS,
        delete_retention_ms: 500,
        mapped_to,
        cleanable_to: 1 << 40,
        producers: BTreeMap::new(),
    }
}

fn build(builder: BatchBuilder, base_offset: i64, records: &[Record<'_>]) -> Bytes {
    let mut builder = builder.base_offset(base_offset).leader_epoch(3);
    for (number, (key, value)) in records.iter().enumerate() {
        builder.append(&NewRecord {
            timestamp: 100 + number as i64,
            key: Some(key.as_bytes()),
            value: value.map(str::as_bytes),
            headers: &[("h", Some(b"1"))],
        });
    }
    builder.build()
}

fn plain(base_offset: i64, records: &[Record<'_>]) -> Bytes {
    build(BatchBuilder::new(Compression::None), base_offset, records)
}

fn map_of(batches: &[Bytes]) -> KeyMap {
    let mut map = KeyMap::new([1, 2], 1000 * SLOT_BYTES, 0.9);
    for batch in batches {
        let header = BatchHeader::parse(batch).unwrap();
        let transactions = &mut WalkedTransactions::default();
        map_batch(&mut map, transactions, &header, batch, 0).unwrap();
    }
    map
}

fn judged(rules: &Rules, map: &KeyMap, batch: &Bytes) -> Verdict {
    let header = BatchHeader::parse(batch).unwrap();
    judge(rules, map, &mut WalkedTransactions::default(), &header, batch).unwrap()
}

fn rewritten(verdict: Verdict) -> Bytes {
    match verdict {
        Verdict::Rewritten(batch) => batch,
        other => panic!("not rewritten but {other:?}"),
    }
}

/// Offset, timestamp, key and whether there is a value.
fn content(batch: &Bytes) -> Vec<(i64, i64, String, bool)> {
    let header = BatchHeader::parse(batch).unwrap();
    assert_eq!(header.size_in_bytes(), batch.len());
    assert!(crc_ok(batch));
    let codec = header.compression().unwrap();
    let body = decompress(codec, &batch[HEADER_BYTES..], 1 << 20).unwrap();
    let records = RecordIter::new(&body, header.count).map(|record| {
        let record = record.unwrap();
        assert_eq!(record.headers.len(), 1);
        let key = String::from_utf8(record.key.unwrap().to_vec()).unwrap();
        let offset = header.base_offset + i64::from(record.offset_delta);
        (offset, header.record_timestamp(record.timestamp_delta), key, record.value.is_some())
    });
    records.collect()
}

#[test]
fn only_the_newest_record_of_a_key_stays_where_it_was() {
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let builder = BatchBuilder::new(Compression::of(codec)).producer(5, 1, 40);
        let old = build(builder, 20, &[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))]);
        let new = plain(23, &[("a", Some("4"))]);
        let map = map_of(&[old.clone(), new.clone()]);
        let batch = rewritten(judged(&rules(24), &map, &old));
        assert_eq!(
            content(&batch),
            [(21, 101, "b".into(), true), (22, 102, "c".into(), true)],
            "{codec:?}"
        );
        let (before, after) =
            (BatchHeader::parse(&old).unwrap(), BatchHeader::parse(&batch).unwrap());
        assert_eq!(after.base_offset, 20);
        assert_eq!(after.last_offset(), 22);
        assert_eq!(after.compression(), before.compression());
        assert_eq!(after.partition_leader_epoch, 3);
        assert_eq!((after.producer_id, after.producer_epoch, after.base_sequence), (5, 1, 40));
        assert_eq!(after.max_timestamp, 102);
        assert_eq!(judged(&rules(24), &map, &new), Verdict::Whole);
    }
}

#[test]
fn what_is_not_mapped_stays() {
    let batch = plain(20, &[("a", Some("1")), ("a", Some("2")), ("a", Some("3"))]);
    let map = map_of(std::slice::from_ref(&batch));
    let kept = content(&rewritten(judged(&rules(22), &map, &batch)));
    assert_eq!(kept, [(22, 102, "a".into(), true)]);
    assert_eq!(judged(&rules(20), &map, &batch), Verdict::Whole);
}

#[test]
fn a_tombstone_stays_until_the_horizon_of_its_batch() {
    let batch = plain(0, &[("a", Some("1")), ("a", None), ("b", Some("2"))]);
    let map = map_of(std::slice::from_ref(&batch));
    let first = rewritten(judged(&rules(3), &map, &batch));
    let header = BatchHeader::parse(&first).unwrap();
    assert_eq!(header.delete_horizon_ms(), Some(NOW_MS + 500));
    assert_eq!(content(&first), [(1, 101, "a".into(), false), (2, 102, "b".into(), true)]);
    // Later rounds keep the horizon that was set.
    let later = Rules { now_ms: NOW_MS + 499, ..rules(3) };
    assert_eq!(judged(&later, &map, &first), Verdict::Whole);
    let over = Rules { now_ms: NOW_MS + 500, ..rules(3) };
    let last = rewritten(judged(&over, &map, &first));
    assert_eq!(content(&last), [(2, 102, "b".into(), true)]);
    assert_eq!(BatchHeader::parse(&last).unwrap().delete_horizon_ms(), Some(NOW_MS + 500));
}

#[test]
fn a_record_without_a_key_goes() {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.append(&NewRecord { timestamp: 1, value: Some(b"v"), ..NewRecord::default() });
    let batch = builder.build();
    assert_eq!(judged(&rules(9), &map_of(&[]), &batch), Verdict::Gone);
}

#[test]
fn the_last_batch_of_a_producer_stays_empty() {
    let old = build(
        BatchBuilder::new(Compression::of(Codec::Zstd)).producer(5, 1, 40),
        20,
        &[("a", Some("1")), ("b", Some("2"))],
    );
    let map = map_of(&[old.clone(), plain(22, &[("a", Some("3")), ("b", None)])]);
    assert_eq!(judged(&rules(30), &map, &old), Verdict::Gone);
    let mut rules = rules(30);
    rules.producers.insert(5, LastOfProducer { last_offset: Some(21), epoch: 1 });
    let empty = rewritten(judged(&rules, &map, &old));
    assert_eq!(empty.len(), HEADER_BYTES);
    assert!(crc_ok(&empty));
    let header = BatchHeader::parse(&empty).unwrap();
    assert_eq!((header.base_offset, header.last_offset(), header.count), (20, 21, 0));
    assert_eq!((header.producer_id, header.base_sequence, header.last_sequence()), (5, 40, 41));
    assert_eq!(header.compression(), Ok(Codec::None));
    assert_eq!(judged(&rules, &map, &empty), Verdict::Whole);
    // Once the producer has written more, or is forgotten, it goes.
    rules.producers.clear();
    assert_eq!(judged(&rules, &map, &empty), Verdict::Gone);
}

#[test]
fn the_batch_that_ends_what_could_be_cleaned_stays() {
    let old = plain(20, &[("a", Some("1"))]);
    let map = map_of(&[old.clone(), plain(21, &[("a", Some("2"))])]);
    let rules = Rules { cleanable_to: 21, ..rules(30) };
    let empty = rewritten(judged(&rules, &map, &old));
    assert_eq!(BatchHeader::parse(&empty).unwrap().count, 0);
}

/// A marker: version 0, type 0 (abort) or 1 (commit).
fn marker(base_offset: i64, producer_id: i64, kind: u8) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None)
        .producer(producer_id, 0, -1)
        .transactional()
        .control()
        .base_offset(base_offset);
    let key = [0, 0, 0, kind];
    builder.append(&NewRecord {
        timestamp: 5,
        key: Some(&key),
        value: Some(b"\0\0\0\0\0\0"),
        headers: &[],
    });
    builder.build()
}

fn in_transaction(base_offset: i64, producer_id: i64, records: &[Record<'_>]) -> Bytes {
    let builder = BatchBuilder::new(Compression::None).producer(producer_id, 0, 0).transactional();
    build(builder, base_offset, records)
}

#[test]
fn aborted_records_go_at_once_and_are_not_mapped() {
    let aborted = in_transaction(0, 9, &[("a", Some("no"))]);
    let kept = plain(1, &[("b", Some("1"))]);
    let abort = marker(2, 9, 0);
    let transaction = AbortedTransaction { producer_id: 9, first_offset: 0, last_offset: 2 };
    let mut map = KeyMap::new([1, 2], 1000 * SLOT_BYTES, 0.9);
    let walk = &mut WalkedTransactions::new(vec![transaction]);
    for batch in [&aborted, &kept, &abort] {
        let header = BatchHeader::parse(batch).unwrap();
        map_batch(&mut map, walk, &header, batch, 0).unwrap();
    }
    assert_eq!(map.get(b"a"), None);
    let walk = &mut WalkedTransactions::new(vec![transaction]);
    let verdicts = [&aborted, &kept, &abort].map(|batch| {
        let header = BatchHeader::parse(batch).unwrap();
        judge(&rules(3), &map, walk, &header, batch).unwrap()
    });
    // The marker's data was there in this round.
    assert_eq!(verdicts, [Verdict::Gone, Verdict::Whole, Verdict::Whole]);
}

#[test]
fn a_marker_goes_after_its_data_and_after_its_horizon() {
    for kind in [0, 1] {
        let alone = marker(2, 9, kind);
        let map = map_of(&[]);
        let first = rewritten(judged(&rules(3), &map, &alone));
        let header = BatchHeader::parse(&first).unwrap();
        assert!(header.is_control() && header.is_transactional());
        assert_eq!(header.delete_horizon_ms(), Some(NOW_MS + 500));
        let early = Rules { now_ms: NOW_MS + 499, ..rules(3) };
        assert_eq!(judged(&early, &map, &first), Verdict::Whole);
        let over = Rules { now_ms: NOW_MS + 500, ..rules(3) };
        assert_eq!(judged(&over, &map, &first), Verdict::Gone);
        let mut over = over;
        over.producers.insert(9, LastOfProducer { last_offset: None, epoch: 0 });
        let empty = rewritten(judged(&over, &map, &first));
        assert_eq!(BatchHeader::parse(&empty).unwrap().count, 0);
        // An emptied marker has nothing left to wait for.
        over.producers.clear();
        assert_eq!(judged(&over, &map, &empty), Verdict::Gone);
    }
}

#[test]
fn a_committed_marker_stays_while_its_data_is_there() {
    let data = in_transaction(0, 9, &[("a", Some("1"))]);
    let commit = marker(1, 9, 1);
    let map = map_of(std::slice::from_ref(&data));
    let walk = &mut WalkedTransactions::default();
    for batch in [&data, &commit] {
        let header = BatchHeader::parse(batch).unwrap();
        assert_eq!(judge(&rules(2), &map, walk, &header, batch).unwrap(), Verdict::Whole);
    }
}

#[test]
fn a_full_table_ends_the_mapping_at_a_record() {
    let batch = plain(10, &[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))]);
    let header = BatchHeader::parse(&batch).unwrap();
    let mut map = KeyMap::new([1, 2], 3 * SLOT_BYTES, 0.9);
    let walk = &mut WalkedTransactions::default();
    assert_eq!(map_batch(&mut map, walk, &header, &batch, 0).unwrap(), (12, true));
    let mut map = KeyMap::new([1, 2], 3 * SLOT_BYTES, 0.9);
    assert_eq!(map_batch(&mut map, walk, &header, &batch, 12).unwrap(), (13, false));
    assert_eq!(map.get(b"a"), None);
}
