//! The clock, chance, and the timers of an executor.
//!
//! All deadlines of a core live in one ordered map. A driver task keeps at most one glommio timer
//! alive, for the earliest of them. A sleep that is dropped takes its deadline out of the map.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use glommio::timer::Timer;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::patient::Patient;
use crate::event::Event;
use crate::instant::Instant;
use crate::race::race;

pub fn now() -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    let elapsed = ORIGIN.get_or_init(std::time::Instant::now).elapsed();
    Instant::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
}

/// Milliseconds since the epoch, by a clock that people and NTP may set.
pub fn wall_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

/// Not for secrets.
pub fn random_u64() -> u64 {
    RANDOM.with(|random| random.borrow_mut().next_u64())
}

pub async fn sleep(duration: Duration) {
    sleep_until(now() + duration).await;
}

/// Resolves at once when the deadline has passed.
pub async fn sleep_until(deadline: Instant) {
    Sleep { deadline, key: None }.await;
}

thread_local! {
    static TIMERS: Timers = Timers::new();
    static RANDOM: RefCell<Xoshiro256PlusPlus> = RefCell::new(seeded());
}

fn seeded() -> Xoshiro256PlusPlus {
    let mut seed = [0u8; 32];
    // SAFETY: the kernel writes at most the given length into the given memory.
    let got = unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
    assert_eq!(got, 32, "the kernel always has 32 random bytes");
    Xoshiro256PlusPlus::from_seed(seed)
}

struct Timers {
    deadlines: RefCell<BTreeMap<(Instant, u64), Waker>>,
    next_key: Cell<u64>,
    /// What the driver sleeps until.
    armed: Cell<Option<Instant>>,
    earlier: Event,
}

impl Timers {
    fn new() -> Self {
        Timers {
            deadlines: RefCell::new(BTreeMap::new()),
            next_key: Cell::new(0),
            armed: Cell::new(None),
            earlier: Event::new(),
        }
    }

    fn add(&self, deadline: Instant, waker: Waker) -> u64 {
        let key = self.next_key.get();
        self.next_key.set(key + 1);
        self.deadlines.borrow_mut().insert((deadline, key), waker);
        if self.armed.get().is_none_or(|armed| deadline < armed) {
            self.earlier.notify_all();
        }
        key
    }

    fn wake_due(&self, now: Instant) {
        loop {
            let due = {
                let mut deadlines = self.deadlines.borrow_mut();
                match deadlines.first_entry() {
                    Some(first) if first.key().0 <= now => first.remove(),
                    _ => return,
                }
            };
            due.wake();
        }
    }
}

/// Deadlines that are waited for on this core.
pub(crate) fn pending() -> usize {
    TIMERS.with(|timers| timers.deadlines.borrow().len())
}

/// The task that wakes the sleepers of this executor.
pub(crate) async fn drive() {
    loop {
        let (earlier, next) = TIMERS.with(|timers| {
            let earlier = timers.earlier.listen();
            timers.wake_due(now());
            let next = timers.deadlines.borrow().first_key_value().map(|(key, _)| key.0);
            timers.armed.set(next);
            (earlier, next)
        });
        match next {
            None => earlier.await,
            Some(deadline) => {
                let timer = Timer::new(deadline.since(now()));
                race(earlier, Patient::new(timer)).await;
            }
        }
    }
}

struct Sleep {
    deadline: Instant,
    key: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if now() >= self.deadline {
            return Poll::Ready(());
        }
        TIMERS.with(|timers| {
            if let Some(key) = self.key
                && let Some(waker) = timers.deadlines.borrow_mut().get_mut(&(self.deadline, key))
            {
                if !waker.will_wake(cx.waker()) {
                    waker.clone_from(cx.waker());
                }
                return;
            }
            self.key = Some(timers.add(self.deadline, cx.waker().clone()));
        });
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        // After the thread's own data is gone nothing is left to clean.
        let waker =
            TIMERS.try_with(|timers| timers.deadlines.borrow_mut().remove(&(self.deadline, key)));
        drop(waker);
    }
}
