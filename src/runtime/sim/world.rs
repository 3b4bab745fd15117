//! The world of one simulation: its clock, its seeded randomness, its timers and its trace.
//!
//! Law: everything that happens in a simulation is drawn from the one generator in here and is
//! recorded in the one trace hash in here. No real clock, thread, address or randomly seeded map is
//! ever consulted, so equal seeds give equal traces. A world lives in one thread and shares nothing
//! with another world; the thread-local slot only says whose code is running *right now*.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::network::{Network, Socket};
use super::points::Points;
use super::process::{Host, Process};
use super::scheduler::Scheduler;

/// How the simulated hardware behaves when nothing is broken on purpose.
#[derive(Clone, Debug)]
pub struct Options {
    /// One-way latency of a network packet.
    pub network_delay: RangeInclusive<Duration>,
    /// Time of one disk operation.
    pub disk_delay: RangeInclusive<Duration>,
    /// Time a message needs from one core to another.
    pub mesh_delay: RangeInclusive<Duration>,
    /// How often, of 1,000 polls, a runnable task other than the oldest of its core goes first.
    pub reorder_permille: u32,
    /// How often, of 1,000, a read or a send moves fewer bytes than it could.
    pub short_io_permille: u32,
    /// How often, of 1,000, a page that was written but not synced reaches the disk by itself.
    pub writeback_permille: u32,
    /// The capacity of a new host's disk in bytes.
    pub disk_bytes: u64,
    /// Whether the file systems accept direct I/O.
    pub direct_io: bool,
    /// A guarantee that is broken on purpose, by name. `SKIP_DIRECTORY_SYNC` is one of the disk's;
    /// others are those of which code asks `runtime::sabotaged`.
    pub sabotage: Option<&'static str>,
    /// The wall clock at the beginning, in milliseconds since 1970.
    pub wall_start_ms: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            network_delay: Duration::from_micros(20)..=Duration::from_micros(400),
            disk_delay: Duration::from_micros(40)..=Duration::from_micros(600),
            mesh_delay: Duration::from_micros(1)..=Duration::from_micros(60),
            reorder_permille: 100,
            short_io_permille: 60,
            writeback_permille: 30,
            disk_bytes: 64 << 30,
            direct_io: true,
            sabotage: None,
            wall_start_ms: 1_767_225_600_000,
        }
    }
}

/// The sabotage that makes every sync of a directory succeed without effect.
pub const SKIP_DIRECTORY_SYNC: &str = "skip the directory fsync";

/// What a timer does when its moment has come.
pub(crate) enum Action {
    Wake(Waker),
    Deliver(Rc<Socket>),
    Call(Box<dyn FnOnce()>),
}

/// An entry in the order of time: the moment, then the order of registration.
pub(crate) type TimerKey = (u64, u64);

struct Timer {
    owner: Option<Rc<Process>>,
    action: Action,
}

pub(crate) struct World {
    pub(crate) options: Options,
    now_ns: Cell<u64>,
    rng: RefCell<Xoshiro256PlusPlus>,
    trace: Cell<u64>,
    echo: bool,
    timers: RefCell<BTreeMap<TimerKey, Timer>>,
    timers_made: Cell<u64>,
    pub(crate) scheduler: Scheduler,
    pub(crate) hosts: RefCell<Vec<Rc<Host>>>,
    pub(crate) network: Network,
    pub(crate) points: Points,
}

/// Whose code is running.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) world: Rc<World>,
    pub(crate) process: Rc<Process>,
    pub(crate) core: usize,
}

thread_local! {
    static RUNNING: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// The context of the code that is running; a process outside a simulation has none.
pub(crate) fn running() -> Option<Context> {
    RUNNING.with(|slot| slot.borrow().clone())
}

/// The context of the code that is running.
pub(crate) fn current() -> Context {
    match running() {
        Some(context) => context,
        None => panic!("the runtime was used outside the tasks of a simulation"),
    }
}

/// Runs `f` as code of `context` and restores what was before, also when `f` unwinds.
pub(crate) fn enter<R>(context: &Context, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Context>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let before = self.0.take();
            RUNNING.with(|slot| *slot.borrow_mut() = before);
        }
    }
    let before = RUNNING.with(|slot| slot.borrow_mut().replace(context.clone()));
    let _restore = Restore(before);
    f()
}

impl World {
    pub(crate) fn new(seed: u64, options: Options) -> Self {
        Self {
            options,
            now_ns: Cell::new(0),
            rng: RefCell::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
            trace: Cell::new(seed),
            echo: std::env::var_os("CORETIDE_SIM_TRACE").is_some(),
            timers: RefCell::new(BTreeMap::new()),
            timers_made: Cell::new(0),
            scheduler: Scheduler::new(),
            hosts: RefCell::new(Vec::new()),
            network: Network::new(),
            points: Points::default(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    /// Adds an event to the trace hash.
    pub(crate) fn record(&self, what: &'static str, details: &[u64]) {
        let mut hash = mix(self.trace.get(), self.now_ns.get());
        hash = mix(hash, hash_bytes(what.as_bytes()));
        for detail in details {
            hash = mix(hash, *detail);
        }
        self.trace.set(hash);
        if self.echo {
            eprintln!("{:>16} {what} {details:?}", self.now_ns.get());
        }
    }

    /// Says what the numbers of the next recorded event stand for, when a person reads along.
    pub(crate) fn explain(&self, what: impl FnOnce() -> String) {
        if self.echo {
            eprintln!("{:>16} {}", self.now_ns.get(), what());
        }
    }

    pub(crate) fn trace_hash(&self) -> u64 {
        self.trace.get()
    }

    // ---- chance

    pub(crate) fn random_u64(&self) -> u64 {
        self.rng.borrow_mut().next_u64()
    }

    /// A number in `0..bound`; 0 when the bound is 0.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        if bound < 2 { 0 } else { self.random_u64() % bound }
    }

    pub(crate) fn chance(&self, permille: u32) -> bool {
        permille > 0 && self.below(1000) < u64::from(permille)
    }

    pub(crate) fn duration(&self, range: &RangeInclusive<Duration>) -> Duration {
        let low = range.start().as_nanos() as u64;
        let high = range.end().as_nanos() as u64;
        Duration::from_nanos(low + self.below(high.saturating_sub(low) + 1))
    }

    // ---- timers

    /// Registers `action` for the moment `at_ns`; with an owner it only happens while that lives.
    pub(crate) fn schedule(
        &self,
        at_ns: u64,
        owner: Option<Rc<Process>>,
        action: Action,
    ) -> TimerKey {
        let key = (at_ns.max(self.now_ns.get()), self.timers_made.get());
        self.timers_made.set(key.1 + 1);
        self.timers.borrow_mut().insert(key, Timer { owner, action });
        key
    }

    pub(crate) fn cancel(&self, key: TimerKey) {
        let removed = self.timers.borrow_mut().remove(&key);
        drop(removed);
    }

    /// Makes a registered timer wake another task.
    pub(crate) fn rewake(&self, key: TimerKey, waker: &Waker) {
        if let Some(timer) = self.timers.borrow_mut().get_mut(&key) {
            timer.action = Action::Wake(waker.clone());
        }
    }

    /// Moves the clock to the next timer and fires it. False when nothing is due up to `limit_ns`.
    pub(crate) fn advance(self: &Rc<Self>, limit_ns: u64) -> bool {
        let next = {
            let mut timers = self.timers.borrow_mut();
            match timers.first_key_value() {
                Some((key, _)) if key.0 <= limit_ns => timers.pop_first(),
                _ => None,
            }
        };
        let Some((key, timer)) = next else { return false };
        assert!(key.0 >= self.now_ns.get(), "the clock never runs backwards");
        self.now_ns.set(key.0);
        self.fire(timer);
        true
    }

    /// Moves the clock to `at_ns`, to which nothing was due.
    pub(crate) fn idle_until(&self, at_ns: u64) {
        self.now_ns.set(self.now_ns.get().max(at_ns));
    }

    fn fire(self: &Rc<Self>, timer: Timer) {
        match timer.action {
            Action::Wake(waker) => waker.wake(),
            Action::Deliver(socket) => socket.deliver(self),
            Action::Call(call) => match timer.owner {
                None => call(),
                Some(process) => {
                    let alive = process.alive();
                    let context = Context { world: self.clone(), process, core: 0 };
                    enter(&context, || if alive { call() } else { drop(call) });
                }
            },
        }
    }

    /// Forgets every timer. Called once, when the simulation ends.
    pub(crate) fn clear_timers(self: &Rc<Self>) {
        let timers = std::mem::take(&mut *self.timers.borrow_mut());
        for (_, timer) in timers {
            match timer.owner.clone() {
                None => drop(timer),
                Some(process) => {
                    let context = Context { world: self.clone(), process, core: 0 };
                    enter(&context, || drop(timer));
                }
            }
        }
    }
}

/// One step of the trace hash.
fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9).rotate_left(31)
}

/// A hash of bytes that is the same in every process.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut fixed = [0u8; 8];
        fixed.copy_from_slice(word);
        hash = mix(hash, u64::from_le_bytes(fixed));
    }
    let mut last = [0u8; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(hash, u64::from_le_bytes(last))
}
