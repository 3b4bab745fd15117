//! One run from its seed: the load, the faults, the healing, the last reading, the verdict.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use protocol::messages::delete_topics::{
    DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use protocol::{ErrorCode, Uuid};
use runtime::time::sleep;

use super::nemesis::{FAULTS, Nemesis};
use super::producing::Producer;
use super::rules::check;
use super::run::{PAUSE, Run, SHARED_NAME, Session, TIMEOUT, Topic, below, one_in};
use super::stage::Stage;

/// How long clients may take to finish once everything has healed.
const HEALING_MAX: Duration = Duration::from_secs(120);

/// Findings of one run that are worth printing.
const FINDINGS_MAX: usize = 30;

pub struct Report {
    pub findings: Vec<String>,
    pub trace_hash: u64,
    pub reached: BTreeMap<String, u64>,
}

/// What a run is made of.
struct Plan {
    slots: u16,
    topics: u64,
    producers: u64,
    browsers: u64,
    batches: u64,
    /// Producers rest so long between two rounds, at most.
    pause_ms: u64,
    faults: u64,
}

impl Plan {
    fn draw(stage_seed: u64) -> Self {
        let mut state = stage_seed;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (state >> 33) % bound
        };
        draw(2);
        Plan {
            slots: 1 + draw(2) as u16,
            topics: 1 + draw(3),
            producers: 2 + draw(6),
            browsers: 1 + draw(3),
            batches: [40, 200, 1000][draw(3) as usize],
            pause_ms: [0, 20, 100, 400][draw(4) as usize],
            faults: 1 + draw(10),
        }
    }
}

/// Runs a seed to its end, with a guarantee broken on purpose if one is named.
pub fn play(seed: u64, sabotage: Option<&'static str>) -> Report {
    let plan = Plan::draw(seed);
    let set = [
        ("log.segment.delete.delay.ms", "500"),
        ("log.retention.check.interval.ms", "1000"),
        ("auto.create.topics.enable", "false"),
        // The server's clock jumps, the clients' does not.
        ("log.message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let stage = Stage::new(seed, plan.slots, &set, sabotage);
    let addresses = (0..plan.slots).map(|slot| stage.address(slot)).collect();
    let run = Run::new(addresses);
    stage.start_server();
    start_clients(&stage, &run, &plan);
    let nemesis = Nemesis { stage: &stage, run: &run };
    for _ in 0..plan.faults {
        let fault = FAULTS[stage.simulation.below(FAULTS.len() as u64) as usize];
        nemesis.strike(fault);
    }
    stage.simulation.run_for(Duration::from_millis(500));
    nemesis.check_alive();
    finish(&stage, &run);
    report(stage, &run)
}

/// Adds a client task that counts as active until it ends.
fn client<Fut: Future<Output = ()> + 'static>(stage: &Stage, run: &Rc<Run>, task: Fut) {
    run.active.set(run.active.get() + 1);
    let run = run.clone();
    stage.clients.spawn(0, async move {
        task.await;
        run.active.set(run.active.get() - 1);
    });
}

fn start_clients(stage: &Stage, run: &Rc<Run>, plan: &Plan) {
    for number in 0..plan.topics {
        client(stage, run, make_topic(run.clone(), number));
    }
    for _ in 0..plan.producers {
        client(stage, run, produce(run.clone(), plan.batches, plan.pause_ms));
    }
    for _ in 0..plan.browsers {
        client(stage, run, Session::new(run).browse());
    }
    client(stage, run, come_and_go(run.clone()));
}

async fn make_topic(run: Rc<Run>, number: u64) {
    let relaxed = one_in(4);
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

async fn produce(run: Rc<Run>, batches: u64, pause_ms: u64) {
    let topic = loop {
        if let Some(topic) = run.any_topic() {
            break topic;
        }
        if run.stopping.get() {
            return;
        }
        sleep(PAUSE).await;
    };
    let mut producer = Producer::new(&run, topic, [0, 1, -1, -1][below(4) as usize]);
    producer.pause_ms = pause_ms;
    if one_in(3) {
        producer.produce_plainly(batches).await;
    } else {
        producer.produce_idempotently(batches).await;
    }
}

/// Topics that are made, written to, deleted, and made again under the same name.
async fn come_and_go(run: Rc<Run>) {
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

/// Everything has healed: the clients bring to an end what they began, and all is read once more.
fn finish(stage: &Stage, run: &Rc<Run>) {
    run.stopping.set(true);
    let idle = stage.simulation.run_until(|_| run.active.get() == 0, HEALING_MAX);
    if !idle {
        return run.find(format!("{} clients never finished", run.active.get()));
    }
    let topics: Vec<_> = run.topics.borrow().iter().filter(|t| !t.deleted.get()).cloned().collect();
    for topic in topics {
        let reading = run.clone();
        client(stage, run, async move {
            let mut session = Session::new(&reading);
            for partition in 0..topic.partitions {
                session.read_to_the_end(&topic, partition).await;
            }
        });
    }
    let read = stage.simulation.run_until(|_| run.active.get() == 0, HEALING_MAX);
    if !read {
        run.find(format!("not everything could be read: {:?}", run.unread.borrow()));
    }
    if stage.simulation.exited(&stage.server).is_some() {
        run.find(format!("it ended: {:?}", stage.simulation.exited(&stage.server)));
    }
}

fn report(stage: Stage, run: &Run) -> Report {
    let mut findings = run.findings.borrow().clone();
    findings.extend(check(&run.history.borrow()));
    if !findings.is_empty() {
        findings.truncate(FINDINGS_MAX);
        findings.push(format!("faults were {:?}", run.faults.borrow()));
    }
    let mut reached: BTreeMap<String, u64> = BTreeMap::new();
    for (point, count) in stage.simulation.reached() {
        reached.insert(point.to_owned(), count);
    }
    for (what, count) in run.reached.borrow().iter() {
        reached.insert((*what).to_owned(), *count);
    }
    for (what, count) in derived(run) {
        reached.insert(what.to_owned(), count);
    }
    Report { findings, trace_hash: stage.simulation.trace_hash(), reached }
}

/// What can be told from the history alone.
fn derived(run: &Run) -> Vec<(&'static str, u64)> {
    let history = run.history.borrow();
    let mut tries: BTreeMap<_, u64> = BTreeMap::new();
    for produce in &history.produces {
        if let Some(sequence) = produce.sequence {
            *tries.entry((produce.key, sequence)).or_default() += 1;
        }
    }
    let resent = tries.values().filter(|count| **count > 1).count() as u64;
    let epochs = |topic: Uuid| {
        let finals = history.finals.iter().filter(move |(key, _)| key.topic == topic);
        finals.flat_map(|(_, log)| &log.batches).map(|batch| batch.epoch).max().unwrap_or(0)
    };
    let newer = history.finals.keys().filter(|key| epochs(key.topic) > 0).count() as u64;
    let counts = [("batch resent", resent), ("leader epoch grew", newer)];
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}
