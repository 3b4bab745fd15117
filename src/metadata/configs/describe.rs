//! Configs as DescribeConfigs and CreateTopics show them (KIP-226, KIP-525, KIP-569).
//!
//! What counts comes first among synonyms, and the source of a config is that of its first
//! synonym. An empty list of wanted keys means all; unknown ones are left out.

use std::collections::BTreeSet;

use protocol::Str;

use super::key::{ConfigKey, Scope};
use super::layers::{BrokerLayers, Synonym};
use super::lookup::Family;
use super::source::Source;
use super::topic_settings::Effective;
use super::value::Value;
use crate::image::{Node, Overrides};

/// One config in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedConfig {
    pub name: Str,
    /// None if it has none, or may not be shown.
    pub value: Option<String>,
    pub read_only: bool,
    pub source: Source,
    pub sensitive: bool,
    /// The value that counts, then what would count without it.
    pub synonyms: Vec<Synonym>,
    /// As the protocol numbers kinds; 0 if unknown.
    pub kind_code: i8,
    pub documentation: &'static str,
}

/// Which keys an answer is about.
#[derive(Debug, Clone)]
pub struct Described<'a> {
    wanted: Option<BTreeSet<&'a str>>,
}

impl<'a> Described<'a> {
    pub fn all() -> Self {
        Self { wanted: None }
    }

    pub fn keys(wanted: Option<&'a [Str]>) -> Self {
        let wanted = wanted.filter(|keys| !keys.is_empty());
        Self { wanted: wanted.map(|keys| keys.iter().map(|key| &**key).collect()) }
    }

    fn includes(&self, name: &str) -> bool {
        self.wanted.as_ref().is_none_or(|keys| keys.contains(name))
    }
}

pub fn describe_topic(
    layers: &BrokerLayers<'_>,
    overrides: Option<&Overrides>,
    which: &Described<'_>,
) -> Vec<DescribedConfig> {
    let effective = Effective { layers, overrides };
    Family::Topic
        .keys()
        .filter(|key| which.includes(key.name))
        .map(|key| described(key, effective.value(key), override_of(key, overrides, layers)))
        .collect()
}

/// The override first, then what the broker has under the first of the key's synonyms.
fn override_of(
    key: &ConfigKey,
    overrides: Option<&Overrides>,
    layers: &BrokerLayers<'_>,
) -> Vec<Synonym> {
    let own = own_override(key, overrides, Source::Topic);
    own.into_iter().chain(inherited(key, layers)).collect()
}

fn own_override(key: &ConfigKey, overrides: Option<&Overrides>, source: Source) -> Option<Synonym> {
    let text = overrides?.get(key.name)?;
    let value = key.parse(text).map_or_else(|_| text.to_string(), |value| value.to_string());
    Some(Synonym { name: key.name.to_owned(), value: Some(value), source })
}

fn inherited(key: &ConfigKey, layers: &BrokerLayers<'_>) -> Vec<Synonym> {
    let broker_key = key.synonyms.first().and_then(|name| Family::Broker.find(name));
    broker_key.map(|key| layers.synonyms(key)).unwrap_or_default()
}

fn described(key: &ConfigKey, value: Option<Value>, synonyms: Vec<Synonym>) -> DescribedConfig {
    let sensitive = key.is_sensitive();
    DescribedConfig {
        name: Str::from_static(key.name),
        value: value.filter(|_| !sensitive).map(|value| value.to_string()),
        read_only: false,
        source: synonyms.first().map_or(Source::Default, |first| first.source),
        sensitive,
        synonyms,
        kind_code: key.kind.wire_code(),
        documentation: key.documentation,
    }
}

/// Everything that a node goes by.
pub fn describe_node(
    layers: &BrokerLayers<'_>,
    node: &Node,
    which: &Described<'_>,
) -> Vec<DescribedConfig> {
    let mut configs: Vec<DescribedConfig> = Family::Broker
        .keys()
        .filter(|key| which.includes(key.name))
        .map(|key| {
            let value = layers.value(key);
            let mut config = described(key, value, layers.synonyms(key));
            config.read_only = key.scope == Scope::ReadOnly;
            match key.name {
                "node.id" | "broker.id" => derive(&mut config, node.id.to_string()),
                "advertised.listeners" => derive(&mut config, address_of(node)),
                "listeners" => {
                    let first = config.value.take().unwrap_or_default();
                    derive(&mut config, listener_of(&first, node));
                }
                _ => {}
            }
            config
        })
        .collect();
    for overrides in [layers.node(), layers.all_nodes()].into_iter().flatten() {
        for name in overrides.keys().filter(|name| which.includes(name)) {
            let known = Family::Broker.find(name).is_some()
                || configs.iter().any(|config| config.name == *name);
            if !known {
                configs.push(unknown(name, unknown_synonyms(name, layers)));
            }
        }
    }
    configs.sort_by(|one, other| one.name.cmp(&other.name));
    configs
}

/// What follows from which node it is.
fn derive(config: &mut DescribedConfig, value: String) {
    config.value = Some(value);
    config.source = Source::Static;
    let own = Synonym {
        name: config.name.to_string(),
        value: config.value.clone(),
        source: Source::Static,
    };
    config.synonyms = vec![own];
}

fn address_of(node: &Node) -> String {
    let (host, port) = (&node.host, node.port);
    if host.contains(':') {
        format!("PLAINTEXT://[{host}]:{port}")
    } else {
        format!("PLAINTEXT://{host}:{port}")
    }
}

/// `first` is where slot 0 listens; slot s is s ports further.
fn listener_of(first: &str, node: &Node) -> String {
    let split = first.rsplit_once(':');
    match split.and_then(|(host, port)| Some((host, port.parse::<u32>().ok()?))) {
        Some((host, port)) => format!("{host}:{}", u32::from(node.id.slot().0) + port),
        None => first.to_owned(),
    }
}

/// What was set for all nodes, and nothing else.
pub fn describe_all_nodes(
    layers: &BrokerLayers<'_>,
    which: &Described<'_>,
) -> Vec<DescribedConfig> {
    let Some(overrides) = layers.all_nodes() else { return Vec::new() };
    let set = overrides.iter().filter(|(name, _)| which.includes(name));
    set.map(|(name, text)| {
        let Some(key) = Family::Broker.find(name) else {
            let synonyms = unknown_synonyms(name, layers);
            let for_all = synonyms.into_iter().filter(|it| it.source == Source::AllNodes);
            return unknown(name, for_all.collect());
        };
        let mut synonyms = layers.synonyms(key);
        synonyms.retain(|synonym| synonym.source == Source::AllNodes);
        let mut config = described(key, key.parse(text).ok(), synonyms);
        config.read_only = key.scope == Scope::ReadOnly;
        config
    })
    .collect()
}

/// A key that no table has might hold a secret, so its value stays hidden.
fn unknown(name: &Str, synonyms: Vec<Synonym>) -> DescribedConfig {
    DescribedConfig {
        name: name.clone(),
        value: None,
        read_only: true,
        source: synonyms.first().map_or(Source::Default, |first| first.source),
        sensitive: true,
        synonyms,
        kind_code: 0,
        documentation: "",
    }
}

fn unknown_synonyms(name: &Str, layers: &BrokerLayers<'_>) -> Vec<Synonym> {
    let places = [(layers.node(), Source::Node), (layers.all_nodes(), Source::AllNodes)];
    let set = places.into_iter().filter(|(all, _)| all.is_some_and(|it| it.contains_key(name)));
    set.map(|(_, source)| Synonym { name: name.to_string(), value: None, source }).collect()
}

pub fn describe_group(
    layers: &BrokerLayers<'_>,
    overrides: Option<&Overrides>,
    which: &Described<'_>,
) -> Vec<DescribedConfig> {
    let effective = Effective { layers, overrides };
    let keys = Family::Group.keys().filter(|key| which.includes(key.name));
    keys.map(|key| {
        let own = own_override(key, overrides, Source::Group);
        let synonyms = own.into_iter().chain(inherited(key, layers)).collect();
        described(key, effective.value(key), synonyms)
    })
    .collect()
}

pub fn describe_client_metrics(
    overrides: Option<&Overrides>,
    which: &Described<'_>,
) -> Vec<DescribedConfig> {
    let keys = Family::ClientMetrics.keys().filter(|key| which.includes(key.name));
    keys.map(|key| {
        let synonyms: Vec<Synonym> =
            own_override(key, overrides, Source::ClientMetrics).into_iter().collect();
        let text = overrides.and_then(|all| all.get(key.name)).map(|text| &**text);
        let value = text.or(key.default).and_then(|text| key.parse(text).ok());
        described(key, value, synonyms)
    })
    .collect()
}

/// The names and levels of loggers, which only the process itself knows.
pub fn describe_loggers(
    loggers: &[(&'static str, &'static str)],
    which: &Described<'_>,
) -> Vec<DescribedConfig> {
    let wanted = loggers.iter().filter(|(name, _)| which.includes(name));
    wanted
        .map(|&(name, level)| DescribedConfig {
            name: Str::from_static(name),
            value: Some(level.to_owned()),
            read_only: false,
            source: Source::Logger,
            sensitive: false,
            synonyms: Vec::new(),
            kind_code: 0,
            documentation: "",
        })
        .collect()
}
