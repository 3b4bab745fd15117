//! Random logs against a model (checker 23): the newest value of every key, offsets and order, and
//! everything behind what was cleaned.

use std::collections::BTreeMap;

use proptest::prelude::*;
use protocol::batch::Codec;
use storage::{Cleaner, LogOptions};

use crate::harness::{NOW_MS, append, create, open, run, storage};
use crate::rounds::{keyed, options, seen};

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<(u32, Option<u32>)>, u8),
    Clean { map_keys: usize, later_ms: i64 },
    Reopen,
    DeleteRecords(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let record = (0..12_u32, proptest::option::weighted(0.8, any::<u32>()));
    prop_oneof![
        12 => (proptest::collection::vec(record, 1..8), 0..5_u8)
            .prop_map(|(records, codec)| Step::Append(records, codec)),
        3 => (1..30_usize, 0..400_i64)
            .prop_map(|(map_keys, later_ms)| Step::Clean { map_keys, later_ms }),
        1 => Just(Step::Reopen),
        1 => any::<u8>().prop_map(Step::DeleteRecords),
    ]
}

/// What was written, by offset.
type Written = BTreeMap<i64, (u32, Option<u32>)>;

fn newest(written: &Written, from: i64) -> BTreeMap<u32, Option<u32>> {
    written.range(from..).map(|(_, (key, value))| (*key, *value)).collect()
}

/// Without tombstones: those may be gone or not.
fn living(map: &BTreeMap<u32, Option<u32>>) -> BTreeMap<u32, u32> {
    map.iter().filter_map(|(key, value)| value.map(|value| (*key, value))).collect()
}

async fn play(dir: std::path::PathBuf, steps: Vec<Step>) {
    let options = LogOptions { segment_bytes: 9_000, delete_retention_ms: 150, ..options() };
    let mut storage = storage(&dir);
    let mut log = create(&storage, options.clone()).await;
    let (mut written, mut now_ms) = (Written::new(), NOW_MS);
    for step in steps {
        match step {
            Step::Append(records, codec) => {
                let codec = Codec::from_id(codec).unwrap();
                let appended = append(&log, &keyed(codec, &records)).await;
                for (number, (key, value)) in records.into_iter().enumerate() {
                    written.insert(appended.base_offset + number as i64, (key, value));
                }
            }
            Step::Clean { map_keys, later_ms } => {
                now_ms += later_ms;
                let cleaner = Cleaner::new(map_keys * 32, 1e12);
                log.clean(&cleaner, now_ms).await.unwrap();
            }
            Step::Reopen => {
                log.close().await;
                storage = crate::harness::storage(&dir);
                log = open(&storage, options.clone()).await.0;
            }
            Step::DeleteRecords(share) => {
                let (start, end) = (log.log_start_offset(), log.log_end_offset());
                let to = start + (end - start) * i64::from(share) / 600;
                log.delete_records(to).await.unwrap();
            }
        }
        check(&log, &written).await;
    }
    log.close().await;
}

async fn check(log: &storage::Log, written: &Written) {
    let start = log.log_start_offset();
    let (map, all) = seen(log).await;
    assert_eq!(living(&map), living(&newest(written, start)), "from {start}");
    let cleaned_to = log.cleanable(NOW_MS).await.unwrap().first_dirty;
    for (offset, key) in &all {
        assert_eq!(written[offset].0, *key, "the record at {offset} is another");
    }
    let behind = all.iter().filter(|(offset, _)| *offset >= cleaned_to).count();
    assert_eq!(behind, written.range(cleaned_to..).count(), "nothing behind {cleaned_to} may go");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_full_read_returns_what_the_model_says(steps in proptest::collection::vec(step(), 1..60)) {
        run(move |dir| play(dir, steps.clone()));
    }
}
