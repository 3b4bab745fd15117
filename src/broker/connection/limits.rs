//! The bounds of one connection, in one place.

use std::time::Duration;

/// Requests begun but not yet answered; then the socket is not read.
pub const IN_FLIGHT_MAX: usize = 128;
/// Bytes of answers that are ready but not yet sent; then the socket is not read.
pub const UNSENT_BYTES_MAX: usize = 1 << 20;
/// What a new connection is read by at a time. The step doubles whenever the socket had more, and
/// halves when it had much less.
pub const RECEIVE_STEP_MIN_BYTES: usize = 16 << 10;
pub const RECEIVE_STEP_MAX_BYTES: usize = 256 << 10;
/// What a connection's frames may hold without a lease on the receive budget.
pub const RECEIVE_UNLEASED_BYTES: usize = 64 << 10;
/// A frame that has begun must be complete within this time, and the time that its size takes at
/// [`FRAME_BYTES_PER_SECOND_MIN`].
pub const FRAME_DEADLINE: Duration = Duration::from_secs(30);
/// The slowest a frame may arrive on average.
pub const FRAME_BYTES_PER_SECOND_MIN: usize = 64 << 10;
/// The same for a frame that others wait for because memory is short.
pub const FAVOURED_DEADLINE: Duration = Duration::from_secs(2);
pub const FAVOURED_BYTES_PER_SECOND_MIN: usize = 1 << 20;
/// An answer that could not be handed to the socket for this long ends the connection.
pub const SEND_DEADLINE: Duration = Duration::from_secs(60);
/// Chunks of ready answers sent by one vectored write at most.
pub const SEND_BATCH_CHUNKS_MAX: usize = 256;
