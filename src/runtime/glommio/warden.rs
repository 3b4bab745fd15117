//! The thread beside the executors: takes signals and watches that every core goes on.
//!
//! It probes each executor about once a second, which an idle one answers too. A core is stalled
//! by the sum of the warden's own waits without an answer, none of which counts for more than
//! twice its length: when the whole process was stopped, or starved, the warden was late as well.

use std::io::{self, PipeWriter};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::process::{Control, abort, end_process};

pub(crate) struct Warden {
    /// Closed to end the thread.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
    mask_before: SigSet,
}

impl Warden {
    /// Blocks the signals for the calling thread and all that it starts from now on.
    pub(crate) fn start(controls: Arc<[Arc<Control>]>, watchdog: Duration) -> io::Result<Self> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTERM);
        signals.add(Signal::SIGINT);
        let mut mask_before = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&signals), Some(&mut mask_before))?;
        let signals =
            SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let (stopped, stop) = io::pipe()?;
        let mut watch = Watch {
            signals,
            tick: (watchdog / 4).min(Duration::from_secs(1)),
            watchdog,
            stalled: vec![Duration::ZERO; controls.len()],
            controls,
            signalled: false,
        };
        let thread = std::thread::Builder::new()
            .name("warden".to_owned())
            .spawn(move || watch.run(stopped.as_raw_fd()))?;
        Ok(Warden { stop: Some(stop), thread: Some(thread), mask_before })
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            abort("the warden panicked");
        }
        if let Err(error) = self.mask_before.thread_set_mask() {
            abort(&format!("cannot restore the signal mask: {error}"));
        }
    }
}

struct Watch {
    signals: SignalFd,
    tick: Duration,
    watchdog: Duration,
    stalled: Vec<Duration>,
    controls: Arc<[Arc<Control>]>,
    signalled: bool,
}

impl Watch {
    fn run(&mut self, stopped: i32) {
        let mut ticked = Instant::now();
        loop {
            let wait = self.tick.saturating_sub(ticked.elapsed());
            if wait_readable(stopped, self.signals.as_raw_fd(), wait) {
                return;
            }
            self.take_signals();
            let elapsed = ticked.elapsed();
            if elapsed >= self.tick {
                ticked = Instant::now();
                self.check(elapsed.min(self.tick * 2));
            }
        }
    }

    fn take_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if self.signalled {
                let code = 128 + i32::try_from(signal.ssi_signo).unwrap_or(0);
                end_process("second signal: ending at once\n", code);
            }
            self.signalled = true;
            for control in self.controls.iter() {
                control.order_shutdown();
            }
        }
    }

    fn check(&mut self, waited: Duration) {
        for (core, control) in self.controls.iter().enumerate() {
            let stalled = &mut self.stalled[core];
            if control.is_answered() {
                *stalled = Duration::ZERO;
            } else {
                if stalled.is_zero() {
                    control.stalls.fetch_add(1, Ordering::Relaxed);
                }
                *stalled += waited;
                if *stalled >= self.watchdog {
                    abort(&format!("core {core} made no progress for {stalled:.1?}"));
                }
            }
            control.probe();
        }
    }
}

/// Whether the first of the two ends the watch.
fn wait_readable(stopped: i32, signals: i32, timeout: Duration) -> bool {
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut entries = [entry(stopped), entry(signals)];
    // Rounded up: a poll that returns early would only be repeated.
    let millis = i32::try_from(timeout.as_millis() + 1).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the length are those of the array.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, millis) };
    ready > 0 && entries[0].revents != 0
}
