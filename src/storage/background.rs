//! Work that goes on beside whoever starts it.

use std::future::Future;

/// Runs `work` after the current task has had its turn: the starter may hold borrows, and what it
/// does until its next wait is part of what the work finds.
pub fn start(work: impl Future<Output = ()> + 'static) {
    runtime::task::spawn(async move {
        runtime::task::yield_now().await;
        work.await;
    });
}
