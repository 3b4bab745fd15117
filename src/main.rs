//! The `coretide` program: hands its arguments to the broker, or to the load generator.

use std::process::ExitCode;

use broker::cli::Cli;
use clap::{CommandFactory, FromArgMatches};

/// Large buffers of a core lie in huge pages.
#[global_allocator]
static ALLOCATOR: broker::Allocator = broker::Allocator;

fn main() -> ExitCode {
    let program = Cli::command().subcommand(perf::command()).subcommand(perf::tune::command());
    let matches = program.get_matches();
    match matches.subcommand() {
        Some(("bench", bench)) => return perf::main(bench),
        Some(("tune", tune)) => return perf::tune::main(tune),
        _ => {}
    }
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => broker::cli::run(cli),
        Err(wrong) => wrong.exit(),
    }
}
