//! The metadata log of this host: the quorum's value, its files, and the image of what is
//! committed. Everything that is decided becomes true here and nowhere else.
//!
//! On disk, in `<data>/metadata/`: `snapshot` (the quorum's, with the encoded image), `vote`, and
//! the entry files of `storage::entry_log`. A host alone is a quorum of one voter and runs the
//! same rounds as a larger one; its messages have nobody to go to.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use metadata::image::{ApplyError, SnapshotError};
use metadata::record::{decode_batch, encode_batch};
use metadata::{CodecError, Image, MetadataRecord};
use protocol::HostId;
use quorum::{
    Committed, Content, DecodeError, HardState, LogEntry, MemberId, Members, Persisted, Quorum,
    Settings, Snapshot, Status, Timing,
};
use runtime::fs::{self, FsError};
use runtime::time;
use storage::entry_log::{
    Ballast, Entry, EntryLog, EntryLogOpenError, EntryLogOptions, SealedFileError, SnapshotFile,
    StateFile,
};

/// Why the metadata could not be read. A host does not start over it: starting empty would delete
/// every topic.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Files(#[from] FsError),
    #[error(transparent)]
    Entries(#[from] EntryLogOpenError),
    #[error(transparent)]
    Sealed(#[from] SealedFileError),
    #[error("a quorum record is unreadable: {0}")]
    Quorum(#[from] DecodeError),
    #[error("the quorum cannot start from what is stored: {0}")]
    Start(#[from] quorum::StartError),
    #[error("the snapshot of the image is unreadable: {0}")]
    Image(#[from] SnapshotError),
    #[error("entry {index} is unreadable: {why}")]
    Records { index: u64, why: CodecError },
    #[error("entry {index} contradicts what was committed before: {why}")]
    Apply { index: u64, why: ApplyError },
}

/// The log, open for the one task that commits to it.
pub struct MetadataLog {
    quorum: Quorum,
    entries: EntryLog,
    vote: StateFile,
    ballast: Ballast,
    snapshot: SnapshotFile,
    voted: HardState,
    image: Arc<Image>,
    /// `used_bytes` of the entry log when the last snapshot was taken.
    bytes_at_snapshot: u64,
}

impl MetadataLog {
    /// Opens or begins the log; returns when this host leads and all that is committed is in the
    /// image.
    pub async fn open(data_dir: &Path, host: HostId) -> Result<MetadataLog, OpenError> {
        let dir = data_dir.join(DIRECTORY);
        fs::create_dir_all(&dir).await?;
        fs::sync_dir(data_dir).await?;
        let (vote, snapshot) =
            (StateFile::at(dir.join(VOTE)), SnapshotFile::at(dir.join(SNAPSHOT)));
        let id = member(host);
        let (persisted, entries) = load(&dir, id, &vote, &snapshot).await?;
        let image = match persisted.snapshot.data.is_empty() {
            true => Image::default(),
            false => Image::decode(&persisted.snapshot.data)?,
        };
        let settings = Settings { id, seed: time::random_u64(), timing: Timing::default() };
        let mut log = MetadataLog {
            voted: persisted.hard_state,
            quorum: Quorum::new(&settings, persisted)?,
            bytes_at_snapshot: 0,
            entries,
            vote,
            ballast: Ballast::at(dir.join(BALLAST)),
            snapshot,
            image: Arc::new(image),
        };
        while log.round().await? {}
        log.keep_reserve().await?;
        Ok(log)
    }

    /// What is committed.
    pub fn image(&self) -> Arc<Image> {
        self.image.clone()
    }

    pub fn status(&self) -> Status {
        self.quorum.status()
    }

    /// Commits the records as one entry. When this returns the image contains them, and so does
    /// the disk.
    pub async fn commit(&mut self, records: Vec<MetadataRecord>) {
        let payload = Bytes::from(encode_batch(&records));
        let proposal = match self.quorum.propose(payload) {
            Ok(proposal) => proposal,
            Err(why) => runtime::abort(&format!("the metadata quorum refused a decision: {why}")),
        };
        while self.quorum.applied().index < proposal.index {
            match self.round().await {
                Ok(true) => {}
                Ok(false) => runtime::abort("the metadata quorum lost its only leader"),
                Err(why) => runtime::abort(&format!("cannot commit metadata: {why}")),
            }
        }
        if let Err(why) = self.entries.keep_spares().await {
            runtime::abort(&format!("cannot allocate space for metadata: {why}"));
        }
        if let Err(why) = self.maybe_snapshot().await {
            runtime::abort(&format!("cannot store a metadata snapshot: {why}"));
        }
    }

    pub async fn close(self) {
        if let Err(why) = self.entries.close().await {
            tracing::warn!(%why, "closing the metadata log");
        }
    }

    /// One round of the quorum: store, then apply. False when there was nothing to do.
    async fn round(&mut self) -> Result<bool, OpenError> {
        let Some(output) = self.quorum.ready() else { return Ok(false) };
        if let Some(snapshot) = &output.snapshot {
            self.snapshot.store(&snapshot.encode()).await?;
            if snapshot.index > self.entries.last_index() {
                self.entries.restart_at(snapshot.index + 1).await?;
            }
        }
        // Before the entries: a crash in between must not leave entries of a term unheard of.
        if let Some(state) = output.hard_state {
            // A commit index alone is learnt again from the quorum; a vote is not.
            if (state.term, state.vote) != (self.voted.term, self.voted.vote) {
                self.store_vote(&state).await?;
            }
            self.voted = state;
        }
        let entries: Vec<Entry> = output.entries.iter().map(stored).collect();
        runtime::reached("metadata: vote stored");
        self.entries.append(&entries).await?;
        runtime::reached("metadata: entries stored");
        let advanced = self.quorum.advance();
        if let Some(snapshot) = advanced.snapshot {
            self.image = Arc::new(Image::decode(&snapshot.data)?);
        }
        for committed in advanced.committed {
            self.apply(committed)?;
        }
        Ok(true)
    }

    /// On a full disk as well: a host could not even start on it otherwise.
    async fn store_vote(&self, state: &HardState) -> Result<(), FsError> {
        match self.vote.store(&state.encode()).await {
            Err(why) if why.is_full() => {}
            stored => return stored,
        }
        self.ballast.give_up().await?;
        self.vote.store(&state.encode()).await?;
        self.ballast.keep().await
    }

    /// Space for what has to go on when the disk is full: decisions, first of all deletions.
    async fn keep_reserve(&mut self) -> Result<(), FsError> {
        self.entries.keep_spares().await?;
        self.ballast.keep().await
    }

    fn apply(&mut self, committed: Committed) -> Result<(), OpenError> {
        let index = committed.index;
        let Content::Payload(payload) = committed.content else { return Ok(()) };
        let records = decode_batch(&payload).map_err(|why| OpenError::Records { index, why })?;
        let image = self.image.apply(&records, index);
        self.image = Arc::new(image.map_err(|why| OpenError::Apply { index, why })?);
        Ok(())
    }

    /// Replaces a long log by a snapshot of what it says.
    async fn maybe_snapshot(&mut self) -> Result<(), OpenError> {
        if self.entries.used_bytes() - self.bytes_at_snapshot < SNAPSHOT_AFTER_BYTES {
            return Ok(());
        }
        let snapshot = self.quorum.snapshot_of(Bytes::from(self.image.encode()));
        match self.snapshot.store(&snapshot.encode()).await {
            // The log serves as well; the next commit tries again.
            Err(why) if why.is_full() => return Ok(()),
            stored => stored?,
        }
        runtime::reached("metadata: snapshot stored");
        let index = self.quorum.compact(snapshot);
        self.entries.compact(index).await?;
        runtime::reached("metadata: log shortened");
        self.bytes_at_snapshot = self.entries.used_bytes();
        Ok(())
    }
}

/// What the disk has, or the first state of a cluster of this host alone.
async fn load(
    dir: &Path,
    id: MemberId,
    vote: &StateFile,
    snapshot: &SnapshotFile,
) -> Result<(Persisted, EntryLog), OpenError> {
    let first = Persisted::bootstrap(Members::voters([id]), Bytes::new());
    let found = match snapshot.load().await? {
        Some(bytes) => Snapshot::decode(bytes.into())?,
        None => {
            snapshot.store(&first.snapshot.encode()).await?;
            first.snapshot.clone()
        }
    };
    let voted = vote.load().await?;
    let begun = voted.is_some();
    let hard_state = match voted {
        Some(bytes) => HardState::decode(bytes.into())?,
        None => first.hard_state,
    };
    let options = EntryLogOptions::default();
    let opened = EntryLog::open(dir, options, found.index).await;
    let (entries, loaded) = match opened {
        Ok((entries, loaded)) => (entries, loaded.entries),
        // The very first start was cut short: nobody voted before there was an entry log.
        Err(EntryLogOpenError::Missing { .. }) if !begun && found.index == first.snapshot.index => {
            (EntryLog::create(dir, options, found.index + 1).await?, Vec::new())
        }
        Err(why) => return Err(why.into()),
    };
    let decoded = loaded.into_iter().map(|entry| LogEntry::decode(entry.payload));
    let persisted = Persisted {
        hard_state,
        snapshot: found,
        entries: decoded.collect::<Result<_, DecodeError>>()?,
    };
    Ok((persisted, entries))
}

fn stored(entry: &LogEntry) -> Entry {
    Entry { index: entry.index, payload: entry.encode() }
}

/// Member ids are not zero; host ids may be.
fn member(host: HostId) -> MemberId {
    match MemberId::new(host.0 as u64 + 1) {
        Some(id) => id,
        None => unreachable!("host ids are not negative"),
    }
}

const DIRECTORY: &str = "metadata";
const VOTE: &str = "vote";
const SNAPSHOT: &str = "snapshot";
const BALLAST: &str = "ballast";
/// A start reads at most about this much log besides the snapshot.
const SNAPSHOT_AFTER_BYTES: u64 = 8 << 20;
