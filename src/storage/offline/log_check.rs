//! The directory of one partition, file by file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::fault::{Fault, FaultKind};
use super::index_check::{IndexCheck, IndexFile};
use super::segment_check::{SegmentCheck, Surroundings};
use super::window::Window;
use super::{OfflineError, VerifyOptions};
use crate::checkpoint::{
    CHECKPOINT_BYTES, CHECKPOINT_FILE_NAME, Checkpoint, CheckpointError, FIELD_BYTES, SLOT_BYTES,
};
use crate::compaction::exchange::{CLEANED_SUFFIX, EXCHANGE_FILE_NAME, Exchange};
use crate::directory::{IDENTITY_FILE_NAME, Identity, IdentityError, SegmentFile};
use crate::envelope::EnvelopeError;
use crate::epochs::{EPOCHS_FILE_NAME, LeaderEpochs};
use crate::index::{OffsetIndex, TimeIndex};
use crate::journal::{LEFTOVER_FILE_NAME, Leftover};
use crate::log::parse_snapshot_name;
use crate::producer::ProducerSnapshot;
use crate::segment::{Chain, REGISTER_FILE_NAME, RegisteredSegment, TrailerSalt, register};

/// A log that was looked at.
#[derive(Debug)]
pub(super) struct LogCheck {
    pub dir: PathBuf,
    pub identity: Option<Identity>,
    pub checkpoint: Option<(u64, Checkpoint)>,
    /// Position behind the last batch of each segment, by base offset.
    pub segments: BTreeMap<i64, u64>,
    /// Behind the last batch that is there.
    pub end_offset: i64,
    pub batches: u64,
    pub records: u64,
    pub bytes: u64,
    pub faults: Vec<Fault>,
    epochs: Option<LeaderEpochs>,
    registered: BTreeMap<i64, RegisteredSegment>,
    /// Segments whose batches another one has already, by an exchange that is not finished.
    replaced: Vec<i64>,
    names: Vec<String>,
}

impl LogCheck {
    /// Reads everything that is in `dir`.
    pub fn of(dir: &Path, options: VerifyOptions) -> Result<LogCheck, OfflineError> {
        let mut check = LogCheck {
            dir: dir.to_owned(),
            identity: None,
            checkpoint: None,
            segments: BTreeMap::new(),
            end_offset: 0,
            batches: 0,
            records: 0,
            bytes: 0,
            faults: Vec::new(),
            epochs: None,
            registered: BTreeMap::new(),
            replaced: Vec::new(),
            names: names_in(dir)?,
        };
        check.read_identity()?;
        check.read_checkpoint()?;
        check.read_epochs()?;
        check.read_register()?;
        check.read_producers()?;
        check.read_exchange()?;
        check.read_segments(options)?;
        check.read_leftover()?;
        check.compare_end();
        Ok(check)
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, OfflineError> {
        let path = self.dir.join(name);
        fs::read(&path).map_err(OfflineError::io("read", &path))
    }

    /// A directory that has neither identity nor checkpoint of ours is looked at as a copy of a
    /// log: its segments and their indexes.
    fn is_ours(&self) -> bool {
        self.has(CHECKPOINT_FILE_NAME)
    }

    fn read_identity(&mut self) -> Result<(), OfflineError> {
        if !self.is_ours() && !self.has(IDENTITY_FILE_NAME) {
            return Ok(());
        }
        let read = match self.has(IDENTITY_FILE_NAME) {
            true => Identity::from_file(&self.read(IDENTITY_FILE_NAME)?),
            false => Err(IdentityError::Missing),
        };
        match read {
            Ok(identity) => self.identity = Some(identity),
            Err(error @ IdentityError::Format(_)) => {
                let path = self.dir.join(IDENTITY_FILE_NAME);
                return Err(OfflineError::Newer { path, reason: error.to_string() });
            }
            Err(_) if !self.is_ours() => {}
            Err(error) => self.fault(IDENTITY_FILE_NAME, 0, FaultKind::Identity(error)),
        }
        Ok(())
    }

    fn read_checkpoint(&mut self) -> Result<(), OfflineError> {
        if !self.is_ours() {
            return Ok(());
        }
        let file = self.read(CHECKPOINT_FILE_NAME)?;
        if file.len() as u64 != CHECKPOINT_BYTES {
            let kind = FaultKind::Checkpoint(CheckpointError::Damaged);
            self.fault(CHECKPOINT_FILE_NAME, file.len() as u64, kind);
        }
        for (number, slot) in file.chunks(SLOT_BYTES).enumerate() {
            let position = (number * SLOT_BYTES) as u64;
            // A slot that was never written is all zeros.
            if slot.iter().all(|byte| *byte == 0) {
                continue;
            }
            match Checkpoint::decode(slot) {
                Ok(read) => {
                    if self.checkpoint.is_none_or(|known| known.0 < read.0) {
                        self.checkpoint = Some(read);
                    }
                    if slot[FIELD_BYTES..].iter().any(|byte| *byte != 0) {
                        self.fault(CHECKPOINT_FILE_NAME, position, FaultKind::CheckpointStray);
                    }
                }
                Err(error @ CheckpointError::Format { .. }) => {
                    let path = self.dir.join(CHECKPOINT_FILE_NAME);
                    return Err(OfflineError::Newer { path, reason: error.to_string() });
                }
                Err(error) => {
                    self.fault(CHECKPOINT_FILE_NAME, position, FaultKind::Checkpoint(error));
                }
            }
        }
        if self.checkpoint.is_none() && !file.is_empty() && self.faults.is_empty() {
            let kind = FaultKind::Checkpoint(CheckpointError::Damaged);
            self.fault(CHECKPOINT_FILE_NAME, 0, kind);
        }
        if let (Some(identity), Some((_, checkpoint))) = (self.identity, self.checkpoint)
            && (checkpoint.topic_id, checkpoint.partition)
                != (identity.topic_id.0, identity.partition)
        {
            self.fault(CHECKPOINT_FILE_NAME, 0, FaultKind::ForeignCheckpoint);
        }
        Ok(())
    }

    fn read_epochs(&mut self) -> Result<(), OfflineError> {
        if !self.has(EPOCHS_FILE_NAME) {
            if self.checkpoint.is_some_and(|(_, c)| c.recovery_point.epoch >= 0) {
                self.fault(EPOCHS_FILE_NAME, 0, FaultKind::EpochsMissing);
            }
            return Ok(());
        }
        match LeaderEpochs::from_file(&self.read(EPOCHS_FILE_NAME)?) {
            Ok(epochs) => self.epochs = Some(epochs),
            Err(error) => {
                self.refuse_newer(EPOCHS_FILE_NAME, &error)?;
                self.fault(EPOCHS_FILE_NAME, 0, FaultKind::Epochs(error));
            }
        }
        Ok(())
    }

    fn read_register(&mut self) -> Result<(), OfflineError> {
        if !self.has(REGISTER_FILE_NAME) {
            return Ok(());
        }
        match register::from_file(&self.read(REGISTER_FILE_NAME)?) {
            Ok(segments) => {
                let by_base = segments.into_iter().map(|segment| (segment.base_offset, segment));
                self.registered = by_base.collect();
            }
            Err(error) => {
                self.refuse_newer(REGISTER_FILE_NAME, &error)?;
                self.fault(REGISTER_FILE_NAME, 0, FaultKind::Register(error));
            }
        }
        Ok(())
    }

    fn read_producers(&mut self) -> Result<(), OfflineError> {
        let mut wanted = self.checkpoint.map(|(_, c)| c.producers_offset).filter(|o| *o >= 0);
        for name in self.names.clone() {
            let Some(expected) = parse_snapshot_name(&name) else { continue };
            wanted = wanted.filter(|wanted| *wanted != expected);
            match ProducerSnapshot::from_file(&self.read(&name)?) {
                Ok(snapshot) if snapshot.end_offset != expected => {
                    let found = snapshot.end_offset;
                    self.fault(&name, 0, FaultKind::ProducersName { expected, found });
                }
                Ok(_) => {}
                Err(error) => {
                    self.refuse_newer(&name, &error)?;
                    self.fault(&name, 0, FaultKind::Producers(error));
                }
            }
        }
        if wanted.is_some() {
            self.fault(CHECKPOINT_FILE_NAME, 0, FaultKind::ProducersMissing);
        }
        Ok(())
    }

    /// Until the new segment has its name, the old ones count; then they are only in the way.
    fn read_exchange(&mut self) -> Result<(), OfflineError> {
        if !self.has(EXCHANGE_FILE_NAME) {
            return Ok(());
        }
        match Exchange::from_file(&self.read(EXCHANGE_FILE_NAME)?) {
            Ok(exchange) => {
                self.fault(EXCHANGE_FILE_NAME, 0, FaultKind::ExchangeUnfinished);
                let base = exchange.segment.base_offset;
                let waits = format!("{}{CLEANED_SUFFIX}", SegmentFile::Log.name(base));
                if !self.has(&waits) {
                    self.replaced = exchange.replaced[1..].to_vec();
                    self.registered.remove(&base);
                }
            }
            Err(error) => {
                self.refuse_newer(EXCHANGE_FILE_NAME, &error)?;
                self.fault(EXCHANGE_FILE_NAME, 0, FaultKind::Exchange(error));
            }
        }
        Ok(())
    }

    fn read_leftover(&mut self) -> Result<(), OfflineError> {
        if !self.has(LEFTOVER_FILE_NAME) {
            return Ok(());
        }
        let reason = match Leftover::from_file(&self.read(LEFTOVER_FILE_NAME)?) {
            Ok(leftover) => leftover.reason,
            Err(error) => {
                self.refuse_newer(LEFTOVER_FILE_NAME, &error)?;
                error.to_string()
            }
        };
        self.fault(LEFTOVER_FILE_NAME, 0, FaultKind::Undestaged { reason });
        Ok(())
    }

    fn read_segments(&mut self, options: VerifyOptions) -> Result<(), OfflineError> {
        let segment = |name: &String| match SegmentFile::parse(name) {
            Some((base, SegmentFile::Log)) => Some(base),
            _ => None,
        };
        let mut bases: Vec<i64> = self.names.iter().filter_map(segment).collect();
        bases.retain(|base| !self.replaced.contains(base));
        bases.sort_unstable();
        let checkpoint = self.checkpoint.map(|(_, checkpoint)| checkpoint);
        let log_start = checkpoint.map(|checkpoint| checkpoint.log_start_offset);
        let point = checkpoint.map(|checkpoint| checkpoint.recovery_point);
        let Some(first) = bases.first().copied() else {
            self.end_offset = log_start.unwrap_or(0);
            return Ok(());
        };
        if let Some(log_start) = log_start.filter(|log_start| *log_start < first) {
            let name = SegmentFile::Log.name(log_start);
            self.fault_at(&name, 0, Some(log_start), FaultKind::SegmentMissing);
        }
        let thinned = checkpoint.is_some_and(|checkpoint| checkpoint.thinned);
        let options = VerifyOptions { gaps: options.gaps || thinned, ..options };
        let mut chain = Chain { next_offset: first, epoch: -1, gaps: options.gaps };
        for (number, base) in bases.iter().copied().enumerate() {
            if base != chain.next_offset && !(options.gaps && base > chain.next_offset) {
                let (from, to) = (chain.next_offset, base - 1);
                let kind = FaultKind::OffsetsMissing { from, to };
                self.fault_at(&SegmentFile::Log.name(base), 0, Some(from), kind);
            }
            chain.next_offset = base;
            let next_base = bases.get(number + 1).copied();
            let around = Surroundings {
                next_base,
                epochs: self.epochs.as_ref(),
                epochs_to: point.map_or(0, |point| point.offset),
                salt: self.identity.map(|identity| {
                    TrailerSalt::new(identity.topic_id.0, identity.partition, base)
                }),
                options,
            };
            let window = Window::open(&self.dir.join(SegmentFile::Log.name(base)))?;
            let index = self.index_check(base, next_base, window.length())?;
            let check = SegmentCheck::new(window, chain, around, Some(index));
            let (found, behind) = check.run()?;
            chain = behind;
            self.segments.insert(base, found.end);
            self.batches += found.batches;
            self.records += found.records;
            self.bytes += found.end;
            self.faults.extend(found.faults);
        }
        self.end_offset = chain.next_offset;
        Ok(())
    }

    /// The checksums of a sealed segment's indexes are in the register, that of the entries before
    /// the recovery point in the checkpoint. Entries behind it were promised to nobody, but those
    /// that are there should be right.
    fn index_check(
        &self,
        base: i64,
        next_base: Option<i64>,
        log_bytes: u64,
    ) -> Result<IndexCheck, OfflineError> {
        let point = self.checkpoint.map(|(_, checkpoint)| checkpoint.recovery_point);
        let point = point.filter(|point| base >= point.segment_base && next_base.is_none());
        let counted = |entries: u32, entry_bytes: usize| match point {
            Some(point) if base == point.segment_base => Some(entries as usize * entry_bytes),
            Some(_) => Some(0),
            None => None,
        };
        let (offset_entries, time_entries) =
            point.map_or((0, 0), |point| (point.offset_entries, point.time_entries));
        let sums = match point {
            Some(point) => Some(point.index_sums).filter(|_| base == point.segment_base),
            None => self.registered.get(&base).map(|registered| registered.sums),
        };
        let offsets = self.read_index(
            SegmentFile::OffsetIndex.name(base),
            counted(offset_entries, OffsetIndex::ENTRY_BYTES),
            sums.map(|sums| sums.offsets),
        )?;
        let times = self.read_index(
            SegmentFile::TimeIndex.name(base),
            counted(time_entries, TimeIndex::ENTRY_BYTES),
            sums.map(|sums| sums.times),
        )?;
        Ok(IndexCheck::new(base, log_bytes, offsets, times))
    }

    /// An index file, of which `counted` bytes must be there, or all; `sum` is their checksum.
    fn read_index(
        &self,
        name: String,
        counted: Option<usize>,
        sum: Option<u32>,
    ) -> Result<IndexFile, OfflineError> {
        let path = self.dir.join(&name);
        if !self.has(&name) {
            let required = self.is_ours() && counted != Some(0);
            return Ok(IndexFile { path, bytes: None, required, changed: false });
        }
        let bytes = self.read(&name)?;
        let summed = bytes.get(..counted.unwrap_or(bytes.len()));
        let is_right = |sum| summed.is_some_and(|summed| crc32c::crc32c(summed) == sum);
        let changed = sum.is_some_and(|sum| !is_right(sum));
        Ok(IndexFile { path, bytes: Some(bytes), required: true, changed })
    }

    /// The log reaches at least as far as its checkpoint says.
    fn compare_end(&mut self) {
        let Some((_, checkpoint)) = self.checkpoint else { return };
        let point = checkpoint.recovery_point;
        let short = self.end_offset < point.offset;
        let longer = checkpoint.clean && self.end_offset > point.offset;
        if !short && !longer {
            return;
        }
        let last = self.segments.last_key_value().map_or(point.segment_base, |(base, _)| *base);
        let end = self.segments.get(&last).copied().unwrap_or(0);
        let name = SegmentFile::Log.name(last);
        let kind = FaultKind::EndsElsewhere { expected: point.position };
        let offset = Some(self.end_offset);
        self.fault_at(&name, end, offset, kind);
    }

    fn refuse_newer(&self, name: &str, error: &EnvelopeError) -> Result<(), OfflineError> {
        match error.is_damage() {
            true => Ok(()),
            false => {
                Err(OfflineError::Newer { path: self.dir.join(name), reason: error.to_string() })
            }
        }
    }

    fn fault(&mut self, name: &str, position: u64, kind: FaultKind) {
        self.fault_at(name, position, None, kind);
    }

    fn fault_at(&mut self, name: &str, position: u64, offset: Option<i64>, kind: FaultKind) {
        self.faults.push(Fault { file: self.dir.join(name), position, offset, kind });
    }
}

/// The names in a directory, in order.
pub(super) fn names_in(dir: &Path) -> Result<Vec<String>, OfflineError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(OfflineError::io("list", dir))? {
        let entry = entry.map_err(OfflineError::io("list", dir))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}
