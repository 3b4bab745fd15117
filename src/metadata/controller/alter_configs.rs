//! IncrementalAlterConfigs and AlterConfigs.
//!
//! Behaviour: each resource is decided by itself and as a whole: one bad key refuses all keys of
//! its resource. SET and DELETE apply to any key; APPEND and SUBTRACT to lists, where adding what
//! is there and removing what is not are no errors (KIP-339). AlterConfigs replaces everything
//! that a resource has: what it does not name goes. A resource, or a key, that is in the request
//! twice is refused; so are null values and operations without a meaning.
//!
//! Levels of loggers are not in the metadata: they are returned for the process to set.

use std::collections::BTreeSet;

use protocol::messages::{alter_configs as legacy, incremental_alter_configs as incremental};
use protocol::{ErrorCode, NodeId, Str};

use super::create_topics::canonical;
use super::resource::{Resource, family_of};
use super::{Context, Decision, Refusal};
use crate::configs::{
    ConfigError, Family, Kind, SetFor, Value, Warning, check_broker, check_client_metrics,
    check_group, check_topic,
};
use crate::image::Overrides;
use crate::record::{ConfigChanged, ConfigResource, MetadataRecord};

/// The loggers of the process that was asked, and which of its nodes that was.
#[derive(Debug, Clone, Copy)]
pub struct Levels<'a> {
    pub node: NodeId,
    /// Name and level of each.
    pub loggers: &'a [(&'static str, &'static str)],
}

/// To be done by the process itself; None gives the logger back its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelChange {
    pub logger: &'static str,
    pub level: Option<&'static str>,
}

pub const LEVELS: &[&str] = &["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"];

/// One key of a resource, and what is wanted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    key: Str,
    operation: Operation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operation {
    Set(Str),
    Delete,
    Append(Str),
    Subtract(Str),
}

/// The outcome for one resource.
#[derive(Debug, Default)]
struct Applied {
    records: Vec<MetadataRecord>,
    levels: Vec<LevelChange>,
    warnings: Vec<Warning>,
}

pub fn incremental_alter_configs(
    context: &Context<'_>,
    levels: Levels<'_>,
    request: &incremental::IncrementalAlterConfigsRequest,
) -> (Decision<incremental::IncrementalAlterConfigsResponse>, Vec<LevelChange>) {
    let twice =
        named_twice(request.resources.iter().map(|it| (it.resource_type, &it.resource_name)));
    let mut decision = Decision::answer(incremental::IncrementalAlterConfigsResponse::default());
    let mut level_changes = Vec::new();
    for resource in &request.resources {
        let (kind, name) = (resource.resource_type, &resource.resource_name);
        let changes = resource.configs.iter().map(incremental_change).collect();
        let outcome = if twice.contains(&(kind, name)) {
            Err(resource_twice())
        } else {
            alter_one(context, levels, kind, name, changes)
        };
        let (error_code, error_message) =
            settle(outcome, request.validate_only, &mut decision, &mut level_changes);
        decision.response.responses.push(incremental::AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: kind,
            resource_name: name.clone(),
        });
    }
    (decision, level_changes)
}

pub fn alter_configs(
    context: &Context<'_>,
    request: &legacy::AlterConfigsRequest,
) -> Decision<legacy::AlterConfigsResponse> {
    let twice =
        named_twice(request.resources.iter().map(|it| (it.resource_type, &it.resource_name)));
    let mut decision = Decision::answer(legacy::AlterConfigsResponse::default());
    for resource in &request.resources {
        let (kind, name) = (resource.resource_type, &resource.resource_name);
        let outcome = if twice.contains(&(kind, name)) {
            Err(resource_twice())
        } else {
            replace_one(context, resource)
        };
        let (error_code, error_message) =
            settle(outcome, request.validate_only, &mut decision, &mut Vec::new());
        decision.response.responses.push(legacy::AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: kind,
            resource_name: name.clone(),
        });
    }
    decision
}

/// Takes an outcome into the decision and gives what to answer.
fn settle<R>(
    outcome: Result<Applied, Refusal>,
    validate_only: bool,
    decision: &mut Decision<R>,
    level_changes: &mut Vec<LevelChange>,
) -> (ErrorCode, Option<Str>) {
    match outcome {
        Err(refusal) => (refusal.code, refusal.text()),
        Ok(applied) => {
            decision.warnings.extend(applied.warnings.iter().map(Warning::to_string));
            if !validate_only {
                decision.records.extend(applied.records);
                level_changes.extend(applied.levels);
            }
            (ErrorCode::NONE, None)
        }
    }
}

fn named_twice<'a>(resources: impl Iterator<Item = (i8, &'a Str)>) -> BTreeSet<(i8, &'a Str)> {
    let mut seen = BTreeSet::new();
    resources.filter(|resource| !seen.insert(*resource)).collect()
}

fn resource_twice() -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, "the resource is in the request twice")
}

fn incremental_change(config: &incremental::AlterableConfig) -> Result<Change, Refusal> {
    let key = config.name.clone();
    let value = || {
        let message = format!("{key} cannot be null");
        let missing = || Refusal::new(ErrorCode::INVALID_REQUEST, message);
        config.value.clone().ok_or_else(missing)
    };
    let operation = match config.config_operation {
        0 => Operation::Set(value()?),
        1 => Operation::Delete,
        2 => Operation::Append(value()?),
        3 => Operation::Subtract(value()?),
        other => {
            let message = format!("{other} is no operation on a config");
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
        }
    };
    Ok(Change { key, operation })
}

fn alter_one(
    context: &Context<'_>,
    levels: Levels<'_>,
    kind: i8,
    name: &Str,
    changes: Vec<Result<Change, Refusal>>,
) -> Result<Applied, Refusal> {
    let changes = changes.into_iter().collect::<Result<Vec<Change>, Refusal>>()?;
    refuse_keys_given_twice(changes.iter().map(|change| &change.key))?;
    match Resource::parse(context.image, kind, name)? {
        Resource::Kept(resource) => apply(context, resource, &changes),
        Resource::Loggers(node) => change_levels(levels, node, &changes),
    }
}

fn replace_one(
    context: &Context<'_>,
    asked: &legacy::AlterConfigsResource,
) -> Result<Applied, Refusal> {
    refuse_keys_given_twice(asked.configs.iter().map(|config| &config.name))?;
    let mut changes = Vec::with_capacity(asked.configs.len());
    for config in &asked.configs {
        let Some(value) = config.value.clone() else {
            let message = format!("{} cannot be null", config.name);
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
        };
        changes.push(Change { key: config.name.clone(), operation: Operation::Set(value) });
    }
    let kind = asked.resource_type;
    let Resource::Kept(resource) = Resource::parse(context.image, kind, &asked.resource_name)?
    else {
        let message = format!("resources of type {kind} can only be altered incrementally");
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    };
    let present = context.image.overrides(&resource).into_iter().flat_map(Overrides::keys);
    let unnamed = present.filter(|key| asked.configs.iter().all(|config| config.name != **key));
    // The cluster's min.insync.replicas cannot be removed, so not naming it leaves it.
    let removable = unnamed
        .filter(|key| !(resource == ConfigResource::AllNodes && **key == "min.insync.replicas"));
    changes.extend(removable.map(|key| Change { key: key.clone(), operation: Operation::Delete }));
    apply(context, resource, &changes)
}

fn refuse_keys_given_twice<'a>(keys: impl Iterator<Item = &'a Str>) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    for key in keys {
        if !seen.insert(key) {
            let message = format!("{key} is in the request twice");
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
        }
    }
    Ok(())
}

/// The overrides as they will be, checked whole, and the records that lead there.
fn apply(
    context: &Context<'_>,
    resource: ConfigResource,
    changes: &[Change],
) -> Result<Applied, Refusal> {
    let family = family_of(&resource);
    let before = context.image.overrides(&resource).cloned().unwrap_or_default();
    let mut after = before.clone();
    for change in changes {
        match new_value(context, family, &before, change)? {
            Some(value) => after.insert(change.key.detach(), value),
            None => after.remove(&change.key),
        };
    }
    let mut warnings = check(context, &resource, &after, changes)?;
    let changed: BTreeSet<&str> = changes.iter().map(|change| &*change.key).collect();
    warnings.retain(|warning| changed.contains(&*warning.key));
    if let ConfigResource::Topic(name) = &resource
        && context.image.topic(name).is_none()
    {
        let message = format!("there is no topic {name}");
        return Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message));
    }
    let changed = changes.iter().filter(|it| before.get(&it.key) != after.get(&it.key));
    let records = changed.map(|change| {
        let (key, value) = (change.key.detach(), after.get(&change.key).cloned());
        let resource = resource.clone();
        MetadataRecord::ConfigChanged(ConfigChanged { resource, key, value })
    });
    Ok(Applied { records: records.collect(), levels: Vec::new(), warnings })
}

fn new_value(
    context: &Context<'_>,
    family: Family,
    before: &Overrides,
    change: &Change,
) -> Result<Option<Str>, Refusal> {
    let (addition, text) = match &change.operation {
        Operation::Delete => return Ok(None),
        Operation::Set(text) => return Ok(Some(canonical(family, &change.key, text))),
        Operation::Append(text) => (true, text),
        Operation::Subtract(text) => (false, text),
    };
    let key = family.find(&change.key).filter(|key| key.kind == Kind::List);
    let Some(key) = key else {
        let why = ConfigError::NotAList { key: change.key.to_string() };
        return Err(Refusal::new(ErrorCode::INVALID_CONFIG, why));
    };
    let set = before.get(&change.key).and_then(|text| key.parse(text).ok());
    let now = set.or_else(|| match family {
        Family::Broker => context.layers().value(key),
        _ => context.layers().topic_default(key),
    });
    let mut elements = match now {
        Some(Value::List(elements)) => elements,
        _ => Vec::new(),
    };
    let mut named: BTreeSet<&str> =
        text.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
    if addition {
        for element in &elements {
            named.remove(element.as_str());
        }
        // In the order in which they are named, each once.
        let new = text.split(',').map(str::trim).filter(|it| named.remove(it));
        elements.extend(new.map(str::to_owned));
    } else {
        elements.retain(|element| !named.contains(element.as_str()));
    }
    Ok(Some(Str::from(elements.join(","))))
}

fn check(
    context: &Context<'_>,
    resource: &ConfigResource,
    after: &Overrides,
    changes: &[Change],
) -> Result<Vec<Warning>, Refusal> {
    let layers = context.layers();
    let invalid = |why| Refusal::new(ErrorCode::INVALID_CONFIG, why);
    match resource {
        ConfigResource::Topic(_) => check_topic(&layers, after).map_err(invalid),
        ConfigResource::Group(_) => check_group(&layers, after).map_err(invalid),
        // Kafka answers these two with different codes.
        ConfigResource::ClientMetrics(_) => check_client_metrics(after).map_err(|why| match why {
            ConfigError::BadMatch(_) => invalid(why),
            _ => Refusal::new(ErrorCode::INVALID_REQUEST, why),
        }),
        ConfigResource::Node { .. } => check_broker_changes(SetFor::OneNode, after, changes),
        ConfigResource::AllNodes => check_broker_changes(SetFor::AllNodes, after, changes),
    }
}

fn check_broker_changes(
    set_for: SetFor,
    after: &Overrides,
    changes: &[Change],
) -> Result<Vec<Warning>, Refusal> {
    let mut warnings = Vec::new();
    for change in changes {
        let text = after.get(&change.key).map(|text| &**text);
        let warning = check_broker(&change.key, text, set_for).map_err(|why| match why {
            ConfigError::InSyncReplicasOfNode | ConfigError::InSyncReplicasRemoved => {
                Refusal::new(ErrorCode::INVALID_CONFIG, why)
            }
            _ => Refusal::new(ErrorCode::INVALID_REQUEST, why),
        })?;
        warnings.extend(warning);
    }
    Ok(warnings)
}

fn change_levels(levels: Levels<'_>, node: NodeId, changes: &[Change]) -> Result<Applied, Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    if node.host() != levels.node.host() {
        return invalid(format!("ask node {node} itself, this is node {}", levels.node));
    }
    let mut applied = Applied::default();
    for change in changes {
        let level = match &change.operation {
            Operation::Append(_) | Operation::Subtract(_) => {
                return invalid("the level of a logger is no list".to_owned());
            }
            Operation::Delete if change.key == "root" => {
                return invalid("the root logger has to have a level".to_owned());
            }
            Operation::Delete => None,
            Operation::Set(level) => Some(level),
        };
        let refuse = |message: String| Refusal::new(ErrorCode::INVALID_CONFIG, message);
        let known = levels.loggers.iter().find(|(name, _)| change.key == *name);
        let &(logger, _) =
            known.ok_or_else(|| refuse(format!("there is no logger {}", change.key)))?;
        let known_level = |level: &Str| {
            let found = LEVELS.iter().find(|known| known.eq_ignore_ascii_case(level)).copied();
            found.ok_or_else(|| refuse(format!("a level is one of {}", LEVELS.join(", "))))
        };
        let level = level.map(known_level).transpose()?;
        applied.levels.push(LevelChange { logger, level });
    }
    Ok(applied)
}
