//! From arguments to a run and its outcome.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use runtime::Config;

use crate::assignment::{Share, deal};
use crate::batches::{Batch, Fill, Generator, Shape};
use crate::cluster::Cluster;
use crate::commit::{self, Committing};
use crate::consume::Reading;
use crate::options::{
    CommitArgs, ConsumeArgs, EndToEndArgs, LoadArgs, PayloadArgs, ProduceArgs, ReadingArgs,
    SendingArgs, StartAt, TargetArgs,
};
use crate::outcome::{Kind, Outcome};
use crate::play::{self, Plan};
use crate::produce::{Content, Sending};
use crate::sampler::Sampler;
use crate::stage::{LoadCore, Span, Stage, run_once};
use crate::tally::{Detail, Told};

pub fn produce(args: &ProduceArgs) -> anyhow::Result<Outcome> {
    let place = Place::of(&args.load)?;
    let cluster = place.survey(&args.target)?;
    let content = if args.sending.idempotent { Content::Idempotent } else { Content::Prepared };
    let sending = sending(&args.sending, &args.payload, content, BATCH_BYTES)?;
    let senders = senders(&cluster, &args.load, &sending)?;
    let per_request = records_per_request(&sending, &senders)?;
    let plan = Plan {
        cluster,
        senders,
        readers: Vec::new(),
        requests: args.load.records.map(|records| records.div_ceil(per_request)),
        records: None,
        sending: Some(in_requests(sending, per_request)),
        reading: None,
    };
    place.play(&args.load, Kind::Produce, move |core| play::play(core, plan.clone()))
}

pub fn consume(args: &ConsumeArgs) -> anyhow::Result<Outcome> {
    let place = Place::of(&args.load)?;
    let cluster = place.survey(&args.target)?;
    ensure!(args.fan_out > 0, "--fan-out 0 reads nothing");
    let readers = deal(&cluster.leaders, args.load.connections)?;
    let readers = vec![readers; args.fan_out].concat();
    let plan = Plan {
        cluster,
        senders: Vec::new(),
        readers,
        requests: None,
        records: args.load.records,
        sending: None,
        reading: Some(reading(&args.reading, args.from, args.repeat, None)),
    };
    place.play(&args.load, Kind::Consume, move |core| play::play(core, plan.clone()))
}

pub fn end_to_end(args: &EndToEndArgs) -> anyhow::Result<Outcome> {
    let place = Place::of(&args.load)?;
    let cluster = place.survey(&args.target)?;
    ensure!(!args.sending.idempotent, "e2e stamps every batch anew and does not number them");
    ensure!(args.sending.partitions_per_request == 1, "e2e sends one partition a request");
    let run_id = u64::from(std::process::id()) << 32 | u64::from(u32::from_ne_bytes(nonce()?));
    let content = Content::Stamped { run_id };
    // One record a batch: what a producer without linger sends.
    let sending = sending(&args.sending, &args.payload, content, 0)?;
    let senders = senders(&cluster, &args.load, &sending)?;
    let per_request = records_per_request(&sending, &senders)?;
    let readers = deal(&cluster.leaders, args.readers)?;
    let plan = Plan {
        cluster,
        senders,
        readers,
        requests: args.load.records.map(|records| records.div_ceil(per_request)),
        records: None,
        sending: Some(in_requests(sending, per_request)),
        reading: Some(reading(&args.reading, StartAt::Latest, false, Some(run_id))),
    };
    place.play(&args.load, Kind::EndToEnd, move |core| play::play(core, plan.clone()))
}

pub fn commit(args: &CommitArgs) -> anyhow::Result<Outcome> {
    let place = Place::of(&args.load)?;
    let cluster = place.survey(&args.target)?;
    let (connections, per_commit) = (args.load.connections, args.partitions_per_commit);
    let there = cluster.leaders.len();
    ensure!(
        (1..=there).contains(&per_commit),
        "the topic has {there} partitions, a commit cannot name {per_commit}"
    );
    ensure!(args.in_flight > 0, "--in-flight 0 sends nothing");
    ensure!(args.rate.is_none_or(|rate| rate > 0.0), "--rate must be above 0");
    let groups = args.groups.unwrap_or(connections);
    ensure!(groups >= connections, "{groups} groups are not enough for {connections} connections");
    let run = Committing {
        connections,
        groups,
        prefix: args.group_prefix.clone(),
        partitions_per_commit: per_commit,
        in_flight: args.in_flight,
        commits: args.load.records.map(|records| records.div_ceil(per_commit as u64)),
        rate: args.rate,
    };
    let main = move |core| commit::play(core, cluster.clone(), run.clone());
    place.play(&args.load, Kind::Commit, main)
}

/// Where the load is made.
struct Place {
    config: Config,
}

impl Place {
    fn of(load: &LoadArgs) -> anyhow::Result<Place> {
        let cpus = match &load.load_cpus {
            Some(list) => list.0.clone(),
            None => vec![last_cpu()?],
        };
        runtime::raise_limits();
        let config = Config { spin: load.spin, ..Config::new(cpus) };
        Ok(Place { config })
    }

    fn survey(&self, target: &TargetArgs) -> anyhow::Result<Cluster> {
        let target = target.clone();
        let config = Config { cpus: self.config.cpus[..1].to_vec(), ..self.config.clone() };
        run_once(config, move || Cluster::survey(target.clone()))
    }

    fn play<F, Fut>(&self, load: &LoadArgs, kind: Kind, main: F) -> anyhow::Result<Outcome>
    where
        F: Fn(LoadCore) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = anyhow::Result<()>> + 'static,
    {
        ensure!(load.connections > 0, "no connections, no load");
        ensure!(load.interval != Some(Duration::ZERO), "--interval 0 never ends a span");
        if let Some(pid) = load.pid {
            crate::usage::Usage::of(pid)?;
        }
        let counted = load.records.is_some();
        let warm_up = if counted { Duration::ZERO } else { WARM_UP };
        let duration = if counted { FOREVER } else { DURATION };
        let span = Span {
            warm_up: load.warm_up.unwrap_or(warm_up),
            duration: load.duration.unwrap_or(duration),
        };
        let told = if kind == Kind::EndToEnd { Told::Deliveries } else { Told::Answers };
        let detail = Detail { by_second: load.hlog.is_some(), spans: load.interval.map(|_| told) };
        let stage = Stage::new(self.config.cpus.len(), span, detail);
        let sampler = Sampler::start(Arc::clone(&stage), load.pid, load.interval)?;
        let totals = stage.run(self.config.clone(), main);
        let usage = sampler.finish();
        let mut totals = totals?;
        let missing = if kind == Kind::EndToEnd { play::missing(&stage.live) } else { 0 };
        if missing > 0 {
            totals.errors.insert("acknowledged and not delivered".to_owned(), missing);
        }
        let window = stage.window().context("the run never began")?;
        Ok(Outcome::new(kind, totals, window, usage))
    }
}

fn sending(
    args: &SendingArgs,
    payload: &PayloadArgs,
    content: Content,
    batch_bytes: usize,
) -> anyhow::Result<Sending> {
    ensure!(args.in_flight > 0, "--in-flight 0 sends nothing");
    ensure!(args.partitions_per_request > 0, "--partitions-per-request 0 sends nothing");
    ensure!(args.rate.is_none_or(|rate| rate > 0.0), "--rate must be above 0");
    if content == Content::Idempotent {
        ensure!(args.in_flight <= 5, "a broker keeps order for five requests in flight, no more");
        let all = args.acks == crate::options::Acks::All;
        ensure!(all, "an idempotent producer needs --acks all");
    }
    let shape = Shape::of(payload, Fill::Bytes(batch_bytes));
    let batches = match content {
        Content::Stamped { .. } => Vec::new(),
        _ => Generator::new(shape, SEED).batches(BATCHES, runtime::time::wall_ms()),
    };
    Ok(Sending {
        acks: args.acks,
        in_flight: args.in_flight,
        partitions_per_request: args.partitions_per_request,
        content,
        shape,
        batches: Arc::from(batches),
        rate: args.rate,
    })
}

fn senders(cluster: &Cluster, load: &LoadArgs, sending: &Sending) -> anyhow::Result<Vec<Share>> {
    let shares = deal(&cluster.leaders, load.connections)?;
    let smallest = shares.iter().map(|share| share.partitions.len()).min().unwrap_or(0);
    ensure!(
        sending.partitions_per_request <= smallest,
        "a connection has only {smallest} partitions of its own, fewer than a request shall carry"
    );
    Ok(shares)
}

/// The same `Sending` with its rate in requests.
fn in_requests(sending: Sending, records_per_request: u64) -> Sending {
    let rate = sending.rate.map(|rate| rate / records_per_request as f64);
    Sending { rate, ..sending }
}

fn records_per_request(sending: &Sending, senders: &[Share]) -> anyhow::Result<u64> {
    let batches: &[Batch] = &sending.batches;
    let per_batch = match batches.first() {
        Some(batch) => batch.records,
        None => Generator::new(sending.shape, SEED).batch(0, None).records,
    };
    ensure!(!senders.is_empty(), "nobody sends");
    Ok(per_batch * sending.partitions_per_request as u64)
}

fn reading(args: &ReadingArgs, from: StartAt, repeat: bool, run_id: Option<u64>) -> Reading {
    Reading {
        fetch_bytes: args.fetch_bytes,
        partition_bytes: args.partition_bytes,
        max_wait: args.max_wait,
        sessions: !args.sessionless,
        check_crc: args.check_crc,
        repeat,
        from,
        run_id,
    }
}

fn last_cpu() -> anyhow::Result<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).context("asking for this process's CPUs")?;
    let last = (0..CpuSet::count()).rev().find(|&cpu| allowed.is_set(cpu).unwrap_or(false));
    last.context("this process may use no CPU")
}

fn nonce() -> anyhow::Result<[u8; 4]> {
    use std::io::Read;
    let mut bytes = [0; 4];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

const WARM_UP: Duration = Duration::from_secs(1);
const DURATION: Duration = Duration::from_secs(10);
/// Of a run that ends by the number of its records.
const FOREVER: Duration = Duration::from_secs(7 * 24 * 3600);
/// A batch unless the arguments say otherwise: the default of Kafka's own producer.
const BATCH_BYTES: usize = 16 << 10;
/// Different batches that are sent in turn.
const BATCHES: usize = 16;
/// Of their contents.
const SEED: u64 = 0x5EED;
