//! Behaviour: Raises or lowers feature levels of the cluster (KIP-584).
//!
//! Versions: 0–2, flexible from 0. 1 can dry-run, 2 fails as a whole.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api UpdateFeatures;

    request UpdateFeaturesRequest {
        /// How long the sender will wait for the answer, in ms.
        timeout_ms: i32 [0..] = 60_000,
        feature_updates: Vec<FeatureUpdateKey> [0..],
        /// Check everything, change nothing.
        validate_only: bool [1..],
    }

    part FeatureUpdateKey {
        feature: Str [0..],
        max_version_level: i16 [0..],
        allow_downgrade: bool [0..=0],
        /// 1 upgrade, 2 safe downgrade, 3 downgrade that may lose metadata.
        upgrade_type: i8 [1..] = 1,
    }

    response UpdateFeaturesResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        results: Vec<UpdatableFeatureResult> [0..=1],
    }

    part UpdatableFeatureResult {
        feature: Str [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }
}
