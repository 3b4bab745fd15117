//! Administrators: they make topics, take them away, give them partitions and other settings.

use std::rc::Rc;

use metadata::topic_name::OFFSETS_TOPIC;
use protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ReassignablePartition,
    ReassignableTopic,
};
use protocol::messages::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic,
};
use protocol::messages::delete_topics::{
    DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};
use protocol::{ErrorCode, Str};
use runtime::time::sleep;

use super::client::Lost;
use super::compacting::table_name;
use super::producing::Producer;
use super::run::{PAUSE, Run, SHARED_NAME, Session, TIMEOUT, Topic, below, one_in};

const PARTITIONS_MAX: i32 = 5;
const TOPIC_RESOURCE: i8 = 2;
/// Node of slot 0.
const FIRST_NODE: i32 = 1000;

/// Makes a topic with settings of the seed's choice.
pub async fn make_topic(run: Rc<Run>, number: u64, may_relax: bool) {
    let relaxed = may_relax && one_in(4);
    let mut configs = Vec::new();
    if relaxed {
        configs.push(("flush.messages", (1000 + below(1000)).to_string()));
    }
    if one_in(2) {
        configs.push(("segment.index.bytes", (16 + 8 * below(30)).to_string()));
        configs.push(("index.interval.bytes", below(1000).to_string()));
    }
    if one_in(4) {
        configs.push(("message.timestamp.type", "LogAppendTime".to_owned()));
    }
    if one_in(4) {
        configs.push(("segment.ms", (200 + below(2000)).to_string()));
    }
    let partitions = 1 + below(3) as i32;
    let mut session = Session::new(&run);
    let made = session.create_topic(&format!("topic-{number}"), partitions, &configs).await;
    if let Some(topic) = made.filter(|_| relaxed) {
        run.history.borrow_mut().relaxed.insert(topic.id);
    }
}

/// Topics that are made, written to, deleted, and made again under the same name.
pub async fn come_and_go(run: Rc<Run>) {
    let mut session = Session::new(&run);
    while !run.stopping.get() {
        sleep(PAUSE * (1 + below(20) as u32)).await;
        let made = session.create_topic(SHARED_NAME, 1 + below(2) as i32, &[]).await;
        let Some(topic) = made else { continue };
        let producer = Producer::new(&run, topic.clone(), -1);
        if one_in(2) {
            producer.produce_plainly(2 + below(6)).await;
        } else {
            producer.produce_idempotently(2 + below(6)).await;
        }
        if !run.stopping.get() && one_in(2) {
            delete_topic(&mut session, &topic).await;
        }
    }
}

async fn delete_topic(session: &mut Session, topic: &Rc<Topic>) {
    let run = session.run.clone();
    topic.deleted.set(true);
    run.history.borrow_mut().deleted.insert(topic.id);
    let request = DeleteTopicsRequest {
        topics: vec![DeleteTopicState { name: None, topic_id: topic.id }],
        timeout_ms: 3000,
        ..DeleteTopicsRequest::default()
    };
    loop {
        if let Ok(node) = session.any_node().await
            && let Ok(answer) = node.call::<_, DeleteTopicsResponse>(&request, 6, TIMEOUT).await
        {
            match answer.responses[0].error_code {
                ErrorCode::NONE | ErrorCode::UNKNOWN_TOPIC_ID => break,
                error if error.retriable() => {}
                error => return run.find(format!("deleting {:?}: {}", topic.name, error.name())),
            }
        }
        if run.stopping.get() {
            return;
        }
        sleep(PAUSE).await;
    }
    run.reach("topic deleted");
}

/// Gives topics more partitions and other settings, now and then.
pub async fn reshape(run: Rc<Run>) {
    let mut session = Session::new(&run);
    while !run.stopping.get() {
        sleep(PAUSE * (1 + below(30) as u32)).await;
        let Some(topic) = run.any_topic().filter(|topic| !topic.shares_name) else { continue };
        let changed = match one_in(2) {
            true => grow(&mut session, &topic).await,
            false => reconfigure(&mut session, &topic).await,
        };
        if changed.is_err() {
            sleep(PAUSE).await;
        }
    }
}

async fn grow(session: &mut Session, topic: &Topic) -> Result<(), Lost> {
    let count = topic.partitions.get() + 1;
    if count > PARTITIONS_MAX {
        return Ok(());
    }
    let wanted = CreatePartitionsTopic { name: topic.name.clone(), count, assignments: None };
    let request =
        CreatePartitionsRequest { topics: vec![wanted], timeout_ms: 3000, validate_only: false };
    let node = session.any_node().await?;
    let answer: CreatePartitionsResponse = node.call(&request, 3, TIMEOUT).await?;
    if answer.results[0].error_code == ErrorCode::NONE {
        topic.partitions.set(count);
        session.run.reach("partitions added");
    }
    Ok(())
}

/// Moves partitions to other slots, those of groups and tables too.
pub async fn rearrange(run: Rc<Run>) {
    let mut session = Session::new(&run);
    while !run.stopping.get() {
        sleep(PAUSE / 4 * (1 + below(60) as u32)).await;
        let Some(name) = any_name(&run) else { continue };
        if rearrange_once(&mut session, name).await.is_err() {
            sleep(PAUSE).await;
        }
    }
}

fn any_name(run: &Run) -> Option<Str> {
    match below(5) {
        0 => Some(Str::from_static(OFFSETS_TOPIC)),
        1 => Some(table_name(0)),
        _ => run.any_topic().map(|topic| topic.name.clone()),
    }
}

async fn rearrange_once(session: &mut Session, name: Str) -> Result<(), Lost> {
    let nodes = session.run.addresses.len() as u64;
    let cancels = one_in(10);
    let partitions = (0..1 + below(3)).map(|_| ReassignablePartition {
        partition_index: below(3) as i32,
        replicas: (!cancels).then(|| vec![FIRST_NODE + below(nodes) as i32]),
    });
    let request = AlterPartitionReassignmentsRequest {
        timeout_ms: 3000,
        topics: vec![ReassignableTopic { name, partitions: partitions.collect() }],
        ..AlterPartitionReassignmentsRequest::default()
    };
    let node = session.any_node().await?;
    let version = below(2) as i16;
    let answer: AlterPartitionReassignmentsResponse = node.call(&request, version, TIMEOUT).await?;
    for partition in &answer.responses[0].partitions {
        match partition.error_code {
            ErrorCode::NONE if !cancels => session.run.reach("partition moved"),
            ErrorCode::NO_REASSIGNMENT_IN_PROGRESS if cancels => {}
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::REQUEST_TIMED_OUT => {}
            error => session.run.find(format!("moving a partition: {}", error.name())),
        }
    }
    Ok(())
}

/// Only to settings under which nothing may be lost that was not before.
async fn reconfigure(session: &mut Session, topic: &Topic) -> Result<(), Lost> {
    let (name, value) = match below(4) {
        0 => ("segment.ms", (300 + below(3000)).to_string()),
        1 => ("index.interval.bytes", below(2000).to_string()),
        2 => ("segment.index.bytes", (16 + 8 * below(50)).to_string()),
        _ => ("flush.messages", "1".to_owned()),
    };
    let config = AlterableConfig {
        name: Str::from(name),
        config_operation: 0,
        value: Some(Str::from(value)),
    };
    let resource = AlterConfigsResource {
        resource_type: TOPIC_RESOURCE,
        resource_name: topic.name.clone(),
        configs: vec![config],
    };
    let request =
        IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let node = session.any_node().await?;
    let answer: IncrementalAlterConfigsResponse = node.call(&request, 1, TIMEOUT).await?;
    match answer.responses[0].error_code {
        ErrorCode::NONE => session.run.reach("topic reconfigured"),
        error if error.retriable() => {}
        error => session.run.find(format!("setting {name}: {}", error.name())),
    }
    Ok(())
}
