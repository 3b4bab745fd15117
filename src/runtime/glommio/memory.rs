//! Memory for direct I/O, out of the executor's registered pool while that lasts.

pub(crate) use glommio::io::DmaBuffer as Memory;

/// The pool hands out what earlier owners left in it, so it is cleared here.
pub(crate) fn zeroed(len: usize) -> Memory {
    let mut memory = glommio::allocate_dma_buffer(len);
    memory.as_bytes_mut().fill(0);
    memory
}
