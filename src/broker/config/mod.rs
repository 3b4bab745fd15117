//! What `coretide serve` is told: flags, `CORETIDE_*` variables, one TOML file, in this order of
//! precedence, resolved into one [`ServeConfig`]. Every key has exactly one name; an unknown one is
//! an error that suggests the nearest. Kafka's own broker keys live in the `[set]` table.

mod cores;
mod file;
mod size;
mod tuning;

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use protocol::HostId;

use crate::logs::LogFormat;

pub use cores::{CoreList, available_cpus};
pub use file::FileConfig;
pub use size::ByteSize;
pub use tuning::{GivenTuning, Tuning};

/// Why a configuration was refused; the text says which key and what to write instead.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// The resolved configuration of one host.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    pub data_dir: PathBuf,
    /// Address of slot 0; slot s listens on this port + s.
    pub listen: SocketAddr,
    pub advertise: Option<Advertise>,
    pub host_id: HostId,
    pub cores: CoreList,
    /// The knobs of every slot, and of those that have tables of their own.
    pub tuning: Tuning,
    pub core_tuning: BTreeMap<u16, Tuning>,
    /// Address of `/healthz` and `/metrics`; none switches it off.
    pub admin_listen: Option<SocketAddr>,
    /// Of each metric with a label for a topic, partition or group, the most series of a scrape.
    pub metrics_series: usize,
    pub log_format: LogFormat,
    /// Availability zone, told to clients as `rack`.
    pub rack: Option<String>,
    /// Kafka's broker keys as given with `--set` or in `[set]`.
    pub broker: BTreeMap<String, String>,
}

/// What clients are told instead of the listening address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertise {
    pub host: String,
    /// Port of slot 0; slot s is told as this port + s. Defaults to the listening port.
    pub port: Option<u16>,
}

/// Values before defaults are filled in; from the command line and environment, or from the file.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub data_dir: Option<PathBuf>,
    pub listen: Option<String>,
    pub advertise: Option<String>,
    pub host_id: Option<i32>,
    pub cores: Option<String>,
    pub tuning: GivenTuning,
    /// By slot; from the file only.
    pub core_tuning: BTreeMap<u16, GivenTuning>,
    pub admin_listen: Option<String>,
    pub metrics_series: Option<u32>,
    pub log_format: Option<LogFormat>,
    pub rack: Option<String>,
    pub set: BTreeMap<String, String>,
}

impl Given {
    /// Takes from `weaker` what `self` leaves open; `set` entries are merged key by key.
    pub fn or(mut self, weaker: Given) -> Given {
        self.data_dir = self.data_dir.or(weaker.data_dir);
        self.listen = self.listen.or(weaker.listen);
        self.advertise = self.advertise.or(weaker.advertise);
        self.host_id = self.host_id.or(weaker.host_id);
        self.cores = self.cores.or(weaker.cores);
        self.tuning = self.tuning.or(&weaker.tuning);
        for (slot, tuning) in weaker.core_tuning {
            let own = self.core_tuning.remove(&slot).unwrap_or_default();
            self.core_tuning.insert(slot, own.or(&tuning));
        }
        self.admin_listen = self.admin_listen.or(weaker.admin_listen);
        self.metrics_series = self.metrics_series.or(weaker.metrics_series);
        self.log_format = self.log_format.or(weaker.log_format);
        self.rack = self.rack.or(weaker.rack);
        for (key, value) in weaker.set {
            self.set.entry(key).or_insert(value);
        }
        self
    }

    /// Fills in the defaults and checks every value.
    pub fn resolve(self) -> Result<ServeConfig, ConfigError> {
        let listen = address("listen", self.listen.as_deref().unwrap_or(DEFAULT_LISTEN))?;
        let admin_listen = match self.admin_listen.as_deref().unwrap_or(DEFAULT_ADMIN_LISTEN) {
            "none" => None,
            text => Some(address("admin-listen", text)?),
        };
        let (tuning, core_tuning) = tuning::resolve_cores(&self.tuning, &self.core_tuning)?;
        Ok(ServeConfig {
            data_dir: self.data_dir.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA_DIR)),
            listen,
            advertise: self.advertise.as_deref().map(parse_advertise).transpose()?,
            host_id: host_id(self.host_id.unwrap_or(DEFAULT_HOST_ID))?,
            cores: self.cores.as_deref().unwrap_or("all").parse()?,
            tuning,
            core_tuning,
            admin_listen,
            metrics_series: self.metrics_series.map_or(METRICS_SERIES_DEFAULT, |it| it as usize),
            log_format: self.log_format.unwrap_or_default(),
            rack: self.rack,
            broker: self.set,
        })
    }
}

fn host_id(id: i32) -> Result<HostId, ConfigError> {
    if (0..=HOST_ID_MAX).contains(&id) {
        return Ok(HostId(id));
    }
    Err(ConfigError(format!(
        "host-id {id} is out of range: choose 0 to {HOST_ID_MAX} \
         (node ids are host id x 1000 + slot)"
    )))
}

fn address(key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    let wrong = |why: String| {
        ConfigError(format!(
            "{key} '{text}': {why}; write HOST:PORT, like 127.0.0.1:9092 or [::1]:9092"
        ))
    };
    let mut found = text.to_socket_addrs().map_err(|why| wrong(why.to_string()))?;
    found.next().ok_or_else(|| wrong("the name has no address".to_owned()))
}

fn parse_advertise(text: &str) -> Result<Advertise, ConfigError> {
    let wrong = |why: &str| {
        ConfigError(format!(
            "advertise '{text}': {why}; write HOST or HOST:PORT, like broker-1.example:9092"
        ))
    };
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or_else(|| wrong("'[' without ']'"))?;
        (host, rest.strip_prefix(':'))
    } else if text.matches(':').count() > 1 {
        (text, None)
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    if host.is_empty() {
        return Err(wrong("the host is empty"));
    }
    let port =
        port.map(|port| port.parse().map_err(|_| wrong("the port is no number from 1 to 65535")));
    Ok(Advertise { host: host.to_owned(), port: port.transpose()? })
}

const DEFAULT_DATA_DIR: &str = "./coretide-data";
const DEFAULT_LISTEN: &str = "127.0.0.1:9092";
const DEFAULT_ADMIN_LISTEN: &str = "127.0.0.1:9644";
const METRICS_SERIES_DEFAULT: usize = 20_000;
const DEFAULT_HOST_ID: i32 = 1;
const HOST_ID_MAX: i32 = 2_000_000;
