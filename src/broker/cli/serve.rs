//! `coretide serve`: from flags, variables and file to a running host.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::config::{ConfigError, FileConfig, Given, GivenTuning};
use crate::logs::LogFormat;
use crate::startup;

/// Runs a broker: one slot per CPU core, each a broker node of its own for Kafka clients.
///
/// Slot s of host h is node h x 1000 + s and listens on the port of --listen plus s. Every flag can
/// also be given as CORETIDE_<FLAG> or in the file of --config; flags win over variables, variables
/// over the file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  coretide serve
  coretide serve --cores 0-3 --memory-per-core 1GiB --data-dir /var/lib/coretide
  coretide serve --listen 0.0.0.0:9092 --advertise broker-1.example.net
  coretide serve --set num.partitions=8 --set log.retention.hours=48")]
pub struct ServeArgs {
    /// TOML file with the same names as these flags and Kafka's keys under [set]
    #[arg(long, value_name = "FILE", env = "CORETIDE_CONFIG")]
    config: Option<PathBuf>,
    /// Where topics and metadata are kept [default: ./coretide-data]
    #[arg(long, value_name = "DIR", env = "CORETIDE_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Address of slot 0; slot s listens on this port + s [default: 127.0.0.1:9092]
    #[arg(long, value_name = "HOST:PORT", env = "CORETIDE_LISTEN")]
    listen: Option<String>,
    /// What clients are told instead of the listening address (containers, NAT)
    #[arg(long, value_name = "HOST[:PORT]", env = "CORETIDE_ADVERTISE")]
    advertise: Option<String>,
    /// Number of this host in the cluster [default: 1]
    #[arg(long, value_name = "N", env = "CORETIDE_HOST_ID")]
    host_id: Option<i32>,
    /// CPUs to run slots on: all, or a list like 0,1,4-7 [default: all]
    #[arg(long, value_name = "LIST", env = "CORETIDE_CORES")]
    cores: Option<String>,
    /// Address of /healthz, /readyz and /metrics, or none [default: 127.0.0.1:9644]
    #[arg(long, value_name = "HOST:PORT", env = "CORETIDE_ADMIN_LISTEN")]
    admin_listen: Option<String>,
    /// Of each metric of topics, partitions, groups or lags: the most series of a scrape; of
    /// lags the largest are kept [default: 20000]
    #[arg(long, value_name = "N", env = "CORETIDE_METRICS_SERIES")]
    metrics_series: Option<u32>,
    /// How log lines are written to standard error [default: text]
    #[arg(long, value_name = "FORMAT", env = "CORETIDE_LOG_FORMAT")]
    log_format: Option<LogFormat>,
    /// Availability zone of this host, told to clients as rack
    #[arg(long, value_name = "ZONE", env = "CORETIDE_RACK")]
    rack: Option<String>,
    /// A broker key of Kafka, such as log.retention.ms=3600000; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    tuning: GivenTuning,
}

pub(super) fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let file = args.config.as_deref().map(FileConfig::read).transpose()?;
    let given = args.given()?.or(file.unwrap_or_default());
    Ok(startup::serve(given.resolve()?)?)
}

impl ServeArgs {
    fn given(self) -> Result<Given, ConfigError> {
        Ok(Given {
            data_dir: self.data_dir,
            listen: self.listen,
            advertise: self.advertise,
            host_id: self.host_id,
            cores: self.cores,
            tuning: self.tuning,
            core_tuning: BTreeMap::new(),
            admin_listen: self.admin_listen,
            metrics_series: self.metrics_series,
            log_format: self.log_format,
            rack: self.rack,
            set: self
                .set
                .iter()
                .map(|text| assignment(text))
                .collect::<Result<BTreeMap<_, _>, _>>()?,
        })
    }
}

fn assignment(text: &str) -> Result<(String, String), ConfigError> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(ConfigError(format!("--set '{text}': write KEY=VALUE, like num.partitions=8"))),
    }
}
