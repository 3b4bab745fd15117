//! Finding a key by its name, and the name that was probably meant.

use super::broker_keys::{self, broker_keys};
use super::client_metrics_keys::CLIENT_METRICS_KEYS;
use super::group_keys::GROUP_KEYS;
use super::key::ConfigKey;
use super::topic_keys::TOPIC_KEYS;

/// Whose keys are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Topic,
    Broker,
    Group,
    ClientMetrics,
}

impl Family {
    pub fn find(self, name: &str) -> Option<&'static ConfigKey> {
        match self {
            Self::Topic => find_in(TOPIC_KEYS, name),
            Self::Broker => broker_keys::find(name),
            Self::Group => find_in(GROUP_KEYS, name),
            Self::ClientMetrics => find_in(CLIENT_METRICS_KEYS, name),
        }
    }

    /// Without the internal ones, in the order of their names within each area.
    pub fn keys(self) -> impl Iterator<Item = &'static ConfigKey> {
        let (table, with_broker_keys): (&'static [ConfigKey], bool) = match self {
            Self::Topic => (TOPIC_KEYS, false),
            Self::Broker => (&[], true),
            Self::Group => (GROUP_KEYS, false),
            Self::ClientMetrics => (CLIENT_METRICS_KEYS, false),
        };
        let brokers = broker_keys().filter(move |_| with_broker_keys);
        table.iter().chain(brokers).filter(|key| !key.internal)
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Broker => "broker",
            Self::Group => "group",
            Self::ClientMetrics => "client metrics",
        }
    }
}

fn find_in(table: &'static [ConfigKey], name: &str) -> Option<&'static ConfigKey> {
    let place = table.binary_search_by(|key| key.name.cmp(name)).ok()?;
    Some(&table[place])
}

/// The key that an unknown name probably stands for. A topic key among broker keys gives the
/// broker key that sets its default.
pub fn nearest(family: Family, name: &str) -> Option<&'static str> {
    if family == Family::Broker
        && let Some(topic_key) = Family::Topic.find(name)
        && let Some(&default) = topic_key.synonyms.first()
    {
        return Some(default);
    }
    if family == Family::Topic
        && let Some(key) = TOPIC_KEYS.iter().find(|key| key.synonyms.contains(&name))
    {
        return Some(key.name);
    }
    let farthest = name.len() / 4 + 1;
    family
        .keys()
        .map(|key| (strsim::damerau_levenshtein(&name.to_ascii_lowercase(), key.name), key.name))
        .filter(|(distance, _)| *distance <= farthest)
        .min()
        .map(|(_, name)| name)
}
