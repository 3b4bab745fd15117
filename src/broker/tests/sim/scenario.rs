//! One run from its seed: the load, the faults, the healing, the last reading, the verdict.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use protocol::{Str, Uuid};
use runtime::time::sleep;

use super::administering::{come_and_go, make_topic, rearrange, reshape};
use super::committing::{commit_alone, read_committed, take_part};
use super::compacting::keep;
use super::consuming::consume;
use super::nemesis::{FAULTS, Fault, Nemesis};
use super::producing::Producer;
use super::rules::check;
use super::run::{PAUSE, Run, Session, below, one_in};
use super::stage::Stage;

/// How long clients may take to finish once everything has healed.
const HEALING_MAX: Duration = Duration::from_secs(120);

/// Findings of one run that are worth printing.
const FINDINGS_MAX: usize = 30;

/// How long a partition that was damaged is tried to be read.
const DAMAGED_READING_MAX: Duration = Duration::from_secs(5);

const SETTINGS: [(&str, &str); 13] = [
    ("log.cleaner.backoff.ms", "300"),
    ("log.segment.delete.delay.ms", "500"),
    ("log.retention.check.interval.ms", "1000"),
    ("auto.create.topics.enable", "false"),
    ("group.initial.rebalance.delay.ms", "100"),
    ("group.min.session.timeout.ms", "1000"),
    ("group.consumer.min.session.timeout.ms", "1000"),
    ("group.consumer.session.timeout.ms", "2000"),
    ("group.consumer.min.heartbeat.interval.ms", "100"),
    ("group.consumer.heartbeat.interval.ms", "500"),
    ("offsets.topic.num.partitions", "2"),
    // Clocks jump by days, and what was committed stays.
    ("offsets.retention.minutes", "5256000"),
    // The server's clock jumps, the clients' does not.
    ("log.message.timestamp.after.max.ms", "9223372036854775807"),
];

/// The group of those who are no members.
const ALONE: Str = Str::from_static("alone");

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
    /// Compacted topics.
    tables: u64,
    /// Whether some topics are flushed only now and then.
    relaxed: bool,
    /// Whether topics get more partitions and other configurations meanwhile.
    reshapes: bool,
    /// Groups with members.
    groups: u64,
    members: u64,
    /// Whether partitions move between slots meanwhile.
    moves: bool,
    /// Groups of the consumer protocol, with as many members.
    consumers: u64,
    journal_size: &'static str,
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
            slots: 1 + draw(3) as u16,
            topics: 1 + draw(3),
            producers: 2 + draw(6),
            browsers: 1 + draw(3),
            batches: [40, 200, 1000][draw(3) as usize],
            pause_ms: [0, 20, 100, 400][draw(4) as usize],
            faults: 1 + draw(10),
            relaxed: true,
            reshapes: draw(2) == 0,
            groups: draw(3),
            members: 1 + draw(4),
            tables: draw(2),
            moves: draw(4) > 0,
            consumers: draw(2),
            journal_size: ["256KiB", "256KiB", "1MiB", "0"][draw(4) as usize],
        }
    }
}

/// Runs a seed to its end, with a guarantee broken on purpose if one is named.
pub fn play(seed: u64, sabotage: Option<&'static str>) -> Report {
    let plan = Plan::draw(seed);
    let stage = Stage::new(seed, plan.slots, &SETTINGS, sabotage, plan.journal_size);
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
    finish(&stage, &run, &plan);
    report(stage, &run)
}

/// Adds a client task that counts as active until it ends.
pub fn client<Fut: Future<Output = ()> + 'static>(stage: &Stage, run: &Rc<Run>, task: Fut) {
    run.active.set(run.active.get() + 1);
    let run = run.clone();
    stage.clients.spawn(0, async move {
        task.await;
        run.active.set(run.active.get() - 1);
    });
}

/// Runs a seed in which one bit of one acknowledged batch flips on the disk. Nothing wrong may be
/// served of it, and everything else must still be there.
pub fn play_damaged(seed: u64) -> Report {
    let plan = Plan { faults: 0, tables: 0, relaxed: false, batches: 60, ..Plan::draw(seed) };
    let stage = Stage::new(seed, plan.slots, &SETTINGS, None, plan.journal_size);
    let addresses = (0..plan.slots).map(|slot| stage.address(slot)).collect();
    let run = Run::new(addresses);
    stage.start_server();
    start_clients(&stage, &run, &plan);
    let nemesis = Nemesis { stage: &stage, run: &run };
    for _ in 0..stage.simulation.below(3) {
        nemesis.strike(Fault::Kill);
    }
    stage.simulation.run_for(Duration::from_millis(stage.simulation.below(3000)));
    run.stopping.set(true);
    if !stage.simulation.run_until(|_| run.active.get() == 0, HEALING_MAX) {
        run.find(format!("{} clients never finished", run.active.get()));
    }
    let damaged = nemesis.damage_a_batch();
    stage.start_server();
    read_everything(&stage, &run);
    stage.simulation.run_until(|_| run.active.get() == 0, DAMAGED_READING_MAX);
    nemesis.check_alive();
    let unread = run.unread.borrow().clone();
    for (key, why) in &unread {
        match damaged == Some(*key) {
            true => run.reach("damaged partition refused"),
            false => run.find(format!("{key:?} was not damaged and cannot be read: {why}")),
        }
    }
    report(stage, &run)
}

fn start_clients(stage: &Stage, run: &Rc<Run>, plan: &Plan) {
    for number in 0..plan.topics {
        client(stage, run, make_topic(run.clone(), number, plan.relaxed));
    }
    for _ in 0..plan.producers {
        client(stage, run, produce(run.clone(), plan.batches, plan.pause_ms));
    }
    for _ in 0..plan.browsers {
        client(stage, run, Session::new(run).browse());
    }
    for group in 0..plan.groups {
        for number in 0..plan.members {
            client(stage, run, take_part(run.clone(), group_name(group), number));
        }
    }
    for group in 0..plan.consumers {
        for number in 0..plan.members {
            client(stage, run, consume(run.clone(), consumers_name(group), number));
        }
    }
    if plan.groups > 0 {
        client(stage, run, commit_alone(run.clone(), ALONE));
        client(stage, run, commit_alone(run.clone(), ALONE));
    }
    for number in 0..plan.tables {
        client(stage, run, keep(run.clone(), number));
    }
    client(stage, run, come_and_go(run.clone()));
    if plan.moves && plan.slots > 1 {
        client(stage, run, rearrange(run.clone()));
    }
    if plan.reshapes {
        client(stage, run, reshape(run.clone()));
    }
}

fn group_name(number: u64) -> Str {
    Str::from(format!("group-{number}"))
}

fn consumers_name(number: u64) -> Str {
    Str::from(format!("consumers-{number}"))
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

/// Everything has healed: the clients bring to an end what they began, and all is read once more.
fn finish(stage: &Stage, run: &Rc<Run>, plan: &Plan) {
    run.stopping.set(true);
    let idle = stage.simulation.run_until(|_| run.active.get() == 0, HEALING_MAX);
    if !idle {
        return run.find(format!("{} clients never finished", run.active.get()));
    }
    if plan.groups + plan.consumers > 0 {
        // What is known of groups then comes from the log alone.
        stage.simulation.kill(&stage.server);
        stage.start_server();
        let groups = (0..plan.groups).map(group_name).chain([ALONE]);
        let groups = groups.chain((0..plan.consumers).map(consumers_name));
        groups.for_each(|group| client(stage, run, read_committed(run.clone(), group)));
    }
    read_everything(stage, run);
    let read = stage.simulation.run_until(|_| run.active.get() == 0, HEALING_MAX);
    if !read {
        run.find(format!("not everything could be read: {:?}", run.unread.borrow()));
    }
    if stage.simulation.exited(&stage.server).is_some() {
        run.find(format!("it ended: {:?}", stage.simulation.exited(&stage.server)));
    }
}

/// Starts to read every partition from its beginning to its end.
pub fn read_everything(stage: &Stage, run: &Rc<Run>) {
    let topics: Vec<_> =
        run.topics.borrow().iter().filter(|topic| !topic.deleted.get()).cloned().collect();
    for topic in topics {
        let reading = run.clone();
        client(stage, run, async move {
            let mut session = Session::new(&reading);
            for partition in 0..topic.partitions.get() {
                session.read_to_the_end(&topic, partition).await;
            }
        });
    }
}

pub fn report(stage: Stage, run: &Run) -> Report {
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
