//! Bringing into the segments what only the journals had when the host stopped.
//!
//! Law: this runs once, for all slots and before any log is opened, and leaves journals of which
//! nothing counts any more. Of each log counts what came after the last entry that settled it
//! (truncated, deleted, handed over), in the order of ownership and sequence, and only in its
//! newest segment, because nobody leaves a segment before it is settled. What the segment already
//! has must be byte for byte the same; what begins behind its end, or cannot be written, takes the
//! log offline until it is repaired, and so does a journal that is lost or damaged with every log
//! that was not closed in order and names it. A crash in the middle is simply begun again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use protocol::Uuid;
use runtime::file::{AlignedBuf, FsError, Mode};
use runtime::local::Queue;

use super::files::{StateError, StateFile};
use super::leftover::Leftover;
use super::scan::{self, FoundEntry, ScanError, Scanned};
use super::{EntryKind, journal_dir};
use crate::checkpoint::{CHECKPOINT_FILE_NAME, Checkpoint, CheckpointError, Newest, RecoveryPoint};
use crate::directory::{Identity, SegmentFile};
use crate::log::CHUNK_BYTES_MAX;
use crate::open_files::{FileRole, UsedFile};
use crate::recovery::{Scanner, Step};
use crate::segment::{BLOCK, Chain, TRAILER_BYTES, Trailer, TrailerSalt};
use crate::store::Storage;

/// What a replay did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Logs that something was written to, and how many bytes of batches.
    pub logs: u64,
    pub bytes: u64,
    /// Entries whose log is gone.
    pub dropped: u64,
    /// Logs that go offline, and why.
    pub offline: Vec<(String, String)>,
    /// Journals that are lost or damaged, and how.
    pub damaged: Vec<String>,
}

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

pub type LogKey = (Uuid, i32);

/// A log's directory.
struct Found {
    topic: String,
    identity: Identity,
    checkpoint: Option<Newest>,
}

/// Whose directories are, by topic and partition, as the metadata has it.
pub type Owners = BTreeMap<(String, i32), Uuid>;

/// Replays the journals of all slots.
pub async fn replay(storage: &Storage, owners: Owners) -> Result<Replayed, ScanError> {
    let mut replayed = Replayed::default();
    let mut journals: BTreeMap<u32, Scanned> = BTreeMap::new();
    for slot in scan::slots(storage.data_dir()).await? {
        journals.insert(slot, scan::scan(storage.data_dir(), slot).await?);
    }
    let mut entries = Vec::new();
    for journal in journals.values_mut() {
        entries.append(&mut journal.entries);
    }
    let logs = find_logs(storage, owners).await?;
    let mut pending = unsettled(entries);
    let known: BTreeMap<LogKey, Found> = logs
        .into_iter()
        .map(|found| ((found.identity.topic_id, found.identity.partition), found))
        .collect();
    let mut work = Vec::new();
    for (key, found) in known {
        let entries = pending.remove(&key).unwrap_or_default();
        let lost = found.lost_journal(&journals);
        // What no log names was never used: its creation was cut short.
        replayed.damaged.extend(lost.clone());
        if !entries.is_empty() || lost.is_some() {
            work.push((found, entries, lost));
        }
    }
    replayed.damaged.sort_unstable();
    replayed.damaged.dedup();
    replayed.dropped = pending.values().map(|entries| entries.len() as u64).sum();
    let shared = Rc::new(RefCell::new(replayed));
    let failed = Rc::new(RefCell::new(None));
    for_each(work, {
        let (storage, shared, failed) = (storage.clone(), Rc::clone(&shared), Rc::clone(&failed));
        move |(found, entries, lost)| {
            let (storage, shared, failed) = (storage.clone(), shared.clone(), failed.clone());
            async move {
                let settled = settle(&storage, &found, entries, lost, &shared).await;
                if let Err(error) = settled {
                    *failed.borrow_mut() = Some(error);
                }
            }
        }
    })
    .await;
    if let Some(error) = failed.take() {
        return Err(error.into());
    }
    runtime::reached("journal: replayed");
    for (slot, journal) in journals {
        reset(storage.data_dir(), slot, &journal).await?;
    }
    Ok(shared.take())
}

/// From now on nothing in the journal counts.
async fn reset(data_dir: &Path, slot: u32, journal: &Scanned) -> Result<(), ScanError> {
    let dir = journal_dir(data_dir, slot);
    let mut state = match StateFile::open(&dir).await {
        Ok(Some(state)) => state,
        // Whoever opens the journal makes a new one. There may be no room for that now.
        Ok(None) | Err(StateError::Damaged(_)) => return Ok(()),
        Err(StateError::Io(error)) => return Err(error.into()),
        Err(StateError::Newer { path, format }) => {
            return Err(ScanError::Newer { path: path.display().to_string(), format });
        }
    };
    if journal.damage.is_some() {
        super::files::remove(&dir, &mut state).await?;
    }
    let next = journal.next_sequence;
    state.change(|state| state.low_water = state.low_water.max(next)).await?;
    runtime::reached("journal: reset");
    Ok(())
}

/// What of the entries counts, by log.
pub fn unsettled(entries: Vec<FoundEntry>) -> BTreeMap<LogKey, Vec<FoundEntry>> {
    let mut logs: BTreeMap<LogKey, Vec<FoundEntry>> = BTreeMap::new();
    for entry in entries {
        logs.entry((entry.head.topic_id, entry.head.partition)).or_default().push(entry);
    }
    for entries in logs.values_mut() {
        entries.sort_by_key(|entry| (entry.head.ownership, entry.slot, entry.sequence));
        let settled = entries.iter().rposition(|entry| settles(entry.head.kind));
        entries.drain(..settled.map_or(0, |last| last + 1));
        entries.retain(|entry| !entry.head.is_fence());
    }
    logs.retain(|_, entries| !entries.is_empty());
    logs
}

/// Whether what came before an entry of this kind is settled.
fn settles(kind: EntryKind) -> bool {
    match kind {
        EntryKind::Batches => false,
        EntryKind::Truncated => !runtime::sabotaged("replay a cut tail"),
        EntryKind::Deleted => !runtime::sabotaged("replay a deleted topic"),
        EntryKind::HandedOver => true,
    }
}

/// A directory that cannot say now whose it is belongs to whom the metadata says: what a journal
/// has of it is not given up.
async fn find_logs(storage: &Storage, owners: Owners) -> Result<Vec<Found>, FsError> {
    let names = storage.list_logs().await?;
    let found = Rc::new(RefCell::new(Vec::with_capacity(names.len())));
    let owners = Rc::new(owners);
    for_each(names, {
        let (storage, found) = (storage.clone(), Rc::clone(&found));
        move |(topic, partition)| {
            let (storage, found, owners) = (storage.clone(), found.clone(), owners.clone());
            async move {
                let told = storage.topic_id_of(&topic, partition).await;
                let named = || owners.get(&(topic.clone(), partition)).copied();
                let Some(topic_id) = told.or_else(named) else { return };
                let path = storage.log_dir(&topic, partition).join(CHECKPOINT_FILE_NAME);
                let file = runtime::fs::read(path).await.ok();
                let checkpoint = file.and_then(|file| Checkpoint::newest(&file).ok());
                let identity = Identity { topic_id, partition };
                found.borrow_mut().push(Found { topic, identity, checkpoint });
            }
        }
    })
    .await;
    Ok(found.take())
}

impl Found {
    /// Why batches of the log may be lost with the journal that it names.
    fn lost_journal(&self, journals: &BTreeMap<u32, Scanned>) -> Option<String> {
        let checkpoint = self.checkpoint?.checkpoint;
        let slot = checkpoint.journal.filter(|_| !checkpoint.clean)?;
        match journals.get(&slot) {
            None => Some(format!("the journal of slot {slot} is missing")),
            Some(journal) => {
                let damage = journal.damage.as_ref()?;
                Some(format!("the journal of slot {slot}: {damage}"))
            }
        }
    }
}

/// One log: its entries go into the segment, or it goes offline with them.
async fn settle(
    storage: &Storage,
    found: &Found,
    entries: Vec<FoundEntry>,
    lost: Option<String>,
    replayed: &RefCell<Replayed>,
) -> Result<(), FsError> {
    let applied = apply(storage, &found.topic, found.identity, &entries).await;
    let dir = storage.log_dir(&found.topic, found.identity.partition);
    let (reason, entries) = match (applied, lost) {
        (Ok(bytes), lost) => {
            let replayed = &mut *replayed.borrow_mut();
            replayed.logs += u64::from(bytes > 0);
            replayed.bytes += bytes;
            match lost {
                None => return Ok(()),
                Some(reason) => (reason, Vec::new()),
            }
        }
        // After a failed write nobody can say any more what the disk holds.
        (Err(Refused::Io(error)), _) if !error.was_reading() => return Err(error),
        (Err(refused), Some(lost)) => (format!("{lost}; {refused}"), entries),
        (Err(refused), None) => (refused.to_string(), entries),
    };
    Leftover { reason: reason.clone(), entries }.store(&dir).await?;
    let name = crate::directory::log_dir_name(&found.topic, found.identity.partition);
    replayed.borrow_mut().offline.push((name, reason));
    Ok(())
}

/// Puts what a journal had of a log into its newest segment, durably. Returns how many bytes were
/// not there.
async fn apply(
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

/// Runs `act` on every item, some at a time, and waits for all.
async fn for_each<T: 'static, Fut: Future<Output = ()> + 'static>(
    items: Vec<T>,
    act: impl Fn(T) -> Fut + 'static,
) {
    let workers = AT_A_TIME.min(items.len());
    let items = Rc::new(RefCell::new(items));
    let act = Rc::new(act);
    let done = Rc::new(Queue::bounded(AT_A_TIME));
    for _ in 0..workers {
        let (items, act, done) = (Rc::clone(&items), Rc::clone(&act), Rc::clone(&done));
        runtime::task::spawn(async move {
            loop {
                let item = items.borrow_mut().pop();
                let Some(item) = item else { break };
                act(item).await;
            }
            // There is room for one of each worker.
            let _ = done.try_push(());
        });
    }
    for _ in 0..workers {
        done.pop().await;
    }
}

/// Logs looked at or written to at a time.
const AT_A_TIME: usize = 32;
