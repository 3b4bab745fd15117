//! Parts of segments read from disk, shared by all who read near each other.
//!
//! Law: a window is an aligned range of one segment's file; while it is being read, everybody who
//! wants it waits for the one read. A window of a segment that still grows is good up to the
//! position that was committed when its read began, and is read again for more. What was cut off
//! by a truncation is forgotten, also when its read is still under way.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use runtime::file::{ALIGNMENT, Block, File, FsError};
use runtime::local::{Event, Lease};

/// Bytes of a window: one read. The last one of a segment ends with it.
pub const WINDOW_BYTES: usize = 512 << 10;

/// Bytes to lease for a window of a segment that ends at `valid_to`.
pub fn window_cost(number: u64, valid_to: u64) -> usize {
    match window_bytes(number, valid_to) {
        WINDOW_BYTES => WINDOW_BYTES,
        // The allocator spends about a block more on one that has to be aligned.
        less => less + ALIGNMENT,
    }
}

fn window_bytes(number: u64, valid_to: u64) -> usize {
    let rest = valid_to.saturating_sub(number * WINDOW_BYTES as u64);
    (rest.min(WINDOW_BYTES as u64) as usize).next_multiple_of(ALIGNMENT)
}

/// The log's number, the segment's base offset, which window of its file.
pub type WindowKey = (u64, i64, u64);

pub struct Window {
    block: Block,
    bytes: OnceCell<Bytes>,
    /// Position in the segment of its first byte.
    start: u64,
    /// Position up to which its bytes are batches.
    valid_to: u64,
    /// Positions between which the checksum of every batch was found right.
    checked: Cell<(u64, u64)>,
    /// Bytes of memory that it takes from the budget.
    cost: usize,
}

#[derive(Default)]
pub struct Windows {
    state: RefCell<State>,
    clock: Cell<u64>,
    bytes: Cell<usize>,
}

#[derive(Default)]
struct State {
    windows: BTreeMap<WindowKey, Place>,
    by_use: BTreeMap<u64, WindowKey>,
}

enum Place {
    Reading(Rc<Reading>),
    Ready { window: Rc<Window>, used_at: u64 },
}

/// A read that is under way.
pub struct Reading {
    valid_to: u64,
    /// Whether the memory for it has been leased: only then may someone wait for it who holds
    /// leases himself.
    leased: Cell<bool>,
    done: Event,
    result: RefCell<Option<Result<Rc<Window>, Rc<FsError>>>>,
}

/// What is known of a wanted window.
pub enum Found {
    Ready(Rc<Window>),
    Wait(Rc<Reading>),
    /// The caller reads it, and says so with `finish`.
    Missing(Rc<Reading>),
}

impl Window {
    pub fn start(&self) -> u64 {
        self.start
    }

    /// First position that it does not have.
    pub fn end(&self) -> u64 {
        self.valid_to.min(self.start + self.block.len() as u64)
    }

    pub fn part(&self, from: u64, to: u64) -> &[u8] {
        let (from, to) = self.range(from, to);
        &self.block[from..to]
    }

    /// Whether somebody has checked every batch that `from..to` is a part of: it never changes.
    pub fn is_checked(&self, from: u64, to: u64) -> bool {
        let checked = self.checked.get();
        checked.0 <= from && to <= checked.1
    }

    /// The batch that `from..to` is a part of has the right checksum. Of ranges that do not touch,
    /// the last is remembered: readers go forward.
    pub fn on_checked(&self, from: u64, to: u64) {
        let (first, end) = self.checked.get();
        let touches = from <= end && first <= to;
        self.checked.set(if touches { (first.min(from), end.max(to)) } else { (from, to) });
    }

    /// Like `part`, without a copy.
    pub fn slice(&self, from: u64, to: u64) -> Bytes {
        let (from, to) = self.range(from, to);
        self.bytes.get_or_init(|| self.block.to_bytes()).slice(from..to)
    }

    fn range(&self, from: u64, to: u64) -> (usize, usize) {
        assert!(self.start <= from && from <= to && to <= self.end(), "outside of the window");
        ((from - self.start) as usize, (to - self.start) as usize)
    }
}

impl Reading {
    /// Waits for the one read.
    pub async fn wait(&self) -> Result<Rc<Window>, Rc<FsError>> {
        loop {
            let listen = self.done.listen();
            if let Some(result) = self.result.borrow().as_ref() {
                return result.clone();
            }
            listen.await;
        }
    }

    pub fn on_leased(&self) {
        self.leased.set(true);
    }

    pub fn is_leased(&self) -> bool {
        self.leased.get()
    }

    /// Reads the window from `file`; `lease` pays for it.
    pub async fn read(&self, file: &File, number: u64, lease: Lease) -> Result<Window, FsError> {
        let start = number * WINDOW_BYTES as u64;
        let cost = lease.bytes();
        let bytes = window_bytes(number, self.valid_to);
        let block = file.read_at(start, bytes).await?.holding(lease);
        let checked = Cell::new((start, start));
        Ok(Window { block, bytes: OnceCell::new(), start, valid_to: self.valid_to, checked, cost })
    }
}

impl Windows {
    /// Whether the window is there, or being read, as far as `needed_to`.
    pub fn has(&self, key: WindowKey, needed_to: u64) -> bool {
        match self.state.borrow().windows.get(&key) {
            Some(Place::Ready { window, .. }) => window.valid_to >= needed_to,
            Some(Place::Reading(reading)) => reading.valid_to >= needed_to,
            None => false,
        }
    }

    /// The window, if it reaches as far as `needed_to`; `valid_to` is how far it could reach now.
    pub fn find(&self, key: WindowKey, needed_to: u64, valid_to: u64) -> Found {
        assert!(needed_to <= valid_to);
        let used_now = self.tick();
        let state = &mut *self.state.borrow_mut();
        match state.windows.get_mut(&key) {
            Some(Place::Ready { window, used_at }) if window.valid_to >= needed_to => {
                state.by_use.remove(used_at);
                *used_at = used_now;
                state.by_use.insert(used_now, key);
                return Found::Ready(Rc::clone(window));
            }
            Some(Place::Reading(reading)) if reading.valid_to >= needed_to => {
                return Found::Wait(Rc::clone(reading));
            }
            _ => {}
        }
        self.remove(state, key);
        let (done, result, leased) = (Event::new(), RefCell::new(None), Cell::new(false));
        let reading = Rc::new(Reading { valid_to, leased, done, result });
        state.windows.insert(key, Place::Reading(Rc::clone(&reading)));
        Found::Missing(reading)
    }

    /// The read that `find` asked for is over.
    pub fn finish(&self, key: WindowKey, reading: &Rc<Reading>, read: Result<Window, FsError>) {
        let used_at = self.tick();
        let state = &mut *self.state.borrow_mut();
        let place = state.windows.get(&key);
        let wanted = matches!(place, Some(Place::Reading(known)) if Rc::ptr_eq(known, reading));
        let result = read.map(Rc::new).map_err(Rc::new);
        if wanted {
            state.windows.remove(&key);
        }
        if let (true, Ok(window)) = (wanted, &result) {
            let window = Rc::clone(window);
            self.bytes.set(self.bytes.get() + window.cost);
            state.windows.insert(key, Place::Ready { window, used_at });
            state.by_use.insert(used_at, key);
        }
        *reading.result.borrow_mut() = Some(result);
        reading.done.notify_all();
    }

    /// Forgets what is at `position` of a segment and behind it.
    pub fn forget(&self, log: u64, segment: i64, position: u64) {
        let first = (log, segment, position / WINDOW_BYTES as u64);
        self.forget_range(first, (log, segment, u64::MAX));
    }

    pub fn forget_log(&self, log: u64) {
        self.forget_range((log, i64::MIN, 0), (log, i64::MAX, u64::MAX));
    }

    fn forget_range(&self, first: WindowKey, last: WindowKey) {
        let state = &mut *self.state.borrow_mut();
        let keys: Vec<WindowKey> = state.windows.range(first..=last).map(|(key, _)| *key).collect();
        for key in keys {
            self.remove(state, key);
        }
    }

    /// When the longest unused window was used last, on the slot's clock of uses.
    pub fn oldest(&self) -> Option<u64> {
        self.state.borrow().by_use.first_key_value().map(|(used_at, _)| *used_at)
    }

    /// Lets go of the longest unused window; returns the bytes it held.
    pub fn evict_oldest(&self) -> Option<usize> {
        let state = &mut *self.state.borrow_mut();
        let (_, key) = state.by_use.first_key_value()?;
        let key = *key;
        Some(self.remove(state, key))
    }

    /// Bytes of the windows that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// A moment on the clock of uses, which tails share.
    pub fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    fn remove(&self, state: &mut State, key: WindowKey) -> usize {
        let Some(Place::Ready { window, used_at }) = state.windows.remove(&key) else { return 0 };
        state.by_use.remove(&used_at);
        self.bytes.set(self.bytes.get() - window.cost);
        window.cost
    }
}

const _: () = assert!(WINDOW_BYTES.is_multiple_of(ALIGNMENT));
