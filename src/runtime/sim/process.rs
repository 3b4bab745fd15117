//! Hosts and the processes that run on them, one after the other.
//!
//! Law: a host keeps its disk and its address for ever; a process is one life of it. Everything a
//! process holds (tasks, sockets, locks, open files) knows its process, and once that is marked
//! dead nothing done in its name has any effect: destructors that still run are without
//! consequence.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::host::{Config, Core, Exit, Limits};
use crate::statistics::Stats;

use super::disk::Disk;
use super::mesh::{Mesh, mesh};
use super::simulation::Simulation;
use super::world::{Context, World, current, enter, hash_bytes, running};

/// The payload with which an aborting process unwinds out of its poll.
pub(crate) struct Aborted;

pub(crate) struct Host {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) ip: IpAddr,
    pub(crate) disk: Rc<Disk>,
    pub(crate) wall_offset_ms: Cell<i64>,
    pub(crate) powered: Cell<bool>,
    pub(crate) process: RefCell<Option<Rc<Process>>>,
    pub(crate) exit: RefCell<Option<Exit>>,
    pub(crate) next_port: Cell<u16>,
}

impl Host {
    pub(crate) fn new(id: u64, name: &str, disk: Disk) -> Self {
        let last = u8::try_from(id + 1).unwrap_or_else(|_| panic!("too many hosts"));
        Self {
            id,
            name: name.to_owned(),
            ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)),
            disk: Rc::new(disk),
            wall_offset_ms: Cell::new(0),
            powered: Cell::new(true),
            process: RefCell::new(None),
            exit: RefCell::new(None),
            next_port: Cell::new(32_768),
        }
    }

    /// The process that runs here now.
    pub(crate) fn running(&self) -> Option<Rc<Process>> {
        self.process.borrow().clone()
    }

    /// Whether a packet for `address` is for this host.
    pub(crate) fn has_address(&self, address: IpAddr) -> bool {
        self.ip == address
    }

    /// The address under which this host speaks to `peer`.
    pub(crate) fn source_for(&self, peer: &SocketAddr) -> SocketAddr {
        let port = self.next_port.get();
        self.next_port.set(if port == u16::MAX { 32_768 } else { port + 1 });
        let ip = if peer.ip().is_loopback() { peer.ip() } else { self.ip };
        SocketAddr::new(ip, port)
    }
}

/// How a process came to its end, as far as the world outside can tell.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The kernel lives on: sockets are closed, the page cache survives.
    Exit,
    /// Nothing lives on but what the disk had made durable.
    PowerLoss,
}

pub(crate) struct Process {
    pub(crate) id: u64,
    pub(crate) host: Rc<Host>,
    pub(crate) cores: usize,
    alive: Cell<bool>,
    reaped: Cell<bool>,
    ending: Cell<Ending>,
    /// Which cores' main futures are done.
    cores_ended: RefCell<Vec<bool>>,
    stop_requested: Cell<bool>,
    stop_waiters: RefCell<Vec<Waker>>,
    stats: RefCell<Vec<Stats>>,
}

impl Process {
    fn new(world: &World, host: &Rc<Host>, cores: usize) -> Rc<Self> {
        Rc::new(Self {
            id: world.random_u64(),
            host: host.clone(),
            cores,
            alive: Cell::new(true),
            reaped: Cell::new(false),
            ending: Cell::new(Ending::Exit),
            cores_ended: RefCell::new(vec![false; cores]),
            stop_requested: Cell::new(false),
            stop_waiters: RefCell::new(Vec::new()),
            stats: RefCell::new(vec![Stats::default(); cores]),
        })
    }

    /// Counts something on the core that is running.
    pub(crate) fn count(&self, add: impl FnOnce(&mut Stats)) {
        let core = running().map_or(0, |context| context.core);
        if let Some(stats) = self.stats.borrow_mut().get_mut(core) {
            add(stats);
        }
    }

    pub(crate) fn alive(&self) -> bool {
        self.alive.get()
    }

    /// Delivers SIGTERM.
    pub(crate) fn request_stop(&self) {
        self.stop_requested.set(true);
        for waker in self.stop_waiters.take() {
            waker.wake();
        }
    }

    /// The process ends by its own doing; its remains are reaped when the running poll returns.
    pub(crate) fn exit(&self, exit: Exit) {
        if self.alive.replace(false) {
            *self.host.exit.borrow_mut() = Some(exit);
        }
    }

    /// Whether the executor of a core is gone, and with it all its tasks.
    pub(crate) fn core_ended(&self, core: usize) -> bool {
        self.cores_ended.borrow()[core]
    }

    fn on_main_done(&self, core: usize, exit: Exit) {
        self.cores_ended.borrow_mut()[core] = true;
        let all_ended = self.cores_ended.borrow().iter().all(|ended| *ended);
        match exit {
            Exit::Failed(_) => self.exit(exit),
            Exit::Clean if all_ended => self.exit(Exit::Clean),
            Exit::Clean => {}
        }
    }

    /// Clears away a process that ended inside a poll.
    pub(crate) fn reap(self: &Rc<Self>, world: &Rc<World>) {
        self.finish(world, self.ending.get());
    }

    /// Ends the process from outside, at whatever point its tasks are.
    pub(crate) fn crash(self: &Rc<Self>, world: &Rc<World>, ending: Ending) {
        self.alive.set(false);
        self.finish(world, ending);
    }

    fn finish(self: &Rc<Self>, world: &Rc<World>, ending: Ending) {
        if self.reaped.replace(true) {
            return;
        }
        world.record("process.end", &[self.host.id, self.id, ending as u64]);
        *self.host.process.borrow_mut() = None;
        world.network.close_process(world, self, ending);
        self.host.disk.end_process(world, self, ending);
        world.scheduler.drop_process(world, self);
        let waiters = self.stop_waiters.take();
        drop(waiters);
    }
}

/// Starts a process on a host on which none runs.
pub(crate) fn start<M, F, Fut>(world: &Rc<World>, host: &Rc<Host>, config: &Config, main: F)
where
    M: Send + 'static,
    F: Fn(Core<M>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Exit> + 'static,
{
    assert!(host.running().is_none(), "{} already runs a process", host.name);
    assert!(!config.cpus.is_empty(), "a process needs at least one core");
    let count = config.cpus.len();
    let process = Process::new(world, host, count);
    world.record("process.start", &[host.id, process.id, count as u64]);
    *host.process.borrow_mut() = Some(process.clone());
    *host.exit.borrow_mut() = None;
    host.powered.set(true);
    world.network.on_host_started(world, host);
    world.scheduler.add_process(&process);
    let meshes: Vec<Mesh<M>> = mesh(world, &process, count);
    for (index, mesh) in meshes.into_iter().enumerate() {
        let main = main.clone();
        let owner = process.clone();
        let body = async move {
            let exit = main(Core { index, count, mesh }).await;
            owner.on_main_done(index, exit);
        };
        let context = Context { world: world.clone(), process: process.clone(), core: index };
        enter(&context, || world.scheduler.spawn(&process, index, Box::pin(body)));
    }
}

/// A process without cores, for a crash of a host on which nothing runs.
pub(crate) fn start_nothing(world: &Rc<World>, host: &Rc<Host>) -> Rc<Process> {
    Process::new(world, host, 0)
}

/// Runs a process in a simulated world of its own that holds nothing else, until it has ended.
pub fn run<M, F, Fut>(config: Config, main: F) -> Exit
where
    M: Send + 'static,
    F: Fn(Core<M>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Exit> + 'static,
{
    let simulation = Simulation::new(0, super::Options::default());
    let host = simulation.add_host("host");
    simulation.start(&host, config, main);
    simulation.run_until(|world| world.exited(&host).is_some(), Duration::MAX);
    let stuck = || Exit::Failed("every task waits for something that cannot happen".to_owned());
    simulation.exited(&host).unwrap_or_else(stuck)
}

/// Ends the process at once, with a message. Its disk and its sockets fare as after a `kill -9`.
pub fn abort(message: &str) -> ! {
    let Some(context) = running() else { panic!("abort outside a simulation: {message}") };
    if std::thread::panicking() {
        eprintln!("abort while a task is unwinding: {message}");
        std::process::abort();
    }
    context.world.record("process.abort", &[context.process.host.id]);
    context.process.exit(Exit::Failed(message.to_owned()));
    std::panic::resume_unwind(Box::new(Aborted))
}

/// Marks a point of the code that a simulation wants to see reached, or to crash at.
pub fn reached(point: &'static str) {
    let Some(Context { world, process, .. }) = running() else { return };
    if !process.alive() {
        return;
    }
    world.explain(|| format!("{}: {point}", process.host.name));
    world.record("reached", &[hash_bytes(point.as_bytes())]);
    if let Some(ending) = world.points.reach(process.host.id, point) {
        process.alive.set(false);
        process.ending.set(ending);
        process.host.powered.set(ending != Ending::PowerLoss);
        std::panic::resume_unwind(Box::new(Aborted))
    }
}

/// Whether this simulation breaks a guarantee on purpose, to see that it is missed.
pub fn sabotaged(guarantee: &'static str) -> bool {
    running().is_some_and(|context| context.world.options.sabotage == Some(guarantee))
}

/// Resolves on every core once the process was asked to end.
pub async fn shutdown_requested() {
    let process = current().process;
    poll_fn(|task| {
        if process.stop_requested.get() {
            return Poll::Ready(());
        }
        let mut waiters = process.stop_waiters.borrow_mut();
        if !waiters.iter().any(|waiter| waiter.will_wake(task.waker())) {
            waiters.push(task.waker().clone());
        }
        Poll::Pending
    })
    .await;
}

/// Nobody looks at it in a simulation.
pub fn copied(_bytes: usize) {}

/// What this core has done so far.
pub fn stats() -> Stats {
    let context = current();
    let mut stats = context.process.stats.borrow()[context.core];
    stats.alive = Duration::from_nanos(context.world.now_ns());
    stats
}

/// A simulated host has no limits to raise.
pub fn raise_limits() -> Limits {
    Limits { open_files: 20_000, memlock: u64::MAX }
}
