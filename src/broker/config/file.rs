//! The TOML file: the long names of the flags at top level, Kafka's broker keys under `[set]`, and
//! what single slots are told otherwise under `[core.N]`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use toml::Value;

use crate::config::{ConfigError, Given, GivenTuning};
use crate::logs::LogFormat;

/// A parsed configuration file.
pub struct FileConfig;

impl FileConfig {
    /// Reads and checks the file. Every error names the file and the key.
    pub fn read(path: &Path) -> Result<Given, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|why| ConfigError(format!("cannot read {}: {why}", path.display())))?;
        FileConfig::parse(&text).map_err(|why| ConfigError(format!("{}: {why}", path.display())))
    }

    /// Parses the text of a file.
    pub fn parse(text: &str) -> Result<Given, ConfigError> {
        let table: toml::Table = text.parse().map_err(|why| ConfigError(format!("{why}")))?;
        let mut given = Given::default();
        for (key, value) in &table {
            take(&mut given, key, value)?;
        }
        Ok(given)
    }
}

fn take(given: &mut Given, key: &str, value: &Value) -> Result<(), ConfigError> {
    match key {
        "data-dir" => given.data_dir = Some(PathBuf::from(scalar(key, value)?)),
        "listen" => given.listen = Some(scalar(key, value)?),
        "advertise" => given.advertise = Some(scalar(key, value)?),
        "host-id" => {
            let text = scalar(key, value)?;
            let wrong = |_| ConfigError(format!("host-id '{text}' is no number"));
            given.host_id = Some(text.parse().map_err(wrong)?);
        }
        "cores" => given.cores = Some(scalar(key, value)?),
        "admin-listen" => given.admin_listen = Some(scalar(key, value)?),
        "metrics-series" => {
            let text = scalar(key, value)?;
            let wrong = |_| ConfigError(format!("metrics-series '{text}' is no number"));
            given.metrics_series = Some(text.parse().map_err(wrong)?);
        }
        "log-format" => {
            let text = scalar(key, value)?;
            let wrong = |why| ConfigError(format!("log-format '{text}': {why}"));
            given.log_format = Some(LogFormat::from_str(&text, false).map_err(wrong)?);
        }
        "rack" => given.rack = Some(scalar(key, value)?),
        "set" => given.set = table_of_set(value)?,
        "core" => given.core_tuning = tables_of_cores(value)?,
        tuning if GivenTuning::KEYS.contains(&tuning) => {
            given.tuning.take(tuning, &scalar(key, value)?)?;
        }
        unknown => return Err(unknown_key(unknown)),
    }
    Ok(())
}

fn tables_of_cores(value: &Value) -> Result<BTreeMap<u16, GivenTuning>, ConfigError> {
    let wrong = |what: &str| {
        ConfigError(format!("core{what}: write tables like [core.3], by the number of the slot"))
    };
    let Value::Table(cores) = value else { return Err(wrong("")) };
    let mut tunings = BTreeMap::new();
    for (number, table) in cores {
        let slot: u16 = number.parse().map_err(|_| wrong(&format!(".{number}")))?;
        let Value::Table(table) = table else { return Err(wrong(&format!(".{number}"))) };
        let mut tuning = GivenTuning::default();
        for (key, value) in table {
            if !tuning.take(key, &scalar(key, value)?)? {
                let known = GivenTuning::KEYS.join(", ");
                return Err(ConfigError(format!(
                    "[core.{slot}] unknown key '{key}'; a core can be told {known}"
                )));
            }
        }
        tunings.insert(slot, tuning);
    }
    Ok(tunings)
}

fn table_of_set(value: &Value) -> Result<BTreeMap<String, String>, ConfigError> {
    let Value::Table(table) = value else {
        return Err(ConfigError(
            "set: write a table, [set] with lines of \"kafka.key\" = value".to_owned(),
        ));
    };
    table.iter().map(|(key, value)| Ok((key.clone(), scalar(key, value)?))).collect()
}

fn scalar(key: &str, value: &Value) -> Result<String, ConfigError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => Err(ConfigError(format!(
            "{key}: a string, number or boolean is needed here (quote keys that contain dots)"
        ))),
    }
}

fn unknown_key(unknown: &str) -> ConfigError {
    let known = || KEYS.iter().chain(&GivenTuning::KEYS).copied();
    let nearest = known().min_by_key(|known| strsim::damerau_levenshtein(known, unknown));
    let hint = match nearest {
        Some(known) if strsim::damerau_levenshtein(known, unknown) <= 4 => {
            format!("did you mean '{known}'?")
        }
        _ => format!("known keys: {}", known().collect::<Vec<_>>().join(", ")),
    };
    ConfigError(format!("unknown key '{unknown}'; {hint} Kafka's broker keys belong under [set]."))
}

const KEYS: [&str; 11] = [
    "data-dir",
    "listen",
    "advertise",
    "host-id",
    "cores",
    "core",
    "admin-listen",
    "metrics-series",
    "log-format",
    "rack",
    "set",
];
