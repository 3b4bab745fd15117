//! `coretide group` and `coretide consume --group`, for people and for scripts.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::Str;
use serde_json::Value;

use crate::broker::{Broker, PROGRAM, run, run_refused, run_well};
use crate::scenario::{Topic, batch, batch_at, new_name, now_ms, wait_until};

/// What `coretide group …` says, line by line.
fn group(broker: &Broker, words: &[&str]) -> Vec<Value> {
    let bootstrap = broker.bootstrap();
    let mut arguments = vec!["group"];
    arguments.extend(words);
    arguments.extend(["--json", "--bootstrap", &bootstrap]);
    let printed = run_well(&arguments, "");
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn describe(broker: &Broker, name: &Str) -> Value {
    group(broker, &["describe", name]).remove(0)
}

/// Records of a topic that a group has not printed yet, up to the present end.
fn consume(broker: &Broker, topic: &Topic, name: &Str, more: &[&str]) -> Vec<String> {
    let bootstrap = broker.bootstrap();
    let mut arguments = vec!["consume", &*topic.name, "--group", &**name, "--until-end"];
    arguments.extend(["--bootstrap", &bootstrap]);
    arguments.extend(more);
    run_well(&arguments, "").lines().map(str::to_owned).collect()
}

/// A consumer in the background; killed at the end of the test if it still runs.
struct Consumer(Child);

impl Consumer {
    fn start(broker: &Broker, topic: &Topic, name: &Str) -> Consumer {
        let mut command = Command::new(PROGRAM);
        command.args(["consume", &*topic.name, "--group", &**name]);
        command.args(["--bootstrap", &broker.bootstrap()]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // SAFETY: prctl is async-signal-safe, and nothing else happens between fork and exec.
        unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?)) };
        Consumer(command.spawn().unwrap())
    }

    fn interrupt(mut self) {
        kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGINT).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A group goes on where it has committed, and what it has not read is its lag.
#[test]
fn a_group_goes_on_where_it_stopped() {
    let broker = Broker::start_with(&["group.initial.rebalance.delay.ms=0"]);
    let topic = Topic::on_both_slots(&broker, "shared");
    let name = new_name("group");
    let write = |values: &[&str]| {
        for partition in [0, 1] {
            topic.leader(&broker, partition).write(&topic, partition, batch(values));
        }
    };
    write(&["a", "b", "c"]);
    let mut first = consume(&broker, &topic, &name, &["--max-records", "4"]);
    assert_eq!(first.len(), 4);
    let described = describe(&broker, &name);
    assert_eq!(described["lag_records"], 2, "{described}");
    assert_eq!(described["state"], "Empty");
    let rest = consume(&broker, &topic, &name, &[]);
    assert_eq!(rest.len(), 2);
    first.extend(rest);
    first.sort_unstable();
    assert_eq!(first, ["a", "a", "b", "b", "c", "c"]);
    assert!(consume(&broker, &topic, &name, &[]).is_empty());
    assert_eq!(describe(&broker, &name)["lag_records"], 0);
    write(&["d"]);
    let last = consume(&broker, &topic, &name, &["--json"]);
    let last: Vec<Value> = last.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert!(last.iter().all(|it| it["value"] == "d" && it["offset"] == 3), "{last:?}");
    assert_eq!(last.len(), 2);
}

/// With more members than partitions one is idle; who reads, who does not and why is told. A
/// member that is interrupted leaves, and the other takes its place.
#[test]
fn an_idle_member_is_explained() {
    let broker = Broker::start_with(&["group.initial.rebalance.delay.ms=0"]);
    let topic = Topic::new(&broker, "narrow");
    topic.leader(&broker, 0).write(&topic, 0, batch(&["x"]));
    let name = new_name("group");
    let members = [(); 2].map(|()| Consumer::start(&broker, &topic, &name));
    let idle = |described: &Value| {
        let members = described["members"].as_array().unwrap();
        members.iter().filter(|it| it["idle"] == true).cloned().collect::<Vec<_>>()
    };
    let settled = || {
        let described =
            run(&["group", "describe", &name, "--json", "--bootstrap", &broker.bootstrap()], "");
        let described: Value = serde_json::from_slice(&described.stdout).unwrap_or_default();
        (described["state"] == "Stable").then_some(described)
    };
    let mut described = Value::Null;
    wait_until("both are in the group", || {
        described = settled().unwrap_or_default();
        described["members"].as_array().is_some_and(|it| it.len() == 2)
    });
    let [member] = idle(&described).try_into().unwrap();
    let why = member["idle_because"].as_str().unwrap();
    assert!(why.contains("2 members share the only partition"), "{why}");
    let printed = run_well(&["group", "describe", &name, "--bootstrap", &broker.bootstrap()], "");
    assert!(printed.contains("members: 2, of which 1 idle"), "{printed}");
    assert!(printed.contains("is idle: 2 members"), "{printed}");
    let scraped = broker.http("GET /metrics").1;
    assert!(scraped.contains(&format!("coretide_group_members_idle{{group=\"{name}\"}} 1")));

    let [first, second] = members;
    first.interrupt();
    wait_until("one is left", || {
        let described = settled().unwrap_or_default();
        described["members"].as_array().is_some_and(|it| it.len() == 1)
            && idle(&described).is_empty()
    });
    second.interrupt();
    assert_eq!(describe(&broker, &name)["state"], "Empty");
}

/// Offsets are moved in every way that is offered, and only when told to.
#[test]
fn offsets_are_reset() {
    let broker = Broker::start_new();
    let topic = Topic::new(&broker, "moved");
    let day = 86_400_000;
    let begin = 1_600_000_000_000_i64;
    for place in 0..10 {
        topic.leader(&broker, 0).write(&topic, 0, batch_at(begin + place * day, &["x"]));
    }
    let name = new_name("group");
    let reset = |target: &[&str]| {
        let mut words = vec!["reset-offsets", &*name, "--topic", &*topic.name];
        words.extend(target);
        let moved = group(&broker, &words).remove(0);
        assert_eq!(moved["partition"], 0);
        (moved["from"].as_i64(), moved["to"].as_i64().unwrap())
    };
    assert_eq!(reset(&["--to-offset", "4"]), (None, 4));
    assert_eq!(reset(&["--to-offset", "4", "--execute"]), (None, 4));
    assert_eq!(reset(&["--shift-by", "-3", "--execute"]), (Some(4), 1));
    assert_eq!(reset(&["--shift-by", "2"]), (Some(1), 3));
    assert_eq!(reset(&["--shift-by", "-9"]), (Some(1), 0));
    assert_eq!(reset(&["--to-latest", "--execute"]), (Some(1), 10));
    assert_eq!(reset(&["--to-earliest", "--execute"]), (Some(10), 0));
    // 1,600,000,000 seconds are 2020-09-13T12:26:40.
    let at = |time: &str| reset(&["--to-datetime", time]).1;
    assert_eq!(at("2020-09-16T12:26:40"), 3);
    assert_eq!(at("2020-09-16T12:26:40.001Z"), 4);
    assert_eq!(at("2020-09-16T14:26:40+02:00"), 3);
    assert_eq!((at("2020-09-14"), at("2030-01-01")), (1, 10));
    let described = describe(&broker, &name);
    assert_eq!(described["lag_records"], 10);
    let age = described["lag_seconds"].as_f64().unwrap();
    assert!((age - (now_ms() - begin) as f64 / 1e3).abs() < 60.0, "{age}");

    let bootstrap = broker.bootstrap();
    let of_topic = format!("{}:7", topic.name);
    let refused = |more: &[&str]| {
        let mut words = vec!["group", "reset-offsets", &*name, "--bootstrap", &bootstrap];
        words.extend(more);
        run_refused(&words)
    };
    assert!(refused(&["--topic", &of_topic, "--to-latest"]).contains("no partition 7"));
    assert!(refused(&["--topic", &topic.name]).contains("--to-earliest"));
    let why = refused(&["--topic", &topic.name, "--to-datetime", "2020-13-01"]);
    assert!(why.contains("2020-13-01"), "{why}");
}

/// Offsets of a group with members are not moved; groups are listed, and deleted when empty.
#[test]
fn groups_are_listed_and_deleted() {
    let broker = Broker::start_with(&["group.initial.rebalance.delay.ms=0"]);
    let topic = Topic::new(&broker, "listed");
    topic.leader(&broker, 0).write(&topic, 0, batch(&["x"]));
    let name = new_name("group");
    let consumer = Consumer::start(&broker, &topic, &name);
    let state = || {
        let listed = group(&broker, &["list"]);
        let found = listed.into_iter().find(|it| it["group"] == *name.as_str());
        found.map(|it| (it["state"].clone(), it["type"].clone()))
    };
    wait_until("the group is stable", || state() == Some(("Stable".into(), "classic".into())));
    let bootstrap = broker.bootstrap();
    let mut words = vec!["group", "reset-offsets", &*name, "--topic", &*topic.name];
    words.extend(["--to-earliest", "--execute", "--bootstrap", &bootstrap]);
    let why = run_refused(&words);
    assert!(why.contains("has 1 members; stop them first"), "{why}");
    let why = run_refused(&["group", "delete", &name, "--bootstrap", &bootstrap]);
    assert!(why.contains("NON_EMPTY_GROUP"), "{why}");
    consumer.interrupt();
    assert_eq!(state().unwrap().0, "Empty");
    run_well(&["group", "delete", &name, "--bootstrap", &bootstrap], "");
    assert_eq!(state(), None);
    let why = run_refused(&["group", "describe", &name, "--bootstrap", &bootstrap]);
    assert!(why.contains("there is no group"), "{why}");
}
