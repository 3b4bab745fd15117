//! What flags, environment and configuration file say about broker keys.
//!
//! Invariant: every value in here is known, parses, and is one that this broker may have.

use std::collections::BTreeMap;

use super::broker_keys::{self, RETIRED};
use super::error::{ConfigError, shorten};
use super::key::{ConfigKey, Effect};
use super::lookup::{Family, nearest};
use super::value::Value;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct StaticSettings {
    values: BTreeMap<&'static str, String>,
}

/// Something was accepted that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} does nothing here: {reason}")]
pub struct Warning {
    pub key: String,
    pub reason: &'static str,
}

impl StaticSettings {
    /// Accepts one `key=value`; a later one replaces an earlier one.
    pub fn set(&mut self, name: &str, text: &str) -> Result<Option<Warning>, ConfigError> {
        if let Some(&(key, reason)) = RETIRED.iter().find(|(retired, _)| *retired == name) {
            return Ok(Some(Warning { key: key.to_owned(), reason }));
        }
        let Some(key) = broker_keys::find(name) else {
            let (name, nearest) = (shorten(name), nearest(Family::Broker, name));
            return Err(ConfigError::Unknown { of: "broker", name, nearest });
        };
        let (value, warning) = accept(key, text)?;
        self.values.insert(key.name, value.to_string());
        Ok(warning)
    }

    /// What the program itself decided, such as the data directory: shown, not checked.
    pub fn derive(&mut self, name: &'static str, value: String) {
        self.values.insert(name, value);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, text)| (*name, text.as_str()))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }
}

/// Parses a value and asks whether this broker may have it.
pub(crate) fn accept(
    key: &'static ConfigKey,
    text: &str,
) -> Result<(Value, Option<Warning>), ConfigError> {
    let value = key.parse(text).map_err(|why| ConfigError::invalid(key.name, text, why))?;
    let default = key.default.and_then(|default| key.parse(default).ok());
    match key.effect {
        Effect::Honoured => Ok((value, None)),
        _ if default.as_ref() == Some(&value) => Ok((value, None)),
        Effect::Inert(reason) => Ok((value, Some(Warning { key: key.name.to_owned(), reason }))),
        Effect::Refused(reason) => Err(ConfigError::refused(key.name, text, reason)),
    }
}
