//! Whole runs against the stub: what is counted must be what the stub did.
//!
//! Machines are busy, so that everything can take longer than the stub says; never shorter.

use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{Command, FromArgMatches, Subcommand};
use perf::options::Bench;
use perf::outcome::Outcome;
use perf::run;
use protocol::ErrorCode;

use crate::stub::{Act, Script, Stub, TOPIC};

fn bench(script: Script, line: &str) -> Outcome {
    bench_on(&Stub::start(script), line)
}

fn bench_on(stub: &Stub, line: &str) -> Outcome {
    let address = stub.address.to_string();
    let mut words: Vec<&str> = vec!["bench"];
    words.extend(line.split_whitespace());
    words.extend(["--bootstrap", &address, "--topic", TOPIC, "--load-cpus", "1"]);
    let command = Bench::augment_subcommands(Command::new("bench"));
    let matches = command.try_get_matches_from(words).unwrap();
    let outcome = match Bench::from_arg_matches(&matches).unwrap() {
        Bench::Produce(args) => run::produce(&args),
        Bench::Consume(args) => run::consume(&args),
        Bench::E2e(args) => run::end_to_end(&args),
        Bench::Commit(args) => run::commit(&args),
        Bench::Report(_) | Bench::Limits(_) => panic!("not a run"),
    };
    outcome.unwrap()
}

fn at_once(_number: u64) -> Act {
    Act::Answer(Duration::ZERO)
}

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_millis(400);

#[test]
fn percentiles_are_those_of_the_broker() {
    // Eight of ten requests are fast.
    let script = |number| Act::Answer(if number % 10 < 8 { SHORT } else { LONG });
    let line = "produce --records 400 --records-per-batch 1 --connections 4 --in-flight 1";
    let outcome = bench(script, line);
    let answers = &outcome.totals.answers;
    assert_eq!(answers.len(), 400, "\n{}", outcome.table().unwrap());
    assert_eq!(outcome.totals.sent.requests, 400);
    let within = |latency: u64, from: Duration, to: Duration| {
        (from.as_nanos()..to.as_nanos()).contains(&u128::from(latency))
    };
    let exact = Duration::from_micros(100);
    assert!(answers.min() as u128 >= (SHORT - exact).as_nanos(), "{}", answers.min());
    assert!(within(answers.value_at_quantile(0.5), SHORT - exact, LONG - exact));
    assert!(answers.value_at_quantile(0.9) as u128 >= (LONG - exact).as_nanos());
    assert!(outcome.is_success());
}

#[test]
fn a_stall_counts_for_every_request_that_it_held_up() {
    // One request of 400 sees the stall; those that were due meanwhile must not be forgotten.
    let script = |number| match number {
        100 => Act::Stall(Duration::from_secs(1)),
        _ => Act::Answer(Duration::ZERO),
    };
    let line = "produce --rate 200 --duration 2s --warm-up 0s --records-per-batch 1 --in-flight 1";
    let outcome = bench(script, line);
    let answers = &outcome.totals.answers;
    assert_eq!(answers.len(), 400, "\n{}", outcome.table().unwrap());
    let half = Duration::from_millis(500).as_nanos() as u64;
    let held_up = answers.count_between(half, u64::MAX);
    assert!(held_up >= 100, "{held_up} requests, due in the first half of the stall, saw it");
    assert!(outcome.totals.lateness.max() >= half, "the generator says how late it sent");
}

#[test]
fn refusals_count_by_their_name() {
    let script = |number| match number % 4 {
        0 => Act::Refuse(ErrorCode::NOT_LEADER_OR_FOLLOWER),
        1 => Act::Refuse(ErrorCode::KAFKA_STORAGE_ERROR),
        _ => Act::Answer(Duration::ZERO),
    };
    let outcome = bench(script, "produce --records 100 --records-per-batch 1 --connections 2");
    let errors = &outcome.totals.errors;
    assert_eq!(errors.get("NOT_LEADER_OR_FOLLOWER"), Some(&25), "{errors:?}");
    assert_eq!(errors.get("KAFKA_STORAGE_ERROR"), Some(&25), "{errors:?}");
    assert_eq!(outcome.totals.sent.requests, 50);
    assert!(!outcome.is_success());
    assert!(outcome.table().unwrap().contains("25 x KAFKA_STORAGE_ERROR"));
}

#[test]
fn a_lost_connection_is_counted_and_opened_again() {
    let script = |number| if number == 10 { Act::Hang } else { at_once(number) };
    let outcome = bench(script, "produce --records 40 --records-per-batch 1 --in-flight 2");
    let totals = &outcome.totals;
    let lost = totals.errors.get("no answer").copied().unwrap_or(0);
    assert!((1..=2).contains(&lost), "{:?}", totals.errors);
    assert_eq!(totals.sent.requests + lost, 40);
    assert!(totals.errors.len() > 1, "the reason is not told: {:?}", totals.errors);
}

#[test]
fn answers_find_their_requests_in_any_order() {
    let script = |number| if number % 2 == 0 { Act::Swap } else { at_once(number) };
    let outcome = bench(script, "produce --records 40 --records-per-batch 1 --in-flight 4");
    assert_eq!(outcome.totals.sent.requests, 40);
    assert!(outcome.is_success(), "{:?}", outcome.totals.errors);
}

#[test]
fn without_acknowledgements_nothing_is_waited_for() {
    let outcome = bench(at_once, "produce --records 5 --records-per-batch 1 --acks 0");
    assert_eq!(outcome.totals.sent.requests, 5);
    assert!(outcome.is_success(), "{:?}", outcome.totals.errors);
}

#[test]
fn numbered_batches_have_valid_checksums() {
    // The stub checks them.
    let line = "produce --records 64 --records-per-batch 4 --idempotent --codec lz4";
    let outcome = bench(at_once, line);
    assert_eq!(outcome.totals.sent.records, 64);
    assert!(outcome.is_success(), "{:?}", outcome.totals.errors);
}

#[test]
fn a_request_can_carry_several_partitions() {
    let line = "produce --records 80 --records-per-batch 2 --partitions-per-request 4";
    let outcome = bench(at_once, line);
    let sent = outcome.totals.sent;
    assert_eq!((sent.requests, sent.batches, sent.records), (10, 40, 80));
}

#[test]
fn every_record_is_delivered_and_timed() {
    let line = "e2e --rate 200 --duration 1s --warm-up 0s --connections 2 --codec zstd";
    let outcome = bench(|_number| Act::Answer(SHORT), line);
    let totals = &outcome.totals;
    assert_eq!(totals.answers.len(), 200, "\n{}", outcome.table().unwrap());
    assert_eq!(totals.deliveries.len(), 200);
    assert!(totals.answers.min() as u128 >= SHORT.as_nanos() - 100_000);
    assert!(outcome.is_success(), "{:?}", totals.errors);
}

#[test]
fn commits_count_and_refusals_by_their_name() {
    let script = |number| match number % 5 {
        0 => Act::Refuse(ErrorCode::OFFSET_METADATA_TOO_LARGE),
        _ => Act::Answer(SHORT),
    };
    let line = "commit --records 60 --partitions-per-commit 3 --connections 2 --groups 7";
    let outcome = bench(script, line);
    let totals = &outcome.totals;
    assert_eq!(totals.errors.get("OFFSET_METADATA_TOO_LARGE"), Some(&12), "{:?}", totals.errors);
    assert_eq!((totals.sent.requests, totals.sent.records), (16, 48));
    assert_eq!(totals.answers.len(), 16, "\n{}", outcome.table().unwrap());
    assert!(totals.answers.min() as u128 >= SHORT.as_nanos() - 100_000);
    assert!(!outcome.is_success());
}

#[test]
fn commits_alone_make_a_good_run() {
    let outcome = bench(at_once, "commit --records 40 --partitions-per-commit 4 --rate 1000");
    assert_eq!(outcome.totals.sent.requests, 10);
    assert!(outcome.is_success(), "{:?}", outcome.totals.errors);
}

#[test]
fn commits_in_flight_are_as_many_as_asked_and_no_more() {
    let words = "--records 60 --partitions-per-commit 1 --groups 3";
    for (asked, in_flight) in [("", 1), ("--in-flight 4", 4)] {
        let stub = Stub::start(|_number| Act::Answer(SHORT));
        // The groups of the one connection are coordinated by both nodes.
        let outcome = bench_on(&stub, &format!("commit {words} {asked}"));
        assert_eq!(outcome.totals.sent.requests, 60);
        assert!(outcome.is_success(), "{:?}", outcome.totals.errors);
        assert_eq!(stub.peak.load(Ordering::Relaxed), in_flight, "with '{asked}'");
    }
}

#[test]
fn answers_find_their_commits_in_any_order() {
    let script = |number| if number % 2 == 0 { Act::Swap } else { at_once(number) };
    let outcome = bench(script, "commit --records 40 --partitions-per-commit 1 --in-flight 4");
    assert_eq!(outcome.totals.answers.len(), 40, "\n{}", outcome.table().unwrap());
    assert!(outcome.is_success(), "{:?}", outcome.totals.errors);
}

#[test]
fn a_stall_counts_for_every_commit_that_it_held_up() {
    let script = |number| match number {
        50 => Act::Stall(Duration::from_millis(600)),
        _ => Act::Answer(Duration::ZERO),
    };
    let line = "commit --rate 200 --duration 1s --warm-up 0s --partitions-per-commit 1";
    let outcome = bench(script, &format!("{line} --in-flight 3"));
    let answers = &outcome.totals.answers;
    assert_eq!(answers.len(), 200, "\n{}", outcome.table().unwrap());
    let half = Duration::from_millis(300).as_nanos() as u64;
    let held_up = answers.count_between(half, u64::MAX);
    assert!(held_up >= 60, "{held_up} commits, due in the first half of the stall, saw it");
}

#[test]
fn a_connection_that_commits_is_opened_again() {
    let script = |number| if number == 10 { Act::Hang } else { at_once(number) };
    let line = "commit --records 40 --partitions-per-commit 1 --in-flight 2 --groups 2";
    let outcome = bench(script, line);
    let totals = &outcome.totals;
    let lost = totals.errors.get("no answer").copied().unwrap_or(0);
    assert!((1..=2).contains(&lost), "{:?}", totals.errors);
    assert_eq!(totals.sent.requests + lost, 40);
    assert!(totals.errors.len() > 1, "the reason is not told: {:?}", totals.errors);
}
