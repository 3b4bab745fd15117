//! SIGTERM and SIGINT, whichever thread they arrive at.
//!
//! The first one, while a host runs, makes a descriptor readable that is never read: from then on
//! every warden of this process knows. The second ends the process.

use std::io;
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static HOSTS: AtomicUsize = AtomicUsize::new(0);
static SEEN: AtomicUsize = AtomicUsize::new(0);
static TOLD: AtomicI32 = AtomicI32::new(-1);

/// As long as one of these lives, the first signal is a request and not the end.
pub(crate) struct Signals {
    /// Readable once a signal came. Stays open for the life of the process.
    pub(crate) seen: RawFd,
}

impl Signals {
    pub(crate) fn take() -> io::Result<Self> {
        static SEEN_FD: Mutex<Option<RawFd>> = Mutex::new(None);
        let mut installed = SEEN_FD.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = match *installed {
            Some(seen) => seen,
            None => *installed.insert(install()?),
        };
        HOSTS.fetch_add(1, Ordering::SeqCst);
        Ok(Signals { seen })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        HOSTS.fetch_sub(1, Ordering::SeqCst);
    }
}

fn install() -> io::Result<RawFd> {
    let (seen, told) = io::pipe()?;
    TOLD.store(told.into_raw_fd(), Ordering::SeqCst);
    let handler = SigHandler::Handler(on_signal);
    let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        // SAFETY: the handler touches atomics and makes calls that signal-safety(7) allows.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(seen.into_raw_fd())
}

extern "C" fn on_signal(signal: libc::c_int) {
    let first = SEEN.fetch_add(1, Ordering::SeqCst) == 0;
    if !first || HOSTS.load(Ordering::SeqCst) == 0 {
        // SAFETY: it takes a number and does not return.
        unsafe { libc::_exit(128 + signal) }
    }
    // SAFETY: one byte of a constant, into a pipe that holds more than the one ever written.
    unsafe { libc::write(TOLD.load(Ordering::SeqCst), b"!".as_ptr().cast(), 1) };
}
