//! `coretide tune`: looks at this machine, measures its disk for a few seconds, and says which
//! flags it would choose, why, and what only the administrator can change.
//!
//! Law: looking and deciding are apart. [`Machine`] holds facts, [`advise`] is pure, and nothing
//! on the machine is changed but a folder of scratch files that is removed again.

mod advice;
mod machine;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use serde_json::json;

pub use advice::{Advice, Flag, advise};
pub use machine::{Device, Disk, Machine, Network};

use crate::options::parse_duration;

#[derive(Debug, Clone, Args)]
struct TuneArgs {
    /// Where the broker keeps, or will keep, its data
    #[arg(long, default_value = "./coretide-data")]
    data_dir: PathBuf,
    /// Of the disk measurement, all steps together; 0s for none
    #[arg(long, value_parser = parse_duration, default_value = "4s")]
    duration: Duration,
    #[arg(long)]
    json: bool,
}

/// What the program calls `tune`.
pub fn command() -> Command {
    let tune = Command::new("tune").about("Look at this machine and say how to run a broker on it");
    TuneArgs::augment_args(tune)
}

/// Runs what [`command`] has parsed.
pub fn main(matches: &ArgMatches) -> ExitCode {
    let args = match TuneArgs::from_arg_matches(matches) {
        Ok(args) => args,
        Err(wrong) => wrong.exit(),
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("coretide tune: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &TuneArgs) -> anyhow::Result<()> {
    let made = !args.data_dir.exists();
    std::fs::create_dir_all(&args.data_dir).with_context(|| args.data_dir.display().to_string())?;
    let machine = Machine::look(&args.data_dir, args.duration);
    if made {
        // Somebody may have begun to use it meanwhile; then it stays.
        let _removed = std::fs::remove_dir(&args.data_dir);
    }
    let machine = machine?;
    let advice = advise(&machine);
    if args.json {
        let flags = advice
            .flags
            .iter()
            .map(|flag| json!({ "flag": flag.name, "value": flag.value, "why": flag.why }));
        let flags: Vec<_> = flags.collect();
        let found = machine.lines();
        let found: Vec<_> =
            found.iter().map(|(what, found)| json!({ "what": what, "found": found })).collect();
        let all = json!({ "found": found, "flags": flags, "administrator": advice.administrator });
        println!("{all:#}");
        return Ok(());
    }
    println!("This machine");
    for (what, found) in machine.lines() {
        println!("  {what:<12} {found}");
    }
    println!("\nFlags for `coretide serve`");
    for flag in &advice.flags {
        println!("  {:<34} {}", format!("{} {}", flag.name, flag.value), flag.why);
    }
    println!("\n  {}", advice.command(&args.data_dir));
    println!("\nWhat the administrator can change");
    for line in &advice.administrator {
        println!("  - {line}");
    }
    if advice.administrator.is_empty() {
        println!("  nothing that we know of");
    }
    Ok(())
}
