//! What of a batch stays when its log is compacted.
//!
//! Law (Kafka's): below the end of what is mapped, a record stays when it is the newest of its
//! key, and if it is a tombstone, only until the delete horizon of its batch. A batch gets that
//! horizon in the first round that finds a tombstone in it which stays. Behind the mapped end
//! everything stays. The last batch of a living producer stays, emptied if need be, and so does
//! the batch that ends what could be cleaned. Order, offsets and timestamps never change.
//!
//! No clock and no I/O: `now_ms` is told.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::batch::{
    BatchHeader, Codec, HEADER_BYTES, RecordIter, decompress, decompressed_bytes_max, emptied,
    thinned,
};

use super::keys::{Full, KeyMap};
use super::transactions::{Marker, WalkedTransactions};
use crate::producer::LastOfProducer;

/// What one round of cleaning goes by.
pub struct Rules {
    pub now_ms: i64,
    pub delete_retention_ms: i64,
    /// Records from here on are not in the map and stay.
    pub mapped_to: i64,
    /// End of what could be cleaned: the batch that ends here stays, so that the offset does.
    pub cleanable_to: i64,
    /// The last batch of each producer that the log remembers, by producer id.
    pub producers: BTreeMap<i64, LastOfProducer>,
}

/// What becomes of a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays byte for byte.
    Whole,
    /// Something of it goes; this is what stays.
    Rewritten(Bytes),
    Gone,
}

/// The batch cannot be understood: nothing of its log may be cleaned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

/// Adds the keys of a batch, from the record at `from` on. Returns the offset up to which all is
/// mapped now, and whether the map is full before the batch's end.
pub fn map_batch(
    map: &mut KeyMap,
    transactions: &mut WalkedTransactions,
    header: &BatchHeader,
    batch: &[u8],
    from: i64,
) -> Result<(i64, bool), Unreadable> {
    let mapped = (header.next_offset(), false);
    if header.is_control() || transactions.on_batch(header) || header.count == 0 {
        return Ok(mapped);
    }
    let body = plain(header, &batch[HEADER_BYTES..])?;
    let mut mapped_to = header.base_offset.max(from);
    for record in RecordIter::new(&body, header.count) {
        let record = record.map_err(|why| Unreadable(why.to_string()))?;
        let offset = header.base_offset + i64::from(record.offset_delta);
        let Some(key) = record.key.filter(|_| offset >= from) else { continue };
        if let Err(Full) = map.put(key, offset) {
            return Ok((mapped_to, true));
        }
        mapped_to = offset + 1;
    }
    Ok(mapped)
}

/// Judges one batch; batches come in the order of their offsets.
pub fn judge(
    rules: &Rules,
    map: &KeyMap,
    transactions: &mut WalkedTransactions,
    header: &BatchHeader,
    batch: &[u8],
) -> Result<Verdict, Unreadable> {
    let body = plain(header, &batch[HEADER_BYTES..])?;
    let discarded = match header.is_control() {
        false => transactions.on_batch(header),
        true => {
            let marker = marker_of(header, &body)?;
            transactions.on_marker(header, marker)
        }
    };
    let over = header.delete_horizon_ms().is_some_and(|horizon| horizon <= rules.now_ms);
    let drops_all = discarded && (!header.is_control() || over);
    let must_stay = rules.must_stay(header);
    if drops_all && !must_stay {
        return Ok(Verdict::Gone);
    }
    let mut keep = Vec::with_capacity(header.count.max(0) as usize);
    let mut tombstones = false;
    for record in RecordIter::new(&body, header.count) {
        let record = record.map_err(|why| Unreadable(why.to_string()))?;
        let offset = header.base_offset + i64::from(record.offset_delta);
        let stays = !drops_all
            && (header.is_control()
                || offset >= rules.mapped_to
                || stays(rules, map, header, offset, record.key, record.value.is_some()));
        tombstones |= stays && !header.is_control() && record.value.is_none();
        keep.push(stays);
    }
    let kept = keep.iter().filter(|keep| **keep).count();
    if kept == 0 {
        return Ok(match must_stay {
            // What is empty already stays as it is.
            true if header.count == 0 => Verdict::Whole,
            true => Verdict::Rewritten(emptied(header)),
            false => Verdict::Gone,
        });
    }
    let waits = tombstones || (discarded && header.is_control());
    let horizon = match header.delete_horizon_ms() {
        None if waits => Some(rules.now_ms.saturating_add(rules.delete_retention_ms)),
        _ => None,
    };
    if kept == keep.len() && horizon.is_none() {
        return Ok(Verdict::Whole);
    }
    let thinned = thinned(header, &body, &keep, horizon);
    thinned.map(Verdict::Rewritten).map_err(|why| Unreadable(why.to_string()))
}

impl Rules {
    fn must_stay(&self, header: &BatchHeader) -> bool {
        let of_producer = match self.producers.get(&header.producer_id) {
            Some(LastOfProducer { last_offset: Some(last), .. }) => header.last_offset() == *last,
            // Its marker has the newest epoch, which keeps older instances out.
            Some(LastOfProducer { last_offset: None, epoch }) => {
                header.is_control() && header.producer_epoch == *epoch
            }
            None => false,
        };
        (header.has_producer() && of_producer) || header.next_offset() == self.cleanable_to
    }
}

/// Whether a record that the map speaks of stays. One without a key cannot be compacted and goes.
fn stays(
    rules: &Rules,
    map: &KeyMap,
    header: &BatchHeader,
    offset: i64,
    key: Option<&[u8]>,
    has_value: bool,
) -> bool {
    let Some(key) = key else { return false };
    let newest = map.get(key).is_none_or(|newest| offset >= newest);
    let waits = header.delete_horizon_ms().is_none_or(|horizon| rules.now_ms < horizon);
    newest && (has_value || (waits && !runtime::sabotaged("drop tombstones early")))
}

fn marker_of(header: &BatchHeader, body: &[u8]) -> Result<Marker, Unreadable> {
    match RecordIter::new(body, header.count).next() {
        None => Ok(Marker::Gone),
        Some(Ok(record)) => Ok(Marker::of_key(record.key)),
        Some(Err(why)) => Err(Unreadable(why.to_string())),
    }
}

/// The records of a batch, decompressed.
fn plain<'a>(header: &BatchHeader, body: &'a [u8]) -> Result<Cow<'a, [u8]>, Unreadable> {
    match header.compression() {
        Err(codec) => Err(Unreadable(format!("there is no codec {codec}"))),
        Ok(_) if header.count == 0 => Ok(Cow::Borrowed(&[])),
        Ok(Codec::None) => Ok(Cow::Borrowed(body)),
        Ok(codec) => decompress(codec, body, decompressed_bytes_max(usize::MAX))
            .map(Cow::Owned)
            .map_err(|why| Unreadable(why.to_string())),
    }
}
