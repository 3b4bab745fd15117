//! The disk of one host: its file system, how slow it is, and what breaks on it.
//!
//! Law: the disk outlives every process of its host. Whatever a process had under way when it died
//! is settled here, by the seed, before the next one can look.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::content::Draw;
use super::process::{Ending, Process};
use super::time::sleep;
use super::tree::{Node, Tree};
use super::world::World;

/// What can be made to fail on a disk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DiskOp {
    Read,
    Write,
    Sync,
    Allocate,
    /// Creating, renaming and removing names.
    Name,
}

/// A failure that waits for its moment.
pub(crate) struct PlannedFault {
    pub(crate) op: DiskOp,
    pub(crate) path_part: String,
    /// Operations of this kind on such paths that still succeed before.
    pub(crate) after: u32,
    pub(crate) errno: i32,
}

pub(crate) struct Disk {
    pub(crate) tree: RefCell<Tree>,
    pub(crate) capacity: Cell<u64>,
    pub(crate) direct_io: bool,
    pub(crate) planned: RefCell<Vec<PlannedFault>>,
    /// What the latest planned fault hit.
    pub(crate) last_fault: RefCell<String>,
    pub(crate) error_permille: RefCell<[u32; 5]>,
    /// How often an operation is slow, of 1,000, and how slow it then is.
    pub(crate) slow: Cell<(u32, Duration)>,
}

impl Disk {
    pub(crate) fn new(capacity: u64, direct_io: bool) -> Self {
        Self {
            tree: RefCell::new(Tree::new()),
            capacity: Cell::new(capacity),
            direct_io,
            planned: RefCell::new(Vec::new()),
            last_fault: RefCell::new(String::new()),
            error_permille: RefCell::new([0; 5]),
            slow: Cell::new((0, Duration::ZERO)),
        }
    }

    /// Bytes that files have.
    pub(crate) fn used(&self) -> u64 {
        self.tree.borrow().allocated()
    }

    /// Fails with `StorageFull` when `bytes` more do not fit.
    pub(crate) fn reserve(&self, bytes: u64) -> io::Result<()> {
        if bytes > 0 && self.used() + bytes > self.capacity.get() {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        Ok(())
    }

    /// Half of what one operation takes.
    pub(crate) async fn pause(&self, world: &World) {
        let (permille, slowness) = self.slow.get();
        let mut delay = world.duration(&world.options.disk_delay);
        if world.chance(permille) {
            delay += slowness;
        }
        sleep(delay / 2).await;
    }

    /// Whether the operation that begins now fails.
    pub(crate) fn check(&self, world: &World, op: DiskOp, path: &Path) -> io::Result<()> {
        let mut planned = self.planned.borrow_mut();
        let text = path.to_string_lossy();
        let hit = planned.iter_mut().position(|fault| {
            let matches = fault.op == op && text.contains(&fault.path_part);
            let due = matches && fault.after == 0;
            if matches && !due {
                fault.after -= 1;
            }
            due
        });
        if let Some(index) = hit {
            let fault = planned.remove(index);
            *self.last_fault.borrow_mut() = format!("{op:?} {text}");
            world.record("disk.fault", &[op as u64, fault.errno as u64]);
            return Err(io::Error::from_raw_os_error(fault.errno));
        }
        let permille = self.error_permille.borrow()[op as usize];
        if world.chance(permille) {
            world.record("disk.error", &[op as u64]);
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        Ok(())
    }

    /// Settles what a process left behind.
    pub(crate) fn end_process(&self, world: &Rc<World>, process: &Rc<Process>, ending: Ending) {
        let draw: &Draw = &|bound| world.below(bound);
        let mut tree = self.tree.borrow_mut();
        if ending == Ending::PowerLoss {
            tree.on_power_loss(draw);
        }
        tree.visit(&mut |_, inode| {
            if inode.lock.get() == Some(process.id) {
                inode.lock.set(None);
            }
            if let Node::File(content) = &inode.node {
                let mut content = content.borrow_mut();
                match ending {
                    Ending::Exit => content.on_kill(draw),
                    Ending::PowerLoss => content.on_power_loss(draw),
                }
            }
        });
    }
}
