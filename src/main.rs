//! The `coretide` program: hands its arguments to the broker.

use std::process::ExitCode;

fn main() -> ExitCode {
    broker::cli::main()
}
