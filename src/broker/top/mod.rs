//! What `coretide top` shows: two looks at the metrics of one or more hosts, what happened between
//! them, and its picture in as many columns as there are.
//!
//! Everything here is a function of the texts; terminals and sockets are elsewhere (`cli/top.rs`).

mod draw;
mod page;
mod view;

pub use draw::draw;
pub use page::{Page, PageError};
pub use view::{Core, Group, Health, Lagging, Topic, View};
