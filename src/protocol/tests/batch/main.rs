//! Record batches: layout, records, codecs, what is accepted for appending and what is refused.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod codecs;
mod forge;
mod hostile;
mod layout;
mod oracle;
mod produce;
mod records;
mod rewriting;
