//! Memory for direct I/O, out of the executor's registered pool while that lasts.

pub(crate) use glommio::io::DmaBuffer as Memory;

/// Without a value: the pool hands out what earlier owners left in it.
pub(crate) fn unfilled(len: usize) -> Memory {
    glommio::allocate_dma_buffer(len)
}
