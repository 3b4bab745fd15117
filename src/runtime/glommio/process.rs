//! Starting and ending the executors of a host.
//!
//! Every executor has a control task that answers the warden's probes and passes on what the
//! warden orders: shut down because of a signal, end because another core failed.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use glommio::{LocalExecutorBuilder, Placement, PoolPlacement};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};

use super::beside;
use super::counters::{COUNTERS, count};
use super::lock;
use super::mesh;
use super::time;
use super::warden::Warden;
use crate::event::Event;
use crate::host::{Config, Core, Exit, Limits};
use crate::hugepages;
use crate::instant::Instant;
use crate::race::{Either, race};
use crate::statistics::Stats;

/// What the warden and an executor tell each other.
pub(crate) struct Control {
    /// Rises with each probe and each order.
    orders: AtomicU64,
    /// The last of `orders` that the executor has seen.
    answered: AtomicU64,
    shutdown: AtomicBool,
    failed: AtomicBool,
    ended: AtomicBool,
    pub(crate) stalls: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl Control {
    fn new() -> Self {
        Control {
            orders: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            shutdown: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            stalls: AtomicU64::new(0),
            waker: Mutex::new(None),
        }
    }

    /// Asks the executor to show that it is alive.
    pub(crate) fn probe(&self) {
        self.orders.fetch_add(1, Ordering::SeqCst);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the last probe was answered, or need not be any more.
    pub(crate) fn is_answered(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
            || self.answered.load(Ordering::SeqCst) == self.orders.load(Ordering::SeqCst)
    }

    pub(crate) fn order_shutdown(&self) {
        self.shutdown.store(true, Ordering::SeqCst);
        self.probe();
    }

    fn order_end(&self) {
        self.failed.store(true, Ordering::SeqCst);
        self.probe();
    }

    async fn next_order(&self) {
        poll_fn(|cx| {
            *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
            let orders = self.orders.load(Ordering::SeqCst);
            if self.answered.swap(orders, Ordering::SeqCst) == orders {
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }
}

/// The executor that runs on this thread.
#[derive(Clone)]
struct Local {
    control: Arc<Control>,
    ordered: Event,
    started: Instant,
}

thread_local! {
    static LOCAL: RefCell<Option<Local>> = const { RefCell::new(None) };
    /// Whether a panic of this thread is one of the host.
    static ENDS_ON_PANIC: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn local() -> Local {
    match LOCAL.with(|local| local.borrow().clone()) {
        Some(local) => local,
        None => panic!("called outside of an executor"),
    }
}

/// Starts one executor per entry of `config.cpus` and runs `main` on each. Returns when all have
/// ended. The first that fails ends the others.
///
/// SIGTERM and SIGINT resolve `shutdown_requested` while this runs. A panic on an executor, or in
/// a function given to `blocking`, ends the process.
pub fn run<M, F, Fut>(config: Config, main: F) -> Exit
where
    M: Send + 'static,
    F: Fn(Core<M>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Exit> + 'static,
{
    assert!(!config.cpus.is_empty(), "a host has at least one core");
    hook_panics();
    let count = config.cpus.len();
    let controls: Arc<[Arc<Control>]> = (0..count).map(|_| Arc::new(Control::new())).collect();
    let warden = match Warden::start(Arc::clone(&controls), config.watchdog) {
        Ok(warden) => warden,
        Err(error) => return Exit::Failed(format!("cannot watch for signals: {error}")),
    };
    let mut exit = Exit::Clean;
    let mut threads = Vec::new();
    for (index, mesh) in mesh::connect(count).into_iter().enumerate() {
        let core = Core { index, count, mesh };
        let config = config.clone();
        let main = main.clone();
        let shared = Arc::clone(&controls);
        let thread = std::thread::Builder::new()
            .name(format!("core-{index}"))
            .spawn(move || run_core(&config, &shared, core, main));
        match thread {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                exit = Exit::Failed(format!("cannot start a thread for core {index}: {error}"));
                end_all(&controls);
                break;
            }
        }
    }
    for thread in threads {
        let ended = match thread.join() {
            Ok(ended) => ended,
            Err(_panic) => abort("an executor panicked"),
        };
        if exit == Exit::Clean {
            exit = ended;
        }
    }
    drop(warden);
    exit
}

fn end_all(controls: &[Arc<Control>]) {
    for control in controls {
        control.order_end();
    }
}

fn run_core<M, F, Fut>(config: &Config, controls: &[Arc<Control>], core: Core<M>, main: F) -> Exit
where
    M: Send + 'static,
    F: Fn(Core<M>) -> Fut + 'static,
    Fut: Future<Output = Exit> + 'static,
{
    ENDS_ON_PANIC.set(true);
    let index = core.index;
    let control = &controls[index];
    let cpu = config.cpus[index];
    let own = config.of(index);
    let executor = LocalExecutorBuilder::new(Placement::Fixed(cpu))
        .name("core")
        .io_memory(own.io_memory)
        .ring_depth(own.ring_depth)
        .spin_before_park(own.spin)
        .preempt_timer(PREEMPT_AFTER)
        .blocking_thread_pool_placement(PoolPlacement::Unbound(BLOCKING_THREADS))
        .make();
    let exit = match executor {
        Ok(executor) => {
            // Behind the registered memory, of which the kernel would count huge pages as a whole.
            hugepages::serve_this_core(own.huge_pages);
            executor.run(live(Arc::clone(control), core, main))
        }
        Err(error) => {
            Exit::Failed(format!("cannot start an executor for core {index} on CPU {cpu}: {error}"))
        }
    };
    control.ended.store(true, Ordering::SeqCst);
    if exit != Exit::Clean {
        end_all(controls);
    }
    exit
}

async fn live<M, F, Fut>(control: Arc<Control>, core: Core<M>, main: F) -> Exit
where
    M: Send + 'static,
    F: Fn(Core<M>) -> Fut,
    Fut: Future<Output = Exit>,
{
    let ordered = Event::new();
    let local = Local { control, ordered: ordered.clone(), started: time::now() };
    LOCAL.with(|here| *here.borrow_mut() = Some(local.clone()));
    lock::hold_in_rings();
    super::task::spawn(time::drive());
    super::task::spawn(obey(local.clone()));
    let ended = race(main(core), ordered_to_end(local)).await;
    beside::end().await;
    match ended {
        Either::Left(exit) => exit,
        Either::Right(()) => Exit::Clean,
    }
}

async fn obey(local: Local) {
    loop {
        local.control.next_order().await;
        local.ordered.notify_all();
    }
}

async fn ordered_to_end(local: Local) {
    loop {
        let ordered = local.ordered.listen();
        if local.control.failed.load(Ordering::SeqCst) {
            return;
        }
        ordered.await;
    }
}

/// Resolves on every core once SIGTERM or SIGINT came. A second signal ends the process at once.
pub async fn shutdown_requested() {
    let local = local();
    loop {
        let ordered = local.ordered.listen();
        if local.control.shutdown.load(Ordering::SeqCst) {
            return;
        }
        ordered.await;
    }
}

/// Counts bytes that were copied from one buffer to another; those that went into an aligned
/// buffer are counted there.
pub fn copied(bytes: usize) {
    count(|counters| &counters.copied_bytes, bytes);
}

/// What this core has done.
pub fn stats() -> Stats {
    let local = local();
    let executor = glommio::executor().executor_stats();
    COUNTERS.with(|counters| Stats {
        receives: counters.receives.get(),
        received_bytes: counters.received_bytes.get(),
        sends: counters.sends.get(),
        sent_bytes: counters.sent_bytes.get(),
        accepts: counters.accepts.get(),
        file_reads: counters.file_reads.get(),
        file_read_bytes: counters.file_read_bytes.get(),
        file_writes: counters.file_writes.get(),
        file_written_bytes: counters.file_written_bytes.get(),
        file_syncs: counters.file_syncs.get(),
        copied_bytes: counters.copied_bytes.get(),
        blocking_calls: counters.blocking_calls.get(),
        timers: time::pending() as u64,
        stalls: local.control.stalls.load(Ordering::Relaxed),
        busy: executor.executor_runtime(),
        processor: thread_time(),
        alive: time::now().since(local.started),
    })
}

fn thread_time() -> Duration {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    nix::time::clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Marks a point that a simulation wants to see reached, or to crash at. Here it costs nothing.
#[inline(always)]
pub fn reached(_point: &'static str) {}

/// Whether a simulation wants a guarantee broken on purpose, to see that it is missed. Never here.
#[inline(always)]
pub const fn sabotaged(_guarantee: &'static str) -> bool {
    false
}

/// Ends the whole process, now, with `message` on standard error and exit code 70.
pub fn abort(message: &str) -> ! {
    end_process(&format!("fatal: {message}\n"), EXIT_CODE_FATAL)
}

/// Writes past any buffer or capture of standard error, runs no destructors.
fn end_process(text: &str, code: i32) -> ! {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        // SAFETY: the pointer and the length are those of a slice.
        let written = unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(written) => rest = &rest[written..],
            Err(_negative) => break,
        }
    }
    // SAFETY: it takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Runs `function` such that a panic inside ends the process.
pub(crate) fn end_on_panic<R>(function: impl FnOnce() -> R) -> R {
    let before = ENDS_ON_PANIC.replace(true);
    let output = function();
    ENDS_ON_PANIC.set(before);
    output
}

fn hook_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !ENDS_ON_PANIC.try_with(std::cell::Cell::get).unwrap_or(false) {
                return others(panic);
            }
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("unnamed").to_owned();
            let trace = std::backtrace::Backtrace::capture();
            end_process(&format!("fatal: thread {name}: {panic}\n{trace}\n"), EXIT_CODE_FATAL);
        }));
    });
}

/// Raises the soft limits of open files and pinned memory as far as this process may.
pub fn raise_limits() -> Limits {
    Limits {
        open_files: raise(Resource::RLIMIT_NOFILE, false),
        memlock: raise(Resource::RLIMIT_MEMLOCK, true),
    }
}

fn raise(resource: Resource, beyond_hard: bool) -> u64 {
    // The administrator may go beyond the hard limit.
    if beyond_hard && setrlimit(resource, RLIM_INFINITY, RLIM_INFINITY).is_ok() {
        return RLIM_INFINITY;
    }
    match getrlimit(resource) {
        Ok((soft, hard)) => match setrlimit(resource, hard, hard) {
            Ok(()) => hard,
            Err(_refused) => soft,
        },
        Err(_unknown) => 0,
    }
}

/// Threads beside each executor, on its CPU: more than one, so that removing a large directory
/// does not hold up a rename.
const BLOCKING_THREADS: usize = 2;

const EXIT_CODE_FATAL: i32 = 70;

/// A loop that asks `should_yield` is told to after this long at most.
const PREEMPT_AFTER: Duration = Duration::from_millis(5);
