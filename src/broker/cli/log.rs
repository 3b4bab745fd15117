//! `coretide log`: looks at and repairs logs while no broker runs on them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use storage::offline::{DumpOptions, VerifyOptions, dump, journaled, repair, verify};

/// Looks at logs on disk, or repairs one. The broker of the data directory must not run.
#[derive(Debug, Args)]
pub struct LogArgs {
    #[command(subcommand)]
    command: LogCommand,
}

#[derive(Debug, Subcommand)]
enum LogCommand {
    /// Print batches and index entries, as kafka-dump-log does
    Dump {
        /// A .log, .index or .timeindex file
        path: PathBuf,
        /// Every record of every batch
        #[arg(long)]
        deep_iteration: bool,
        /// Keys and values of the records too
        #[arg(long)]
        print_data_log: bool,
    },
    /// Check every byte and name every fault; exit status 1 when there is one
    Verify {
        /// A log's directory, a segment file, or a data directory
        path: PathBuf,
        /// Decompress every batch and look at each record
        #[arg(long)]
        deep: bool,
        /// Accept missing offsets between batches, as in compacted topics
        #[arg(long)]
        compacted: bool,
    },
    /// Cut a damaged log behind its last good batch and say which offsets are lost
    Repair {
        /// The directory of one log, <data>/<topic>-<partition>
        path: PathBuf,
        /// Yes, the records behind the damage may go
        #[arg(long)]
        accept_loss: bool,
        /// Accept missing offsets between batches, as in compacted topics
        #[arg(long)]
        compacted: bool,
    },
}

pub(super) fn run(args: LogArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        LogCommand::Dump { path, deep_iteration, print_data_log } => {
            if let Some(note) = journaled(&path)? {
                eprintln!("coretide: {note}; the next start brings them here");
            }
            let options = DumpOptions { deep: deep_iteration, print_data: print_data_log };
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            for line in dump(&path, options)? {
                writeln!(out, "{}", line?)?;
            }
            out.flush()?;
        }
        LogCommand::Verify { path, deep, compacted } => {
            let report = verify(&path, VerifyOptions { deep, gaps: compacted })?;
            println!("{report}");
            if report.needs_repair() {
                eprintln!("coretide: `coretide log repair --accept-loss LOG` cuts what is damaged");
            }
            if !report.is_sound() {
                return Ok(ExitCode::FAILURE);
            }
        }
        LogCommand::Repair { path, accept_loss, compacted } => {
            let options = VerifyOptions { deep: true, gaps: compacted };
            if !accept_loss {
                println!("{}", verify(&path, options)?);
                bail!(
                    "nothing was changed: repair cuts everything behind the first damage; \
                     say --accept-loss if that is what you want"
                );
            }
            println!("{}", repair(&path, options)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}
