//! The end of a log's service: closed in order, or deleted.
//!
//! Law: a closed log is wholly durable and its checkpoint says so, so that the next start reads
//! nothing else. A deleted one leaves its name with one durable rename; its bytes go later.

use std::rc::Rc;

use runtime::file::FsError;

use super::{Log, LogInner};
use crate::directory::Identity;
use crate::errors::Unavailable;

impl Log {
    /// Writes out what is pending and closes the log in order. Later calls find it closed.
    pub async fn close(&self) {
        let log = &self.inner;
        let _turn = log.turn.take().await;
        if log.check_service().is_err() {
            return;
        }
        log.wait_until_written().await;
        log.finish_sealed().await;
        log.sync_relaxed().await;
        let untouched = {
            let state = log.state.borrow();
            state.checkpoint.clean && !state.prepared && state.epochs_saved
        };
        if !untouched {
            log.advance_recovery_point(true).await;
        }
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
        log.wait_until_written().await;
        let _allocating = log.allocation_turn.take().await;
        let _sealing = log.seal_turn.take().await;
        let _saving = log.save_turn.take().await;
        log.end_service(Unavailable::Deleted);
        let identity = Identity { topic_id: log.topic_id, partition: log.partition };
        let from = log.dir.borrow().clone();
        let to = log.storage.move_to_deleted(&from, identity).await?;
        *log.dir.borrow_mut() = to;
        Ok(())
    }
}

impl LogInner {
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
