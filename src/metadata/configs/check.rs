//! Whether overrides may be set: each key by itself, then what has to agree between keys.
//!
//! What is checked is the whole set of overrides as it would be afterwards, so that two keys that
//! contradict each other are found whichever was set first.

use super::broker_keys;
use super::client_metrics_keys::MATCHABLE;
use super::error::{ConfigError, shorten};
use super::group_keys::GROUP_BOUNDS;
use super::key::Scope;
use super::layers::BrokerLayers;
use super::lookup::{Family, nearest};
use super::static_settings::{Warning, accept};
use super::value::{VALUE_BYTES_MAX, Value, ValueError};
use crate::image::Overrides;

/// The overrides of a topic as they would be, over the defaults that the broker gives.
pub fn check_topic(
    layers: &BrokerLayers<'_>,
    overrides: &Overrides,
) -> Result<Vec<Warning>, ConfigError> {
    let warnings = check_each(Family::Topic, overrides)?;
    let whole = |name: &str| {
        let key = Family::Topic.find(name)?;
        let set = overrides.get(name).and_then(|text| key.parse(text).ok());
        match set.or_else(|| layers.topic_default(key))? {
            Value::Whole(value) => Some(value),
            _ => None,
        }
    };
    let (low_key, high_key) = ("min.compaction.lag.ms", "max.compaction.lag.ms");
    match (whole(low_key), whole(high_key)) {
        (Some(low), Some(high)) if low > high => {
            Err(ConfigError::Crossed { low_key, low, high_key, high })
        }
        _ => Ok(warnings),
    }
}

/// The overrides of a group as they would be; the broker's own keys bound them.
pub fn check_group(
    layers: &BrokerLayers<'_>,
    overrides: &Overrides,
) -> Result<Vec<Warning>, ConfigError> {
    let warnings = check_each(Family::Group, overrides)?;
    for &(name, least_key, most_key) in GROUP_BOUNDS {
        let Some(key) = Family::Group.find(name) else { continue };
        let Some(text) = overrides.get(name) else { continue };
        let Ok(Value::Whole(value)) = key.parse(text) else { continue };
        let bound = |name| match layers.value(broker_keys::find(name)?)? {
            Value::Whole(bound) => Some(bound),
            _ => None,
        };
        let least = least_key.and_then(bound).unwrap_or(0);
        let most = bound(most_key).unwrap_or(i64::MAX);
        if !(least..=most).contains(&value) {
            return Err(ConfigError::OutOfBounds { key: key.name, value, least, most });
        }
    }
    Ok(warnings)
}

pub fn check_client_metrics(overrides: &Overrides) -> Result<Vec<Warning>, ConfigError> {
    let warnings = check_each(Family::ClientMetrics, overrides)?;
    let Some(patterns) = overrides.get("match") else { return Ok(warnings) };
    for pattern in patterns.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let known = pattern
            .split_once('=')
            .is_some_and(|(name, regex)| MATCHABLE.contains(&name.trim()) && is_regex(regex));
        if !known {
            return Err(ConfigError::BadMatch(shorten(pattern)));
        }
    }
    Ok(warnings)
}

/// Whether brackets are paired, which is what a mistyped pattern most often lacks. Nothing is
/// matched with it yet.
fn is_regex(pattern: &str) -> bool {
    let count = |bracket| pattern.matches(bracket).count();
    !pattern.trim().is_empty() && count('[') == count(']') && count('(') == count(')')
}

fn check_each(family: Family, overrides: &Overrides) -> Result<Vec<Warning>, ConfigError> {
    let mut warnings = Vec::new();
    for (name, text) in overrides {
        let Some(key) = family.find(name) else {
            let (of, nearest) = (family.word(), nearest(family, name));
            return Err(ConfigError::Unknown { of, name: shorten(name), nearest });
        };
        warnings.extend(accept(key, text)?.1);
    }
    Ok(warnings)
}

/// For whom a broker key is set while brokers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetFor {
    OneNode,
    AllNodes,
}

/// A change of one broker key; None takes the override away. Unknown keys are let through, as in
/// Kafka: they may be meant for a plugin. They are shown as something that must not be seen.
pub fn check_broker(
    name: &str,
    text: Option<&str>,
    set_for: SetFor,
) -> Result<Option<Warning>, ConfigError> {
    if name == "min.insync.replicas" {
        match (set_for, text) {
            (SetFor::OneNode, _) => return Err(ConfigError::InSyncReplicasOfNode),
            (SetFor::AllNodes, None) => return Err(ConfigError::InSyncReplicasRemoved),
            (SetFor::AllNodes, Some(_)) => {}
        }
    }
    let Some(key) = broker_keys::find(name) else { return check_unknown(name, text) };
    match (key.scope, set_for) {
        (Scope::ReadOnly, _) => return Err(ConfigError::ReadOnly(name.to_owned())),
        (Scope::PerNode, SetFor::AllNodes) => {
            return Err(ConfigError::PerNodeOnly(name.to_owned()));
        }
        _ => {}
    }
    match text {
        Some(text) => Ok(accept(key, text)?.1),
        None => Ok(None),
    }
}

fn check_unknown(name: &str, text: Option<&str>) -> Result<Option<Warning>, ConfigError> {
    let text = text.unwrap_or_default();
    let why = if text.len() > VALUE_BYTES_MAX || name.len() > NAME_BYTES_MAX {
        ValueError::TooLong
    } else if text.trim().chars().any(char::is_control) || name.chars().any(char::is_control) {
        ValueError::ControlCharacters
    } else if name.is_empty() {
        return Err(ConfigError::Unknown { of: "broker", name: String::new(), nearest: None });
    } else {
        return Ok(Some(Warning { key: name.to_owned(), reason: "this broker has no such key" }));
    };
    Err(ConfigError::Invalid { key: "an unknown key", value: shorten(text), why })
}

const NAME_BYTES_MAX: usize = 1000;
