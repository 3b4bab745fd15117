//! The `coretide` program: hands its arguments to the broker, or to the load generator.

use std::process::ExitCode;

use broker::cli::Cli;
use clap::{CommandFactory, FromArgMatches};

fn main() -> ExitCode {
    let matches = Cli::command().subcommand(perf::command()).get_matches();
    if let Some(("bench", bench)) = matches.subcommand() {
        return perf::main(bench);
    }
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => broker::cli::run(cli),
        Err(wrong) => wrong.exit(),
    }
}
