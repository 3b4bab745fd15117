//! The end of a log's service: closed in order, given up as it stands, or deleted.
//!
//! Law: when the end of its service has been told, nothing of a log goes on in the background: its
//! name is free for another instance, which finds the files at rest. A closed log is wholly durable
//! and its checkpoint says so, so that the next start reads nothing else. A deleted one leaves its
//! name with one durable rename; its bytes go later.

use std::rc::Rc;

use runtime::file::FsError;

use super::turn::TurnGuard;
use super::{Log, LogInner};
use crate::directory::Identity;
use crate::errors::Unavailable;
use crate::journal::EntryKind;

impl Log {
    /// Writes out what is pending and closes the log in order. Later calls find it closed.
    pub async fn close(&self) {
        let log = &self.inner;
        let _turn = log.turn.take().await;
        if log.check_service().is_err() {
            return;
        }
        let _uncleaned = log.clean_turn.keep_off().await;
        log.settle_in_segments().await;
        log.finish_sealed().await;
        log.sync_relaxed().await;
        log.fence_in_journal(EntryKind::HandedOver).await;
        let untouched = {
            let state = log.state.borrow();
            state.checkpoint.clean && !state.prepared && state.epochs_saved
        };
        if !untouched {
            log.advance_recovery_point(true).await;
        }
        let _at_rest = log.wait_until_at_rest().await;
        log.end_service(Unavailable::Closed);
    }

    /// Does ahead what closing would have to do while nobody is served.
    pub async fn prepare_to_close(&self) {
        let log = &self.inner;
        log.finish_sealed().await;
        log.destage().await;
        log.sync_relaxed().await;
    }

    /// Takes the log out of service as it stands, as a killed process leaves it: what is being
    /// written is waited for, nothing more is. Later calls find it closed.
    pub async fn give_up(&self) {
        let log = &self.inner;
        let _turn = log.turn.take().await;
        if log.check_service().is_err() {
            return;
        }
        let _uncleaned = log.clean_turn.keep_off().await;
        log.settle_in_segments().await;
        let _at_rest = log.wait_until_at_rest().await;
        log.end_service(Unavailable::Closed);
    }

    /// Takes the log out of service and its directory out of the way, durably, whatever is
    /// pending: nothing more is acknowledged. What is on disk is removed in the background.
    pub async fn delete(&self) -> Result<(), FsError> {
        let log = &self.inner;
        let _turn = log.turn.take().await;
        if log.check_service() == Err(Unavailable::Deleted) {
            return Ok(());
        }
        let _uncleaned = log.clean_turn.keep_off().await;
        log.settle_in_segments().await;
        log.fence_in_journal(EntryKind::Deleted).await;
        let _at_rest = log.wait_until_at_rest().await;
        log.end_service(Unavailable::Deleted);
        let identity = Identity { topic_id: log.topic_id, partition: log.partition };
        let from = log.dir.borrow().clone();
        let to = log.storage.move_to_deleted(&from, identity).await?;
        *log.dir.borrow_mut() = to;
        // Whoever began to open a file before closes it when done.
        log.storage.open_files().forget_log(log.number);
        Ok(())
    }
}

impl LogInner {
    /// Everything that writes beside who has the turn: none of it goes on as long as this is held,
    /// and none begins once the service has ended. In the order in which they are taken elsewhere.
    async fn wait_until_at_rest(&self) -> [TurnGuard<'_>; 5] {
        [
            self.allocation_turn.take().await,
            self.seal_turn.take().await,
            self.save_turn.take().await,
            self.register_turn.take().await,
            self.checkpoint_turn.take().await,
        ]
    }

    /// No call succeeds any more; who waits is told, and what was kept for readers goes.
    fn end_service(self: &Rc<Self>, why: Unavailable) {
        {
            let state = &mut *self.state.borrow_mut();
            state.service = Err(why);
            if !state.tail.has_unwritten() {
                self.storage.memory().on_tail_cleared(state.tail.clear());
            }
        }
        self.waiters.wake_all();
        self.advanced.notify_all();
        self.storage.memory().windows.forget_log(self.number);
        self.storage.open_files().forget_log(self.number);
    }
}
