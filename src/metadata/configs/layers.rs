//! The layers in which a broker key may have a value, and the value that counts.
//!
//! From strongest to weakest: set for this node, set for all nodes, given at start, default.
//! Where one setting has keys in several units, the finest that has a value counts.

use protocol::NodeId;

use super::broker_keys;
use super::key::ConfigKey;
use super::lookup::Family;
use super::source::Source;
use super::static_settings::StaticSettings;
use super::value::Value;
use crate::image::{Image, Overrides};
use crate::record::ConfigResource;

#[derive(Debug, Clone, Copy)]
pub struct BrokerLayers<'a> {
    node: Option<&'a Overrides>,
    all_nodes: Option<&'a Overrides>,
    statics: &'a StaticSettings,
}

/// A value under one name in one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synonym {
    pub name: String,
    /// None where it may not be shown.
    pub value: Option<String>,
    pub source: Source,
}

impl<'a> BrokerLayers<'a> {
    /// As one node sees them.
    pub fn of_node(image: &'a Image, node: NodeId, statics: &'a StaticSettings) -> Self {
        let resource = ConfigResource::Node { host: node.host(), slot: node.slot() };
        Self { node: image.overrides(&resource), ..Self::of_cluster(image, statics) }
    }

    /// Without what is set for single nodes: what the controller decides with.
    pub fn of_cluster(image: &'a Image, statics: &'a StaticSettings) -> Self {
        let all_nodes = image.overrides(&ConfigResource::AllNodes);
        Self { node: None, all_nodes, statics }
    }

    pub(super) fn all_nodes(&self) -> Option<&'a Overrides> {
        self.all_nodes
    }

    pub(super) fn node(&self) -> Option<&'a Overrides> {
        self.node
    }

    fn in_layer(&self, name: &str, source: Source) -> Option<&'a str> {
        match source {
            Source::Node => self.node?.get(name).map(|value| &**value),
            Source::AllNodes => self.all_nodes?.get(name).map(|value| &**value),
            Source::Static => self.statics.get(name),
            Source::Default => broker_keys::find(name)?.default,
            _ => None,
        }
    }

    /// The text that counts for exactly this name.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        LAYERS.iter().find_map(|&source| self.in_layer(name, source))
    }

    /// The value that counts, in the unit of the key; None where it has none.
    pub fn value(&self, key: &ConfigKey) -> Option<Value> {
        // What another release accepted may not parse here; then the next layer counts.
        LAYERS.iter().find_map(|&source| key.parse(self.in_layer(key.name, source)?).ok())
    }

    /// What a topic without an override has.
    pub fn topic_default(&self, key: &ConfigKey) -> Option<Value> {
        let from_broker = key.synonyms.iter().find_map(|&name| {
            let value = self.value(broker_keys::find(name)?)?;
            Some(in_milliseconds(name, value))
        });
        from_broker.or_else(|| key.parse(key.default?).ok())
    }

    /// All layers of a setting under all its names, the value that counts first. What stands
    /// before the first entry of the key's own name is left out, as Kafka does.
    pub fn synonyms(&self, key: &ConfigKey) -> Vec<Synonym> {
        let names = key.same_setting();
        let mut found = Vec::new();
        for source in LAYERS {
            for &name in &names {
                let Some(text) = self.in_layer(name, source) else { continue };
                let value = (!key.is_sensitive()).then(|| canonical(name, text));
                found.push(Synonym { name: name.to_owned(), value, source });
            }
        }
        let first = found.iter().position(|it| it.name == key.name).unwrap_or(found.len());
        found.split_off(first)
    }
}

/// Something that was given at start and does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{key}={given} was given at start and does not count: it was set to {counts} for {}, which \
     outlasts a start; change it there (kafka-configs --alter)",
    whose(*set_by)
)]
pub struct Outranked {
    pub key: String,
    pub given: String,
    pub counts: String,
    pub set_by: Source,
}

fn whose(source: Source) -> &'static str {
    match source {
        Source::Node => "this node",
        _ => "the whole cluster",
    }
}

impl BrokerLayers<'_> {
    /// What flags, environment or file say otherwise than what was set in the cluster.
    pub fn outranked(&self) -> Vec<Outranked> {
        let stronger = |key: &str| {
            let found = [Source::Node, Source::AllNodes].into_iter();
            found.filter_map(|source| Some((source, self.in_layer(key, source)?))).next()
        };
        let outranked = self.statics.iter().filter_map(|(key, given)| {
            let (set_by, counts) = stronger(key)?;
            let (given, counts) = (canonical(key, given), canonical(key, counts));
            (given != counts).then(|| Outranked { key: key.to_owned(), given, counts, set_by })
        });
        outranked.collect()
    }
}

const LAYERS: [Source; 4] = [Source::Node, Source::AllNodes, Source::Static, Source::Default];

fn canonical(name: &str, text: &str) -> String {
    let value = Family::Broker.find(name).and_then(|key| key.parse(text).ok());
    value.map_or_else(|| text.to_owned(), |value| value.to_string())
}

/// Topic keys are in milliseconds, some broker keys in minutes or hours.
fn in_milliseconds(name: &str, value: Value) -> Value {
    let Value::Whole(number) = value else { return value };
    let unit = if name.ends_with(".hours") {
        3_600_000
    } else if name.ends_with(".minutes") {
        60_000
    } else {
        1
    };
    // Any negative time to keep records means for ever.
    let number = if name.starts_with("log.retention.") && !name.ends_with("bytes") {
        number.max(-1)
    } else {
        number
    };
    Value::Whole(if number < 0 { number } else { number.saturating_mul(unit) })
}
