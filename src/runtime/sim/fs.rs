//! Names on the disk of a simulated host: directories, renames, locks.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::disk::DiskOp;
use super::file::File;
use super::process::{Process, sabotaged};
use super::tree::{Inode, Node, Tree};
use super::world::{Context, SKIP_DIRECTORY_SYNC, current};
use crate::buffer::AlignedBuf;
use crate::disk::{Entry, FsError, FsInfo, Mode};

/// Looks at names, in the time a disk takes.
async fn look<R>(
    op: &'static str,
    path: &Path,
    action: impl FnOnce(&Tree) -> io::Result<R>,
) -> Result<R, FsError> {
    let Context { world, process, .. } = current();
    let disk = &process.host.disk;
    disk.pause(&world).await;
    let found = action(&disk.tree.borrow());
    disk.pause(&world).await;
    found.map_err(|source| FsError::new(op, path, source))
}

/// Changes names, in the time a disk takes. A crash meanwhile finds the change made or not.
async fn change<R>(
    op: &'static str,
    path: &Path,
    action: impl FnOnce(&mut Tree) -> io::Result<R>,
) -> Result<R, FsError> {
    let Context { world, process, .. } = current();
    let disk = &process.host.disk;
    let checked = disk.check(&world, DiskOp::Name, path);
    disk.pause(&world).await;
    let changed = checked.and_then(|()| action(&mut disk.tree.borrow_mut()));
    world.explain(|| format!("{op} {}", path.display()));
    world.record(op, &[u64::from(changed.is_ok())]);
    disk.pause(&world).await;
    changed.map_err(|source| FsError::new(op, path, source))
}

pub async fn create_dir_all(path: impl AsRef<Path>) -> Result<(), FsError> {
    let path = path.as_ref();
    change("create directory", path, |tree| tree.create_dir_all(path)).await
}

/// What is in a directory, by name.
pub async fn list(dir: impl AsRef<Path>) -> Result<Vec<Entry>, FsError> {
    let dir = dir.as_ref();
    let entry = |(name, inode): (String, Rc<Inode>)| match &inode.node {
        Node::File(content) => Entry { name, is_dir: false, len: content.borrow().size() },
        Node::Directory(_) => Entry { name, is_dir: true, len: 0 },
    };
    look("list", dir, |tree| Ok(tree.list(dir)?.into_iter().map(entry).collect())).await
}

/// When the contents of `path` changed last, in milliseconds since 1970.
pub async fn modified_ms(path: impl AsRef<Path>) -> Result<i64, FsError> {
    let path = path.as_ref();
    look("stat", path, |tree| Ok(tree.find(path)?.modified_ms.get())).await
}

pub async fn exists(path: impl AsRef<Path>) -> Result<bool, FsError> {
    let path = path.as_ref();
    look("stat", path, |tree| match tree.find(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    })
    .await
}

/// Gives a file or a directory another name; a file takes the place of another file.
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), FsError> {
    let (from, to) = (from.as_ref(), to.as_ref());
    change("rename", from, |tree| tree.rename(from, to)).await
}

pub async fn remove_file(path: impl AsRef<Path>) -> Result<(), FsError> {
    let path = path.as_ref();
    change("remove", path, |tree| tree.remove_file(path)).await
}

/// Removes a directory and all below it, one name after the other.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> Result<(), FsError> {
    let path = path.as_ref();
    let mut below = look("remove directory", path, |tree| all_below(tree, path)).await?;
    while let Some((path, is_dir)) = below.pop() {
        let removed = change("remove directory", &path, |tree| {
            if is_dir { tree.remove_empty_dir(&path) } else { tree.remove_file(&path) }
        });
        match removed.await {
            // By someone else, meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    Ok(())
}

/// `path` and what is below it, every directory before its contents.
fn all_below(tree: &Tree, path: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
    let mut all = vec![(path.to_path_buf(), true)];
    for (name, inode) in tree.list(path)? {
        let path = path.join(name);
        match &inode.node {
            Node::File(_) => all.push((path, false)),
            Node::Directory(_) => all.extend(all_below(tree, &path)?),
        }
    }
    Ok(all)
}

/// Makes the names in a directory durable.
pub async fn sync_dir(dir: impl AsRef<Path>) -> Result<(), FsError> {
    let dir = dir.as_ref();
    let Context { world, process, .. } = current();
    let disk = &process.host.disk;
    let failed = |source| FsError::new("sync directory", dir, source);
    let checked = disk.check(&world, DiskOp::Sync, dir);
    let (inode, newest) = {
        let tree = disk.tree.borrow();
        let inode = tree.find(dir).map_err(failed)?;
        tree.list(dir).map_err(failed)?;
        (inode, tree.newest_change())
    };
    disk.pause(&world).await;
    disk.pause(&world).await;
    checked.map_err(failed)?;
    if !sabotaged(SKIP_DIRECTORY_SYNC) {
        disk.tree.borrow_mut().sync_dir(&inode, newest);
    }
    world.record("disk.sync_dir", &[inode.id]);
    Ok(())
}

/// All of a file.
pub async fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, FsError> {
    let path = path.as_ref();
    let file = File::open(path, Mode::Buffered).await?;
    let size = file.size().await?;
    Ok(file.read_at(0, size as usize).await?.to_vec())
}

/// Replaces a file as a whole, durably: a crash leaves the old contents or the new.
pub async fn write_atomic(path: impl AsRef<Path>, contents: &[u8]) -> Result<(), FsError> {
    let path = path.as_ref();
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    if exists(&temporary).await? {
        remove_file(&temporary).await?;
    }
    let file = File::create_new(&temporary, Mode::Buffered).await?;
    if !contents.is_empty() {
        let mut buffer = AlignedBuf::zeroed(contents.len());
        buffer[..contents.len()].copy_from_slice(contents);
        file.write_at(0, buffer.freeze().slice(0..contents.len())).await?;
    }
    file.sync().await?;
    file.close().await?;
    rename(&temporary, path).await?;
    sync_dir(path.parent().unwrap_or(Path::new("/"))).await
}

/// An advisory lock on a file. It ends when this is dropped or its process dies.
#[must_use = "the lock is released when this is dropped"]
pub struct LockGuard {
    inode: Rc<Inode>,
    process: Rc<Process>,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.process.alive() {
            self.inode.lock.set(None);
        }
    }
}

/// Locks a file, which is made when it is missing, or says who holds it.
pub async fn lock(path: impl AsRef<Path>) -> Result<LockGuard, FsError> {
    let path = path.as_ref();
    let process = current().process;
    let owner = process.clone();
    change("lock", path, |tree| {
        let inode = match tree.find(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => tree.create_file(path)?,
            found => found?,
        };
        if let Some(holder) = inode.lock.get() {
            let why = format!("it is held by process {holder}");
            return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
        }
        inode.lock.set(Some(owner.id));
        Ok(LockGuard { inode, process: owner })
    })
    .await
}

/// The file system that `dir` is on.
pub async fn info(dir: impl AsRef<Path>) -> Result<FsInfo, FsError> {
    let dir = dir.as_ref();
    look("inspect", dir, |tree| tree.find(dir).map(|_| ())).await?;
    let disk = current().process.host.disk.clone();
    let total = disk.capacity.get();
    Ok(FsInfo {
        kind: "simulated".to_owned(),
        free: total.saturating_sub(disk.used()),
        total,
        direct_io: disk.direct_io,
        logical_sector: 512,
        physical_sector: 4096,
    })
}
