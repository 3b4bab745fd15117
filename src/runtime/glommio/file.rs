//! Files.
//!
//! A write that failed, or that nobody waited for to its end, leaves the file in an unknown state:
//! it is then poisoned, and every later write of this `File` fails. Running out of space while
//! allocating is no such failure.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use glommio::GlommioError;
use glommio::io::{BufferedFile, DmaBuffer, DmaFile, OpenOptions, ReadResult};

use super::counters::count;
use super::patient::Patient;
use super::task::blocking;
use crate::buffer::{ALIGNMENT, AlignedBuf, Block};
use crate::disk::{FsError, Mode};

/// An open file.
pub struct File {
    path: PathBuf,
    mode: Mode,
    inner: Inner,
    poisoned: Cell<bool>,
}

enum Inner {
    Direct(DmaFile),
    Buffered(BufferedFile),
}

impl File {
    /// Fails when the name is taken. The name is durable only after `fs::sync_dir`.
    pub async fn create_new(path: impl AsRef<Path>, mode: Mode) -> Result<Self, FsError> {
        Self::open_with(path.as_ref(), mode, true).await
    }

    pub async fn open(path: impl AsRef<Path>, mode: Mode) -> Result<Self, FsError> {
        Self::open_with(path.as_ref(), mode, false).await
    }

    async fn open_with(path: &Path, mode: Mode, create_new: bool) -> Result<Self, FsError> {
        let op = if create_new { "create" } else { "open" };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(create_new).mode(0o644);
        if mode.is_sync() {
            options.custom_flags(libc::O_DSYNC);
        }
        let opened = if mode.is_direct() && create_new {
            Patient::new(options.dma_open(path)).await.map(Inner::Direct)
        } else if mode.is_direct() {
            open_direct(&options, path).await.map(Inner::Direct)
        } else {
            Patient::new(options.buffered_open(path)).await.map(Inner::Buffered)
        };
        let inner = opened.map_err(|error| FsError::new(op, path, plain(error)))?;
        Ok(File { path: path.to_path_buf(), mode, inner, poisoned: Cell::new(false) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Exactly the bytes from `offset` on, `len` of them or as many as there are before the end
    /// of the file. Any offset and length will do; in the direct modes aligned ones cost least.
    pub async fn read_at(&self, offset: u64, len: usize) -> Result<Block, FsError> {
        if len == 0 {
            return Ok(Block::empty());
        }
        let lead = match self.inner {
            Inner::Direct(_) => (offset % ALIGNMENT as u64) as usize,
            Inner::Buffered(_) => 0,
        };
        let start = offset - lead as u64;
        let wanted = match self.inner {
            Inner::Direct(_) => (lead + len).next_multiple_of(ALIGNMENT),
            Inner::Buffered(_) => len,
        };
        let first = self.read_once(start, wanted).await?;
        let block = if first.len() < wanted && !first.is_empty() {
            self.read_rest(start, wanted, first).await?
        } else {
            first
        };
        let end = block.len().min(lead + len);
        Ok(if end <= lead { Block::empty() } else { block.slice(lead..end) })
    }

    /// One system call's worth.
    async fn read_once(&self, start: u64, len: usize) -> Result<Block, FsError> {
        let read = match &self.inner {
            Inner::Direct(file) => Patient::new(file.read_at_aligned(start, len)).await,
            Inner::Buffered(file) => Patient::new(file.read_at(start, len)).await,
        };
        let read: ReadResult = read.map_err(|error| self.error("read", plain(error)))?;
        count(|counters| &counters.file_reads, 1);
        count(|counters| &counters.file_read_bytes, read.len());
        Ok(if read.is_empty() { Block::empty() } else { Block::from_memory(DmaBuffer::from(read)) })
    }

    /// A short read is either the end of the file, which is the common case, or has to be
    /// continued.
    async fn read_rest(&self, start: u64, len: usize, first: Block) -> Result<Block, FsError> {
        if start + first.len() as u64 >= self.size().await? {
            return Ok(first);
        }
        let mut whole = AlignedBuf::with_room(len);
        whole.put(&first);
        while whole.len() < len {
            let filled = whole.len();
            // Direct reads continue at the block in which the last one ended.
            let lead = match self.inner {
                Inner::Direct(_) => filled % ALIGNMENT,
                Inner::Buffered(_) => 0,
            };
            let more = self.read_once(start + (filled - lead) as u64, len - filled + lead).await?;
            if more.len() <= lead {
                break;
            }
            whole.put(&more[lead..]);
        }
        let filled = whole.len();
        whole.zero_to(whole.room());
        Ok(whole.freeze().slice(0..filled))
    }

    /// Writes all of `block`. In the direct modes `offset` and its length are multiples of
    /// `ALIGNMENT`, and a whole block is written from its own memory, a slice from a copy.
    pub async fn write_at(&self, offset: u64, block: Block) -> Result<(), FsError> {
        if self.mode.is_direct() {
            assert!(offset.is_multiple_of(ALIGNMENT as u64), "unaligned offset {offset}");
            assert!(block.len().is_multiple_of(ALIGNMENT), "unaligned length {}", block.len());
        }
        let unfinished = self.begin("write")?;
        let mut written = 0;
        while written < block.len() {
            let rest = if written == 0 { block.clone() } else { block.slice(written..block.len()) };
            let at = offset + written as u64;
            match self.write_once(at, rest).await {
                Ok(0) => return Err(self.error("write", io::ErrorKind::WriteZero.into())),
                Ok(more) => written += more,
                Err(error) => return Err(self.error("write", error)),
            }
        }
        count(|counters| &counters.file_written_bytes, written);
        unfinished.succeeded();
        Ok(())
    }

    async fn write_once(&self, offset: u64, block: Block) -> io::Result<usize> {
        count(|counters| &counters.file_writes, 1);
        let written = match &self.inner {
            Inner::Direct(file) => {
                let memory = match block.whole_memory() {
                    Some(memory) => Rc::clone(memory),
                    None => copied(&block),
                };
                Patient::new(file.write_rc_at(memory, offset)).await
            }
            Inner::Buffered(file) => {
                count(|counters| &counters.copied_bytes, block.len());
                Patient::new(file.write_at(block.to_vec(), offset)).await
            }
        };
        written.map_err(plain)
    }

    /// Allocates the first `size` bytes of the file, makes the file at least that long, and makes
    /// both durable. On a file system that cannot allocate only the length is set.
    pub async fn preallocate(&self, size: u64) -> Result<(), FsError> {
        let allocated = match &self.inner {
            Inner::Direct(file) => Patient::new(file.pre_allocate(size, false)).await,
            Inner::Buffered(file) => Patient::new(file.pre_allocate(size, false)).await,
        };
        if let Err(error) = allocated.map_err(plain) {
            if error.raw_os_error() != Some(libc::EOPNOTSUPP) {
                return Err(self.error("allocate", error));
            }
            if self.size().await? < size {
                return self.truncate(size).await;
            }
        }
        self.sync().await
    }

    /// Cuts or extends the file to `len` bytes, durably.
    pub async fn truncate(&self, len: u64) -> Result<(), FsError> {
        self.set_len(len).await?;
        self.sync().await
    }

    /// The same, durable at some later time.
    pub async fn set_len(&self, len: u64) -> Result<(), FsError> {
        // Beside the executor it goes on when nobody waits for it any more, and the descriptor may
        // be closed by then, and its number another file's.
        let descriptor = match &self.inner {
            Inner::Direct(file) => file.as_raw_fd(),
            Inner::Buffered(file) => file.as_raw_fd(),
        };
        // SAFETY: the file is open as long as `self` lives.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let opened =
            descriptor.try_clone_to_owned().map_err(|error| self.error("truncate", error))?;
        let truncated = blocking(move || std::fs::File::from(opened).set_len(len)).await;
        truncated.map_err(|error| self.error("truncate", error))?;
        Ok(())
    }

    /// Makes durable what was written, and the length (fdatasync).
    pub async fn sync(&self) -> Result<(), FsError> {
        let unfinished = self.begin("sync")?;
        count(|counters| &counters.file_syncs, 1);
        let synced = match &self.inner {
            Inner::Direct(file) => Patient::new(file.fdatasync()).await,
            Inner::Buffered(file) => Patient::new(file.fdatasync()).await,
        };
        synced.map_err(|error| self.error("sync", plain(error)))?;
        unfinished.succeeded();
        Ok(())
    }

    pub async fn size(&self) -> Result<u64, FsError> {
        let size = match &self.inner {
            Inner::Direct(file) => Patient::new(file.file_size()).await,
            Inner::Buffered(file) => Patient::new(file.file_size()).await,
        };
        size.map_err(|error| self.error("stat", plain(error)))
    }

    /// Waits until the descriptor is closed. A file that is dropped is closed soon after.
    pub async fn close(self) -> Result<(), FsError> {
        let File { path, inner, .. } = self;
        let closed = match inner {
            Inner::Direct(file) => Patient::new(file.close()).await,
            Inner::Buffered(file) => Patient::new(file.close()).await,
        };
        closed.map_err(|error| FsError::new("close", &path, plain(error)))
    }

    fn error(&self, op: &'static str, source: io::Error) -> FsError {
        FsError::new(op, &self.path, source)
    }

    fn begin(&self, op: &'static str) -> Result<Unfinished<'_>, FsError> {
        if self.poisoned.get() {
            let why = "an earlier write to this file failed or was abandoned";
            return Err(self.error(op, io::Error::other(why)));
        }
        Ok(Unfinished { file: self })
    }
}

/// Glommio asks about the path once more when it has opened a file for direct I/O, and panics when
/// the file was renamed or removed meanwhile. So it is given a path that stays.
async fn open_direct(options: &OpenOptions, path: &Path) -> Result<DmaFile, GlommioError<()>> {
    let held = Patient::new(options.buffered_open(path)).await?;
    let same = format!("/proc/self/fd/{}", held.as_raw_fd());
    let opened = Patient::new(options.dma_open(same)).await;
    Patient::new(held.close()).await?;
    match opened {
        // There is no /proc here: then it has to be the name.
        Err(GlommioError::EnhancedIoError { source, .. } | GlommioError::IoError(source))
            if source.kind() == io::ErrorKind::NotFound =>
        {
            Patient::new(options.dma_open(path)).await
        }
        opened => opened,
    }
}

/// Poisons the file unless the operation succeeds.
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

fn copied(block: &Block) -> Rc<DmaBuffer> {
    let mut copy = glommio::allocate_dma_buffer(block.len());
    copy.as_bytes_mut().copy_from_slice(block);
    count(|counters| &counters.copied_bytes, block.len());
    Rc::new(copy)
}

/// The error of the operating system inside, with its number.
fn plain(error: GlommioError<()>) -> io::Error {
    match error {
        GlommioError::IoError(source) => source,
        GlommioError::EnhancedIoError { source, .. } => source,
        other => io::Error::other(other.to_string()),
    }
}
