//! Behaviour: Sets or removes quotas of users and clients (KIP-546).
//!
//! Versions: 0–1, flexible from 1.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api AlterClientQuotas;

    request AlterClientQuotasRequest {
        entries: Vec<RequestEntryData> [0..],
        /// Check everything, change nothing.
        validate_only: bool [0..],
    }

    part RequestEntryData {
        entity: Vec<EntityData> [0..],
        ops: Vec<OpData> [0..],
    }

    /// One part of what a quota applies to.
    part EntityData {
        entity_type: Str [0..],
        /// Null for the default.
        entity_name: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }

    /// One quota set or removed.
    part OpData {
        key: Str [0..],
        value: f64 [0..],
        /// Whether the value is taken away instead of set.
        remove: bool [0..],
    }

    response AlterClientQuotasResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        entries: Vec<EntryData> [0..],
    }

    part EntryData {
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        entity: Vec<EntityData> [0..],
    }
}
