//! What all slots of one host share: facts fixed at start, and what is counted per host.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use protocol::Str;
use protocol::{HostId, NodeId, SlotIndex, Uuid};

use metadata::configs::{StaticSettings, Warning};
use storage::OPEN_FILES_MIN;

use crate::config::{ConfigError, ServeConfig, Tuning};

/// Facts of one `coretide serve` process, fixed before the first slot starts.
pub struct Host {
    pub id: HostId,
    pub data_dir: PathBuf,
    /// Slots of this host; never fewer than any earlier start had.
    pub slots: u16,
    pub listen: SocketAddr,
    pub advertised_host: String,
    pub advertised_port: u16,
    pub rack: Option<Str>,
    pub admin_listen: Option<SocketAddr>,
    /// Of each metric with a label for a topic, partition or group, the most series of a scrape.
    pub metrics_series: usize,
    /// The knobs of every slot, and of those that have tables of their own.
    tuning: Tuning,
    core_tuning: BTreeMap<u16, Tuning>,
    /// Kafka's broker keys from `--set` and the file.
    pub statics: StaticSettings,
    /// Files and sockets that the process may have open.
    pub open_files: u64,
    /// Client connections of all slots together.
    pub connections: ConnectionCount,
}

/// What the data directory says about itself, known once slot 0 has opened it.
#[derive(Clone, Debug)]
pub struct Identity {
    pub cluster_id: Str,
    pub directory_id: Uuid,
    /// Grows by one with every start of this host.
    pub incarnation: i64,
    /// Whether the stop before this start was orderly.
    pub clean: bool,
    /// Whether the data directory takes direct I/O.
    pub direct_io: bool,
}

impl Host {
    /// Checks Kafka's broker keys; says which of them change nothing here.
    pub fn new(
        config: ServeConfig,
        slots: u16,
        open_files: u64,
    ) -> Result<(Host, Vec<Warning>), ConfigError> {
        let (mut statics, warnings) = static_settings(&config)?;
        // What flags say under names of their own is shown under Kafka's.
        statics.derive("log.dirs", config.data_dir.display().to_string());
        statics.derive("listeners", format!("PLAINTEXT://{}", config.listen));
        statics.derive("process.roles", "broker,controller".to_owned());
        let rack = config.rack.or_else(|| statics.get("broker.rack").map(str::to_owned));
        if let Some(rack) = &rack {
            statics.derive("broker.rack", rack.clone());
        }
        let advertise = config.advertise;
        let advertised_port =
            advertise.as_ref().and_then(|given| given.port).unwrap_or(config.listen.port());
        let advertised_host = match advertise {
            Some(given) => given.host,
            None if config.listen.ip().is_unspecified() => host_name(),
            None => config.listen.ip().to_string(),
        };
        let host = Host {
            id: config.host_id,
            data_dir: config.data_dir,
            slots,
            listen: config.listen,
            advertised_host,
            advertised_port,
            rack: rack.map(Str::from),
            admin_listen: config.admin_listen,
            metrics_series: config.metrics_series,
            tuning: config.tuning,
            core_tuning: config.core_tuning,
            statics,
            open_files,
            connections: ConnectionCount::default(),
        };
        Ok((host, warnings))
    }

    /// Segment files that one slot may keep open: half of what the process may, the rest is for
    /// sockets.
    pub fn open_files_per_slot(&self) -> usize {
        let share = self.open_files / 2 / u64::from(self.slots.max(1));
        (share as usize).max(OPEN_FILES_MIN)
    }

    /// The knobs of one slot.
    pub fn tuning(&self, slot: SlotIndex) -> &Tuning {
        self.core_tuning.get(&slot.0).unwrap_or(&self.tuning)
    }

    pub fn node(&self, slot: SlotIndex) -> NodeId {
        NodeId::of(self.id, slot)
    }

    /// Where slot `slot` listens for clients.
    pub fn listen_of(&self, slot: SlotIndex) -> SocketAddr {
        SocketAddr::new(self.listen.ip(), self.listen.port() + slot.0)
    }

    pub fn slot_indexes(&self) -> impl Iterator<Item = SlotIndex> + use<> {
        (0..self.slots).map(SlotIndex)
    }
}

fn static_settings(config: &ServeConfig) -> Result<(StaticSettings, Vec<Warning>), ConfigError> {
    let mut statics = StaticSettings::default();
    let mut warnings = Vec::new();
    for (key, value) in &config.broker {
        match statics.set(key, value) {
            Ok(warning) => warnings.extend(warning),
            Err(why) => return Err(ConfigError(why.to_string())),
        }
    }
    Ok((statics, warnings))
}

/// The name to tell clients when listening on all addresses: this machine's host name.
fn host_name() -> String {
    let name = nix::sys::utsname::uname().ok();
    let name = name.and_then(|name| name.nodename().to_str().map(str::to_owned));
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}

/// Client connections, counted over all slots: `max.connections` and `max.connections.per.ip` are
/// limits of the host. Touched when a client connects or leaves, never per request.
#[derive(Default)]
pub struct ConnectionCount {
    total: AtomicUsize,
    by_address: Mutex<BTreeMap<IpAddr, usize>>,
}

impl ConnectionCount {
    /// Counts a connection in unless a limit is reached.
    pub fn admit(&self, address: IpAddr, total_max: usize, address_max: usize) -> bool {
        if self.total.fetch_add(1, Ordering::Relaxed) >= total_max {
            self.total.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let mut by_address =
            self.by_address.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let count = by_address.entry(address).or_default();
        if *count >= address_max {
            if *count == 0 {
                by_address.remove(&address);
            }
            self.total.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        *count += 1;
        true
    }

    pub fn leave(&self, address: IpAddr) {
        self.total.fetch_sub(1, Ordering::Relaxed);
        let mut by_address =
            self.by_address.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(count) = by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&address);
            }
        }
    }

    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}
