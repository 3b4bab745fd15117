//! What a set of entry files holds: pure, over their bytes.
//!
//! Law: an acknowledged entry is followed, in its file or a later one, by a frame that proves it
//! durable. So bytes that make no sense are a torn write when nothing of the kind stands behind
//! them in the last file; everywhere else they are damage. Only a torn write is ever dropped.

use std::path::PathBuf;

use bytes::Bytes;
use thiserror::Error;

use super::Entry;
use super::frame::{BadHead, Frame, HEAD_BYTES, Head, Kind};

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}, byte {position}: {kind}", path.display())]
pub struct EntryLogDamage {
    pub path: PathBuf,
    pub position: u64,
    pub kind: EntryLogDamageKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EntryLogDamageKind {
    #[error("the file's head is unreadable")]
    Head,
    #[error("the file has {found} bytes, {allocated} were allocated")]
    Shortened { allocated: u64, found: u64 },
    #[error("the file's head says number {found}")]
    Misnamed { found: u64 },
    #[error("acknowledged entries from {next_index} on are unreadable")]
    Acknowledged { next_index: u64 },
    #[error("entry {found} stands where {expected} is due")]
    Order { expected: u64, found: u64 },
    #[error("file {sequence}, in which the log goes on, is missing")]
    FileMissing { sequence: u64 },
    #[error("entries {from} to {to} are missing")]
    EntriesMissing { from: u64, to: u64 },
}

/// A file with its bytes, in the order of sequence numbers.
pub(crate) struct ScannedFile {
    pub path: PathBuf,
    pub sequence: u64,
    pub bytes: Vec<u8>,
}

/// What the files hold.
#[derive(Debug)]
pub(crate) struct Scan {
    /// All entries that were neither cut nor covered by the snapshot.
    pub entries: Vec<Entry>,
    pub last_index: u64,
    pub heads: Vec<Head>,
    /// Where the next frame of the last file goes.
    pub end: u64,
    /// The last bytes behind `end` that are not zero end here: the rest of a torn write.
    pub dirty_end: u64,
    /// The last frame says that everything is durable.
    pub proven: bool,
    /// The last file is empty and the one before it does not say yet that it goes on there.
    pub continuation_pending: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScanError {
    Damaged(EntryLogDamage),
    Newer { path: PathBuf, format: u16 },
}

/// Reads all files. Entries up to `after` are covered by a snapshot.
pub(crate) fn scan(files: &[ScannedFile], after: u64) -> Result<Scan, ScanError> {
    let mut walk = Walk { after, entries: Vec::new(), last_index: 0 };
    let mut heads = Vec::with_capacity(files.len());
    for file in files {
        heads.push(read_head(file)?);
    }
    let (mut end, mut proven, mut continuation_pending) = (HEAD_BYTES, false, false);
    for (number, (file, head)) in files.iter().zip(&heads).enumerate() {
        walk.enter(file, head, number == 0).map_err(ScanError::Damaged)?;
        let ended = walk.frames(file, head).map_err(ScanError::Damaged)?;
        let next = heads.get(number + 1);
        let is_pending = follow(file, &ended, head, next, &walk, files.get(number + 1))
            .map_err(ScanError::Damaged)?;
        continuation_pending |= is_pending;
        (end, proven) = (ended.position, ended.proven);
    }
    let dirty_end = files.last().map_or(0, |file| {
        let used = file.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        used.max(end) as u64
    });
    let Walk { entries, last_index, .. } = walk;
    let end = end as u64;
    Ok(Scan { entries, last_index, heads, end, dirty_end, proven, continuation_pending })
}

fn read_head(file: &ScannedFile) -> Result<Head, ScanError> {
    let damaged = |kind| ScanError::Damaged(damage(file, 0, kind));
    let head = Head::decode(&file.bytes).map_err(|bad| match bad {
        BadHead::Damaged => damaged(EntryLogDamageKind::Head),
        BadHead::Newer { format } => ScanError::Newer { path: file.path.clone(), format },
    })?;
    let found = file.bytes.len() as u64;
    if found < head.allocated {
        let allocated = head.allocated;
        return Err(damaged(EntryLogDamageKind::Shortened { allocated, found }));
    }
    match head.sequence == file.sequence {
        true => Ok(head),
        false => Err(damaged(EntryLogDamageKind::Misnamed { found: head.sequence })),
    }
}

/// Whether the log rightly goes on, or ends, behind the frames of `file`. True when the file that
/// follows is there, is empty, and is not yet named by this one.
fn follow(
    file: &ScannedFile,
    ended: &Ended,
    head: &Head,
    next: Option<&Head>,
    walk: &Walk,
    next_file: Option<&ScannedFile>,
) -> Result<bool, EntryLogDamage> {
    let missing = |sequence| {
        let kind = EntryLogDamageKind::FileMissing { sequence };
        Err(damage(file, ended.position, kind))
    };
    match (ended.continued_in, next) {
        (Some(sequence), None) => missing(sequence),
        (Some(sequence), Some(next)) if next.sequence == sequence => Ok(false),
        (Some(sequence), Some(_)) => missing(sequence),
        (None, Some(next)) if next.sequence != head.sequence + 1 => missing(head.sequence + 1),
        (None, Some(_)) => {
            let unused = next_file.is_some_and(|file| file.bytes[HEAD_BYTES..].iter().all(is_zero));
            let whole = !Frame::proves_durable_behind(&file.bytes, ended.position, head.salt)
                && file.bytes[ended.position..].iter().all(is_zero);
            match unused && whole {
                true => Ok(true),
                false => Err(acknowledged(file, ended.position, walk)),
            }
        }
        (None, None) => {
            match Frame::proves_durable_behind(&file.bytes, ended.position, head.salt) {
                true => Err(acknowledged(file, ended.position, walk)),
                false => Ok(false),
            }
        }
    }
}

/// Where the frames of a file ended, and whether by a frame that says where the log goes on.
struct Ended {
    position: usize,
    proven: bool,
    continued_in: Option<u64>,
}

struct Walk {
    after: u64,
    entries: Vec<Entry>,
    last_index: u64,
}

impl Walk {
    /// A file whose entries do not follow those before it was begun behind a snapshot.
    fn enter(
        &mut self,
        file: &ScannedFile,
        head: &Head,
        is_first: bool,
    ) -> Result<(), EntryLogDamage> {
        let before = head.next_index.saturating_sub(1);
        if !is_first && self.last_index >= before {
            let (expected, found) = (self.last_index + 1, head.next_index);
            return match expected == found {
                true => Ok(()),
                false => Err(damage(file, 0, EntryLogDamageKind::Order { expected, found })),
            };
        }
        if before > self.after {
            let known = if is_first { self.after } else { self.last_index.max(self.after) };
            let kind = EntryLogDamageKind::EntriesMissing { from: known + 1, to: before };
            return Err(damage(file, 0, kind));
        }
        self.entries.clear();
        self.last_index = before;
        Ok(())
    }

    fn frames(&mut self, file: &ScannedFile, head: &Head) -> Result<Ended, EntryLogDamage> {
        let (mut position, mut proven) = (HEAD_BYTES, false);
        while let Some(frame) = Frame::decode(&file.bytes, position, head.salt) {
            proven = frame.kind == Kind::Durable;
            match frame.kind {
                Kind::Entry => self.entry(file, position, &frame)?,
                Kind::Cut => self.cut(file, position, frame.number)?,
                Kind::Durable => {}
                Kind::Continued => {
                    return Ok(Ended { position, proven, continued_in: Some(frame.number) });
                }
            }
            position += frame.bytes();
        }
        Ok(Ended { position, proven, continued_in: None })
    }

    fn entry(
        &mut self,
        file: &ScannedFile,
        position: usize,
        frame: &Frame<'_>,
    ) -> Result<(), EntryLogDamage> {
        let (expected, found) = (self.last_index + 1, frame.number);
        if found != expected {
            return Err(damage(file, position, EntryLogDamageKind::Order { expected, found }));
        }
        self.last_index = found;
        if found > self.after {
            self.entries
                .push(Entry { index: found, payload: Bytes::copy_from_slice(frame.payload) });
        }
        Ok(())
    }

    fn cut(
        &mut self,
        file: &ScannedFile,
        position: usize,
        from: u64,
    ) -> Result<(), EntryLogDamage> {
        if from == 0 || from > self.last_index + 1 {
            let expected = self.last_index + 1;
            let kind = EntryLogDamageKind::Order { expected, found: from };
            return Err(damage(file, position, kind));
        }
        self.entries.retain(|entry| entry.index < from);
        self.last_index = from - 1;
        Ok(())
    }
}

fn acknowledged(file: &ScannedFile, position: usize, walk: &Walk) -> EntryLogDamage {
    let next_index = walk.last_index + 1;
    damage(file, position, EntryLogDamageKind::Acknowledged { next_index })
}

fn damage(file: &ScannedFile, position: usize, kind: EntryLogDamageKind) -> EntryLogDamage {
    EntryLogDamage { path: file.path.clone(), position: position as u64, kind }
}

fn is_zero(byte: &u8) -> bool {
    *byte == 0
}
