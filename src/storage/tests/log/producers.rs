//! Idempotent producers on a real log (reference §3.38 to §3.41).

use protocol::batch::compression::Compression;
use protocol::batch::{BatchBuilder, Codec, ValidBatch};
use storage::producer::SequenceError;
use storage::{AppendError, Log, LogOptions, TurnedAway};

use crate::harness::{NOW_MS, append, batch, built, create, file, files, open, run, storage};

fn sent(id: i64, epoch: i16, sequence: i32, count: u64) -> ValidBatch {
    let builder = BatchBuilder::new(Compression::of(Codec::None)).producer(id, epoch, sequence);
    built(builder, sequence as u64, count, 20, NOW_MS)
}

async fn refusal(log: &Log, batch: ValidBatch) -> SequenceError {
    match log.append(&batch, 0, NOW_MS).await {
        Err(AppendError::Sequence(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

/// The last five batches of two producers are known again, the sixth is not.
async fn assert_remembers(log: &Log) {
    let end = log.log_end_offset();
    for producer in [1, 2] {
        for number in 3..8 {
            let repeated = log.append(&sent(producer, 0, number * 2, 2), 0, NOW_MS).await.unwrap();
            assert!(repeated.duplicate);
            assert_eq!(repeated.base_offset, i64::from(number) * 4 + (producer - 1) * 2);
            assert_eq!(repeated.last_offset, repeated.base_offset + 1);
        }
        let error = refusal(log, sent(producer, 0, 4, 2)).await;
        assert!(matches!(error, SequenceError::OutOfOrder { expected: 16, found: 4, .. }));
        let error = refusal(log, sent(producer, 0, 18, 2)).await;
        assert!(matches!(error, SequenceError::OutOfOrder { expected: 16, found: 18, .. }));
    }
    assert_eq!(log.log_end_offset(), end, "nothing was appended");
}

#[test]
fn five_batches_of_each_producer_are_known_before_and_after_every_kind_of_start() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..8 {
            append(&log, &sent(1, 0, number * 2, 2)).await;
            append(&log, &sent(2, 0, number * 2, 2)).await;
        }
        assert_remembers(&log).await;
        log.give_up().await;
        let (log, report) = open(&storage, LogOptions::default()).await;
        assert!(!report.clean);
        assert_remembers(&log).await;
        log.close().await;
        let (log, report) = open(&storage, LogOptions::default()).await;
        assert!(report.clean && report.scanned_bytes == 0);
        assert_remembers(&log).await;
        assert_eq!(log.producers().len(), 2);
        log.close().await;
        for name in files(&dir).await.iter().filter(|name| name.ends_with(".producers")) {
            runtime::fs::remove_file(file(&dir, name)).await.unwrap();
        }
        let (log, report) = open(&storage, LogOptions::default()).await;
        assert_eq!(report.rebuilt, ["producers"]);
        assert_remembers(&log).await;
        append(&log, &sent(1, 0, 16, 2)).await;
    });
}

#[test]
fn a_truncation_forgets_what_it_cut_and_nothing_else() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..8 {
            append(&log, &sent(1, 0, number * 2, 2)).await;
        }
        log.truncate_to(10).await.unwrap();
        let repeated = log.append(&sent(1, 0, 8, 2), 0, NOW_MS).await.unwrap();
        assert!(repeated.duplicate);
        let appended = append(&log, &sent(1, 0, 10, 2)).await;
        assert_eq!((appended.base_offset, appended.duplicate), (10, false));
    });
}

#[test]
fn an_epoch_that_is_stale_or_does_not_begin_at_zero_is_refused() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        append(&log, &sent(1, 3, 7, 1)).await;
        let error = refusal(&log, sent(1, 2, 8, 1)).await;
        assert!(matches!(error, SequenceError::StaleEpoch { known: 3, found: 2, .. }));
        let error = refusal(&log, sent(1, 4, 8, 1)).await;
        assert!(matches!(error, SequenceError::EpochNotFromZero { epoch: 4, found: 8, .. }));
        append(&log, &sent(1, 4, 0, 1)).await;
        append(&log, &batch(0, 1, 10)).await;
        assert_eq!(log.log_end_offset(), 3);
    });
}

/// While a log is not open its batches are turned away, and what was sent behind the first of them
/// as well; one that had been appended before holds nobody up once it is answered again.
#[test]
fn a_batch_that_was_there_already_was_not_turned_away() {
    run(|dir| async move {
        let log = create(&storage(&dir), LogOptions::default()).await;
        append(&log, &sent(7, 0, 0, 2)).await;
        let mut turned_away = TurnedAway::default();
        turned_away.note_batch(sent(7, 0, 0, 2).header());
        turned_away.note_batch(sent(8, 0, 0, 1).header());
        let mut handed_over = TurnedAway::default();
        handed_over.merge(turned_away);
        log.remember_turned_away(handed_over);
        assert!(append(&log, &sent(7, 0, 0, 2)).await.duplicate);
        assert_eq!(append(&log, &sent(7, 0, 2, 1)).await.base_offset, 2);
        assert!(matches!(
            refusal(&log, sent(8, 0, 1, 1)).await,
            SequenceError::OutOfOrder { expected: 0, found: 1, .. }
        ));
        assert_eq!(append(&log, &sent(8, 0, 0, 1)).await.base_offset, 3);
        assert!(log.take_turned_away().is_empty());
    });
}
