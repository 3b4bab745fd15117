//! What stands behind the last whole batch: nothing, a torn write, or damage.
//!
//! Law: a strict log writes one commit at a time, into space that is zeros (behind the carried
//! bytes of its first block), in whole sectors. A power loss leaves each sector of the commit in
//! flight old or new. So bytes that are not the next batch are a *torn write* exactly when they
//! can belong to the last commit and one of the sectors that the bad batch lies in still is old;
//! anything else was whole once, and is *damage*. The mark behind a commit (see
//! `segment::Trailer`) says what cannot belong to the last one.
//!
//! ```text
//! mark whose commit starts behind the bad batch          damage: it had been acknowledged
//! bytes farther behind it than one commit reaches        damage: likewise
//! a sector of the bad batch, before the mark's end,
//! that is still zero                                     torn
//! otherwise                                              damage: every sector was written
//! ```

use protocol::batch::header::HEADER_BYTES;
use runtime::file::FsError;

use super::scanner::Scanner;
use crate::log::CHUNK_BYTES_MAX;
use crate::segment::{BLOCK, TRAILER_BYTES, Trailer, TrailerSalt};

/// What the bytes behind the accepted end are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Only zeros, or the mark of the commit that ended there.
    Clean,
    /// A commit that a crash cut short: `bytes` behind the end may be cut.
    Torn {
        bytes: u64,
    },
    Damaged {
        reason: &'static str,
    },
}

/// What is seen of the bytes behind the accepted end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Survey {
    /// Position behind the last byte that is neither zero nor part of a mark.
    pub written_to: u64,
    /// The latest commit that a mark tells of.
    newest: Option<Trailer>,
    /// Where the first sector of the bad batch begins that has nothing in it.
    old_sector: Option<u64>,
    /// The base offset that the bad batch must have had.
    base_offset: i64,
}

/// Judges what stands at `position`, where the batch from `base_offset` on was expected.
/// `batch_bytes` is its size when its header can be believed.
pub async fn judge(
    scanner: &mut Scanner,
    position: u64,
    base_offset: i64,
    batch_bytes: Option<usize>,
    salt: TrailerSalt,
) -> Result<Ending, FsError> {
    let extent = position + batch_bytes.unwrap_or(HEADER_BYTES) as u64;
    let mut survey = Survey::at(position, base_offset);
    let mut block_at = position - position % BLOCK as u64;
    // Whatever a later commit left begins within one commit's reach.
    let far = position + 2 * reach(batch_bytes);
    while block_at < scanner.length().min(far) {
        let block = scanner.bytes_at(block_at, BLOCK).await?;
        if block.is_empty() {
            break;
        }
        survey.look_at(block, block_at, position, extent, salt);
        block_at += BLOCK as u64;
    }
    Ok(survey.verdict(position, batch_bytes))
}

impl Survey {
    /// Of what stands behind an end at `position`.
    pub fn at(position: u64, base_offset: i64) -> Survey {
        Survey { written_to: position, base_offset, ..Survey::default() }
    }

    /// Whether so many first bytes of the batch are other than zero: they begin with its offset.
    fn begins_with_something(&self, bytes: u64) -> bool {
        bytes >= 8 || self.base_offset >> (8 * (8 - bytes)) != 0
    }

    pub fn look_at(
        &mut self,
        block: &[u8],
        at: u64,
        position: u64,
        extent: u64,
        salt: TrailerSalt,
    ) {
        let mark = Trailer::find(salt, block, at);
        if let Some(mark) = mark {
            self.newest = self.newest.into_iter().chain([mark]).max_by_key(|it| it.end_position);
        }
        for (number, sector) in block.chunks(SECTOR).enumerate() {
            let start = at + (number * SECTOR) as u64;
            let end = start + sector.len() as u64;
            if end <= position {
                continue;
            }
            let mut rest = &sector[position.saturating_sub(start) as usize..];
            let last = end == at + block.len() as u64;
            if mark.is_some() && last {
                rest = &rest[..rest.len().saturating_sub(TRAILER_BYTES)];
            }
            match rest.iter().rposition(|byte| *byte != 0) {
                Some(last) => {
                    let from = start.max(position);
                    self.written_to = self.written_to.max(from + last as u64 + 1);
                }
                None if start < extent && self.begins_with_something(end - start.max(position)) => {
                    self.old_sector = self.old_sector.or(Some(start));
                }
                None => {}
            }
        }
    }

    pub fn verdict(&self, position: u64, batch_bytes: Option<usize>) -> Ending {
        if self.newest.is_some_and(|mark| mark.start_position > position) {
            return Ending::Damaged { reason: "later commits had been acknowledged" };
        }
        if self.written_to == position {
            return Ending::Clean;
        }
        if self.written_to - position > reach(batch_bytes) {
            return Ending::Damaged { reason: "more follows than one write can hold" };
        }
        // The size that a damaged batch says may reach beyond its commit, whose mark is known here.
        let mark = self.newest.filter(|mark| mark.end_position > position);
        let end = mark.map_or(u64::MAX, |mark| mark.end_position);
        if self.old_sector.is_some_and(|old| old < end) {
            return Ending::Torn { bytes: self.written_to - position };
        }
        Ending::Damaged { reason: "all of it was written once" }
    }
}

/// Bytes from a bad batch to the end of the commit that it can belong to, at most.
fn reach(batch_bytes: Option<usize>) -> u64 {
    (batch_bytes.unwrap_or(0).max(CHUNK_BYTES_MAX) + 2 * BLOCK) as u64
}

/// The unit that a disk writes whole or not at all.
const SECTOR: usize = 512;
