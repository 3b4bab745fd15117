//! Behaviour: Lists the quotas of users and clients that a filter matches (KIP-546).
//!
//! Versions: 0–1, flexible from 1.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DescribeClientQuotas;

    request DescribeClientQuotasRequest {
        components: Vec<ComponentData> [0..],
        /// Leave out what has more entities than those named.
        strict: bool [0..],
    }

    /// A condition on one kind of entity.
    part ComponentData {
        entity_type: Str [0..],
        /// 0 exactly this name, 1 the default, 2 any that is named.
        match_type: i8 [0..],
        /// The name, for a match type of 0.
        r#match: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }

    response DescribeClientQuotasResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        entries: Option<Vec<EntryData>> [0.., null 0..] = Some(Vec::new()),
    }

    part EntryData {
        entity: Vec<EntityData> [0..],
        values: Vec<ValueData> [0..],
    }

    /// One part of what a quota applies to.
    part EntityData {
        entity_type: Str [0..],
        /// Null for the default.
        entity_name: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }

    part ValueData {
        key: Str [0..],
        value: f64 [0..],
    }
}
