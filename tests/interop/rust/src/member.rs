//! rdkafka as a member of a group: BOOTSTRAP GROUP TOPIC NAME STRATEGY SESSION_MS POLL_MS, as
//! groups.py describes it.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::RDKafkaErrorCode as Code;
use rdkafka::message::Message;
use rdkafka::{ClientContext, TopicPartitionList};

/// What a rebalance keeps from being committed is tried again, as far as it is still ours then.
const AGAIN: [Code; 5] = [
    Code::RebalanceInProgress,
    Code::IllegalGeneration,
    Code::UnknownMemberId,
    Code::StaleMemberEpoch,
    Code::AssignmentLost,
];

fn say(event: &str, rest: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
    println!("{event} {now} {rest}");
}

struct Teller;

impl ClientContext for Teller {}

impl ConsumerContext for Teller {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(added) => say("assigned", &format!("- {}", numbers(added))),
            Rebalance::Revoke(gone) => say("revoked", &numbers(gone)),
            Rebalance::Error(error) => println!("rebalancing: {error}"),
        }
    }
}

fn numbers(partitions: &TopicPartitionList) -> String {
    let elements = partitions.elements();
    let each: Vec<_> = elements.iter().map(|it| it.partition().to_string()).collect();
    each.join(",")
}

fn listen() -> Receiver<String> {
    let (tell, commands) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
        let _ = tell.send("stop".to_owned());
    });
    commands
}

pub fn live(words: &[String]) {
    let [bootstrap, group, topic, name, strategy, session_ms, poll_ms] = words else {
        panic!("BOOTSTRAP GROUP TOPIC NAME STRATEGY SESSION_MS POLL_MS");
    };
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("group.id", group).set("client.id", name);
    config.set("auto.offset.reset", "earliest").set("enable.auto.commit", "false");
    config.set("max.poll.interval.ms", poll_ms);
    if strategy == "consumer" {
        config.set("group.protocol", "consumer");
    } else {
        let heartbeat_ms = session_ms.parse::<u32>().expect("SESSION_MS") / 6;
        config.set("partition.assignment.strategy", strategy).set("session.timeout.ms", session_ms);
        config.set("heartbeat.interval.ms", heartbeat_ms.to_string());
    }
    let consumer: BaseConsumer<Teller> = config.create_with_context(Teller).expect("a consumer");
    consumer.subscribe(&[topic]).expect("a subscription");
    let commands = listen();
    let mut uncommitted = false;
    loop {
        match commands.try_recv().as_deref() {
            Ok("stop") => break,
            Ok("stall") => {
                say("stalled", "");
                let _ = commands.recv();
                say("woken", "");
            }
            _ => {}
        }
        match consumer.poll(Duration::from_millis(100)) {
            None => {}
            Some(Err(error)) => println!("polling: {error}"),
            Some(Ok(message)) => {
                let value = String::from_utf8_lossy(message.payload().unwrap_or_default());
                say("got", &format!("{} {} {value}", message.partition(), message.offset()));
                uncommitted = true;
            }
        }
        if uncommitted {
            let error = consumer.commit_consumer_state(CommitMode::Sync).err();
            let code = error.and_then(|error| error.rdkafka_error_code());
            uncommitted = code.is_some_and(|code| AGAIN.contains(&code));
            let settled = matches!(code, None | Some(Code::NoOffset));
            assert!(uncommitted || settled, "a commit ended with {code:?}");
        }
    }
    drop(consumer);
    say("left", "");
}
