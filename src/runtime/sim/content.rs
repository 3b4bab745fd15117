//! The bytes of one simulated file, as the page cache has them and as the medium has them.
//!
//! Law: reads see the cached layer. A byte is durable once a sync, or a write that syncs, has
//! covered it. Until then a power loss may leave each 512-byte sector in its old or its new state,
//! and the size old, new or, when the file grew, in between. What an operation had not finished at
//! a crash may have happened or not. Anything may also become durable before anyone asked. A sync
//! that failed leaves pages that look clean and are lost with the cache; what was written past the
//! cache it does not touch.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::buffer::Block;

pub(crate) const PAGE_BYTES: u64 = 4096;
pub(crate) const SECTOR_BYTES: u64 = 512;

type Page = Rc<[u8; PAGE_BYTES as usize]>;

/// A number below its argument, from the seed.
pub(crate) type Draw<'a> = dyn Fn(u64) -> u64 + 'a;

#[derive(Clone, Default)]
struct Layer {
    size: u64,
    /// Pages that are not here are zeros.
    pages: BTreeMap<u64, Page>,
}

struct InFlight {
    offset: u64,
    past_cache: bool,
    data: Block,
    applied: bool,
}

/// The pages a sync has to make durable, as they were when it began.
pub(crate) struct SyncPoint {
    pages: Vec<(u64, u64, Page)>,
}

#[derive(Default)]
pub(crate) struct Content {
    cached: Layer,
    durable: Layer,
    /// Pages whose cached state is not durable, with the version of that state.
    dirty: BTreeMap<u64, u64>,
    /// Those of them that were last written past the page cache.
    past_cache: BTreeSet<u64>,
    durable_versions: BTreeMap<u64, u64>,
    version: u64,
    /// The smallest size the file had since its size was last durable, if it was ever cut.
    cut_to: Option<u64>,
    allocated: u64,
    in_flight: BTreeMap<u64, InFlight>,
    writes_begun: u64,
}

fn page_range(offset: u64, len: u64) -> std::ops::Range<u64> {
    offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES)
}

impl Layer {
    fn read(&self, offset: u64, into: &mut [u8]) {
        let mut done = 0usize;
        while done < into.len() {
            let at = offset + done as u64;
            let within = (at % PAGE_BYTES) as usize;
            let count = (into.len() - done).min(PAGE_BYTES as usize - within);
            let target = &mut into[done..done + count];
            match self.pages.get(&(at / PAGE_BYTES)) {
                Some(page) => target.copy_from_slice(&page[within..within + count]),
                None => target.fill(0),
            }
            done += count;
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let mut done = 0usize;
        while done < data.len() {
            let at = offset + done as u64;
            let within = (at % PAGE_BYTES) as usize;
            let count = (data.len() - done).min(PAGE_BYTES as usize - within);
            let page = self.page_mut(at / PAGE_BYTES);
            page[within..within + count].copy_from_slice(&data[done..done + count]);
            done += count;
        }
        self.size = self.size.max(offset + data.len() as u64);
    }

    fn page_mut(&mut self, number: u64) -> &mut [u8; PAGE_BYTES as usize] {
        let zeros = || Rc::new([0; PAGE_BYTES as usize]);
        Rc::make_mut(self.pages.entry(number).or_insert_with(zeros))
    }

    /// Forgets what lies behind `size`.
    fn cut(&mut self, size: u64) {
        self.pages.split_off(&size.div_ceil(PAGE_BYTES));
        let within = (size % PAGE_BYTES) as usize;
        if within > 0 && self.pages.contains_key(&(size / PAGE_BYTES)) {
            self.page_mut(size / PAGE_BYTES)[within..].fill(0);
        }
        self.size = self.size.min(size);
    }
}

impl Content {
    pub(crate) fn size(&self) -> u64 {
        self.cached.size
    }

    /// Bytes of disk space that belong to this file.
    pub(crate) fn allocated(&self) -> u64 {
        self.allocated
    }

    /// Bytes of disk space that a file reaching up to `end` needs beyond what it has.
    pub(crate) fn missing_space(&self, end: u64) -> u64 {
        end.next_multiple_of(PAGE_BYTES).saturating_sub(self.allocated)
    }

    /// Reads up to `into.len()` bytes; fewer only at the end of the file.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let count = (self.cached.size.saturating_sub(offset) as usize).min(into.len());
        self.cached.read(offset, &mut into[..count]);
        count
    }

    // ---- writes

    /// A write is on its way; it gets a number.
    pub(crate) fn begin_write(&mut self, offset: u64, data: Block, past_cache: bool) -> u64 {
        let end = (offset + data.len() as u64).next_multiple_of(PAGE_BYTES);
        self.allocated = self.allocated.max(end);
        self.writes_begun += 1;
        let pending = InFlight { offset, past_cache, data, applied: false };
        self.in_flight.insert(self.writes_begun, pending);
        self.writes_begun
    }

    /// The write has reached the page cache: reads see it.
    pub(crate) fn apply_write(&mut self, write: u64) {
        let Some(pending) = self.in_flight.get_mut(&write) else { return };
        if !std::mem::replace(&mut pending.applied, true) {
            let (offset, data) = (pending.offset, pending.data.clone());
            let past_cache = pending.past_cache;
            self.write(offset, &data, past_cache);
        }
    }

    /// The write is over; when it syncs, what it wrote is durable.
    pub(crate) fn finish_write(&mut self, write: u64, sync: bool) {
        self.apply_write(write);
        let Some(done) = self.in_flight.remove(&write) else { return };
        if sync {
            self.commit_metadata();
            for page in page_range(done.offset, done.data.len() as u64) {
                self.persist_page(page);
            }
        }
    }

    /// The write failed; any of its sectors may have been written all the same.
    pub(crate) fn fail_write(&mut self, write: u64, draw: &Draw) {
        let Some(pending) = self.in_flight.remove(&write) else { return };
        if !pending.applied {
            self.write_prefix(&pending, draw);
        }
    }

    fn write_prefix(&mut self, pending: &InFlight, draw: &Draw) {
        let sectors = (pending.data.len() as u64).div_ceil(SECTOR_BYTES);
        let bytes = (draw(sectors + 1) * SECTOR_BYTES).min(pending.data.len() as u64);
        if bytes > 0 {
            self.write(pending.offset, &pending.data[..bytes as usize], pending.past_cache);
        }
    }

    fn write(&mut self, offset: u64, data: &[u8], past_cache: bool) {
        self.version += 1;
        self.cached.write(offset, data);
        for page in page_range(offset, data.len() as u64) {
            self.dirty.insert(page, self.version);
            match past_cache {
                true => self.past_cache.insert(page),
                false => self.past_cache.remove(&page),
            };
        }
        let end = self.cached.size.next_multiple_of(PAGE_BYTES);
        self.allocated = self.allocated.max(end);
    }

    /// The kernel writes a page back without being asked.
    pub(crate) fn write_back(&mut self, draw: &Draw) {
        let count = self.dirty.len() as u64;
        let chosen = self.dirty.keys().nth(draw(count) as usize).copied();
        if let Some(page) = chosen {
            self.commit_metadata();
            self.persist_page(page);
        }
    }

    // ---- size

    pub(crate) fn preallocate(&mut self, size: u64) {
        self.allocated = self.allocated.max(size.next_multiple_of(PAGE_BYTES));
        self.cached.size = self.cached.size.max(size);
    }

    pub(crate) fn truncate(&mut self, size: u64) {
        if size < self.cached.size {
            self.cached.cut(size);
            self.dirty.split_off(&size.div_ceil(PAGE_BYTES));
            self.cut_to = Some(self.cut_to.map_or(size, |before| before.min(size)));
            self.allocated = size.next_multiple_of(PAGE_BYTES);
        } else {
            self.cached.size = size;
        }
    }

    // ---- durability

    pub(crate) fn begin_sync(&self) -> SyncPoint {
        let pages = self.dirty.iter().filter_map(|(page, version)| {
            self.cached.pages.get(page).map(|bytes| (*page, *version, bytes.clone()))
        });
        SyncPoint { pages: pages.collect() }
    }

    pub(crate) fn finish_sync(&mut self, point: SyncPoint) {
        self.commit_metadata();
        for (page, version, bytes) in point.pages {
            match self.dirty.get(&page) {
                Some(now) if *now == version => self.persist_page(page),
                Some(_) if self.durable_version(page) < version => {
                    self.durable.pages.insert(page, bytes);
                    self.durable_versions.insert(page, version);
                }
                _ => {}
            }
        }
    }

    /// A sync failed: the kernel forgets some of the pages it could not write, and says so only
    /// once.
    pub(crate) fn fail_sync(&mut self, draw: &Draw) {
        let dirty: BTreeSet<u64> = self.dirty.keys().copied().collect();
        for page in dirty {
            if draw(2) == 0 && !self.past_cache.contains(&page) {
                self.dirty.remove(&page);
            }
        }
    }

    fn durable_version(&self, page: u64) -> u64 {
        self.durable_versions.get(&page).copied().unwrap_or(0)
    }

    fn commit_metadata(&mut self) {
        if let Some(cut_to) = self.cut_to.take() {
            self.durable.cut(cut_to);
        }
        self.durable.size = self.cached.size;
    }

    fn persist_page(&mut self, page: u64) {
        let Some(version) = self.dirty.remove(&page) else { return };
        if let Some(bytes) = self.cached.pages.get(&page) {
            self.durable.pages.insert(page, bytes.clone());
            self.durable_versions.insert(page, version);
        }
    }

    // ---- crashes and damage

    /// The process died. Its writes in flight happened, happened in part, or did not happen.
    pub(crate) fn on_kill(&mut self, draw: &Draw) {
        for (_, pending) in std::mem::take(&mut self.in_flight) {
            if pending.applied {
                continue;
            }
            match draw(4) {
                0 => {}
                1 => self.write_prefix(&pending, draw),
                _ => self.write(pending.offset, &pending.data, pending.past_cache),
            }
        }
    }

    /// The power went. What was not durable survives as the seed likes.
    pub(crate) fn on_power_loss(&mut self, draw: &Draw) {
        let in_flight = std::mem::take(&mut self.in_flight);
        self.settle_size(draw);
        let odds = draw(5);
        let dirty = std::mem::take(&mut self.dirty);
        for page in dirty.into_keys() {
            if let Some(bytes) = self.cached.pages.get(&page).cloned() {
                keep_sectors(&mut self.durable, page * PAGE_BYTES, &bytes[..], odds, draw);
            }
        }
        for pending in in_flight.values().filter(|pending| !pending.applied) {
            let odds = draw(5);
            let end = pending.offset + pending.data.len() as u64;
            if end > self.durable.size && draw(2) == 0 {
                self.durable.size = end;
            }
            keep_sectors(&mut self.durable, pending.offset, &pending.data, odds, draw);
        }
        let size = self.durable.size;
        self.durable.cut(size);
        self.durable_versions.clear();
        self.cached = self.durable.clone();
        self.allocated = size.next_multiple_of(PAGE_BYTES);
    }

    fn settle_size(&mut self, draw: &Draw) {
        let (old, new) = (self.durable.size, self.cached.size);
        if old == new && self.cut_to.is_none() {
            return;
        }
        match draw(3) {
            0 => self.commit_metadata(),
            1 if self.cut_to.is_none() && new > old => {
                self.durable.size = (old + draw(new - old + 1)).next_multiple_of(SECTOR_BYTES);
                self.durable.size = self.durable.size.min(new);
            }
            _ => self.cut_to = None,
        }
    }

    /// Makes the cache the durable state: what a power loss right now would keep at best.
    pub(crate) fn make_durable(&mut self) {
        let point = self.begin_sync();
        self.finish_sync(point);
    }

    /// Flips one bit on the medium and in the cache.
    pub(crate) fn flip_bit(&mut self, offset: u64, bit: u32) {
        assert!(offset < self.cached.size, "no such byte");
        let mask = 1u8 << (bit % 8);
        for layer in [&mut self.cached, &mut self.durable] {
            layer.page_mut(offset / PAGE_BYTES)[(offset % PAGE_BYTES) as usize] ^= mask;
        }
    }
}

/// Copies each sector of `data` to the medium or leaves it, `odds` in four for it. Sectors behind
/// the end of the file are cut off later.
fn keep_sectors(medium: &mut Layer, offset: u64, data: &[u8], odds: u64, draw: &Draw) {
    let size = medium.size;
    for (index, sector) in data.chunks(SECTOR_BYTES as usize).enumerate() {
        if draw(4) < odds {
            medium.write(offset + index as u64 * SECTOR_BYTES, sector);
        }
    }
    medium.size = size;
}
