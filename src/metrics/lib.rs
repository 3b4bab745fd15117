//! Counters, latency histograms and their Prometheus text.
//!
//! A slot counts into plain cells of its own: nothing here is shared between cores while records
//! flow. At a scrape every slot copies its numbers into a [`Snapshot`], which is `Send`, and one
//! slot renders all of them. Deliberately absent: I/O, clocks, global registries.

#![forbid(unsafe_code)]

mod cell;
mod render;
mod snapshot;
mod text;

pub use cell::{Counter, Histogram};
pub use render::{CONTENT_TYPE, render};
pub use snapshot::{Family, Kind, Sample, Snapshot, Value};
pub use text::{FamilyText, Text};
