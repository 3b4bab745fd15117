//! Bringing into the segments what only the journals had when the host stopped.
//!
//! Law: this runs once, for all slots and before any log is opened, and leaves journals of which
//! nothing counts any more. Of each log counts what came after the last entry that settled it
//! (truncated, deleted, handed over), in the order of ownership and sequence. What cannot be
//! brought into its segment takes the log offline until it is repaired, and so does a journal that
//! is lost or damaged with every log that was not closed in order and names it. A crash in the
//! middle is simply begun again.
//!
//! The journals are read twice: to learn what counts, and to bring it in, as much at a time as
//! there is memory for.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use protocol::Uuid;
use runtime::file::FsError;
use runtime::local::Queue;

use super::files::{StateError, StateFile};
use super::format::ENTRY_HEAD_BYTES;
use super::journal_dir;
use super::leftover::{FoundEntry, LEFTOVER_FILE_NAME, Leftover, LeftoverWriter};
use super::pending::{LogKey, Pending};
use super::scan::{self, Reading, ScanError, Scanned, Seen};
use super::segment_end::{Refused, apply};
use crate::checkpoint::{CHECKPOINT_FILE_NAME, Checkpoint, Newest};
use crate::directory::Identity;
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
    /// The most memory that entries took at a time.
    pub held_bytes_max: usize,
}

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
    let mut pending = Pending::default();
    let mut journals = BTreeMap::new();
    for slot in scan::slots(storage.data_dir()).await? {
        let mut note = |entry: &Seen<'_>| pending.note(entry);
        journals.insert(slot, scan::scan(storage.data_dir(), slot, &mut note).await?);
    }
    let logs = find_logs(storage, owners).await?.into_iter();
    let logs = logs.map(|log| (key_of_log(&log.identity), Rc::new(log))).collect();
    let plan = Plan { storage, journals, pending, logs };
    let mut outcome = Outcome::default();
    plan.bring_in(&mut outcome).await?;
    plan.take_offline(&mut outcome).await?;
    runtime::reached("journal: replayed");
    for (slot, journal) in &plan.journals {
        reset(storage.data_dir(), *slot, journal).await?;
    }
    Ok(outcome.replayed)
}

fn key_of_log(identity: &Identity) -> LogKey {
    (identity.topic_id, identity.partition)
}

/// What there is to do.
struct Plan<'a> {
    storage: &'a Storage,
    journals: BTreeMap<u32, Scanned>,
    pending: Pending,
    logs: BTreeMap<LogKey, Rc<Found>>,
}

/// What was done.
#[derive(Default)]
struct Outcome {
    replayed: Replayed,
    /// Logs that something was written to.
    written: BTreeSet<LogKey>,
    /// Logs whose entries could not be brought in, and why.
    refused: BTreeMap<LogKey, String>,
}

/// Entries in memory, those of each log in their order.
#[derive(Default)]
struct Gathered {
    logs: BTreeMap<LogKey, Vec<FoundEntry>>,
    bytes: usize,
}

impl Gathered {
    fn add(&mut self, entry: &Seen<'_>) {
        let found = FoundEntry { head: entry.head, batches: entry.batches.to_vec() };
        self.bytes += size_of::<FoundEntry>() + found.batches.len();
        self.logs.entry(entry.key()).or_default().push(found);
    }
}

impl Plan<'_> {
    /// What counts goes into the segments; whose entries are refused is remembered.
    async fn bring_in(&self, outcome: &mut Outcome) -> Result<(), ScanError> {
        let mut gathered = Gathered::default();
        let mut entries = self.entries();
        loop {
            let mut take = |entry: &Seen<'_>| {
                let key = entry.key();
                if !self.logs.contains_key(&key) {
                    outcome.replayed.dropped += 1;
                } else if !outcome.refused.contains_key(&key) {
                    gathered.add(entry);
                }
            };
            let more = entries.more(&mut take).await?;
            outcome.note_held(gathered.bytes);
            if !more || gathered.bytes >= self.storage.config().replay_bytes_max {
                self.apply(std::mem::take(&mut gathered), outcome).await?;
            }
            if !more {
                outcome.replayed.logs = outcome.written.len() as u64;
                return Ok(());
            }
        }
    }

    fn entries(&self) -> Entries<'_> {
        Entries { plan: self, turn: 0, slots: Vec::new(), reading: None }
    }

    async fn apply(&self, gathered: Gathered, outcome: &mut Outcome) -> Result<(), FsError> {
        let with_log = |(key, entries)| Some((self.logs.get(&key)?.clone(), entries));
        let work: Vec<_> = gathered.logs.into_iter().filter_map(with_log).collect();
        let results = Rc::new(RefCell::new(Vec::with_capacity(work.len())));
        for_each(work, {
            let (storage, results) = (self.storage.clone(), Rc::clone(&results));
            move |(log, entries): (Rc<Found>, Vec<FoundEntry>)| {
                let (storage, results) = (storage.clone(), results.clone());
                async move {
                    let applied = apply(&storage, &log.topic, log.identity, &entries).await;
                    results.borrow_mut().push((key_of_log(&log.identity), applied));
                }
            }
        })
        .await;
        for (key, applied) in results.take() {
            match applied {
                Ok(0) => {}
                Ok(bytes) => {
                    outcome.written.insert(key);
                    outcome.replayed.bytes += bytes;
                }
                // After a failed write nobody can say any more what the disk holds.
                Err(Refused::Io(error)) if !error.was_reading() => return Err(error),
                Err(refused) => drop(outcome.refused.insert(key, refused.to_string())),
            }
        }
        Ok(())
    }

    /// Logs whose entries were refused or may be lost go offline, with all that there is of them.
    async fn take_offline(&self, outcome: &mut Outcome) -> Result<(), ScanError> {
        let mut leaving = Vec::new();
        for (key, log) in &self.logs {
            let lost = log.lost_journal(&self.journals);
            // What no log names was never used: its creation was cut short.
            outcome.replayed.damaged.extend(lost.clone());
            let refused = outcome.refused.get(key).cloned();
            let reason = match (lost, &refused) {
                (None, None) => continue,
                (Some(lost), Some(refused)) => format!("{lost}; {refused}"),
                // What an earlier start has kept is nowhere else any more.
                (Some(lost), None) if self.has_leftover(log).await? => {
                    let reason = format!("{lost}; what an earlier start left over stays");
                    self.note_offline(key, &reason, outcome);
                    continue;
                }
                (Some(lost), None) => lost,
                (None, Some(refused)) => refused.clone(),
            };
            leaving.push((*key, reason));
        }
        outcome.replayed.damaged.sort_unstable();
        outcome.replayed.damaged.dedup();
        let room = self.storage.config().replay_bytes_max as u64;
        let (large, mut small): (Vec<_>, Vec<_>) =
            leaving.into_iter().partition(|(key, _)| self.bytes_left_over(key, outcome) > room);
        for (key, reason) in large {
            let Some(dir) = self.note_offline(&key, &reason, outcome) else { continue };
            self.store_in_pieces(key, &reason, &dir, outcome).await?;
        }
        while !small.is_empty() {
            let some = self.as_many_as_fit(&mut small, outcome);
            let mut gathered = self.gather(&some, outcome).await?;
            let mut work = Vec::with_capacity(some.len());
            for (key, reason) in some {
                let Some(dir) = self.note_offline(&key, &reason, outcome) else { continue };
                let entries = gathered.logs.remove(&key).unwrap_or_default();
                work.push((dir, Leftover { reason, entries }));
            }
            store_all(work).await?;
        }
        Ok(())
    }

    async fn has_leftover(&self, log: &Found) -> Result<bool, FsError> {
        let dir = self.storage.log_dir(&log.topic, log.identity.partition);
        runtime::fs::exists(dir.join(LEFTOVER_FILE_NAME)).await
    }

    /// Says that a log goes offline; gives its directory.
    fn note_offline(&self, key: &LogKey, reason: &str, outcome: &mut Outcome) -> Option<PathBuf> {
        let log = self.logs.get(key)?;
        let Identity { partition, .. } = log.identity;
        let name = crate::directory::log_dir_name(&log.topic, partition);
        outcome.replayed.offline.push((name, reason.to_owned()));
        Some(self.storage.log_dir(&log.topic, partition))
    }

    /// At most so many bytes of batches go into a log's leftover file.
    fn bytes_left_over(&self, key: &LogKey, outcome: &Outcome) -> u64 {
        match outcome.refused.contains_key(key) {
            true => self.pending.bytes_of(key),
            false => 0,
        }
    }

    /// The entries of one log that may not all be in memory: the journals are read to know how
    /// many they are, and once more to write them.
    async fn store_in_pieces(
        &self,
        key: LogKey,
        reason: &str,
        dir: &Path,
        outcome: &mut Outcome,
    ) -> Result<(), ScanError> {
        let (mut count, mut bytes) = (0, 0);
        let mut entries = self.entries();
        while entries
            .more(&mut |entry| {
                if entry.key() == key {
                    count += 1;
                    bytes += (ENTRY_HEAD_BYTES + entry.batches.len()) as u64;
                }
            })
            .await?
        {}
        let mut file = LeftoverWriter::create(dir, reason, count, bytes).await?;
        let (mut entries, mut piece) = (self.entries(), Vec::new());
        loop {
            let more = entries
                .more(&mut |entry| {
                    if entry.key() == key {
                        piece.extend_from_slice(&entry.head.encode());
                        piece.extend_from_slice(entry.batches);
                    }
                })
                .await?;
            outcome.note_held(piece.len());
            if !piece.is_empty() {
                file.write(&piece).await?;
                runtime::reached("journal: one piece left over");
                piece.clear();
            }
            if !more {
                return Ok(file.finish().await?);
            }
        }
    }

    /// Takes those from the front whose entries may be in memory together, and at least one.
    fn as_many_as_fit(
        &self,
        leaving: &mut Vec<(LogKey, String)>,
        outcome: &Outcome,
    ) -> Vec<(LogKey, String)> {
        let mut room = self.storage.config().replay_bytes_max as u64;
        let mut count = 0;
        for (key, _) in leaving.iter() {
            let bytes = self.bytes_left_over(key, outcome);
            if bytes > room && count > 0 {
                break;
            }
            room = room.saturating_sub(bytes);
            count += 1;
        }
        leaving.drain(..count).collect()
    }

    /// The entries of those of these logs that were refused.
    async fn gather(
        &self,
        logs: &[(LogKey, String)],
        outcome: &mut Outcome,
    ) -> Result<Gathered, ScanError> {
        let mut gathered = Gathered::default();
        let refused = logs.iter().map(|(key, _)| *key);
        let wanted: BTreeSet<LogKey> =
            refused.filter(|key| outcome.refused.contains_key(key)).collect();
        let mut entries = self.entries();
        while !wanted.is_empty()
            && entries
                .more(&mut |entry| {
                    if wanted.contains(&entry.key()) {
                        gathered.add(entry);
                    }
                })
                .await?
        {}
        outcome.note_held(gathered.bytes);
        Ok(gathered)
    }
}

impl Outcome {
    fn note_held(&mut self, bytes: usize) {
        let most = &mut self.replayed.held_bytes_max;
        *most = bytes.max(*most);
    }
}

/// What counts in all journals, a window at a time and those of each log in their order.
struct Entries<'a> {
    plan: &'a Plan<'a>,
    turn: usize,
    /// Journals that are still to be read in this turn, the last one first.
    slots: Vec<u32>,
    reading: Option<Reading<'a>>,
}

impl Entries<'_> {
    /// Goes on; false when there is nothing more.
    async fn more(&mut self, each: &mut scan::Each<'_>) -> Result<bool, ScanError> {
        let Plan { storage, journals, pending, .. } = self.plan;
        loop {
            if let Some(reading) = &mut self.reading {
                let turn = self.turn;
                let mut ours = |entry: &Seen<'_>| {
                    if pending.turn_of(entry) == Some(turn - 1) {
                        each(entry);
                    }
                };
                if reading.more(&mut ours).await? {
                    return Ok(true);
                }
            }
            self.reading = None;
            if let Some(slot) = self.slots.pop() {
                let journal = journals.get(&slot);
                self.reading = journal.map(|journal| journal.read(storage.data_dir(), slot));
            } else if self.turn < pending.turns() {
                self.turn += 1;
                self.slots = journals.keys().rev().copied().collect();
            } else {
                return Ok(false);
            }
        }
    }
}

/// Writes what is left over into the directories of the logs.
async fn store_all(work: Vec<(PathBuf, Leftover)>) -> Result<(), FsError> {
    let failed = Rc::new(RefCell::new(None));
    for_each(work, {
        let failed = Rc::clone(&failed);
        move |(dir, leftover): (PathBuf, Leftover)| {
            let failed = failed.clone();
            async move {
                if let Err(error) = leftover.store(&dir).await {
                    *failed.borrow_mut() = Some(error);
                }
            }
        }
    })
    .await;
    failed.take().map_or(Ok(()), Err)
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
