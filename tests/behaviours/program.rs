//! The program itself: its start, its end, its commands, its admin port.

use protocol::ErrorCode;
use protocol::messages::metadata::MetadataRequest;
use serde_json::Value;

use crate::broker::{Broker, free_ports, new_directory, run, run_refused, run_well};
use crate::scenario::{Topic, batch, new_name, values};

/// SIGTERM ends the process with status 0 and the mark of a stop in order.
#[test]
fn sigterm_ends_with_0() {
    let mut broker = Broker::start_new();
    let topic = Topic::new(&broker, "stopped");
    topic.leader(&broker, 0).write(&topic, 0, batch(&["x"]));
    let status = broker.stop();
    assert_eq!(status.code(), Some(0));
    broker.start();
    assert!(!broker.printed().contains("not orderly"), "{}", broker.printed());
    broker.restart_after_kill();
    assert!(broker.printed().contains("not orderly"), "{}", broker.printed());
}

/// The start says what was found and chosen.
#[test]
fn the_start_reports_what_it_found() {
    let broker = Broker::start_new();
    let printed = broker.printed();
    let bootstrap = broker.bootstrap();
    for words in ["2 slots", "64MiB", "memlock", "disk", "durable", bootstrap.as_str()] {
        assert!(printed.contains(words), "no {words:?} in:\n{printed}");
    }
}

/// An address of six groups is told in brackets, as it has to be written.
#[test]
fn the_start_reports_addresses_as_they_are_written() {
    let flags = ["--advertise", "[fd00::7]:19092"].map(str::to_owned).to_vec();
    let broker = Broker::start_told(flags);
    assert!(broker.printed().contains("told to clients as [fd00::7]:19092"));
}

/// What was set in the cluster outranks a flag; the start says so.
#[test]
fn the_start_warns_of_what_does_not_count() {
    let mut broker = Broker::start_with(&["min.insync.replicas=1"]);
    assert!(!broker.printed().contains("does not count"), "{}", broker.printed());
    broker.stop();
    broker.start_again_told(&["--set", "min.insync.replicas=2"]);
    let printed = broker.printed();
    assert!(printed.contains("min.insync.replicas=2 was given at start"), "{printed}");
}

/// A second process on the same directory is refused, and the first goes on undisturbed.
#[test]
fn a_second_process_on_the_directory_is_refused() {
    let mut broker = Broker::start_new();
    let topic = Topic::new(&broker, "alone");
    let mut leader = topic.leader(&broker, 0);
    leader.write(&topic, 0, batch(&["before"]));
    let (data, listen) = (broker.data.display().to_string(), format!("127.0.0.1:{}", free_ports()));
    let why = run_refused(&serve(&data, &listen));
    assert!(why.contains(&data) || why.contains("lock"), "{why}");
    assert!(broker.is_running());
    assert_eq!(leader.write(&topic, 0, batch(&["after"])), 1);
    broker.restart_after_kill();
    let topic = Topic::find(&broker, &topic.name);
    assert_eq!(topic.leader(&broker, 0).read(&topic, 0, 0).len(), 2);
}

/// A port that is taken, of whichever slot, is refused before the directory is touched.
#[test]
fn a_taken_port_is_refused() {
    let broker = Broker::shared();
    let data = new_directory("taken");
    for port in [broker.port, broker.port - 1] {
        let listen = format!("127.0.0.1:{port}");
        let why = run_refused(&serve(&data.display().to_string(), &listen));
        assert!(why.contains("127.0.0.1:"), "{why}");
        assert!(why.contains("--listen"), "{why}");
    }
    assert!(!data.exists());
}

/// A directory that holds something else is refused, and nothing in it is touched.
#[test]
fn a_foreign_directory_is_refused() {
    let data = new_directory("foreign");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("diary.txt"), "not yours").unwrap();
    let listen = format!("127.0.0.1:{}", free_ports());
    let why = run_refused(&serve(&data.display().to_string(), &listen));
    assert!(why.contains("diary.txt"), "{why}");
    assert_eq!(std::fs::read_to_string(data.join("diary.txt")).unwrap(), "not yours");
    std::fs::remove_dir_all(&data).unwrap();
}

/// A directory of another host is refused.
#[test]
fn the_directory_of_another_host_is_refused() {
    let mut broker = Broker::start_new();
    assert!(broker.stop().success());
    let (data, listen) = (broker.data.display().to_string(), format!("127.0.0.1:{}", free_ports()));
    let mut arguments = serve(&data, &listen);
    arguments.extend(["--host-id", "7"]);
    let why = run_refused(&arguments);
    assert!(why.contains("host 1") && why.contains("host 7"), "{why}");
}

/// An unknown key names the nearest one; a value that cannot be is told with its key.
#[test]
fn unknown_keys_name_the_nearest() {
    let data = new_directory("unknown-key").display().to_string();
    let listen = format!("127.0.0.1:{}", free_ports());
    let refused = |setting: &'static str| {
        let mut arguments = serve(&data, &listen);
        arguments.extend(["--set", setting]);
        run_refused(&arguments)
    };
    let why = refused("log.retention.mss=1");
    assert!(why.contains("log.retention.mss") && why.contains("log.retention.ms"), "{why}");
    assert!(refused("message.max.bytes=many").contains("message.max.bytes"));
    let why = refused("remote.log.storage.system.enable=true");
    assert!(why.contains("remote.log.storage.system.enable"), "{why}");
}

/// Keys of Kafka that do nothing here are accepted with a warning that says why.
#[test]
fn keys_without_effect_are_warned_about() {
    let broker = Broker::start_with(&["num.io.threads=16"]);
    let printed = broker.printed();
    let warning = printed.lines().find(|line| line.contains("num.io.threads"));
    assert!(warning.is_some_and(|line| line.contains("warning")), "{printed}");
}

/// `--advertise` is the base of what clients are told, one port for each slot.
#[test]
fn clients_are_told_what_is_advertised() {
    let told = ["--advertise", "broker.example:19092", "--rack", "zone-b", "--host-id", "3"];
    let broker = Broker::start_told(told.map(str::to_owned).to_vec());
    for slot in [0, 1] {
        let mut answer = broker.connect(slot).ask(9, &MetadataRequest::default());
        answer.brokers.sort_by_key(|node| node.node_id);
        let told = answer.brokers.iter();
        let told: Vec<_> =
            told.map(|it| (it.node_id, &*it.host, it.port, it.rack.as_deref().unwrap())).collect();
        let first = (3000, "broker.example", 19092, "zone-b");
        assert_eq!(told, [first, (3001, "broker.example", 19093, "zone-b")]);
    }
}

/// Listening beyond loopback is warned about: anyone who reaches the port can read and write.
#[test]
fn listening_beyond_loopback_is_warned_about() {
    let data = new_directory("beyond").display().to_string();
    // What cannot be bound ends the start after its report.
    let why = run(&serve(&data, "192.0.2.1:9092"), "");
    let printed = String::from_utf8_lossy(&why.stdout);
    assert!(!why.status.success());
    assert!(printed.contains("anyone who reaches these ports can read and write"), "{printed}");
}

/// `coretide topic` creates, lists, describes, alters and deletes, for people and for scripts.
#[test]
fn topics_by_command() {
    let broker = Broker::shared();
    let (name, bootstrap) = (new_name("by-command"), broker.bootstrap());
    let topic = |words: &[&str]| {
        let mut arguments = vec!["topic"];
        arguments.extend(words);
        arguments.extend(["--bootstrap", bootstrap.as_str(), "--json"]);
        let text = run_well(&arguments, "");
        serde_json::from_str::<Value>(text.trim()).unwrap_or_else(|why| panic!("{why}: {text}"))
    };
    topic(&["create", &name, "--partitions", "2", "--config", "retention.ms=4321"]);
    let listed = topic(&["list"]);
    assert!(listed.as_array().unwrap().iter().any(|it| *it.get("topic").unwrap_or(it) == *name));
    let described = topic(&["describe", &name]);
    assert_eq!(described["topic"], *name);
    assert_eq!(described["configs"]["retention.ms"], "4321", "{described}");
    assert_eq!(described["partitions"].as_array().unwrap().len(), 2);
    topic(&["alter", &name, "--config", "retention.ms=9876"]);
    assert_eq!(topic(&["describe", &name])["configs"]["retention.ms"], "9876");
    topic(&["alter", &name, "--delete-config", "retention.ms"]);
    assert!(topic(&["describe", &name])["configs"].get("retention.ms").is_none());

    let arguments = ["topic", "alter", &*name, "--partitions", "3", "--bootstrap", &bootstrap];
    let grown = run(&arguments, "");
    assert!(grown.status.success());
    assert!(String::from_utf8_lossy(&grown.stderr).contains("keys"), "{grown:?}");
    assert_eq!(topic(&["describe", &name])["partitions"].as_array().unwrap().len(), 3);

    topic(&["delete", &name]);
    let why = run_refused(&["topic", "describe", &name, "--bootstrap", &bootstrap]);
    assert!(why.contains("does not exist") || why.contains("UNKNOWN_TOPIC"), "{why}");
    let why = run_refused(&[
        "topic",
        "create",
        "factor",
        "--replication-factor",
        "2",
        "--bootstrap",
        &bootstrap,
    ]);
    assert!(why.contains("INVALID_REPLICATION_FACTOR"), "{why}");
}

/// `coretide produce` and `consume` carry lines, keys, headers, and say where each record is.
#[test]
fn records_by_command() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "lines");
    let bootstrap = broker.bootstrap();
    let lines = "h:1|k1=v1\nh:2|k2=v2\nh:3|k1=v3\n";
    run_well(
        &[
            "produce",
            &topic.name,
            "--bootstrap",
            &bootstrap,
            "--key-separator",
            "=",
            "--header-separator",
            "|",
            "--codec",
            "zstd",
        ],
        lines,
    );
    let format = "%k=%v %h\\n";
    let read = run_well(
        &[
            "consume",
            &topic.name,
            "--bootstrap",
            &bootstrap,
            "--format",
            format,
            "--max-records",
            "3",
        ],
        "",
    );
    let mut found: Vec<&str> = read.lines().collect();
    found.sort_unstable();
    assert_eq!(found.len(), 3, "{read}");
    assert!(found[0].starts_with("k1=v1") && found[2].starts_with("k2=v2"), "{read}");
    assert!(found[0].contains('h') && found[0].contains('1'), "{read}");

    let where_each = run_well(
        &[
            "consume",
            &topic.name,
            "--bootstrap",
            &bootstrap,
            "--format",
            "%p/%o %v\\n",
            "--until-end",
        ],
        "",
    );
    let place = |value: &str| {
        let line = where_each.lines().find(|line| line.ends_with(value)).unwrap();
        line.split_once('/').unwrap().0.to_owned()
    };
    assert_eq!(place("v1"), place("v3"), "one key, one partition");
}

/// `coretide consume --rate` prints no faster than asked, all of it once, and asks no more often
/// for what it has already got.
#[test]
fn records_at_a_rate_by_command() {
    let broker = Broker::start_new();
    let topic = Topic::new(&broker, "slowly");
    let lines: Vec<String> = (0..400).map(|number| format!("line {number}")).collect();
    let values: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut leader = topic.leader(&broker, 0);
    for part in values.chunks(100) {
        leader.write(&topic, 0, batch(part));
    }
    let bootstrap = broker.bootstrap();
    let begun = std::time::Instant::now();
    let words = ["consume", &topic.name, "--bootstrap", &bootstrap, "--until-end", "--rate", "500"];
    let read = run_well(&words, "");
    // Half a second's worth may come at once.
    assert!(begun.elapsed().as_millis() >= 250, "{:?}", begun.elapsed());
    assert_eq!(read.lines().collect::<Vec<_>>(), values);
    let scraped = broker.http("GET /metrics").1;
    let fetches: f64 = scraped
        .lines()
        .filter(|line| {
            line.starts_with("coretide_request_seconds_count{api=\"Fetch\",phase=\"total\"")
        })
        .filter_map(|line| line.split(' ').next_back()?.parse::<f64>().ok())
        .sum();
    assert!((1.0..=3.0).contains(&fetches), "{fetches} fetches for four batches");
}

/// `coretide log` shows and checks a log, names damage, and cuts it only when told to.
#[test]
fn logs_by_command() {
    let mut broker = Broker::start_new();
    let topic = Topic::new(&broker, "offline");
    for value in ["first", "second", "third"] {
        topic.leader(&broker, 0).write(&topic, 0, batch(&[value]));
    }
    assert!(broker.stop().success());
    let log = broker.data.join(format!("{}-0", topic.name));
    let segment = log.join("00000000000000000000.log");
    let (log, path) = (log.display().to_string(), segment.display().to_string());
    let dumped = run_well(&["log", "dump", &path, "--print-data-log"], "");
    for words in ["baseOffset: 0", "baseOffset: 2", "first", "third"] {
        assert!(dumped.contains(words), "no {words:?} in:\n{dumped}");
    }
    run_well(&["log", "verify", &log, "--deep"], "");

    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(6).position(|bytes| bytes == b"second").unwrap();
    bytes[at] ^= 0x20;
    std::fs::write(&segment, bytes).unwrap();
    assert!(!run(&["log", "verify", &log], "").status.success());
    let why = run_refused(&["log", "repair", &log]);
    assert!(why.contains("--accept-loss"), "{why}");
    run_well(&["log", "repair", &log, "--accept-loss"], "");
    run_well(&["log", "verify", &log, "--deep"], "");
    broker.start();
    let topic = Topic::find(&broker, &topic.name);
    assert_eq!(topic.leader(&broker, 0).read(&topic, 0, 0), [(0, "first".to_owned())]);
}

/// A flipped byte on disk ends in CORRUPT_MESSAGE, never in wrong data.
#[test]
fn flipped_bytes_are_not_served() {
    let mut broker = Broker::start_new();
    let topic = Topic::new(&broker, "flipped");
    for value in ["first", "second"] {
        topic.leader(&broker, 0).write(&topic, 0, batch(&[value]));
    }
    assert!(broker.stop().success());
    let segment = broker.data.join(format!("{}-0/00000000000000000000.log", topic.name));
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(6).position(|bytes| bytes == b"second").unwrap();
    bytes[at] ^= 0x20;
    std::fs::write(&segment, bytes).unwrap();
    broker.start();
    let mut connection = topic.leader(&broker, 0);
    let data = connection.fetch_in(12, &topic, 0, 1);
    assert_eq!(data.error_code, ErrorCode::CORRUPT_MESSAGE);
    assert!(values(data.records.as_ref()).is_empty());
    let sound = connection.fetch_in(12, &topic, 0, 0);
    assert!(values(sound.records.as_ref()).iter().all(|(_, value)| value == "first"));
}

/// `/healthz` says ok, `/metrics` is Prometheus text with both cores, and nothing else is served.
#[test]
fn the_admin_port_answers() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "measured");
    for partition in [0, 1] {
        topic.leader(broker, partition).write(&topic, partition, batch(&["x"]));
    }
    let (status, body) = broker.http("GET /healthz");
    assert_eq!((status.as_str(), body.as_str()), ("HTTP/1.1 200 OK", "ok\n"));
    let (status, body) = broker.http("GET /metrics");
    assert_eq!(status, "HTTP/1.1 200 OK");
    for line in body.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    for core in [0, 1] {
        for name in ["coretide_records_produced_total", "coretide_commits_total"] {
            assert!(broker.metric(name, core) >= 1.0, "{name} of core {core}");
        }
    }
    assert!(body.contains("coretide_request_seconds"));
    assert!(body.contains("coretide_commit_seconds"));
    assert!(broker.http("GET /").0.contains("404"));
    assert!(broker.http("POST /metrics").0.contains("405"));
}

/// `serve` on one slot, told everything that could get in another broker's way.
fn serve<'a>(data: &'a str, listen: &'a str) -> Vec<&'a str> {
    vec![
        "serve",
        "--data-dir",
        data,
        "--listen",
        listen,
        "--cores",
        "0,1",
        "--admin-listen",
        "none",
        "--memory-per-core",
        "64MiB",
    ]
}
