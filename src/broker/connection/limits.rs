//! The bounds of one connection, in one place.

use std::time::Duration;

/// Requests begun but not yet answered; then the socket is not read.
pub const IN_FLIGHT_MAX: usize = 128;
/// Bytes of answers that are ready but not yet sent; then the socket is not read.
pub const UNSENT_BYTES_MAX: usize = 1 << 20;
/// First size of the receive buffer and the step in which a large frame's buffer grows.
pub const RECEIVE_STEP_BYTES: usize = 64 << 10;
/// A frame that has begun must be complete within this time, and the time that its size takes at
/// [`FRAME_BYTES_PER_SECOND_MIN`].
pub const FRAME_DEADLINE: Duration = Duration::from_secs(30);
/// The slowest a frame may arrive on average.
pub const FRAME_BYTES_PER_SECOND_MIN: usize = 64 << 10;
/// An answer that could not be handed to the socket for this long ends the connection.
pub const SEND_DEADLINE: Duration = Duration::from_secs(60);
/// Chunks of ready answers sent by one vectored write at most.
pub const SEND_BATCH_CHUNKS_MAX: usize = 256;
