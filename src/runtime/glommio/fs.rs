//! Names on disk. All of it may block, so it runs beside the executor; none of it is in the path
//! of a record.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statfs::{FsType, Statfs, fstatfs};

pub use super::lock::{LockGuard, lock};
use super::task::blocking;
use crate::disk::{Entry, FsError, FsInfo};

/// Runs `action` on `path` beside the executor.
pub(super) async fn on<R: Send + 'static>(
    op: &'static str,
    path: impl AsRef<Path>,
    action: impl FnOnce(&Path) -> io::Result<R> + Send + 'static,
) -> Result<R, FsError> {
    let path = path.as_ref().to_path_buf();
    blocking(move || action(&path).map_err(|source| FsError::new(op, &path, source))).await
}

/// Their names are durable only after `sync_dir` of each parent.
pub async fn create_dir_all(path: impl AsRef<Path>) -> Result<(), FsError> {
    on("create directory", path, |path| std::fs::create_dir_all(path)).await
}

/// Everything in `dir`, by name.
pub async fn list(dir: impl AsRef<Path>) -> Result<Vec<Entry>, FsError> {
    on("list", dir, |dir| {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // Removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let name = entry.file_name().into_string().map_err(|name| {
                let why = format!("{} is not UTF-8", name.display());
                io::Error::new(io::ErrorKind::InvalidData, why)
            })?;
            entries.push(Entry { name, is_dir: metadata.is_dir(), len: metadata.len() });
        }
        entries.sort();
        Ok(entries)
    })
    .await
}

/// When the contents of `path` changed last, in milliseconds since 1970.
pub async fn modified_ms(path: impl AsRef<Path>) -> Result<i64, FsError> {
    on("stat", path, |path| {
        let metadata = std::fs::metadata(path)?;
        Ok(metadata.mtime().saturating_mul(1000).saturating_add(metadata.mtime_nsec() / 1_000_000))
    })
    .await
}

pub async fn exists(path: impl AsRef<Path>) -> Result<bool, FsError> {
    on("stat", path, |path| path.try_exists()).await
}

/// Durable only after `sync_dir` of both parents.
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), FsError> {
    let to = to.as_ref().to_path_buf();
    on("rename", from, move |from| std::fs::rename(from, to)).await
}

pub async fn remove_file(path: impl AsRef<Path>) -> Result<(), FsError> {
    on("remove", path, |path| std::fs::remove_file(path)).await
}

/// Freeing much space takes long: it is done in pieces, so that other work has its turn and a host
/// can end in between.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> Result<(), FsError> {
    let mut begun = false;
    loop {
        match on("remove directory", path.as_ref(), remove_some).await {
            Ok(false) => begun = true,
            Ok(true) => return Ok(()),
            // By someone else, meanwhile.
            Err(error) if begun && error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Removes what is in `dir` and then `dir`. Returns false when it ran for long before it was done.
fn remove_some(dir: &Path) -> io::Result<bool> {
    let started = std::time::Instant::now();
    remove_until(dir, &|| started.elapsed() >= REMOVE_FOR)
}

fn remove_until(dir: &Path, is_time_up: &impl Fn() -> bool) -> io::Result<bool> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let removed = match entry.file_type()?.is_dir() {
            true => remove_until(&entry.path(), is_time_up),
            false => std::fs::remove_file(entry.path()).map(|()| true),
        };
        match removed {
            // By someone else, meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(true) if !is_time_up() => {}
            unfinished => return unfinished.map(|_| false),
        }
    }
    match std::fs::remove_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        removed => removed.map(|()| true),
    }
}

/// Makes the names in `dir` durable.
pub async fn sync_dir(dir: impl AsRef<Path>) -> Result<(), FsError> {
    on("sync directory", dir, sync_dir_now).await
}

fn sync_dir_now(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

pub async fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, FsError> {
    on("read", path, |path| std::fs::read(path)).await
}

/// Replaces `path` durably: after a crash it holds either what it held before or all of
/// `contents`. The temporary file beside it ends in `.tmp`.
pub async fn write_atomic(path: impl AsRef<Path>, contents: &[u8]) -> Result<(), FsError> {
    let contents = contents.to_vec();
    on("write", path, move |path| {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let mut file = File::create(&temporary)?;
        file.write_all(&contents)?;
        file.sync_all()?;
        drop(file);
        std::fs::rename(&temporary, path)?;
        sync_dir_now(parent_of(path))
    })
    .await
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What `dir`, which must be writable, is on.
pub async fn info(dir: impl AsRef<Path>) -> Result<FsInfo, FsError> {
    on("inspect", dir, |dir| {
        let opened = File::open(dir)?;
        let statfs = fstatfs(&opened)?;
        let kind = kind_of(&statfs);
        let unit = u64::try_from(statfs.block_size()).unwrap_or(1);
        let device = opened.metadata()?.dev();
        Ok(FsInfo {
            direct_io: kind != "tmpfs" && probe_direct_io(dir)?,
            kind,
            free: statfs.blocks_available().saturating_mul(unit),
            total: statfs.blocks().saturating_mul(unit),
            logical_sector: sector(device, "logical_block_size"),
            physical_sector: sector(device, "physical_block_size"),
        })
    })
    .await
}

fn kind_of(statfs: &Statfs) -> String {
    let FsType(magic) = statfs.filesystem_type();
    match FILE_SYSTEMS.iter().find(|(known, _)| *known == magic as u64 & 0xffff_ffff) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("0x{magic:x}"),
    }
}

/// Really writes a block past the page cache, into a file without a name where that exists.
fn probe_direct_io(dir: &Path) -> io::Result<bool> {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_TMPFILE | libc::O_DIRECT);
    let named = dir.join(".direct-io-probe.tmp");
    let file = match options.open(dir) {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(false),
        // A full disk says nothing about how it is written.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(true),
        Err(_no_nameless_files) => {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).custom_flags(libc::O_DIRECT);
            let opened = options.open(&named);
            if named.try_exists()? {
                std::fs::remove_file(&named)?;
            }
            match opened {
                Ok(file) => file,
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    };
    match file.write_all_at(&Page([0; 4096]).0, 0) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(true),
        Err(error) => Err(error),
    }
}

/// Of the disk behind `device`, or of the disk that this partition is on.
fn sector(device: u64, attribute: &str) -> u32 {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let base = format!("/sys/dev/block/{major}:{minor}");
    [format!("{base}/queue/{attribute}"), format!("{base}/../queue/{attribute}")]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok())
        .unwrap_or(512)
}

/// One piece of the removal of a directory.
const REMOVE_FOR: std::time::Duration = std::time::Duration::from_millis(20);

/// Magic numbers from the kernel's `magic.h` and statfs(2).
const FILE_SYSTEMS: [(u64, &str); 14] = [
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
    (0x794c_7630, "overlay"),
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0xf15f, "ecryptfs"),
];
