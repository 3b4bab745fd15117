//! The command line: what can be asked of `coretide`, with help that teaches.

mod consume;
mod datetime;
mod group;
mod log;
mod produce;
mod rebalance;
mod serve;
mod table;
mod top;
mod topic;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An event broker that speaks the Kafka wire protocol; every CPU core is a broker of its own.
#[derive(Debug, Parser)]
#[command(name = "coretide", version, about, max_term_width = 100)]
#[command(
    after_help = "Start with `coretide serve`, then point any Kafka client at 127.0.0.1:9092."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a broker on this host.
    Serve(Box<serve::ServeArgs>),
    /// Create, list, describe, alter and delete topics
    Topic(topic::TopicArgs),
    /// List, describe and delete consumer groups, and move their offsets
    Group(group::GroupArgs),
    /// Write lines of standard input as records
    Produce(produce::ProduceArgs),
    /// Print the records of a topic
    Consume(consume::ConsumeArgs),
    /// Show cores, groups and topics, live
    Top(top::TopArgs),
    /// Move partitions between the cores of a host
    Rebalance(rebalance::RebalanceArgs),
    /// Look at and repair logs while no broker runs on them
    Log(log::LogArgs),
}

/// Runs what the arguments of the process ask for to its end.
pub fn run(cli: Cli) -> ExitCode {
    let result = match cli.command {
        Command::Serve(args) => serve::run(*args),
        Command::Topic(args) => topic::run(args).map(|()| ExitCode::SUCCESS),
        Command::Group(args) => group::run(args).map(|()| ExitCode::SUCCESS),
        Command::Produce(args) => produce::run(args).map(|()| ExitCode::SUCCESS),
        Command::Consume(args) => consume::run(args).map(|()| ExitCode::SUCCESS),
        Command::Top(args) => top::run(args).map(|()| ExitCode::SUCCESS),
        Command::Rebalance(args) => rebalance::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Log(args) => log::run(args),
    };
    match result {
        Ok(code) => code,
        Err(why) => {
            eprintln!("coretide: {why:#}");
            ExitCode::FAILURE
        }
    }
}
