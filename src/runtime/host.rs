//! What a host is started with and what becomes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::back::mesh::Mesh;

/// How to start a host.
#[derive(Debug, Clone)]
pub struct Config {
    /// `cpus[i]` is the CPU that executor `i` is pinned to. Several executors may share one.
    pub cpus: Vec<usize>,
    /// Bytes of registered I/O memory per executor; beyond it buffers come from the heap.
    pub io_memory: usize,
    /// Bytes of huge pages for large buffers per executor; beyond them they come from the heap.
    pub huge_pages: usize,
    /// Entries of each executor's submission ring.
    pub ring_depth: usize,
    /// How long an idle executor polls before it sleeps in the kernel.
    pub spin: Duration,
    /// A core without progress for this long ends the process.
    pub watchdog: Duration,
    /// What single executors, by index, have instead of the values above.
    pub own: BTreeMap<usize, CoreConfig>,
}

/// What executors of one host may differ in; units as in [`Config`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreConfig {
    pub io_memory: usize,
    pub huge_pages: usize,
    pub ring_depth: usize,
    pub spin: Duration,
}

impl Config {
    /// One executor for each of `cpus`, everything else as the broker runs by default.
    pub fn new(cpus: Vec<usize>) -> Self {
        Config {
            cpus,
            io_memory: 1 << 20,
            huge_pages: 0,
            ring_depth: 128,
            spin: Duration::ZERO,
            watchdog: Duration::from_secs(10),
            own: BTreeMap::new(),
        }
    }

    /// What executor `index` is started with.
    pub fn of(&self, index: usize) -> CoreConfig {
        let shared = CoreConfig {
            io_memory: self.io_memory,
            huge_pages: self.huge_pages,
            ring_depth: self.ring_depth,
            spin: self.spin,
        };
        self.own.get(&index).copied().unwrap_or(shared)
    }
}

/// One executor of the host, as its main future sees it.
pub struct Core<M: Send + 'static> {
    /// From 0 to `count - 1`.
    pub index: usize,
    /// Executors of this host.
    pub count: usize,
    /// This core's end of the channels between the cores.
    pub mesh: Mesh<M>,
}

/// How a core, and from them the host, ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// As asked.
    Clean,
    /// With the reason, which has already stopped the other cores.
    Failed(String),
}

/// What the operating system grants this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open files and sockets.
    pub open_files: u64,
    /// Bytes of memory that may be pinned; `u64::MAX` when unlimited or not enforced.
    pub memlock: u64,
}

impl Limits {
    /// Registered I/O memory that each of `cores` executors can have. The kernel counts it once
    /// for each of an executor's three rings, and an executor that asks for more than is left
    /// silently gets none.
    pub fn io_memory(&self, cores: usize) -> usize {
        let share = self.memlock / 3 / (cores.max(1) as u64);
        let share = share.clamp(IO_MEMORY_MIN as u64, IO_MEMORY_MAX as u64);
        share as usize & !(IO_MEMORY_MIN - 1)
    }
}

const IO_MEMORY_MIN: usize = 64 << 10;
const IO_MEMORY_MAX: usize = 4 << 20;
