//! Locking a file for as long as this process can still write.
//!
//! Law: nobody gets a lock while a write of its former holder is on its way. A killed process is
//! gone before its direct writes have reached the disk, and the kernel would release its lock that
//! early, too: its successor could read the old contents of a block, write new ones, and have them
//! overwritten. So every ring of the process holds the locked file registered, which the kernel
//! lets go when the last request of that ring has ended.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

use super::fs::on;
use super::time::sleep;
use crate::disk::FsError;

/// A lock that lasts until it is dropped or, if the process ends before, until its last write has.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct LockGuard {
    file: Flock<File>,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|descriptor| *descriptor != self.file.as_raw_fd());
    }
}

/// Locks the file at `path`, which is made if need be, against every other holder in this or
/// another process. Fails at once with `WouldBlock` when it is held, and says by whom; of a
/// process that is gone the last writes are waited for.
pub async fn lock(path: impl AsRef<Path>) -> Result<LockGuard, FsError> {
    let deadline = Instant::now() + LAST_WRITES_WAIT;
    loop {
        match on("lock", path.as_ref(), try_lock).await? {
            Ok(guard) => return Ok(guard),
            Err(holder) if holder.is_none_or(is_running) || Instant::now() >= deadline => {
                return Err(FsError::new("lock", path.as_ref(), held(holder)));
            }
            Err(_) => sleep(LAST_WRITES_POLL).await,
        }
    }
}

/// The lock, or the process that has it as far as it is known.
fn try_lock(path: &Path) -> io::Result<Result<LockGuard, Option<u32>>> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let mut file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(file) => file,
        Err((file, nix::errno::Errno::EWOULDBLOCK)) => return Ok(Err(holder(file))),
        Err((_file, error)) => return Err(error.into()),
    };
    // As long as any id, and in place: a full disk has no room for anything else.
    file.rewind()?;
    writeln!(file, "{:<10}", std::process::id())?;
    file.set_len(11)?;
    HELD.lock().unwrap_or_else(PoisonError::into_inner).push(file.as_raw_fd());
    hold_in_rings();
    Ok(Ok(LockGuard { file }))
}

/// The holder writes its process id into the file, but may not have come to it yet.
fn holder(mut file: File) -> Option<u32> {
    let mut holder = String::new();
    file.read_to_string(&mut holder).ok()?;
    holder.trim().parse().ok()
}

fn held(holder: Option<u32>) -> io::Error {
    let by = match holder {
        Some(process) => format!("process {process}"),
        None => "another process".to_owned(),
    };
    io::Error::new(io::ErrorKind::WouldBlock, format!("it is held by {by}"))
}

/// Not so when it has ended and only its parent has not asked for its status yet. In a container
/// our predecessor had our own id.
fn is_running(process: u32) -> bool {
    if process == std::process::id() {
        return !HELD.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
    }
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    let state = stat.rsplit_once(") ").and_then(|(_name, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// Registers what is locked in every ring of this process: called when a lock is taken and, for
/// rings that are made later, when an executor starts. A ring takes one file; a second lock, as
/// only tests have it, is held like any other. So it is where the kernel knows no such rings.
pub(super) fn hold_in_rings() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(locked) = held.first() else { return };
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else { return };
    for descriptor in descriptors.flatten() {
        let is_ring = std::fs::read_link(descriptor.path())
            .is_ok_and(|target| target.as_os_str() == "anon_inode:[io_uring]");
        let number = descriptor.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok());
        if let Some(ring) = number.filter(|_| is_ring) {
            // SAFETY: the kernel reads one number behind the pointer. Should the ring be closed
            // meanwhile, the call fails, for nothing else takes such a registration.
            unsafe {
                let files: *const RawFd = locked;
                libc::syscall(libc::SYS_io_uring_register, ring, REGISTER_FILES, files, 1);
            }
        }
    }
}

/// Descriptors of the files that are locked.
static HELD: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());
/// `IORING_REGISTER_FILES` of the kernel's `io_uring.h`.
const REGISTER_FILES: libc::c_uint = 2;
/// How long the disk may take for the last writes of a process that is gone.
const LAST_WRITES_WAIT: Duration = Duration::from_secs(30);
const LAST_WRITES_POLL: Duration = Duration::from_millis(2);
