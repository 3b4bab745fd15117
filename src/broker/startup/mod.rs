//! Starting a host: what is checked before any executor runs, and what slot 0 opens first.

mod directory;
mod report;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use protocol::SlotIndex;
use runtime::{Config, CoreConfig, Exit};

pub use directory::{HostDirectory, open_host, slots_of};

use crate::config::{ConfigError, ServeConfig, available_cpus};
use crate::host::Host;
use crate::{logs, slot};

/// Why a host did not start; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    #[error(
        "{address} is taken or not ours to bind: {why}; \
         choose another with --listen or --admin-listen, or end its owner"
    )]
    Port { address: String, why: std::io::Error },
    #[error(transparent)]
    Files(#[from] runtime::fs::FsError),
    #[error("the journal: {0}")]
    Journal(#[from] storage::JournalError),
    #[error("the journals: {0}")]
    Journals(#[from] storage::ScanError),
    #[error("the data directory {path} {what}")]
    Directory { path: String, what: String },
    #[error("the metadata log: {0}")]
    Metadata(#[from] crate::controller::OpenError),
    #[error(transparent)]
    Cluster(#[from] metadata::controller::StartError),
}

impl StartError {
    pub fn port(address: Option<SocketAddr>, why: std::io::Error) -> StartError {
        let address = address.map_or_else(|| "none".to_owned(), |address| address.to_string());
        StartError::Port { address, why }
    }
}

/// Runs a host until it is asked to stop.
pub fn serve(config: ServeConfig) -> Result<ExitCode, StartError> {
    logs::init(config.log_format);
    let cpus = config.cores.cpus(&available_cpus()?)?;
    let slots = slots_of(&config.data_dir)?.unwrap_or(0).max(cpus.len() as u16);
    let limits = runtime::raise_limits();
    let (host, warnings) = Host::new(config, slots, limits.open_files)?;
    let host = Arc::new(host);
    report::print(&host, &cpus, limits, &warnings);
    let mut executors =
        Config::new((0..usize::from(slots)).map(|s| cpus[s % cpus.len()]).collect());
    executors.own = (0..slots)
        .map(|slot| {
            let tuning = host.tuning(SlotIndex(slot));
            let io_memory = tuning.io_memory.unwrap_or(limits.io_memory(usize::from(slots)));
            let (ring_depth, spin) = (tuning.ring_depth, tuning.spin);
            let huge_pages = tuning.memory as usize;
            (usize::from(slot), CoreConfig { io_memory, huge_pages, ring_depth, spin })
        })
        .collect();
    match runtime::run(executors, move |core| slot::run(core, host.clone())) {
        Exit::Clean => {
            println!("coretide: stopped");
            Ok(ExitCode::SUCCESS)
        }
        Exit::Failed(why) => {
            eprintln!("coretide: {why}");
            Ok(ExitCode::FAILURE)
        }
    }
}
