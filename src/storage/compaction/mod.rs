//! Compaction: of each key the newest record stays, and little else.
//!
//! Law: a round maps the newest offset of each key in the dirty part of a log, as far as memory
//! goes, then writes the segments from the log's start up to there anew without the records that
//! the map outdates, several small ones into one, and exchanges them. Readers see the old segment
//! or the new one, whole. What decides sits in `plan`, `filter`, `keys` and `transactions` and
//! waits for nothing; heavy work runs beside the executor; what is read and written is paced.

mod chunks;
mod cleaned_to;
pub mod exchange;
pub mod filter;
pub mod keys;
mod new_segment;
mod pace;
pub mod plan;
mod quiet;
mod round;
mod take_over;
pub mod transactions;

pub use cleaned_to::{CLEANED_TO_FILE_NAME, NOWHERE, forget, load};
pub use quiet::CleanTurn;
pub use round::{CleanError, Cleaned, Cleaner};
