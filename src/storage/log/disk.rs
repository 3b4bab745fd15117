//! Batches of one segment, from the shared windows of its file.
//!
//! Law: nothing is given out whose checksum was not looked at in the very bytes that are given
//! out. Once is enough: a window does not change, and remembers what was looked at.

use std::rc::Rc;

use bytes::Bytes;
use protocol::batch::BatchHeader;
use protocol::batch::header::{CRC_AT, HEADER_BYTES};
use runtime::local::Lease;

use super::LogInner;
use crate::background;
use crate::errors::ReadError;
use crate::segment::BLOCK;
use crate::windows::{Found, Reading, WINDOW_BYTES, Window, WindowKey, window_cost};

/// Reads batches of `segment` before position `limit`.
pub struct DiskReader {
    log: Rc<LogInner>,
    segment: i64,
    limit: u64,
    /// The exchanges before it began: after another one, its windows are of the wrong file.
    exchanges: u64,
    current: Option<Rc<Window>>,
    /// Windows of this reader are part of an answer: it must not wait for memory any more, which
    /// others may hold in the same way.
    holds: bool,
}

/// Why a reader gives nothing.
pub enum DiskError {
    Read(ReadError),
    /// Memory is short, and the reader holds some.
    Short,
    /// Another segment has taken the place of the one that is read.
    Exchanged,
}

impl DiskError {
    /// For those who never hold a window, whom memory may keep waiting.
    pub fn into_read(self) -> ReadError {
        match self {
            DiskError::Read(error) => error,
            DiskError::Short => unreachable!("only a reader that holds windows runs short"),
            DiskError::Exchanged => unreachable!("whoever cuts a log keeps the cleaner off"),
        }
    }
}

impl From<ReadError> for DiskError {
    fn from(error: ReadError) -> DiskError {
        DiskError::Read(error)
    }
}

/// A run of bytes in one window.
struct Piece {
    window: Rc<Window>,
    from: u64,
    to: u64,
}

/// Batches that follow each other, as runs of bytes in windows.
#[derive(Default)]
pub struct Pieces(Vec<Piece>);

impl Pieces {
    fn push(&mut self, piece: Piece) {
        match self.0.last_mut() {
            Some(last) if last.to == piece.from && Rc::ptr_eq(&last.window, &piece.window) => {
                last.to = piece.to;
            }
            _ => self.0.push(piece),
        }
    }

    pub fn into_slices(self) -> Vec<Bytes> {
        self.0.iter().map(|piece| piece.window.slice(piece.from, piece.to)).collect()
    }
}

impl DiskReader {
    pub fn new(log: &Rc<LogInner>, segment: i64, limit: u64) -> DiskReader {
        let (log, exchanges) = (Rc::clone(log), log.exchanges());
        DiskReader { log, segment, limit, exchanges, current: None, holds: false }
    }

    /// Asks for the windows of `from..to` without waiting for them, as far as memory is free.
    pub fn read_ahead(&self, from: u64, to: u64) {
        let to = to.min(self.limit);
        if from >= to {
            return;
        }
        for number in from / WINDOW_BYTES as u64..=(to - 1) / WINDOW_BYTES as u64 {
            let needed_to = window_end(number).min(self.limit);
            let windows = &self.log.storage.memory().windows;
            if windows.has(self.key(number), needed_to) {
                continue;
            }
            let cost = window_cost(number, self.limit);
            let Some(lease) = self.log.storage.memory().try_lease(cost) else { return };
            if let Found::Missing(reading) = windows.find(self.key(number), needed_to, self.limit) {
                self.start(number, reading, Some(lease));
            }
        }
    }

    /// The header at `position`.
    pub async fn header(&mut self, position: u64) -> Result<BatchHeader, DiskError> {
        if position + HEADER_BYTES as u64 > self.limit {
            return Err(self.corrupt(position, "the segment ends inside a header").into());
        }
        let window = self.window(position, position + 1).await?;
        let first_end = window.end().min(position + HEADER_BYTES as u64);
        let mut head = [0; HEADER_BYTES];
        let first = (first_end - position) as usize;
        head[..first].copy_from_slice(window.part(position, first_end));
        if first < HEADER_BYTES {
            let end = position + HEADER_BYTES as u64;
            let window = self.window(first_end, end).await?;
            head[first..].copy_from_slice(window.part(first_end, end));
        }
        let header = BatchHeader::parse_prefix(&head)
            .map_err(|error| self.corrupt(position, &error.to_string()))?;
        if position + header.size_in_bytes() as u64 > self.limit {
            return Err(self
                .corrupt(position, "the batch goes on behind the segment's end")
                .into());
        }
        Ok(header)
    }

    /// Appends the batch at `position` to `pieces`, if its checksum is right.
    pub async fn batch(
        &mut self,
        position: u64,
        header: &BatchHeader,
        pieces: &mut Pieces,
    ) -> Result<(), DiskError> {
        let end = position + header.size_in_bytes() as u64;
        let mut found = Vec::with_capacity(2);
        let mut at = position;
        while at < end {
            let window = self.window(at, at + 1).await?;
            let to = window.end().min(end);
            if to <= at {
                return Err(self.corrupt(at, "the file is shorter than the log").into());
            }
            found.push(Piece { window, from: at, to });
            self.holds = true;
            at = to;
        }
        if !found.iter().all(|piece| piece.window.is_checked(piece.from, piece.to)) {
            self.check(position, header, &found)?;
        }
        found.into_iter().for_each(|piece| pieces.push(piece));
        Ok(())
    }

    fn check(&self, position: u64, header: &BatchHeader, found: &[Piece]) -> Result<(), ReadError> {
        let checked_from = position + CHECKED_AT;
        let mut crc = 0;
        for Piece { window, from, to } in found {
            if *to > checked_from {
                crc = crc32c::crc32c_append(crc, window.part(checked_from.max(*from), *to));
            }
        }
        if crc != header.crc {
            return Err(self.corrupt(position, "its checksum does not match its bytes"));
        }
        self.log.storage.stats().checked_bytes.add(header.size_in_bytes() as u64);
        found.iter().for_each(|piece| piece.window.on_checked(piece.from, piece.to));
        Ok(())
    }

    pub fn corrupt(&self, position: u64, reason: &str) -> ReadError {
        self.log.corrupt(self.segment, position, reason.to_owned())
    }

    /// The one batch at `position`, read for itself. The caller holds no window any more.
    pub async fn batch_alone(
        &mut self,
        position: u64,
        header: &BatchHeader,
    ) -> Result<Bytes, ReadError> {
        self.current = None;
        let size = header.size_in_bytes();
        let lease = self.log.storage.memory().lease(size.next_multiple_of(BLOCK) + BLOCK).await;
        let file = self.log.file_for_reading(self.segment).await?;
        let block = file.read_at(position, size).await?.holding(lease);
        if self.log.exchanges() != self.exchanges {
            // Whoever asked looks at that, too, and asks again.
            return Ok(Bytes::new());
        }
        if block.len() < size {
            return Err(self.corrupt(position, "the file is shorter than the log"));
        }
        if crc32c::crc32c(&block[CHECKED_AT as usize..]) != header.crc {
            return Err(self.corrupt(position, "its checksum does not match its bytes"));
        }
        Ok(block.to_bytes())
    }

    /// The window that holds `position`, good at least up to `needed_to`, which lies in it.
    async fn window(&mut self, position: u64, needed_to: u64) -> Result<Rc<Window>, DiskError> {
        if let Some(window) = &self.current
            && self.log.exchanges() == self.exchanges
            && window.start() <= position
            && needed_to <= window.end()
        {
            return Ok(Rc::clone(window));
        }
        self.current = None;
        self.check_segment()?;
        let number = position / WINDOW_BYTES as u64;
        // As much as there is, so that a growing segment does not make it read twice.
        let needed_to = needed_to.max(window_end(number).min(self.limit));
        let memory = self.log.storage.memory();
        let mut lease = None;
        if self.holds && !memory.windows.has(self.key(number), needed_to) {
            let cost = window_cost(number, self.limit);
            lease = Some(memory.try_lease(cost).ok_or(DiskError::Short)?);
        }
        let reading = match memory.windows.find(self.key(number), needed_to, self.limit) {
            Found::Ready(window) => {
                self.current = Some(Rc::clone(&window));
                return Ok(window);
            }
            Found::Wait(reading) if self.holds && !reading.is_leased() => {
                return Err(DiskError::Short);
            }
            Found::Wait(reading) => reading,
            Found::Missing(reading) => {
                self.start(number, Rc::clone(&reading), lease);
                reading
            }
        };
        let window = reading.wait().await;
        self.check_segment()?;
        let window = window.map_err(ReadError::Io)?;
        if window.end() < needed_to {
            return Err(self.corrupt(window.end(), "the file is shorter than the log").into());
        }
        self.current = Some(Rc::clone(&window));
        Ok(window)
    }

    fn check_segment(&self) -> Result<(), DiskError> {
        if self.log.exchanges() == self.exchanges { Ok(()) } else { Err(DiskError::Exchanged) }
    }

    /// Reads a window in a task of its own: its readers may go away, the read may not.
    fn start(&self, number: u64, reading: Rc<Reading>, lease: Option<Lease>) {
        let (log, segment, key) = (Rc::clone(&self.log), self.segment, self.key(number));
        let cost = window_cost(number, self.limit);
        background::start(async move {
            let memory = log.storage.memory();
            let lease = match lease {
                Some(lease) => lease,
                None => memory.lease(cost).await,
            };
            reading.on_leased();
            let read = match log.file_for_reading(segment).await {
                Ok(file) => {
                    let _turn = log.storage.disk_turns().read().await;
                    reading.read(&file, number, lease).await
                }
                Err(error) => Err(error),
            };
            log.storage.stats().window_reads.increment();
            memory.windows.finish(key, &reading, read);
            memory.trim();
        });
    }

    fn key(&self, number: u64) -> WindowKey {
        (self.log.number, self.segment, number)
    }
}

fn window_end(number: u64) -> u64 {
    (number + 1) * WINDOW_BYTES as u64
}

/// Where a batch's checksum begins to count.
const CHECKED_AT: u64 = CRC_AT as u64 + 4;
