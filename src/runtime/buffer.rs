//! Memory that devices read and write directly.
//!
//! A buffer is filled by one owner, then frozen into a block. A block is immutable, may be shared
//! by slices and be in flight to the disk and to sockets at the same time. Buffers, blocks and the
//! bytes made of them live and die on one core: registered memory belongs to that core's ring.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::rc::Rc;
use std::thread::ThreadId;

use bytes::Bytes;

use crate::back::memory::{Memory, unfilled};
use crate::budget::Lease;

/// Start and length of memory for direct I/O are multiples of this.
pub const ALIGNMENT: usize = 4096;

/// Writable memory, aligned. Its room is a multiple of `ALIGNMENT`; it is filled from the front,
/// and only what has been filled can be seen.
pub struct AlignedBuf {
    memory: Memory,
    filled: usize,
}

impl AlignedBuf {
    /// Zeros, `len` rounded up to a multiple of `ALIGNMENT`, at least one.
    pub fn zeroed(len: usize) -> Self {
        let mut buffer = AlignedBuf::with_room(len);
        buffer.zero_to(buffer.room());
        buffer
    }

    /// Nothing yet, and room for `len` bytes, rounded up likewise.
    pub fn with_room(len: usize) -> Self {
        let len = len.max(1).next_multiple_of(ALIGNMENT);
        let memory = unfilled(len);
        assert_eq!(memory.len(), len);
        assert_eq!(memory.as_ptr().addr() % ALIGNMENT, 0);
        AlignedBuf { memory, filled: 0 }
    }

    /// Bytes filled so far.
    pub fn len(&self) -> usize {
        self.filled
    }

    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Bytes that it can hold.
    pub fn room(&self) -> usize {
        self.memory.len()
    }

    /// Adds `bytes` behind what is filled; there must be room for them.
    pub fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room() - self.filled, "no room");
        // SAFETY: the room reaches beyond the bytes, nobody else sees it, and `bytes` lie
        // elsewhere.
        unsafe {
            let to = self.memory.as_mut_ptr().add(self.filled);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        self.filled += bytes.len();
        crate::copied(bytes.len());
    }

    /// Fills up with zeros to `len` bytes in all.
    pub fn zero_to(&mut self, len: usize) {
        assert!(self.filled <= len && len <= self.room(), "no room");
        // SAFETY: from what is filled to `len` lies within the room, and nobody else sees it.
        unsafe {
            let from = self.memory.as_mut_ptr().add(self.filled);
            std::ptr::write_bytes(from, 0, len - self.filled);
        }
        self.filled = len;
    }

    /// All of the room, which must have been filled.
    pub fn freeze(self) -> Block {
        let room = self.room();
        self.freeze_prefix(room)
    }

    /// Freezes the first `len` bytes, a multiple of `ALIGNMENT`. Unlike a slice of a block, the
    /// result is written to disk without a copy. The rest of the room stays taken with it.
    pub fn freeze_prefix(mut self, len: usize) -> Block {
        assert!(len > 0 && len <= self.filled && len.is_multiple_of(ALIGNMENT));
        self.memory.trim_to_size(len);
        Block::from_memory(self.memory)
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes from the start of the memory have a value.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.filled) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes this the only view.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr(), self.filled) }
    }
}

/// Immutable bytes, cheap to clone and to slice.
#[derive(Clone)]
pub struct Block {
    memory: Option<Rc<Memory>>,
    start: usize,
    len: usize,
    lease: Option<Rc<Lease>>,
}

impl Block {
    pub fn empty() -> Self {
        Block { memory: None, start: 0, len: 0, lease: None }
    }

    pub(crate) fn from_memory(memory: Memory) -> Self {
        let len = memory.as_ref().len();
        Block { memory: Some(Rc::new(memory)), start: 0, len, lease: None }
    }

    /// The same block, which keeps `lease` for as long as any clone, slice or bytes of it live:
    /// what a budget was asked for is given back when the memory really is free.
    pub fn holding(mut self, lease: Lease) -> Block {
        assert!(self.lease.is_none(), "a block is paid for once");
        self.lease = Some(Rc::new(lease));
        self
    }

    /// The memory itself, when this block is all of it.
    #[cfg(not(sim))]
    pub(crate) fn whole_memory(&self) -> Option<&Rc<Memory>> {
        let memory = self.memory.as_ref()?;
        (self.start == 0 && self.len == (**memory).as_ref().len()).then_some(memory)
    }

    /// A part of this block; the memory stays shared.
    pub fn slice(&self, range: Range<usize>) -> Block {
        assert!(range.start <= range.end && range.end <= self.len, "slice outside of the block");
        Block {
            memory: self.memory.clone(),
            start: self.start + range.start,
            len: range.end - range.start,
            lease: self.lease.clone(),
        }
    }

    /// The same memory as `Bytes`, without a copy. Its last clone must be dropped on this core's
    /// thread; anything else ends the process.
    pub fn to_bytes(&self) -> Bytes {
        if self.len == 0 {
            return Bytes::new();
        }
        Bytes::from_owner(Pinned {
            block: ManuallyDrop::new(self.clone()),
            thread: std::thread::current().id(),
        })
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            Some(memory) => &(**memory).as_ref()[self.start..self.start + self.len],
            None => &[],
        }
    }
}

/// A block that says it can be sent and makes sure that it is not dropped elsewhere.
struct Pinned {
    block: ManuallyDrop<Block>,
    thread: ThreadId,
}

// SAFETY: other threads can only read the bytes, which nobody writes any more once they are
// frozen. The reference count is touched by `Drop` alone, which refuses any thread but the one
// that made the block.
unsafe impl Send for Pinned {}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        &self.block
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if std::thread::current().id() != self.thread {
            crate::abort("bytes of a disk block were dropped on another core");
        }
        // SAFETY: dropped once, here, on the thread that made it.
        unsafe { ManuallyDrop::drop(&mut self.block) }
    }
}
