//! The entry log on real files: what was acknowledged is there, or the log is refused.

#![cfg(not(sim))]
#![expect(clippy::expect_used, reason = "a test ends where something is not as expected")]

mod damage;
mod files;
mod life;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use runtime::{Config, Core, Exit};
use storage::entry_log::{Entry, EntryLog, EntryLogOpenError, EntryLogOptions, Loaded};

/// A directory that is gone when the test is over.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unique = format!("coretide-entry-log-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Names and contents of all files.
    pub fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries =
            fs::read_dir(&self.0).expect("the folder").map(|entry| entry.expect("a file"));
        let mut files: Vec<(PathBuf, Vec<u8>)> = entries
            .map(|entry| (entry.path(), fs::read(entry.path()).expect("its bytes")))
            .collect();
        files.sort();
        files
    }

    /// Makes the folder hold exactly `contents`.
    pub fn restore(&self, contents: &[(PathBuf, Vec<u8>)]) {
        for (path, _) in self.contents() {
            fs::remove_file(path).expect("it is there");
        }
        for (path, bytes) in contents {
            fs::write(path, bytes).expect("it can be written");
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left for the operator of the test machine.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a future on an executor of its own and hands its result out.
pub fn on_a_core<T: Send + 'static, Fut: Future<Output = T> + 'static>(
    main: impl Fn() -> Fut + Clone + Send + 'static,
) -> T {
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    let exit = runtime::run(Config::new(vec![0]), move |_: Core<()>| {
        let (body, slot) = (main(), Arc::clone(&slot));
        async move {
            let value = body.await;
            *slot.lock().expect("nobody panicked") = Some(value);
            Exit::Clean
        }
    });
    assert_eq!(exit, Exit::Clean);
    let value = result.lock().expect("nobody panicked").take();
    value.expect("the future was run to its end")
}

/// Small files, so that a short test needs several.
pub const OPTIONS: EntryLogOptions = EntryLogOptions { file_bytes: 512, spare_files: 2 };

pub fn entry(index: u64, text: &str) -> Entry {
    Entry { index, payload: Bytes::copy_from_slice(text.as_bytes()) }
}

pub fn entries(indexes: std::ops::RangeInclusive<u64>) -> Vec<Entry> {
    indexes.map(|index| entry(index, &format!("entry number {index}"))).collect()
}

pub async fn open(dir: &Path, after: u64) -> Result<(EntryLog, Loaded), EntryLogOpenError> {
    EntryLog::open(dir, OPTIONS, after).await
}

/// Opens, closes, and tells what was there.
pub async fn load(dir: &Path, after: u64) -> Result<Loaded, EntryLogOpenError> {
    let (log, loaded) = open(dir, after).await?;
    log.close().await.expect("it closes");
    Ok(loaded)
}
