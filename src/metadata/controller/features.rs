//! Feature levels, and UpdateFeatures.
//!
//! Behaviour: only what is really served is in the list, because clients change what they send by
//! it (transaction.version 2, for one, lets them leave out AddPartitionsToTxn). One list: raising
//! a level here is the last step of serving it. Updates are all or nothing (KIP-584).

use std::collections::BTreeSet;

use protocol::ErrorCode;
use protocol::messages::update_features::{
    FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse,
};

use super::{Context, Decision, Refusal};
use crate::image::Image;
use crate::record::{FeatureLevelSet, MetadataRecord};

/// The levels of a feature that this release can work at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    pub name: &'static str,
    pub least: i16,
    pub most: i16,
    /// Of a cluster that is new.
    pub initial: i16,
}

/// metadata.version says which of Kafka's releases the APIs are of: 33 is 4.4. kraft.version 0:
/// voters are not changed while the cluster runs. group.version 1: groups of the consumer protocol
/// (KIP-848).
pub const FEATURES: &[Feature] = &[
    Feature { name: "group.version", least: 0, most: 1, initial: 1 },
    Feature { name: "kraft.version", least: 0, most: 0, initial: 0 },
    Feature { name: "metadata.version", least: 33, most: 33, initial: 33 },
];

pub(super) fn initial_levels() -> impl Iterator<Item = MetadataRecord> {
    let above_nothing = FEATURES.iter().filter(|feature| feature.initial > 0);
    above_nothing.map(|feature| {
        let (name, level) = (feature.name.into(), feature.initial);
        MetadataRecord::FeatureLevelSet(FeatureLevelSet { name, level })
    })
}

pub fn update_features(
    context: &Context<'_>,
    request: &UpdateFeaturesRequest,
) -> Decision<UpdateFeaturesResponse> {
    let mut records = Vec::new();
    let mut seen = BTreeSet::new();
    for update in &request.feature_updates {
        let outcome = if seen.insert(&update.feature) {
            check_update(context.image, update)
        } else {
            Err(format!("{} is in the request twice", update.feature))
        };
        match outcome {
            Ok(record) => records.extend(record),
            Err(message) => return Decision::answer(refused(message)),
        }
    }
    if request.validate_only {
        records.clear();
    }
    let response = UpdateFeaturesResponse { error_message: None, ..Default::default() };
    Decision { records, response, warnings: Vec::new() }
}

fn refused(message: String) -> UpdateFeaturesResponse {
    let refusal = Refusal::new(ErrorCode::INVALID_UPDATE_VERSION, message);
    let (error_code, error_message) = (refusal.code, refusal.text());
    UpdateFeaturesResponse { error_code, error_message, ..Default::default() }
}

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;
const UNSAFE_DOWNGRADE: i8 = 3;

fn check_update(
    image: &Image,
    update: &FeatureUpdateKey,
) -> Result<Option<MetadataRecord>, String> {
    let (name, level) = (&update.feature, update.max_version_level);
    let Some(feature) = FEATURES.iter().find(|feature| *name == feature.name) else {
        return Err(format!("there is no feature {name} here"));
    };
    if !(feature.least..=feature.most).contains(&level) {
        let (least, most) = (feature.least, feature.most);
        return Err(format!("{name} can be at levels {least} to {most}, not at {level}"));
    }
    if !(UPGRADE..=UNSAFE_DOWNGRADE).contains(&update.upgrade_type) {
        return Err(format!("{} is no type of upgrade", update.upgrade_type));
    }
    let now = image.feature_level(name);
    let may_go_down = update.allow_downgrade || update.upgrade_type >= SAFE_DOWNGRADE;
    if level < now && !may_go_down {
        return Err(format!("{name} is at {now}: going down to {level} has to be allowed"));
    }
    let set = FeatureLevelSet { name: name.detach(), level };
    Ok((level != now).then_some(MetadataRecord::FeatureLevelSet(set)))
}
