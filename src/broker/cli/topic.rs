//! `coretide topic`: create, list, describe, alter, delete.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use protocol::Str;
use protocol::messages::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic,
};
use protocol::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, CreateTopicsResponse,
};
use protocol::messages::delete_topics::{
    DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse,
};
use protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};
use protocol::messages::metadata::MetadataResponseTopic;
use serde_json::json;

use crate::client::{Client, check};

/// Creates, lists, describes, changes and deletes topics.
#[derive(Debug, Args)]
pub struct TopicArgs {
    #[command(subcommand)]
    command: TopicCommand,
}

#[derive(Debug, Args)]
pub(super) struct Bootstrap {
    /// Any node of the cluster; several addresses are tried in order
    #[arg(long, value_name = "HOST:PORT", env = "CORETIDE_BOOTSTRAP")]
    #[arg(default_value = "127.0.0.1:9092")]
    pub bootstrap: String,
    /// Print JSON for scripts
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
enum TopicCommand {
    /// Create a topic
    Create {
        name: String,
        /// Number of partitions [default: the broker's num.partitions]
        #[arg(long, value_name = "N")]
        partitions: Option<i32>,
        /// Copies on different hosts [default: the broker's default.replication.factor]
        #[arg(long, value_name = "R")]
        replication_factor: Option<i16>,
        /// A topic config such as retention.ms=3600000; repeatable
        #[arg(long = "config", value_name = "KEY=VALUE")]
        configs: Vec<String>,
        #[command(flatten)]
        to: Bootstrap,
    },
    /// List the names of all topics
    List {
        #[command(flatten)]
        to: Bootstrap,
    },
    /// Show partitions, leaders and changed configs of a topic
    Describe {
        name: String,
        #[command(flatten)]
        to: Bootstrap,
    },
    /// Add partitions, set or remove configs
    Alter {
        name: String,
        /// New number of partitions; it can only grow, and keys will map to other partitions
        #[arg(long, value_name = "N")]
        partitions: Option<i32>,
        /// Set a config; repeatable
        #[arg(long = "config", value_name = "KEY=VALUE")]
        configs: Vec<String>,
        /// Remove a config, so that the default holds again; repeatable
        #[arg(long = "delete-config", value_name = "KEY")]
        delete_configs: Vec<String>,
        #[command(flatten)]
        to: Bootstrap,
    },
    /// Delete a topic and all its records
    Delete {
        name: String,
        #[command(flatten)]
        to: Bootstrap,
    },
}

pub(super) fn run(args: TopicArgs) -> anyhow::Result<()> {
    match args.command {
        TopicCommand::Create { name, partitions, replication_factor, configs, to } => {
            create(&name, partitions, replication_factor, &configs, &to)
        }
        TopicCommand::List { to } => list(&to),
        TopicCommand::Describe { name, to } => describe(&name, &to),
        TopicCommand::Alter { name, partitions, configs, delete_configs, to } => {
            alter(&name, partitions, &configs, &delete_configs, &to)
        }
        TopicCommand::Delete { name, to } => delete(&name, &to),
    }
}

fn create(
    name: &str,
    partitions: Option<i32>,
    replication_factor: Option<i16>,
    configs: &[String],
    to: &Bootstrap,
) -> anyhow::Result<()> {
    let configs = configs.iter().map(|text| {
        let (key, value) = assignment(text)?;
        Ok(CreatableTopicConfig { name: Str::from(key), value: Some(Str::from(value)) })
    });
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: Str::from(name.to_owned()),
            num_partitions: partitions.unwrap_or(-1),
            replication_factor: replication_factor.unwrap_or(-1),
            assignments: Vec::new(),
            configs: configs.collect::<anyhow::Result<_>>()?,
        }],
        ..CreateTopicsRequest::default()
    };
    let response: CreateTopicsResponse = Client::connect(&to.bootstrap)?.ask(&request)?;
    let topic = response.topics.first().context("the broker answered for no topic")?;
    check(topic.error_code, topic.error_message.as_ref())?;
    say(
        to,
        json!({
            "topic": name,
            "id": topic.topic_id.to_string(),
            "partitions": topic.num_partitions,
        }),
        format!("created {name} with {} partitions", topic.num_partitions),
    );
    Ok(())
}

fn list(to: &Bootstrap) -> anyhow::Result<()> {
    let metadata = Client::connect(&to.bootstrap)?.metadata(&[])?;
    let mut topics = metadata.topics;
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    if to.json {
        let rows = topics.iter().map(|topic| {
            json!({
                "topic": topic.name.as_deref().unwrap_or_default(),
                "id": topic.topic_id.to_string(),
                "partitions": topic.partitions.len(),
                "internal": topic.is_internal,
            })
        });
        println!("{}", serde_json::Value::Array(rows.collect()));
        return Ok(());
    }
    for topic in &topics {
        println!("{}", topic.name.as_deref().unwrap_or_default());
    }
    Ok(())
}

fn describe(name: &str, to: &Bootstrap) -> anyhow::Result<()> {
    let mut client = Client::connect(&to.bootstrap)?;
    let topic = client.topic(name)?;
    let configs = changed_configs(&mut client, name)?;
    if to.json {
        println!("{}", describe_json(name, &topic, &configs));
        return Ok(());
    }
    println!("topic       {name}");
    println!("id          {}", topic.topic_id);
    println!("partitions  {}", topic.partitions.len());
    for (key, value) in &configs {
        println!("config      {key}={value}");
    }
    println!("{:>9}  {:>8}  {:>5}  replicas", "partition", "leader", "epoch");
    let mut partitions = topic.partitions;
    partitions.sort_by_key(|partition| partition.partition_index);
    for each in partitions {
        let replicas: Vec<String> = each.replica_nodes.iter().map(i32::to_string).collect();
        let (index, leader, epoch) = (each.partition_index, each.leader_id, each.leader_epoch);
        println!("{index:>9}  {leader:>8}  {epoch:>5}  {}", replicas.join(","));
    }
    Ok(())
}

fn describe_json(
    name: &str,
    topic: &MetadataResponseTopic,
    configs: &BTreeMap<String, String>,
) -> serde_json::Value {
    let partitions = topic.partitions.iter().map(|each| {
        json!({
            "partition": each.partition_index,
            "leader": each.leader_id,
            "leader_epoch": each.leader_epoch,
            "replicas": each.replica_nodes,
            "in_sync": each.isr_nodes,
        })
    });
    let partitions: Vec<_> = partitions.collect();
    let id = topic.topic_id.to_string();
    json!({"topic": name, "id": id, "configs": configs, "partitions": partitions})
}

/// Configs of the topic that differ from the broker's defaults.
fn changed_configs(client: &mut Client, name: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: RESOURCE_TOPIC,
            resource_name: Str::from(name.to_owned()),
            configuration_keys: None,
        }],
        ..DescribeConfigsRequest::default()
    };
    let response: DescribeConfigsResponse = client.ask(&request)?;
    let result = response.results.into_iter().next().context("no answer about configs")?;
    check(result.error_code, result.error_message.as_ref())?;
    let own = result.configs.into_iter().filter(|config| config.config_source == SOURCE_TOPIC);
    Ok(own
        .map(|config| (config.name.to_string(), config.value.unwrap_or_default().to_string()))
        .collect())
}

fn alter(
    name: &str,
    partitions: Option<i32>,
    configs: &[String],
    delete_configs: &[String],
    to: &Bootstrap,
) -> anyhow::Result<()> {
    if partitions.is_none() && configs.is_empty() && delete_configs.is_empty() {
        bail!("nothing to alter: give --partitions, --config or --delete-config");
    }
    let mut client = Client::connect(&to.bootstrap)?;
    if let Some(count) = partitions {
        add_partitions(&mut client, name, count)?;
        eprintln!(
            "coretide: keys of {name} now map to other partitions than before; \
             their order holds only among new records"
        );
    }
    if !configs.is_empty() || !delete_configs.is_empty() {
        alter_configs(&mut client, name, configs, delete_configs)?;
    }
    say(to, json!({"topic": name, "altered": true}), format!("altered {name}"));
    Ok(())
}

fn add_partitions(client: &mut Client, name: &str, count: i32) -> anyhow::Result<()> {
    let request = CreatePartitionsRequest {
        topics: vec![CreatePartitionsTopic {
            name: Str::from(name.to_owned()),
            count,
            assignments: None,
        }],
        timeout_ms: 60_000,
        validate_only: false,
    };
    let response: CreatePartitionsResponse = client.ask(&request)?;
    let result = response.results.first().context("the broker answered for no topic")?;
    check(result.error_code, result.error_message.as_ref())
}

fn alter_configs(
    client: &mut Client,
    name: &str,
    configs: &[String],
    delete_configs: &[String],
) -> anyhow::Result<()> {
    let mut changes = Vec::new();
    for text in configs {
        let (key, value) = assignment(text)?;
        let (name, value) = (Str::from(key), Some(Str::from(value)));
        changes.push(AlterableConfig { name, config_operation: OPERATION_SET, value });
    }
    for key in delete_configs {
        let name = Str::from(key.clone());
        changes.push(AlterableConfig { name, config_operation: OPERATION_DELETE, value: None });
    }
    let request = IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: RESOURCE_TOPIC,
            resource_name: Str::from(name.to_owned()),
            configs: changes,
        }],
        validate_only: false,
    };
    let response: IncrementalAlterConfigsResponse = client.ask(&request)?;
    let result = response.responses.first().context("the broker answered for no topic")?;
    check(result.error_code, result.error_message.as_ref())
}

fn delete(name: &str, to: &Bootstrap) -> anyhow::Result<()> {
    let topic = Some(Str::from(name.to_owned()));
    let request = DeleteTopicsRequest {
        topics: vec![DeleteTopicState { name: topic, ..DeleteTopicState::default() }],
        // Before version 6 topics are named here.
        topic_names: vec![Str::from(name.to_owned())],
        timeout_ms: 60_000,
    };
    let response: DeleteTopicsResponse = Client::connect(&to.bootstrap)?.ask(&request)?;
    let result = response.responses.first().context("the broker answered for no topic")?;
    check(result.error_code, result.error_message.as_ref())?;
    say(to, json!({"topic": name, "deleted": true}), format!("deleted {name}"));
    Ok(())
}

fn say(to: &Bootstrap, json: serde_json::Value, text: String) {
    if to.json {
        println!("{json}");
    } else {
        println!("{text}");
    }
}

fn assignment(text: &str) -> anyhow::Result<(String, String)> {
    let (key, value) = text.split_once('=').with_context(|| {
        format!("--config '{text}': write KEY=VALUE, like retention.ms=3600000")
    })?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

const RESOURCE_TOPIC: i8 = 2;
/// DYNAMIC_TOPIC_CONFIG in DescribeConfigs answers.
const SOURCE_TOPIC: i8 = 1;
const OPERATION_SET: i8 = 0;
const OPERATION_DELETE: i8 = 1;
