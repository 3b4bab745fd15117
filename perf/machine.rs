//! `coretide bench limits`: what this machine can do at most, on the CPUs that a comparison uses.
//!
//! Memory, checksums, loopback and durable writes one by one, and then a bare prototype: sockets
//! and aligned durable writes as the broker has them, and nothing else of a broker. How near the
//! broker is to that says more than how far it is from a disk's data sheet.

mod disk;
mod loopback;
mod memory;
mod prototype;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use runtime::Config;
use serde_json::{Value, json};

use crate::options::LimitsArgs;

pub use disk::{DiskSpeed, disk_speed};
pub use prototype::Prototype;

/// A finding: what, how much, in which unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
}

impl Finding {
    fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Finding {
        Finding { what: what.into(), value, unit }
    }
}

pub fn limits(args: &LimitsArgs) -> anyhow::Result<()> {
    runtime::raise_limits();
    let place =
        Place { broker_cpu: args.broker_cpu, load_cpu: args.load_cpu, seconds: args.duration };
    let folder = args.data_dir.join("limits");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let found = measure(&place, &folder);
    std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let found = found?;
    if args.json {
        let one = |f: &Finding| json!({ "what": f.what, "value": f.value, "unit": f.unit });
        println!("{:#}", Value::Array(found.iter().map(one).collect()));
    } else {
        for Finding { what, value, unit } in &found {
            println!("  {what:<58} {value:>10.3} {unit}");
        }
    }
    Ok(())
}

/// Where and how long.
#[derive(Debug, Clone, Copy)]
struct Place {
    broker_cpu: usize,
    load_cpu: usize,
    seconds: Duration,
}

impl Place {
    fn broker(&self) -> Config {
        Config::new(vec![self.broker_cpu])
    }

    fn load(&self) -> Config {
        Config::new(vec![self.load_cpu])
    }
}

fn measure(place: &Place, folder: &Path) -> anyhow::Result<Vec<Finding>> {
    let mut found = memory::measure(place)?;
    found.extend(loopback::measure(place)?);
    found.extend(disk::measure(place, folder)?);
    found.extend(prototype::measure(place, folder)?);
    Ok(found)
}
