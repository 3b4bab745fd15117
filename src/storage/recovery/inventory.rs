//! What is in a log's directory, before anything of it is believed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::derived::load_register;
use runtime::file::FsError;
use runtime::fs::Entry;

use crate::checkpoint::{CHECKPOINT_FILE_NAME, Checkpoint, CheckpointError, Newest, RecoveryPoint};
use crate::compaction::CLEANED_TO_FILE_NAME;
use crate::compaction::exchange::CLEANED_SUFFIX;
use crate::directory::{DELETED_SUFFIX, IDENTITY_FILE_NAME, Identity, IdentityError, SegmentFile};
use crate::epochs::EPOCHS_FILE_NAME;
use crate::errors::OpenError;
use crate::journal::LEFTOVER_FILE_NAME;
use crate::log::parse_snapshot_name;
use crate::removals::Going;
use crate::segment::{REGISTER_FILE_NAME, RegisteredSegment};
use crate::store::Storage;

/// The directory's files, by what they are.
pub struct Inventory {
    pub dir: PathBuf,
    /// Length of each segment's file, by base offset.
    pub segments: BTreeMap<i64, u64>,
    /// End offsets of the producer snapshots.
    pub snapshots: Vec<i64>,
    pub has_epochs: bool,
    /// A file says up to where the log was cleaned.
    pub has_cleaned_to: bool,
    /// A journal had batches that are not in the segments.
    pub has_journal_leftover: bool,
    pub checkpoint: Checkpoint,
    pub checkpoint_sequence: u64,
    /// The checkpoint could not be read and says only what the segments' names say.
    pub checkpoint_lost: bool,
    /// The checkpoint may be older than the log: nothing but its log start can be relied on.
    pub checkpoint_doubtful: bool,
    /// What the checkpoint says of the log start is on stable storage.
    pub checkpoint_settled: bool,
    /// What the register says of sealed segments.
    pub registered: BTreeMap<i64, RegisteredSegment>,
    /// Segment files that wait for their removal.
    leftovers: Vec<String>,
    /// Files that were being written. New ones will have the same names.
    unfinished: Vec<String>,
}

impl Inventory {
    /// Looks at the directory and whose it is. Changes nothing.
    pub async fn take(dir: &Path, identity: Identity) -> Result<Inventory, OpenError> {
        let entries = entries_of(dir).await?;
        let mut segments = BTreeMap::new();
        let (mut snapshots, mut leftovers) = (Vec::new(), Vec::new());
        let mut unfinished = Vec::new();
        let mut found = [false; KNOWN.len()];
        for entry in &entries {
            let name = entry.name.as_str();
            match SegmentFile::parse(name) {
                Some((base, SegmentFile::Log)) => drop(segments.insert(base, entry.len)),
                Some(_) => {}
                None if name.ends_with(DELETED_SUFFIX) => leftovers.push(entry.name.clone()),
                None if name.ends_with(".tmp") || name.ends_with(CLEANED_SUFFIX) => {
                    unfinished.push(entry.name.clone());
                }
                None => {}
            }
            snapshots.extend(parse_snapshot_name(name));
            for (found, wanted) in found.iter_mut().zip(KNOWN) {
                *found |= name == wanted;
            }
        }
        // A deletion whose renames were lost in part.
        unfinished.extend(orphans(&entries, &segments));
        unfinished.extend(take_unborn(&mut segments));
        let [has_identity, has_checkpoint, has_epochs, has_register, has_cleaned_to, has_leftover] =
            found;
        if segments.is_empty() && (!has_checkpoint || is_beginning(dir).await?) {
            // A creation that was cut short, which may be begun again.
            return Err(OpenError::Missing(dir.to_path_buf()));
        }
        check_identity(dir, identity, has_identity).await?;
        let read = read_checkpoint(dir, identity, has_checkpoint).await?;
        let checkpoint_lost = read.is_none();
        let checkpoint_doubtful = read.is_some_and(|read| !read.is_certain);
        let log_start = read.map_or(0, |read| read.checkpoint.log_start_offset);
        unfinished.extend(take_outlived(&mut segments, log_start));
        let guessed = guessed_checkpoint(identity, &segments);
        let (checkpoint_sequence, checkpoint) = match read {
            None => (0, guessed),
            Some(Newest { sequence, checkpoint, is_certain: true, .. }) => (sequence, checkpoint),
            Some(Newest { sequence, checkpoint, is_certain: false, .. }) => {
                // The log start is in both slots, and where an empty log goes on.
                let recovery_point = match segments.is_empty() {
                    true => RecoveryPoint::at_start(checkpoint.log_start_offset),
                    false => guessed.recovery_point,
                };
                let doubtful =
                    Checkpoint { clean: false, recovery_point, producers_offset: -1, ..checkpoint };
                (sequence, doubtful)
            }
        };
        Ok(Inventory {
            dir: dir.to_path_buf(),
            segments,
            snapshots,
            has_epochs,
            has_cleaned_to,
            has_journal_leftover: has_leftover,
            checkpoint,
            checkpoint_sequence,
            checkpoint_lost,
            checkpoint_doubtful,
            checkpoint_settled: read.is_some_and(|read| read.is_settled),
            registered: if has_register { load_register(dir).await? } else { BTreeMap::new() },
            leftovers,
            unfinished,
        })
    }

    /// Every segment has to be read, from its first byte.
    pub fn must_read_everything(&self) -> bool {
        self.checkpoint_lost || self.checkpoint_doubtful
    }

    /// Files will be removed because of what the checkpoint says, and that may not be on stable
    /// storage: a power loss must not bring an older one back for which they would be missing.
    pub fn must_settle_checkpoint(&self) -> bool {
        !self.checkpoint_settled && !self.unfinished.is_empty()
    }

    /// Removes what unfinished writes left behind and, in the background, what deletions did.
    pub async fn remove_leftovers(self, storage: &Storage) -> Result<(), FsError> {
        for name in &self.unfinished {
            match runtime::fs::remove_file(self.dir.join(name)).await {
                // Written anew meanwhile, and renamed.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        if self.leftovers.is_empty() {
            return Ok(());
        }
        // Under its first name, which a power loss could bring back, a file stays whole.
        runtime::fs::sync_dir(&self.dir).await?;
        let paths = self.leftovers.iter().map(|name| self.dir.join(name));
        storage.removals().add(paths.map(Going::File));
        Ok(())
    }
}

async fn entries_of(dir: &Path) -> Result<Vec<Entry>, OpenError> {
    match runtime::fs::list(dir).await {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(OpenError::Missing(dir.to_path_buf()))
        }
        listed => Ok(listed?),
    }
}

/// Index files without their segment.
fn orphans(entries: &[Entry], segments: &BTreeMap<i64, u64>) -> Vec<String> {
    let of_segment = |name: &str| SegmentFile::parse(name).map(|(base, _)| base);
    let names = entries.iter().map(|entry| &entry.name);
    let lonely =
        |name: &&String| of_segment(name).is_some_and(|base| !segments.contains_key(&base));
    names.filter(lonely).cloned().collect()
}

/// Segments in the middle of the log that have no byte: there was no room for them, and the log
/// went on in the one before.
fn take_unborn(segments: &mut BTreeMap<i64, u64>) -> Vec<String> {
    let newest = segments.last_key_value().map(|(base, _)| *base);
    let unborn = |base: &i64, length: &mut u64| *length == 0 && Some(*base) != newest;
    let unborn: Vec<i64> = segments.extract_if(.., unborn).map(|(base, _)| base).collect();
    unborn.into_iter().map(|base| SegmentFile::Log.name(base)).collect()
}

/// Segments that end at or before the log's start: a deletion had begun with them, and a power
/// loss kept some of their names. Between them others may be missing, which is no damage.
fn take_outlived(segments: &mut BTreeMap<i64, u64>, log_start: i64) -> Vec<String> {
    let first = segments.range(..=log_start).next_back().map_or(i64::MIN, |(base, _)| *base);
    let outlived: Vec<i64> = segments.extract_if(..first, |_, _| true).map(|it| it.0).collect();
    outlived.iter().flat_map(|base| SegmentFile::ALL.map(|file| file.name(*base))).collect()
}

/// Whether a directory without segments is what a creation left that was cut short: of the two
/// files that it makes, a power loss may keep either.
pub async fn is_beginning(dir: &Path) -> Result<bool, FsError> {
    let whose = match runtime::fs::read(dir.join(IDENTITY_FILE_NAME)).await {
        Ok(file) => Identity::from_file(&file),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(IdentityError::Missing),
        Err(error) => return Err(error),
    };
    if !matches!(whose, Err(IdentityError::Missing | IdentityError::Damaged)) {
        return Ok(false);
    }
    match runtime::fs::read(dir.join(CHECKPOINT_FILE_NAME)).await {
        Ok(file) => Ok(match Checkpoint::newest(&file) {
            Ok(Newest { checkpoint, .. }) => {
                (checkpoint.log_start_offset, checkpoint.recovery_point.offset) == (0, 0)
            }
            Err(error) => matches!(error, CheckpointError::Damaged),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

async fn check_identity(dir: &Path, identity: Identity, exists: bool) -> Result<(), OpenError> {
    let path = dir.join(IDENTITY_FILE_NAME);
    if !exists {
        return Err(OpenError::Identity { path, error: IdentityError::Missing });
    }
    let file = runtime::fs::read(&path).await?;
    let found = match Identity::from_file(&file) {
        Ok(found) => found,
        Err(error) => return Err(OpenError::Identity { path, error }),
    };
    if found != identity {
        let (expected, found) = (identity.topic_id, found.topic_id);
        return Err(OpenError::Foreign { path: dir.to_path_buf(), expected, found });
    }
    Ok(())
}

async fn read_checkpoint(
    dir: &Path,
    identity: Identity,
    exists: bool,
) -> Result<Option<Newest>, OpenError> {
    if !exists {
        return Ok(None);
    }
    let path = dir.join(CHECKPOINT_FILE_NAME);
    let file = runtime::fs::read(&path).await?;
    match Checkpoint::newest(&file) {
        Ok(newest) => {
            let found = newest.checkpoint.topic_id;
            if found != identity.topic_id.0 {
                return Err(OpenError::Foreign {
                    path,
                    expected: identity.topic_id,
                    found: protocol::Uuid(found),
                });
            }
            Ok(Some(newest))
        }
        Err(CheckpointError::Damaged) => Ok(None),
        Err(error) => Err(OpenError::Checkpoint { path, error }),
    }
}

/// Without a checkpoint the whole log is read.
fn guessed_checkpoint(identity: Identity, segments: &BTreeMap<i64, u64>) -> Checkpoint {
    let first = segments.first_key_value().map_or(0, |(base, _)| *base);
    Checkpoint {
        topic_id: identity.topic_id.0,
        partition: identity.partition,
        clean: false,
        possibly_short: false,
        relaxed: false,
        thinned: false,
        incarnation: 0,
        log_start_offset: first,
        recovery_point: RecoveryPoint::at_start(first),
        producers_offset: -1,
        journal: None,
    }
}

const KNOWN: [&str; 6] = [
    IDENTITY_FILE_NAME,
    CHECKPOINT_FILE_NAME,
    EPOCHS_FILE_NAME,
    REGISTER_FILE_NAME,
    CLEANED_TO_FILE_NAME,
    LEFTOVER_FILE_NAME,
];
