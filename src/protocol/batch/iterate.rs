//! Whole batches out of a run of bytes, as slices of it.
//!
//! The iterator ends after the first error: behind a batch whose length cannot be trusted there
//! is nothing to synchronise on.

use bytes::Bytes;

use super::header::{BatchError, BatchHeader};

/// Cuts the first whole batch off `bytes`; `None` when they are empty.
pub fn split_first(bytes: &mut Bytes) -> Option<Result<(BatchHeader, Bytes), BatchError>> {
    if bytes.is_empty() {
        return None;
    }
    match BatchHeader::parse(bytes) {
        Ok(header) => Some(Ok((header, bytes.split_to(header.size_in_bytes())))),
        Err(error) => Some(Err(error)),
    }
}

/// The batches of a run of bytes, each with its header. Checksums are not looked at.
#[derive(Clone, Debug)]
pub struct Batches {
    rest: Bytes,
    failed: bool,
}

impl Batches {
    pub fn of(bytes: Bytes) -> Self {
        Self { rest: bytes, failed: false }
    }

    /// What was not consumed yet; after an error it begins at the damage.
    pub fn rest(&self) -> &Bytes {
        &self.rest
    }
}

impl Iterator for Batches {
    type Item = Result<(BatchHeader, Bytes), BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = split_first(&mut self.rest);
        self.failed = matches!(item, Some(Err(_)));
        item
    }
}
