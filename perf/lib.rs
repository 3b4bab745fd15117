//! The load generator behind `coretide bench`.
//!
//! It loads any broker that speaks the Kafka protocol, from pinned cores of its own, and says what
//! came back and how long it took. Laws:
//! - Latency under a rate counts from the moment a request was due, not from the moment it could
//!   be sent, so that a broker that stalls cannot hide the requests it held up.
//! - No answer is ignored: whatever is not a success is counted under its name and shown.
//! - What is sent was built before the clock started, as far as it can be.
//!
//! Absent on purpose: anything about how a broker works inside.

#![forbid(unsafe_code)]

pub mod assignment;
pub mod batches;
pub mod cluster;
pub mod commit;
pub mod consume;
pub mod curves;
pub mod hgrm;
pub mod machine;
pub mod node;
pub mod offsets;
pub mod options;
pub mod outcome;
pub mod pace;
pub mod pipeline;
pub mod play;
pub mod produce;
pub mod requests;
pub mod run;
pub mod sampler;
pub mod spans;
pub mod stage;
pub mod tally;
pub mod traffic;
pub mod tune;
pub mod usage;

use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, FromArgMatches};

use options::{Bench, BenchArgs, LoadArgs};
use outcome::Outcome;

/// What the program calls `bench`.
pub fn command() -> Command {
    let bench = Command::new("bench").about("Load a broker and measure what comes back");
    BenchArgs::augment_args(bench)
}

/// Runs what [`command`] has parsed.
pub fn main(matches: &ArgMatches) -> ExitCode {
    let args = match BenchArgs::from_arg_matches(matches) {
        Ok(args) => args,
        Err(wrong) => wrong.exit(),
    };
    let result = match args.bench {
        Bench::Produce(args) => run::produce(&args).and_then(|found| show(&found, &args.load)),
        Bench::Consume(args) => run::consume(&args).and_then(|found| show(&found, &args.load)),
        Bench::E2e(args) => run::end_to_end(&args).and_then(|found| show(&found, &args.load)),
        Bench::Commit(args) => run::commit(&args).and_then(|found| show(&found, &args.load)),
        Bench::Limits(args) => machine::limits(&args).map(|()| ExitCode::SUCCESS),
        Bench::Report(args) => curves::report(&args).map(|()| ExitCode::SUCCESS),
    };
    match result {
        Ok(code) => code,
        Err(why) => {
            eprintln!("coretide bench: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn show(outcome: &Outcome, load: &LoadArgs) -> anyhow::Result<ExitCode> {
    outcome.write_files(load)?;
    outcome.print(load.json)?;
    Ok(if outcome.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
