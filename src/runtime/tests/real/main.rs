//! The real back end: real executors, real files and sockets, real signals.
#![cfg(not(sim))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod files;
mod huge_pages;
mod mesh;
mod names;
mod net;
mod process;
mod tasks;
mod time;

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use runtime::{Config, Core, Exit};

/// Runs `test` on one executor and returns what it found.
fn on_core<R, F, Fut>(test: F) -> R
where
    R: Send + 'static,
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = R> + 'static,
{
    let found = Arc::new(Mutex::new(None));
    let place = Arc::clone(&found);
    let exit = runtime::run(Config::new(vec![0]), move |_core: Core<()>| {
        let test = test.clone();
        let place = Arc::clone(&place);
        async move {
            let output = test().await;
            *place.lock().unwrap() = Some(output);
            Exit::Clean
        }
    });
    assert_eq!(exit, Exit::Clean);
    let output = found.lock().unwrap().take();
    output.unwrap()
}

/// A directory of its own that goes away with it.
struct TempDir(PathBuf);

impl TempDir {
    fn on_disk(name: &str) -> Self {
        Self::under(env!("CARGO_TARGET_TMPDIR"), name)
    }

    fn in_memory(name: &str) -> Self {
        Self::under("/dev/shm", name)
    }

    fn under(parent: &str, name: &str) -> Self {
        let path = PathBuf::from(parent).join(format!("runtime-{name}-{}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path).unwrap();
        }
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}
