//! The thread beside the executors: passes signals on and watches that every core makes progress.
//!
//! It probes each executor about once a second, which an idle one answers too. A core is stalled
//! by the sum of the warden's own waits without an answer, none of which counts for more than
//! twice its length: when the whole process was stopped, or starved, the warden was late as well.

use std::io::{self, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::process::{Control, abort};
use super::signals::Signals;

pub(crate) struct Warden {
    /// Closed to end the thread.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Warden {
    pub(crate) fn start(controls: Arc<[Arc<Control>]>, watchdog: Duration) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let mut watch = Watch {
            signals: Signals::take()?,
            tick: (watchdog / 4).min(Duration::from_secs(1)),
            watchdog,
            stalled: vec![Duration::ZERO; controls.len()],
            controls,
            signalled: false,
        };
        let thread = std::thread::Builder::new()
            .name("warden".to_owned())
            .spawn(move || watch.run(stopped.as_raw_fd()))?;
        Ok(Warden { stop: Some(stop), thread: Some(thread) })
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
    }
}

struct Watch {
    signals: Signals,
    tick: Duration,
    watchdog: Duration,
    stalled: Vec<Duration>,
    controls: Arc<[Arc<Control>]>,
    signalled: bool,
}

impl Watch {
    fn run(&mut self, stopped: RawFd) {
        let mut ticked = Instant::now();
        loop {
            let wait = self.tick.saturating_sub(ticked.elapsed());
            // A negative descriptor is not looked at: a signal is known for ever.
            let signals = if self.signalled { -1 } else { self.signals.seen };
            let [stop, signalled] = wait_readable([stopped, signals], wait);
            if stop {
                return;
            }
            if signalled {
                self.signalled = true;
                for control in self.controls.iter() {
                    control.order_shutdown();
                }
            }
            let elapsed = ticked.elapsed();
            if elapsed >= self.tick {
                ticked = Instant::now();
                self.check(elapsed.min(self.tick * 2));
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

/// Which of the two can be read, or were closed at the other end.
fn wait_readable(fds: [RawFd; 2], timeout: Duration) -> [bool; 2] {
    let mut entries = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // Rounded up: a poll that returns early would only be repeated.
    let millis = i32::try_from(timeout.as_millis() + 1).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the length are those of the array.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, millis) };
    entries.map(|entry| ready > 0 && entry.revents != 0)
}
