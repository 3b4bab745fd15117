//! Why a setting is refused, in words for the one who set it.

use super::value::ValueError;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    #[error("there is no {of} config named '{name}'{}", suggestion(*nearest))]
    Unknown { of: &'static str, name: String, nearest: Option<&'static str> },
    #[error("{key} cannot be '{value}': {why}")]
    Invalid { key: &'static str, value: String, why: ValueError },
    #[error("{key} cannot be '{value}' here: {reason}")]
    Refused { key: &'static str, value: String, reason: &'static str },
    #[error("{low_key} is {low}, which is above {high_key}, {high}")]
    Crossed { low_key: &'static str, low: i64, high_key: &'static str, high: i64 },
    #[error("{key} cannot be {value}: it has to lie between {least} and {most}")]
    OutOfBounds { key: &'static str, value: i64, least: i64, most: i64 },
    #[error("'{0}' is no pattern that clients can be matched with")]
    BadMatch(String),
    #[error("{key} is no list: only SET and DELETE apply to it")]
    NotAList { key: String },
    #[error("{0} can only be set before the broker starts")]
    ReadOnly(String),
    #[error("{0} can only be set for one node, not for all")]
    PerNodeOnly(String),
    #[error("min.insync.replicas is a setting of the cluster or of a topic, not of a node")]
    InSyncReplicasOfNode,
    #[error("the cluster's min.insync.replicas can be changed but not removed")]
    InSyncReplicasRemoved,
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default()
}

impl ConfigError {
    pub(super) fn invalid(key: &'static str, value: &str, why: ValueError) -> Self {
        Self::Invalid { key, value: shorten(value), why }
    }

    pub(super) fn refused(key: &'static str, value: &str, reason: &'static str) -> Self {
        Self::Refused { key, value: shorten(value), reason }
    }
}

/// What an error message repeats of a client's own words.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 100;
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
