//! Aligned memory from the heap, for the back end that has no ring to register it with.

use crate::buffer::ALIGNMENT;

/// Starts at a multiple of `ALIGNMENT`.
pub struct Memory {
    pages: Vec<Page>,
    len: usize,
}

#[derive(Clone)]
#[repr(align(4096))]
struct Page([u8; ALIGNMENT]);

/// `len` is a multiple of `ALIGNMENT`.
pub fn zeroed(len: usize) -> Memory {
    assert!(len.is_multiple_of(ALIGNMENT));
    Memory { pages: vec![Page([0; ALIGNMENT]); len / ALIGNMENT], len }
}

impl Memory {
    pub fn trim_to_size(&mut self, len: usize) {
        assert!(len <= self.len);
        self.len = len;
    }
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: pages are contiguous, without padding, and `len` never exceeds them.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast(), self.len) }
    }
}

impl AsMut<[u8]> for Memory {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast(), self.len) }
    }
}
