//! One log's newest segment, into which goes what only a journal has of the log.
//!
//! Law: entries belong into the newest segment, because nobody leaves a segment before all of it is
//! settled there. What the segment already has must be byte for byte the same, and is written again
//! all the same; what begins behind its end is refused. To bring in the same entries twice, or some
//! now and the others later, comes to the same.

use runtime::file::{AlignedBuf, FsError, Mode};

use super::leftover::{FoundEntry, Leftover};
use crate::checkpoint::{CHECKPOINT_FILE_NAME, Checkpoint, CheckpointError, RecoveryPoint};
use crate::directory::{Identity, SegmentFile};
use crate::log::CHUNK_BYTES_MAX;
use crate::open_files::{FileRole, UsedFile};
use crate::recovery::{Scanner, Step};
use crate::segment::{BLOCK, Chain, TRAILER_BYTES, Trailer, TrailerSalt};
use crate::store::Storage;

/// Why a log's entries were not applied.
pub enum Refused {
    Io(FsError),
    Damaged(String),
}

impl From<FsError> for Refused {
    fn from(error: FsError) -> Refused {
        Refused::Io(error)
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Io(error) => error.fmt(f),
            Refused::Damaged(reason) => f.write_str(reason),
        }
    }
}

/// Puts what a journal had of a log into its newest segment, durably. Returns how many bytes were
/// not there.
pub async fn apply(
    storage: &Storage,
    topic: &str,
    identity: Identity,
    entries: &[FoundEntry],
) -> Result<u64, Refused> {
    if entries.is_empty() {
        return Ok(0);
    }
    let dir = storage.log_dir(topic, identity.partition);
    let newest = match runtime::fs::read(dir.join(CHECKPOINT_FILE_NAME)).await {
        Ok(file) => match Checkpoint::newest(&file) {
            Err(error @ CheckpointError::Format { .. }) => {
                return Err(Refused::Damaged(error.to_string()));
            }
            newest => newest.ok().filter(|newest| newest.is_certain),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    if newest.is_some_and(|newest| newest.checkpoint.clean) {
        return Ok(0);
    }
    let listed = runtime::fs::list(&dir).await?;
    let segments = listed.iter().filter_map(|entry| match SegmentFile::parse(&entry.name) {
        Some((base, SegmentFile::Log)) => Some((base, entry.len)),
        _ => None,
    });
    let Some((base, length)) = segments.max() else {
        return Err(Refused::Damaged("no segment is there for its last batches".to_owned()));
    };
    let point = newest.map(|newest| newest.checkpoint.recovery_point);
    let point = point.filter(|point| point.segment_base == base && point.position <= length);
    let point = point.unwrap_or(RecoveryPoint::at_start(base));
    let number = storage.next_log_number();
    let path = dir.join(SegmentFile::Log.name(base));
    let key = (number, FileRole::Segment(base));
    let file = storage.open_files().get(key, &path, Mode::DirectSync).await?;
    let target = Target { file, base, length, point, identity };
    let applied = target.apply(entries).await;
    storage.open_files().forget_log(number);
    applied
}

/// The segment that entries belong into.
struct Target {
    file: UsedFile,
    base: i64,
    length: u64,
    point: RecoveryPoint,
    identity: Identity,
}

/// Bytes that are to be written, one behind the other.
struct Run {
    from: u64,
    bytes: Vec<u8>,
}

impl Run {
    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    /// What is in whole blocks; the rest stays.
    fn take_blocks(&mut self) -> Run {
        let whole = (self.end() - self.end() % BLOCK as u64).saturating_sub(self.from) as usize;
        let rest = Run { from: self.from + whole as u64, bytes: self.bytes.split_off(whole) };
        std::mem::replace(self, rest)
    }
}

impl Target {
    async fn apply(self, entries: &[FoundEntry]) -> Result<u64, Refused> {
        let begin = self.point.position;
        let ends = |entry: &&FoundEntry| entry.head.position + u64::from(entry.head.length);
        let newer = entries.iter().find(|entry| entry.head.segment_base > self.base);
        if let Some(entry) = newer {
            let base = entry.head.segment_base;
            return Err(Refused::Damaged(format!("segment {base} is missing")));
        }
        let ours = |entry: &&FoundEntry| entry.head.segment_base == self.base;
        let entries: Vec<&FoundEntry> =
            entries.iter().filter(ours).filter(|entry| ends(entry) > begin).collect();
        let Some(end) = entries.iter().map(ends).max() else { return Ok(0) };
        if end > self.length {
            let length = self.length;
            return Err(Refused::Damaged(format!("the segment is {length} bytes long, not {end}")));
        }
        // Whether offsets may be missing is for the recovery to judge.
        let mut chain =
            Chain { next_offset: self.point.offset, epoch: self.point.epoch, gaps: true };
        let mut reached = self.walk(&mut chain, end).await?;
        let there_to = reached;
        let mut missing = 0;
        let mut run = Run { from: begin, bytes: Vec::new() };
        for entry in entries {
            let head = entry.head;
            if head.position > reached {
                return Err(Refused::Damaged(format!(
                    "the journal goes on at offset {}, position {}, but the log ends at offset {}, \
                     position {reached}",
                    head.base_offset, head.position, chain.next_offset
                )));
            }
            self.compare(entry, there_to.min(ends(&entry))).await?;
            let known = (reached - head.position).min(u64::from(head.length)) as usize;
            self.accept(&mut chain, &entry.batches[known..])?;
            missing += (entry.batches.len() - known) as u64;
            reached = reached.max(ends(&entry));
            // What is there may be in the page cache alone, and after a failed sync not for long.
            if head.position > run.end() {
                self.write(&run).await?;
                run = Run { from: head.position, bytes: Vec::new() };
            }
            let written = (run.end() - head.position).min(u64::from(head.length)) as usize;
            run.bytes.extend_from_slice(&entry.batches[written..]);
            if run.bytes.len() >= CHUNK_BYTES_MAX {
                self.write(&run.take_blocks()).await?;
            }
        }
        self.write(&run).await?;
        self.file.sync().await?;
        Ok(missing)
    }

    /// The batches go on where the log ends.
    fn accept(&self, chain: &mut Chain, mut batches: &[u8]) -> Result<(), Refused> {
        while !batches.is_empty() {
            let accepted = chain.accept(batches);
            let batch = accepted.map_err(|why| {
                let offset = chain.next_offset;
                Refused::Damaged(format!("the journal's batch at offset {offset}: {why}"))
            })?;
            batches = &batches[batch.size_in_bytes()..];
        }
        Ok(())
    }

    /// How far the batches go without what the journal has.
    async fn walk(&self, chain: &mut Chain, end: u64) -> Result<u64, Refused> {
        let mut scanner = Scanner::new(self.file.share(), self.length);
        let mut position = self.point.position;
        while position < end
            && let Step::Batch(header) = scanner.step(position, chain).await?
        {
            position += header.size_in_bytes() as u64;
        }
        Ok(position)
    }

    /// What the segment has of an entry is what the entry says.
    async fn compare(&self, entry: &FoundEntry, known_to: u64) -> Result<(), Refused> {
        let from = entry.head.position.max(self.point.position);
        if from >= known_to {
            return Ok(());
        }
        let ours = &entry.batches[(from - entry.head.position) as usize..];
        let there = self.file.read_at(from, (known_to - from) as usize).await?;
        if there[..] != ours[..there.len()] {
            return Err(Refused::Damaged(format!(
                "position {from} of segment {} is not what the journal has of it",
                self.base
            )));
        }
        Ok(())
    }

    /// Writes whole blocks, in order. The mark of a commit that ends here says that everything
    /// before it was durable, unless something of a later write stands there.
    async fn write(&self, run: &Run) -> Result<(), Refused> {
        if run.bytes.is_empty() {
            return Ok(());
        }
        let end = run.end();
        let mut at = run.from - run.from % BLOCK as u64;
        while at < end {
            let to = (at + CHUNK_BYTES_MAX as u64).min(end.next_multiple_of(BLOCK as u64));
            let there = self.file.read_at(at, (to - at) as usize).await?;
            let mut buffer = AlignedBuf::zeroed((to - at) as usize);
            buffer[..there.len()].copy_from_slice(&there);
            let (from, until) = (run.from.max(at), end.min(to));
            let bytes = &run.bytes[(from - run.from) as usize..][..(until - from) as usize];
            buffer[(from - at) as usize..(until - at) as usize].copy_from_slice(bytes);
            let behind = &buffer[(until - at) as usize..];
            if until == end && behind.len() >= TRAILER_BYTES && behind.iter().all(|it| *it == 0) {
                let mark = Trailer { start_position: end, end_position: end };
                let Identity { topic_id, partition } = self.identity;
                mark.put(TrailerSalt::new(topic_id.0, partition, self.base), &mut buffer);
            }
            self.file.write_at(at, buffer.freeze()).await?;
            runtime::reached("journal: one piece replayed");
            at = to;
        }
        Ok(())
    }
}

/// Tries again what was left over; the log can be opened when it succeeds.
pub async fn retry(
    storage: &Storage,
    topic: &str,
    identity: Identity,
    leftover: &Leftover,
) -> Result<(), Refused> {
    if leftover.entries.is_empty() {
        return Err(Refused::Damaged(leftover.reason.clone()));
    }
    apply(storage, topic, identity, &leftover.entries).await.map(drop)
}
