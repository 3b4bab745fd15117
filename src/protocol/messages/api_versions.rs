//! Behaviour: Tells which requests this node takes in which versions, and the feature levels of
//! the cluster. It is the first request of most clients. One of unknown version is answered in
//! version 0, and the header of the answer never has tagged fields (KIP-511).
//!
//! Versions: 0–5, flexible from 3. 3 names the client software (KIP-511) and the features
//! (KIP-584), 4 lists features whose lowest level is 0, 5 says whom the client believes it talks
//! to (KIP-1242).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api ApiVersions;

    request ApiVersionsRequest {
        /// Letters, digits, dots and dashes; anything else is an invalid request.
        client_software_name: Str [3..],
        /// As the name.
        client_software_version: Str [3..],
        /// The cluster the client believes it talks to (KIP-1242).
        cluster_id: Option<Str> [5.., null 5..],
        /// The node the client believes it talks to (KIP-1242).
        node_id: i32 [5..] = -1,
    }

    response ApiVersionsResponse {
        /// UNSUPPORTED_VERSION together with the range of this API for a version too new.
        error_code: ErrorCode [0..],
        api_keys: Vec<ApiVersion> [0..],
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        supported_features: Vec<SupportedFeatureKey> [3.., tag 0],
        /// -1 if unknown.
        finalized_features_epoch: i64 [3.., tag 1] = -1,
        finalized_features: Vec<FinalizedFeatureKey> [3.., tag 2],
        /// Of no meaning since ZooKeeper is gone.
        zk_migration_ready: bool [3.., tag 3],
    }

    /// One API and the versions of it that this node advertises.
    part ApiVersion {
        api_key: i16 [0..],
        min_version: i16 [0..],
        max_version: i16 [0..],
    }

    /// The levels of a feature that this node can work at.
    part SupportedFeatureKey {
        name: Str [3..],
        min_version: i16 [3..],
        max_version: i16 [3..],
    }

    /// The level of a feature that the cluster works at.
    part FinalizedFeatureKey {
        name: Str [3..],
        max_version_level: i16 [3..],
        min_version_level: i16 [3..],
    }
}
