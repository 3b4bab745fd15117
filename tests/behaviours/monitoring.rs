//! What operators see: the metrics page, readiness, log lines.

use std::collections::BTreeSet;

use protocol::{ErrorCode, Str};
use serde_json::Value;

use crate::broker::Broker;
use crate::groups::{commit, coordinator};
use crate::scenario::{Topic, batch, batch_at, new_name, now_ms, wait_until};

/// Value of the first line that begins so.
fn value(scraped: &str, start: &str) -> Option<f64> {
    let found = scraped.lines().find_map(|line| line.strip_prefix(start));
    found.map(|value| value.trim().parse().unwrap())
}

fn scrape(broker: &Broker) -> String {
    let (status, body) = broker.http("GET /metrics");
    assert_eq!(status, "HTTP/1.1 200 OK");
    body
}

fn lag(scraped: &str, unit: &str, group: &Str, topic: &Str) -> Option<f64> {
    let labels = format!("{{group=\"{group}\",topic=\"{topic}\",partition=\"0\"}}");
    value(scraped, &format!("coretide_group_lag_{unit}{labels}"))
}

/// Lag is what lies between the committed offset and the end, and the age of its oldest record.
#[test]
fn lag_is_told_in_records_and_seconds() {
    let mut broker = Broker::start_new();
    let topic = Topic::new(&broker, "lagging");
    let group = new_name("group");
    let hour_ago = now_ms() - 3_600_000;
    for place in 0..5 {
        topic.leader(&broker, 0).write(&topic, 0, batch_at(hour_ago, &[&place.to_string()]));
    }
    let mut connection = coordinator(&broker, &group);
    assert_eq!(commit(&mut connection, &group, ("", -1), (&topic, 2)), ErrorCode::NONE);
    let scraped = scrape(&broker);
    assert_eq!(lag(&scraped, "records", &group, &topic.name), Some(3.0), "{scraped}");
    // The time of the append counts, not what the producer wrote into the record.
    let seconds = lag(&scraped, "seconds", &group, &topic.name).unwrap();
    assert!((0.0..300.0).contains(&seconds), "{seconds}");
    let labels = format!("{{topic=\"{}\",partition=\"0\"}}", topic.name);
    assert_eq!(value(&scraped, &format!("coretide_partition_log_end_offset{labels}")), Some(5.0));
    let state = format!("coretide_group_state{{group=\"{group}\",state=\"Empty\"}}");
    assert_eq!(value(&scraped, &state), Some(1.0));

    // What was appended before the start is as old as its record says.
    broker.restart_in_order();
    let mut seconds = 0.0;
    wait_until("the group is loaded", || {
        let found = lag(&scrape(&broker), "seconds", &group, &topic.name);
        seconds = found.unwrap_or_default();
        found.is_some()
    });
    assert!((3_600.0..4_000.0).contains(&seconds), "{seconds}");

    let mut connection = coordinator(&broker, &group);
    assert_eq!(commit(&mut connection, &group, ("", -1), (&topic, 5)), ErrorCode::NONE);
    let scraped = scrape(&broker);
    assert_eq!(lag(&scraped, "records", &group, &topic.name), Some(0.0));
    assert_eq!(lag(&scraped, "seconds", &group, &topic.name), Some(0.0));
}

/// Every phase of a request is told by API and core, traffic by topic, use by core.
#[test]
fn requests_traffic_and_cores_are_measured() {
    let broker = Broker::start_new();
    let topic = Topic::new(&broker, "measured");
    let sent = batch(&["x", "y"]);
    let mut leader = topic.leader(&broker, 0);
    leader.write(&topic, 0, sent.clone());
    assert_eq!(leader.read(&topic, 0, 0).len(), 2);
    let (core, name) = (topic.leaders[0], &topic.name);
    let scraped = scrape(&broker);
    for (api, phase) in [("Produce", "queue"), ("Produce", "local"), ("Fetch", "total")] {
        let labels = format!("{{api=\"{api}\",phase=\"{phase}\",core=\"{core}\"}}");
        let count = value(&scraped, &format!("coretide_request_seconds_count{labels}"));
        assert!(count >= Some(1.0), "{api} {phase} in:\n{scraped}");
    }
    let traffic = |what: &str| {
        let labels = format!("{{topic=\"{name}\",core=\"{core}\"}}");
        value(&scraped, &format!("coretide_topic_{what}_total{labels}")).unwrap()
    };
    assert_eq!((traffic("produced_records"), traffic("fetched_records")), (2.0, 2.0));
    let bytes = sent.len() as f64;
    assert_eq!((traffic("produced_bytes"), traffic("fetched_bytes")), (bytes, bytes));
    for core in [0, 1] {
        let of_core = |name: &str| value(&scraped, &format!("{name}{{core=\"{core}\"}}"));
        for healthy in ["offline", "under_replicated", "under_min_isr"] {
            assert_eq!(of_core(&format!("coretide_partitions_{healthy}")), Some(0.0));
        }
        assert!(of_core("coretide_core_uptime_seconds_total") > Some(0.0));
        assert!(of_core("coretide_core_stalls_total").is_some());
        assert!(of_core("coretide_core_utilization_ratio").is_some());
        assert!(of_core("coretide_memory_budget_bytes") > Some(0.0));
        assert!(of_core("coretide_open_files").is_some());
    }
    assert!(value(&scraped, "process_open_fds") > Some(5.0));
    assert!(value(&scraped, "process_resident_memory_bytes") > Some(1e6));
}

/// Every family has its help and its type once, before its samples, and a name that says what it
/// counts in.
#[test]
fn every_metric_is_described() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "described");
    topic.leader(broker, 0).write(&topic, 0, batch(&["x"]));
    let scraped = scrape(broker);
    let (mut described, mut kind) = (BTreeSet::new(), (String::new(), String::new()));
    let mut helped = String::new();
    for line in scraped.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(help.len() > 5 && help.ends_with('.'), "{line}");
            helped = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, of) = rest.split_once(' ').unwrap();
            assert_eq!(name, helped);
            assert!(described.insert(name.to_owned()), "{name} is described twice");
            assert_eq!(of == "counter", name.ends_with("_total"), "{line}");
            kind = (name.to_owned(), of.to_owned());
        } else {
            let name = line.split(['{', ' ']).next().unwrap();
            let parts: &[&str] = match kind.1.as_str() {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            let known = parts.iter().any(|part| name == format!("{}{part}", kind.0));
            assert!(known, "{line} under {}", kind.0);
        }
    }
    assert!(described.len() > 40, "{described:?}");
}

/// The alert rules, the dashboard and the guide name metrics that exist, and the guide names all.
#[test]
fn documents_name_real_metrics() {
    let broker = Broker::start_new();
    let topic = Topic::new(&broker, "named");
    let mut leader = topic.leader(&broker, 0);
    leader.write(&topic, 0, batch(&["x"]));
    assert_eq!(leader.read(&topic, 0, 0).len(), 1);
    let group = new_name("group");
    let mut connection = coordinator(&broker, &group);
    assert_eq!(commit(&mut connection, &group, ("", -1), (&topic, 0)), ErrorCode::NONE);
    let scraped = scrape(&broker);
    let mut series = BTreeSet::new();
    for line in scraped.lines().filter(|line| !line.starts_with('#')) {
        series.insert(line.split(['{', ' ']).next().unwrap().to_owned());
    }
    let named = |document: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(document);
        let text = std::fs::read_to_string(&path).unwrap();
        let words = text.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_'));
        let metrics = words.filter(|it| it.starts_with("coretide_") || it.starts_with("process_"));
        metrics.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    for document in ["alerts.yml", "grafana-dashboard.json"] {
        let used = named(document);
        assert!(used.len() > 15, "{document}: {used:?}");
        let missing: Vec<_> = used.difference(&series).collect();
        assert!(missing.is_empty(), "{document} names {missing:?}");
    }
    let families: BTreeSet<String> = scraped
        .lines()
        .filter_map(|line| Some(line.strip_prefix("# TYPE ")?.split(' ').next()?.to_owned()))
        .collect();
    let told = named("monitoring.md");
    assert_eq!(told, families, "docs/monitoring.md lists every metric");
}

/// Of metrics that grow with what clients make, no more series are told than is permitted, and of
/// lags the largest.
#[test]
fn series_are_limited() {
    let flags = ["--metrics-series", "2"].map(str::to_owned).to_vec();
    let broker = Broker::start_told(flags);
    let topic = Topic::create(&broker, new_name("many"), 3, &[]);
    for partition in 0..3 {
        topic.leader(&broker, partition).write(&topic, partition, batch(&["x", "y"]));
    }
    let groups: Vec<Str> = (0..4).map(|_| new_name("group")).collect();
    for (offset, group) in (0..).zip(&groups) {
        let mut connection = coordinator(&broker, group);
        let at = (offset - 1_i64).max(0);
        assert_eq!(commit(&mut connection, group, ("", -1), (&topic, at)), ErrorCode::NONE);
    }
    let scraped = scrape(&broker);
    let series = |name: &str| {
        let start = format!("{name}{{");
        scraped.lines().filter(|line| line.starts_with(&start)).count()
    };
    assert_eq!(series("coretide_partition_log_end_offset"), 2);
    assert_eq!(series("coretide_group_lag_records"), 2);
    assert_eq!(series("coretide_group_members"), 2);
    for group in &groups[..2] {
        assert_eq!(lag(&scraped, "records", group, &topic.name), Some(2.0), "{scraped}");
    }
    let omitted = |of: &str| {
        value(&scraped, &format!("coretide_metrics_series_omitted{{of=\"{of}\"}}")).unwrap()
    };
    assert_eq!((omitted("lags"), omitted("groups")), (2.0, 2.0));
    assert!(omitted("partitions") >= 1.0);
    assert_eq!(value(&scraped, "coretide_groups{type=\"classic\",state=\"Empty\"}"), Some(4.0));
}

/// `/readyz` says ready once every core serves.
#[test]
fn readiness_is_told() {
    let broker = Broker::shared();
    let (status, body) = broker.http("GET /readyz");
    assert_eq!((status.as_str(), body.as_str()), ("HTTP/1.1 200 OK", "ready\n"));
}

/// A line for each thing that is wrong, as JSON if so told, and never without end.
#[test]
fn log_lines_are_json_and_limited() {
    let flags = ["--log-format", "json"].map(str::to_owned).to_vec();
    let broker = Broker::start_told(flags);
    for _ in 0..100 {
        let mut connection = broker.connect(0);
        connection.send_frame(b"\xff\xff no request");
        connection.expect_end();
    }
    let printed = broker.printed();
    let lines: Vec<Value> =
        printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let closed: Vec<&Value> = lines
        .iter()
        .filter(|it| it["message"].as_str().is_some_and(|it| it.contains("connection closed")))
        .collect();
    assert!(!closed.is_empty() && closed.len() <= 20, "{}:\n{printed}", closed.len());
    for line in closed {
        assert_eq!(line["level"], "WARN");
        assert!(line["timestamp"].is_string() && line["peer"].is_string(), "{line}");
    }
}
