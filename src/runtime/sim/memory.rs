//! Aligned memory from the heap.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::slice;

use crate::buffer::ALIGNMENT;

/// Owned bytes at an aligned address.
pub struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    len: usize,
}

/// `len` bytes that the caller has to give a value. They are zeros, so that a mistake is at least
/// the same in every run.
pub fn unfilled(len: usize) -> Memory {
    assert!(len > 0, "memory of no length");
    let Ok(layout) = Layout::from_size_align(len, ALIGNMENT) else {
        panic!("{len} bytes are more than an address space holds")
    };
    // SAFETY: the layout has a length above zero.
    let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
        handle_alloc_error(layout)
    };
    Memory { start, layout, len }
}

impl Memory {
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Forgets what lies behind the first `len` bytes.
    pub fn trim_to_size(&mut self, len: usize) {
        assert!(len <= self.len);
        self.len = len;
    }
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `len` bytes from `start` are allocated, initialised and owned by this value.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl AsMut<[u8]> for Memory {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes this the only view.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `unfilled` with this very layout and freed nowhere else.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
