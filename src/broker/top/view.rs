//! What happened between two looks: rates, percentiles, lag.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::page::Page;

/// Everything that is shown.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub health: Health,
    pub cores: Vec<Core>,
    /// The busiest first.
    pub topics: Vec<Topic>,
    /// Those that are furthest behind first.
    pub groups: Vec<Group>,
}

#[derive(Clone, Debug, Default)]
pub struct Health {
    pub offline: f64,
    pub under_replicated: f64,
    pub under_min_isr: f64,
    pub connections: f64,
    pub memory_bytes: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Core {
    pub name: String,
    /// Parts of one.
    pub busy: f64,
    pub memory: f64,
    pub requests: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
    /// 99th percentiles in seconds; none without a sample.
    pub delay: Option<f64>,
    pub produce: Option<f64>,
    pub fetch: Option<f64>,
    pub commit: Option<f64>,
}

#[derive(Clone, Debug, Default)]
pub struct Topic {
    pub name: String,
    pub records_in: f64,
    pub bytes_in: f64,
    pub records_out: f64,
    pub bytes_out: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Group {
    pub name: String,
    pub state: String,
    pub members: f64,
    pub idle: f64,
    pub partitions: f64,
    pub lag_records: f64,
    pub lag_seconds: f64,
    /// Records a second by which the lag grows, or shrinks.
    pub growth: f64,
    /// The partitions with a lag, the largest first.
    pub lagging: Vec<Lagging>,
}

#[derive(Clone, Debug)]
pub struct Lagging {
    pub topic: String,
    pub partition: String,
    pub records: f64,
    pub seconds: Option<f64>,
}

/// Two looks at one host.
struct Span<'a> {
    before: &'a Page,
    after: &'a Page,
    seconds: f64,
}

impl View {
    /// Of each host that could be looked at, a look before and one after; `elapsed` lies between
    /// them.
    pub fn between(hosts: &[Option<(Page, Page)>], elapsed: Duration) -> View {
        let mut view = View::default();
        let mut topics: BTreeMap<String, Topic> = BTreeMap::new();
        for (number, host) in hosts.iter().enumerate() {
            let Some((before, after)) = host else { continue };
            let span = Span { before, after, seconds: elapsed.as_secs_f64().max(1e-3) };
            view.health.add(after);
            for core in after.values("coretide_core_uptime_seconds_total", "core") {
                let name = if hosts.len() > 1 { format!("{number}/{core}") } else { core.clone() };
                view.cores.push(Core { name, ..span.core(&core) });
            }
            for name in after.values("coretide_topic_produced_bytes_total", "topic") {
                let topic = topics.entry(name.clone()).or_default();
                span.add_topic(&name, topic);
            }
            let groups = after.values("coretide_group_members", "group");
            view.groups.extend(groups.into_iter().map(|name| span.group(name)));
        }
        view.topics = topics.into_values().collect();
        let traffic = |it: &Topic| it.bytes_in + it.bytes_out;
        view.topics
            .sort_by(|a, b| traffic(b).total_cmp(&traffic(a)).then_with(|| a.name.cmp(&b.name)));
        view.groups.sort_by(|a, b| {
            let by_time = b.lag_seconds.total_cmp(&a.lag_seconds);
            let by_records = b.lag_records.total_cmp(&a.lag_records);
            by_time.then(by_records).then_with(|| a.name.cmp(&b.name))
        });
        view
    }

    /// For scripts; times in seconds, rates per second.
    pub fn as_json(&self) -> Value {
        let Health { offline, under_replicated, under_min_isr, connections, memory_bytes } =
            self.health;
        json!({
            "partitions_offline": offline, "partitions_under_replicated": under_replicated,
            "partitions_under_min_isr": under_min_isr, "connections": connections,
            "memory_bytes": memory_bytes,
            "cores": self.cores.iter().map(Core::as_json).collect::<Vec<_>>(),
            "topics": self.topics.iter().map(Topic::as_json).collect::<Vec<_>>(),
            "groups": self.groups.iter().map(Group::as_json).collect::<Vec<_>>(),
        })
    }
}

impl Health {
    fn add(&mut self, page: &Page) {
        let sum = |name: &str| page.sum(name, &[]);
        self.offline += sum("coretide_partitions_offline");
        self.under_replicated += sum("coretide_partitions_under_replicated");
        self.under_min_isr += sum("coretide_partitions_under_min_isr");
        self.connections += sum("coretide_connections");
        self.memory_bytes += sum("process_resident_memory_bytes");
    }
}

impl Span<'_> {
    fn core(&self, core: &str) -> Core {
        let of = [("core", core)];
        let budget = self.after.sum("coretide_memory_budget_bytes", &of).max(1.0);
        let p99 = |name: &str, labels: &[(&str, &str)]| self.quantile(name, labels, 0.99);
        let request = |api, phase| {
            p99("coretide_request_seconds", &[("api", api), ("phase", phase), ("core", core)])
        };
        Core {
            name: core.to_owned(),
            busy: self.after.sum("coretide_core_utilization_ratio", &of),
            memory: self.after.sum("coretide_memory_used_bytes", &of) / budget,
            requests: self.rate("coretide_requests_total", &of),
            bytes_in: self.rate("coretide_network_received_bytes_total", &of),
            bytes_out: self.rate("coretide_network_sent_bytes_total", &of),
            delay: p99("coretide_core_delay_seconds", &of),
            produce: request("Produce", "total"),
            // What a reader waits for records to be written says nothing about the broker.
            fetch: request("Fetch", "local"),
            commit: p99("coretide_commit_seconds", &of),
        }
    }

    fn add_topic(&self, name: &str, topic: &mut Topic) {
        let of = [("topic", name)];
        topic.name = name.to_owned();
        topic.records_in += self.rate("coretide_topic_produced_records_total", &of);
        topic.bytes_in += self.rate("coretide_topic_produced_bytes_total", &of);
        topic.records_out += self.rate("coretide_topic_fetched_records_total", &of);
        topic.bytes_out += self.rate("coretide_topic_fetched_bytes_total", &of);
    }

    fn group(&self, name: String) -> Group {
        let of = [("group", name.as_str())];
        let states = self.after.rows("coretide_group_state", &of, ["state"]);
        let seconds: BTreeMap<[String; 2], f64> = self
            .after
            .rows("coretide_group_lag_seconds", &of, ["topic", "partition"])
            .into_iter()
            .collect();
        let rows = self.after.rows("coretide_group_lag_records", &of, ["topic", "partition"]);
        let lag_records = rows.iter().fold(0.0, |sum, (_, records)| sum + records);
        let before = self.before.sum("coretide_group_lag_records", &of);
        let mut lagging: Vec<Lagging> = rows
            .into_iter()
            .filter(|(_, records)| *records > 0.0)
            .map(|(key, records)| {
                let seconds = seconds.get(&key).copied();
                let [topic, partition] = key;
                Lagging { topic, partition, records, seconds }
            })
            .collect();
        lagging.sort_by(|a, b| b.records.total_cmp(&a.records));
        let gauge = |metric: &str| self.after.sum(metric, &of);
        Group {
            state: states.into_iter().next().map(|([state], _)| state).unwrap_or_default(),
            members: gauge("coretide_group_members"),
            idle: gauge("coretide_group_members_idle"),
            partitions: gauge("coretide_group_partitions"),
            lag_records,
            lag_seconds: seconds.values().copied().fold(0.0, f64::max),
            growth: (lag_records - before) / self.seconds,
            lagging,
            name,
        }
    }

    /// Of a counter, per second. One that fell has begun anew.
    fn rate(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let (before, after) = (self.before.sum(name, labels), self.after.sum(name, labels));
        let grown = if after >= before { after - before } else { after };
        grown / self.seconds
    }

    /// Of what a histogram counted between the looks, in seconds: within a bucket every value is
    /// taken to be as likely as any other.
    fn quantile(&self, name: &str, labels: &[(&str, &str)], quantile: f64) -> Option<f64> {
        let series = format!("{name}_bucket");
        let counts = |page: &Page| -> BTreeMap<String, f64> {
            let mut counts = BTreeMap::new();
            for ([bound], count) in page.rows(&series, labels, ["le"]) {
                *counts.entry(bound).or_default() += count;
            }
            counts
        };
        let before = counts(self.before);
        let mut buckets: Vec<(f64, f64)> = counts(self.after)
            .into_iter()
            .filter_map(|(bound, count)| {
                let upper = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
                let earlier = before.get(&bound).copied().unwrap_or(0.0);
                Some((upper, if count >= earlier { count - earlier } else { count }))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = buckets.last().map_or(0.0, |it| it.1);
        if total <= 0.0 {
            return None;
        }
        let wanted = total * quantile;
        let (mut lower, mut below) = (0.0, 0.0);
        for (upper, cumulative) in buckets {
            if cumulative >= wanted {
                let inside = (cumulative - below).max(f64::MIN_POSITIVE);
                let width = if upper.is_finite() { upper - lower } else { 0.0 };
                return Some(lower + width * (wanted - below) / inside);
            }
            (lower, below) = (if upper.is_finite() { upper } else { lower }, cumulative);
        }
        Some(lower)
    }
}

impl Core {
    fn as_json(&self) -> Value {
        json!({
            "core": self.name, "busy": self.busy, "memory": self.memory,
            "requests_per_second": self.requests, "bytes_in_per_second": self.bytes_in,
            "bytes_out_per_second": self.bytes_out, "delay_p99": self.delay,
            "produce_p99": self.produce, "fetch_p99": self.fetch, "commit_p99": self.commit,
        })
    }
}

impl Topic {
    fn as_json(&self) -> Value {
        json!({
            "topic": self.name, "records_in_per_second": self.records_in,
            "bytes_in_per_second": self.bytes_in, "records_out_per_second": self.records_out,
            "bytes_out_per_second": self.bytes_out,
        })
    }
}

impl Group {
    /// Why members read nothing; none when all read.
    pub fn why_idle(&self) -> Option<String> {
        let Group { members, idle, partitions, .. } = self;
        if *idle < 1.0 {
            return None;
        }
        let why = match *partitions {
            0.0 => "the topics that they subscribe to do not exist".to_owned(),
            1.0 => format!("{members} members share 1 partition"),
            _ if members > partitions => format!("{members} members share {partitions} partitions"),
            _ => "the assignor gave them none".to_owned(),
        };
        Some(format!("{idle} of {members} members idle: {why}"))
    }

    fn as_json(&self) -> Value {
        let lagging = self.lagging.iter().map(|it| {
            json!({
                "topic": it.topic, "partition": it.partition.parse::<i32>().ok(),
                "lag_records": it.records, "lag_seconds": it.seconds,
            })
        });
        json!({
            "group": self.name, "state": self.state, "members": self.members,
            "members_idle": self.idle, "idle_because": self.why_idle(),
            "partitions": self.partitions, "lag_records": self.lag_records,
            "lag_seconds": self.lag_seconds, "lag_growth_per_second": self.growth,
            "lagging": lagging.collect::<Vec<_>>(),
        })
    }
}
