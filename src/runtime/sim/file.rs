//! Files of a simulated host.
//!
//! Law: a write or a sync that failed, or that was abandoned half way, poisons the file: what the
//! disk holds is then unknown, and no later write may pretend otherwise.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::content::Content;
use super::disk::{Disk, DiskOp};
use super::process::Process;
use super::time::wall_ms;
use super::tree::Inode;
use super::world::{Context, World, current, hash_bytes};
use crate::buffer::{ALIGNMENT, AlignedBuf, Block};
use crate::disk::{FsError, Mode};

/// An open file.
pub struct File {
    path: PathBuf,
    mode: Mode,
    world: Rc<World>,
    process: Rc<Process>,
    inode: Rc<Inode>,
    poisoned: Cell<bool>,
}

impl File {
    /// Creates a file that must not exist yet. The name is durable after a sync of its directory.
    pub async fn create_new(path: impl AsRef<Path>, mode: Mode) -> Result<Self, FsError> {
        Self::open_with(path.as_ref(), mode, true).await
    }

    /// Opens a file that exists.
    pub async fn open(path: impl AsRef<Path>, mode: Mode) -> Result<Self, FsError> {
        Self::open_with(path.as_ref(), mode, false).await
    }

    async fn open_with(path: &Path, mode: Mode, create_new: bool) -> Result<Self, FsError> {
        let op = if create_new { "create" } else { "open" };
        let Context { world, process, .. } = current();
        let disk = process.host.disk.clone();
        disk.pause(&world).await;
        let inode = open_inode(&world, &disk, path, mode, create_new)
            .map_err(|source| FsError::new(op, path, source))?;
        disk.pause(&world).await;
        let path = path.to_path_buf();
        Ok(File { path, mode, world, process, inode, poisoned: Cell::new(false) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    fn disk(&self) -> &Disk {
        &self.process.host.disk
    }

    /// `len` bytes from `offset`, fewer only at the end of the file.
    pub async fn read_at(&self, offset: u64, len: usize) -> Result<Block, FsError> {
        if len == 0 {
            return Ok(Block::empty());
        }
        let checked = self.disk().check(&self.world, DiskOp::Read, &self.path);
        self.disk().pause(&self.world).await;
        let mut buffer = AlignedBuf::zeroed(len);
        let read = self.content("read")?.borrow().read(offset, &mut buffer[..len]);
        self.disk().pause(&self.world).await;
        checked.map_err(|error| self.error("read", error))?;
        self.process.count(|stats| {
            stats.file_reads += 1;
            stats.file_read_bytes += read as u64;
        });
        self.world.record("disk.read", &[self.inode.id, offset, read as u64]);
        Ok(if read == 0 { Block::empty() } else { buffer.freeze().slice(0..read) })
    }

    /// Writes all of `block` or fails. Where the mode says so it is durable on return.
    pub async fn write_at(&self, offset: u64, block: Block) -> Result<(), FsError> {
        if self.mode.is_direct() {
            assert!(offset.is_multiple_of(ALIGNMENT as u64), "unaligned offset {offset}");
            assert!(block.len().is_multiple_of(ALIGNMENT), "unaligned length {}", block.len());
        }
        let unfinished = self.begin("write")?;
        let content = self.content("write")?;
        let end = offset + block.len() as u64;
        let missing = content.borrow().missing_space(end);
        self.disk().reserve(missing).map_err(|error| self.error("write", error))?;
        let (len, hash) = (block.len() as u64, hash_bytes(&block));
        self.world.record("disk.write", &[self.inode.id, offset, len, hash]);
        let checked = self.disk().check(&self.world, DiskOp::Write, &self.path);
        let write = content.borrow_mut().begin_write(offset, block, self.mode.is_direct());
        let in_flight = WriteInFlight { file: self, write };
        self.disk().pause(&self.world).await;
        if let Err(error) = checked {
            content.borrow_mut().fail_write(write, &|bound| self.world.below(bound));
            return Err(self.error("write", error));
        }
        content.borrow_mut().apply_write(write);
        self.inode.modified_ms.set(wall_ms());
        self.disk().pause(&self.world).await;
        content.borrow_mut().finish_write(write, self.mode.is_sync());
        drop(in_flight);
        if self.world.chance(self.world.options.writeback_permille) {
            content.borrow_mut().write_back(&|bound| self.world.below(bound));
        }
        self.process.count(|stats| {
            stats.file_writes += 1;
            stats.file_written_bytes += len;
        });
        unfinished.succeeded();
        Ok(())
    }

    /// Allocates space up to `size` and makes the file at least that long, durably.
    pub async fn preallocate(&self, size: u64) -> Result<(), FsError> {
        let content = self.content("allocate")?;
        let checked = self.disk().check(&self.world, DiskOp::Allocate, &self.path);
        self.disk().pause(&self.world).await;
        let missing = content.borrow().missing_space(size);
        checked
            .and_then(|()| self.disk().reserve(missing))
            .map_err(|error| self.error("allocate", error))?;
        content.borrow_mut().preallocate(size);
        self.inode.modified_ms.set(wall_ms());
        self.world.record("disk.allocate", &[self.inode.id, size]);
        self.sync().await
    }

    /// Cuts or extends the file to `len` bytes, durably.
    pub async fn truncate(&self, len: u64) -> Result<(), FsError> {
        self.set_len(len).await?;
        self.sync().await
    }

    /// The same, durable at some later time.
    pub async fn set_len(&self, len: u64) -> Result<(), FsError> {
        let checked = self.disk().check(&self.world, DiskOp::Write, &self.path);
        self.disk().pause(&self.world).await;
        checked.map_err(|error| self.error("truncate", error))?;
        self.content("truncate")?.borrow_mut().truncate(len);
        self.inode.modified_ms.set(wall_ms());
        self.world.record("disk.truncate", &[self.inode.id, len]);
        Ok(())
    }

    /// Makes durable what was written before.
    pub async fn sync(&self) -> Result<(), FsError> {
        let unfinished = self.begin("sync")?;
        let content = self.content("sync")?;
        let checked = self.disk().check(&self.world, DiskOp::Sync, &self.path);
        let point = content.borrow().begin_sync();
        self.disk().pause(&self.world).await;
        self.disk().pause(&self.world).await;
        if let Err(error) = checked {
            content.borrow_mut().fail_sync(&|bound| self.world.below(bound));
            return Err(self.error("sync", error));
        }
        content.borrow_mut().finish_sync(point);
        self.world.record("disk.sync", &[self.inode.id]);
        self.process.count(|stats| stats.file_syncs += 1);
        unfinished.succeeded();
        Ok(())
    }

    pub async fn size(&self) -> Result<u64, FsError> {
        Ok(self.content("stat")?.borrow().size())
    }

    pub async fn close(self) -> Result<(), FsError> {
        self.disk().pause(&self.world).await;
        Ok(())
    }

    fn content(&self, op: &'static str) -> Result<&RefCell<Content>, FsError> {
        self.inode.file().map_err(|error| self.error(op, error))
    }

    fn error(&self, op: &'static str, source: io::Error) -> FsError {
        FsError::new(op, &self.path, source)
    }

    /// Everything that changes the file begins here.
    fn begin(&self, op: &'static str) -> Result<Unfinished<'_>, FsError> {
        if self.poisoned.get() {
            let why = "an earlier write to this file failed or was abandoned";
            return Err(self.error(op, io::Error::other(why)));
        }
        Ok(Unfinished { file: self })
    }
}

fn open_inode(
    world: &World,
    disk: &Disk,
    path: &Path,
    mode: Mode,
    create_new: bool,
) -> io::Result<Rc<Inode>> {
    if mode.is_direct() && !disk.direct_io {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let inode = if create_new {
        disk.check(world, DiskOp::Name, path)?;
        disk.reserve(1)?;
        disk.tree.borrow_mut().create_file(path)?
    } else {
        disk.tree.borrow().find(path)?
    };
    inode.file()?;
    if create_new {
        inode.modified_ms.set(wall_ms());
    }
    world.explain(|| format!("inode {} is {}", inode.id, path.display()));
    world.record("disk.open", &[inode.id, u64::from(create_new)]);
    Ok(inode)
}

/// Poisons the file unless the operation succeeded.
struct Unfinished<'a> {
    file: &'a File,
}

impl Unfinished<'_> {
    fn succeeded(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.file.poisoned.set(true);
    }
}

/// The kernel completes a write whose caller has lost interest.
struct WriteInFlight<'a> {
    file: &'a File,
    write: u64,
}

impl Drop for WriteInFlight<'_> {
    fn drop(&mut self) {
        if self.file.process.alive()
            && let Ok(content) = self.file.inode.file()
        {
            content.borrow_mut().finish_write(self.write, false);
        }
    }
}
