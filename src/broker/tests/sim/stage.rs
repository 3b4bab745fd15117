//! The hosts of a run: one that serves, one that the clients are on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use broker::config::{ByteSize, Given, GivenTuning};
use broker::host::Host;
use broker::slot;
use runtime::sim::{Options, SimHost, Simulation};
use runtime::{Config, Core, Exit};

pub const DATA_DIR: &str = "/data";
const PORT: u16 = 9092;
const OPEN_FILES: u64 = 1000;

pub struct Stage {
    pub simulation: Simulation,
    pub server: SimHost,
    pub clients: SimHost,
    pub slots: u16,
    set: BTreeMap<String, String>,
    journal_size: &'static str,
}

impl Stage {
    /// `set` are broker keys as `--set` takes them, `journal_size` is `0` for no journal.
    pub fn new(
        seed: u64,
        slots: u16,
        set: &[(&str, &str)],
        sabotage: Option<&'static str>,
        journal_size: &'static str,
    ) -> Self {
        let simulation = Simulation::new(seed, Options { sabotage, ..Options::default() });
        let (server, clients) = (simulation.add_host("server"), simulation.add_host("clients"));
        simulation
            .start(&clients, Config::new(vec![0]), |_: Core<()>| std::future::pending::<Exit>());
        let set = set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Self { simulation, server, clients, slots, set, journal_size }
    }

    /// Where slot `slot` listens.
    pub fn address(&self, slot: u16) -> SocketAddr {
        SocketAddr::new(self.server.ip(), PORT + slot)
    }

    /// Starts the broker anew on whatever its disk holds.
    pub fn start_server(&self) {
        let tuning = GivenTuning {
            memory_per_core: Some(MEMORY_PER_CORE.parse::<ByteSize>().unwrap()),
            journal_size: Some(self.journal_size.parse::<ByteSize>().unwrap()),
            ..GivenTuning::default()
        };
        let given = Given {
            data_dir: Some(PathBuf::from(DATA_DIR)),
            listen: Some(self.address(0).to_string()),
            cores: Some("0".to_owned()),
            tuning,
            admin_listen: Some("none".to_owned()),
            set: self.set.clone(),
            ..Given::default()
        };
        let (host, _warnings) =
            Host::new(given.resolve().unwrap(), self.slots, OPEN_FILES).unwrap();
        let host = Arc::new(host);
        let cpus = (0..usize::from(self.slots)).collect();
        self.simulation
            .start(&self.server, Config::new(cpus), move |core| slot::run(core, host.clone()));
    }
}

const MEMORY_PER_CORE: &str = "64MiB";
