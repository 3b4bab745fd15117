//! Behaviour: says which APIs are served in which versions. A version that is not known is
//! answered in version 0 with UNSUPPORTED_VERSION and the range of ApiVersions itself (KIP-511);
//! from version 5 on a client can check that it reached the node it meant (KIP-1242).
//!
//! Versions: 0–5. 3 brings the client's software name and features (KIP-511, KIP-584).

use metadata::controller::FEATURES;
use protocol::messages::api_versions::{
    ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};
use protocol::{ApiKey, ApiSpec, ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::{Context, SERVED_APIS};

pub async fn handle(cx: Context, request: ApiVersionsRequest) -> Outcome {
    if let Some(error) = refusal(&cx, &request) {
        return cx
            .reply(&ApiVersionsResponse { error_code: error, ..ApiVersionsResponse::default() });
    }
    if cx.version() >= FIRST_VERSION_WITH_SOFTWARE {
        let name = request.client_software_name.detach();
        let version = request.client_software_version.detach();
        *cx.connection.client_software.borrow_mut() = Some((name, version));
    }
    cx.reply(&response(&cx))
}

/// The answer to a version that is not served.
pub fn unsupported(cx: &Context) -> Outcome {
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION,
        api_keys: vec![row(ApiKey::ApiVersions.spec())],
        ..ApiVersionsResponse::default()
    };
    cx.reply_in_version(&response, 0)
}

fn refusal(cx: &Context, request: &ApiVersionsRequest) -> Option<ErrorCode> {
    let named = [&request.client_software_name, &request.client_software_version];
    if cx.version() >= FIRST_VERSION_WITH_SOFTWARE && !named.iter().all(|text| is_valid(text)) {
        return Some(ErrorCode::INVALID_REQUEST);
    }
    if cx.version() < FIRST_VERSION_WITH_TARGET {
        return None;
    }
    match (&request.cluster_id, request.node_id) {
        (None, -1) => None,
        (None, _) | (Some(_), -1) => Some(ErrorCode::INVALID_REQUEST),
        (Some(cluster), node) => {
            let here = *cluster == cx.slot.identity.cluster_id && node == cx.slot.node.0;
            (!here).then_some(ErrorCode::REBOOTSTRAP_REQUIRED)
        }
    }
}

/// What KIP-511 allows in a software name: letters, digits, '-' and '.', not at either end.
fn is_valid(text: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let ends = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    text.chars().all(inner) && ends(text.chars().next()) && ends(text.chars().next_back())
}

fn response(cx: &Context) -> ApiVersionsResponse {
    let image = cx.slot.image();
    // Before version 4 a feature whose range starts at 0 breaks the parsers of old clients
    // (KAFKA-17011).
    let with_zero = cx.version() >= FIRST_VERSION_WITH_ZERO_FEATURES;
    let supported = FEATURES.iter().filter(|it| with_zero || it.least > 0);
    let finalized = image.feature_levels().filter(|(_, level)| *level > 0);
    ApiVersionsResponse {
        api_keys: SERVED_APIS.specs().map(row).collect(),
        supported_features: supported
            .map(|it| SupportedFeatureKey {
                name: Str::from_static(it.name),
                min_version: it.least,
                max_version: it.most,
            })
            .collect(),
        finalized_features_epoch: image.offset() as i64,
        finalized_features: finalized
            .map(|(name, level)| FinalizedFeatureKey {
                name: name.clone(),
                max_version_level: level,
                min_version_level: level,
            })
            .collect(),
        ..ApiVersionsResponse::default()
    }
}

fn row(spec: &ApiSpec) -> ApiVersion {
    ApiVersion {
        api_key: spec.key.number(),
        min_version: spec.advertised.min,
        max_version: spec.advertised.max,
    }
}

const FIRST_VERSION_WITH_SOFTWARE: i16 = 3;
const FIRST_VERSION_WITH_ZERO_FEATURES: i16 = 4;
const FIRST_VERSION_WITH_TARGET: i16 = 5;
