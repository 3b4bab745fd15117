//! The hand that holds a simulation: it makes hosts, starts and breaks them, and lets time pass.
//!
//! Law: between two calls nothing moves. All that happens, happens inside `run_until` and
//! `run_for`, in an order that only the seed decides.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::disk::{Disk, DiskOp, PlannedFault};
use super::process::{self, Ending, Host};
use super::time::after;
use super::tree::Node;
use super::world::{Context, Options, World, enter};
use crate::host::{Config, Core, Exit};
use crate::instant::Instant;

/// A world with its own hosts, network and time.
pub struct Simulation {
    world: Rc<World>,
}

/// A machine in a simulation.
#[derive(Clone)]
pub struct SimHost {
    world: Rc<World>,
    host: Rc<Host>,
}

/// The disk of a machine, seen from outside.
pub struct SimDisk {
    host: SimHost,
}

impl Simulation {
    pub fn new(seed: u64, options: Options) -> Self {
        Self { world: Rc::new(World::new(seed, options)) }
    }

    /// Adds a machine with an empty disk and an address of its own. Nothing runs on it yet.
    pub fn add_host(&self, name: &str) -> SimHost {
        let options = &self.world.options;
        let disk = Disk::new(options.disk_bytes, options.direct_io);
        let mut hosts = self.world.hosts.borrow_mut();
        let host = Rc::new(Host::new(hosts.len() as u64, name, disk));
        hosts.push(host.clone());
        SimHost { world: self.world.clone(), host }
    }

    /// Starts a process: `main` runs on each of its cores.
    pub fn start<M, F, Fut>(&self, host: &SimHost, config: Config, main: F)
    where
        M: Send + 'static,
        F: Fn(Core<M>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Exit> + 'static,
    {
        process::start(&self.world, &host.host, &config, main);
    }

    /// SIGTERM: `shutdown_requested` resolves on every core.
    pub fn terminate(&self, host: &SimHost) {
        self.world.record("terminate", &[host.host.id]);
        if let Some(process) = host.host.running() {
            process.request_stop();
        }
    }

    /// SIGKILL: the page cache and the kernel live on.
    pub fn kill(&self, host: &SimHost) {
        self.crash(host, Ending::Exit);
    }

    /// The power goes: what was not durable survives as the seed likes. Nothing answers until a
    /// process is started again.
    pub fn power_loss(&self, host: &SimHost) {
        host.host.powered.set(false);
        if host.host.running().is_none() {
            // Nobody to blame, but the page cache of an earlier process is lost all the same.
            let nobody = process::start_nothing(&self.world, &host.host);
            nobody.crash(&self.world, Ending::PowerLoss);
        } else {
            self.crash(host, Ending::PowerLoss);
        }
    }

    fn crash(&self, host: &SimHost, ending: Ending) {
        if let Some(process) = host.host.running() {
            process.crash(&self.world, ending);
        }
    }

    /// Lets the running process of a host end when it passes `point` after `after` other passes.
    pub fn crash_at(&self, host: &SimHost, point: &str, after: u32, ending: Ending) {
        self.world.points.ambush(host.host.id, point, after, ending);
    }

    /// Forgets the crashes that still wait for a host at points of its code.
    pub fn call_off_crashes(&self, host: &SimHost) {
        self.world.points.call_off(host.host.id);
    }

    /// How often each point was passed on all hosts.
    pub fn reached(&self) -> BTreeMap<&'static str, u64> {
        self.world.points.counts()
    }

    /// How the last process of a host ended by itself; none while it runs or after a crash.
    pub fn exited(&self, host: &SimHost) -> Option<Exit> {
        host.host.exit.borrow().clone()
    }

    /// Whether a process runs on a host.
    pub fn is_running(&self, host: &SimHost) -> bool {
        host.host.running().is_some()
    }

    /// Lets things happen until `condition` holds, for at most `limit` of virtual time. Says
    /// whether it held in the end.
    pub fn run_until(
        &self,
        mut condition: impl FnMut(&Simulation) -> bool,
        limit: Duration,
    ) -> bool {
        let limit_ns = after(self.world.now_ns(), limit);
        loop {
            if condition(self) {
                return true;
            }
            if self.world.scheduler.poll_one(&self.world) || self.world.advance(limit_ns) {
                continue;
            }
            if limit != Duration::MAX {
                self.world.idle_until(limit_ns);
            }
            return condition(self);
        }
    }

    /// Lets things happen for a stretch of virtual time.
    pub fn run_for(&self, duration: Duration) {
        self.run_until(|_| false, duration);
    }

    /// The moment, as the hosts' monotonic clocks show it.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.world.now_ns())
    }

    /// Adds to what a host's wall clock shows.
    pub fn jump_wall_clock(&self, host: &SimHost, by_ms: i64) {
        let offset = &host.host.wall_offset_ms;
        offset.set(offset.get().saturating_add(by_ms));
        self.world.record("wall.jump", &[host.host.id, by_ms as u64]);
    }

    /// A number from the seed.
    pub fn random_u64(&self) -> u64 {
        self.world.random_u64()
    }

    /// A number from the seed, below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        self.world.below(bound)
    }

    /// The hash of all that has happened.
    pub fn trace_hash(&self) -> u64 {
        self.world.trace_hash()
    }

    pub fn disk(&self, host: &SimHost) -> SimDisk {
        SimDisk { host: host.clone() }
    }

    // ---- network

    /// Holds back every packet between two hosts, in both directions.
    pub fn cut(&self, a: &SimHost, b: &SimHost) {
        self.cut_one_way(a, b);
        self.cut_one_way(b, a);
    }

    /// Holds back every packet from one host to another.
    pub fn cut_one_way(&self, from: &SimHost, to: &SimHost) {
        self.world.record("net.cut", &[from.host.id, to.host.id]);
        self.world.network.cut(&from.host, &to.host);
    }

    /// Undoes every cut between two hosts.
    pub fn heal(&self, a: &SimHost, b: &SimHost) {
        self.world.record("net.heal", &[a.host.id, b.host.id]);
        self.world.network.heal(&self.world, &a.host, &b.host);
        self.world.network.heal(&self.world, &b.host, &a.host);
    }

    /// Resets every connection between two hosts.
    pub fn reset(&self, a: &SimHost, b: &SimHost) {
        self.world.network.reset(&self.world, &a.host, &b.host);
    }

    /// Sets the latency from one host to another.
    pub fn set_delay(&self, from: &SimHost, to: &SimHost, delay: RangeInclusive<Duration>) {
        self.world.network.set_delay(&from.host, &to.host, delay);
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        let hosts = self.world.hosts.take();
        for host in hosts {
            if let Some(process) = host.running() {
                process.crash(&self.world, Ending::Exit);
            }
        }
        self.world.clear_timers();
    }
}

impl SimHost {
    pub fn name(&self) -> &str {
        &self.host.name
    }

    /// The address under which other hosts reach it.
    pub fn ip(&self) -> std::net::IpAddr {
        self.host.ip
    }

    /// Adds a task to a core of the running process.
    pub fn spawn(&self, core: usize, future: impl Future<Output = ()> + 'static) {
        let Some(process) = self.host.running() else { return };
        assert!(core < process.cores, "there is no such core");
        let context = Context { world: self.world.clone(), process: process.clone(), core };
        enter(&context, || self.world.scheduler.spawn(&process, core, Box::pin(future)));
    }
}

impl SimDisk {
    fn disk(&self) -> &Disk {
        &self.host.host.disk
    }

    /// Lets the operation of this kind fail that comes after `after` others on paths that contain
    /// `path_part`.
    pub fn fail_after(&self, op: DiskOp, path_part: &str, after: u32, errno: i32) {
        let path_part = path_part.to_owned();
        self.disk().planned.borrow_mut().push(PlannedFault { op, path_part, after, errno });
    }

    /// Faults that were planned and have not happened yet.
    pub fn planned_faults(&self) -> usize {
        self.disk().planned.borrow().len()
    }

    /// The operation and the path that the latest planned fault hit.
    pub fn last_fault(&self) -> String {
        self.disk().last_fault.borrow().clone()
    }

    /// Lets operations fail with EIO, `permille` of 1,000.
    pub fn set_error_rate(&self, op: DiskOp, permille: u32) {
        self.disk().error_permille.borrow_mut()[op as usize] = permille;
    }

    /// Forgets every fault that was planned and every rate that was set.
    pub fn heal(&self) {
        self.disk().planned.borrow_mut().clear();
        *self.disk().error_permille.borrow_mut() = [0; 5];
        self.disk().slow.set((0, Duration::ZERO));
    }

    /// Makes `permille` of 1,000 operations slower by `slowness`.
    pub fn set_slow(&self, permille: u32, slowness: Duration) {
        self.disk().slow.set((permille, slowness));
    }

    /// Leaves exactly `bytes` of free space.
    pub fn set_free(&self, bytes: u64) {
        self.disk().capacity.set(self.disk().used() + bytes);
    }

    pub fn set_capacity(&self, bytes: u64) {
        self.disk().capacity.set(bytes);
    }

    pub fn used(&self) -> u64 {
        self.disk().used()
    }

    /// Every file with its size, in the order of their paths.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = Vec::new();
        self.disk().tree.borrow().visit(&mut |path, inode| {
            if let Node::File(content) = &inode.node {
                files.push((path.to_path_buf(), content.borrow().size()));
            }
        });
        files
    }

    /// The contents of a file as a process would read them.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let inode = self.disk().tree.borrow().find(path.as_ref()).ok()?;
        let content = inode.file().ok()?.borrow();
        let mut bytes = vec![0; content.size() as usize];
        content.read(0, &mut bytes);
        Some(bytes)
    }

    /// Flips one bit of a file on the medium. False when there is no such byte.
    pub fn flip_bit(&self, path: impl AsRef<Path>, offset: u64, bit: u32) -> bool {
        let Ok(inode) = self.disk().tree.borrow().find(path.as_ref()) else { return false };
        let Ok(content) = inode.file() else { return false };
        if offset >= content.borrow().size() {
            return false;
        }
        content.borrow_mut().flip_bit(offset, bit);
        true
    }

    /// Removes a file, durably.
    pub fn remove(&self, path: impl AsRef<Path>) -> bool {
        let mut tree = self.disk().tree.borrow_mut();
        let removed = tree.remove_file(path.as_ref()).is_ok();
        tree.make_durable();
        removed
    }

    /// Makes all that was written durable, as if the kernel had found the time.
    pub fn write_back_everything(&self) {
        let mut tree = self.disk().tree.borrow_mut();
        tree.make_durable();
        tree.visit(&mut |_, inode| {
            if let Node::File(content) = &inode.node {
                content.borrow_mut().make_durable();
            }
        });
    }
}
