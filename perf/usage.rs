//! What a process has used so far, from /proc.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};

/// A look at a process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// User and system time of all its threads.
    pub cpu: Duration,
    pub resident_bytes: u64,
    pub resident_bytes_max: u64,
    /// What it caused the block layer to read and write; 0 where that cannot be seen.
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl Usage {
    pub fn of(pid: u32) -> anyhow::Result<Usage> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let stat = fs::read_to_string(folder.join("stat"));
        let stat = stat.with_context(|| format!("cannot look at process {pid}"))?;
        let status = fs::read_to_string(folder.join("status"))?;
        // Only the owner of a process may see this one.
        let io = fs::read_to_string(folder.join("io")).unwrap_or_default();
        Ok(Usage {
            cpu: cpu_time(&stat).context("/proc/PID/stat")?,
            resident_bytes: field(&status, "VmRSS:").unwrap_or(0) * 1024,
            resident_bytes_max: field(&status, "VmHWM:").unwrap_or(0) * 1024,
            read_bytes: field(&io, "read_bytes:").unwrap_or(0),
            written_bytes: field(&io, "write_bytes:").unwrap_or(0),
        })
    }
}

/// User and system time out of a line of /proc/PID/stat.
pub fn cpu_time(stat: &str) -> anyhow::Result<Duration> {
    // The name, in parentheses, may hold blanks and parentheses of its own.
    let (_, rest) = stat.rsplit_once(')').context("no name in it")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    ensure!(fields.len() > SYSTEM_TICKS_AT, "too few fields");
    let ticks: u64 =
        fields[USER_TICKS_AT].parse::<u64>()? + fields[SYSTEM_TICKS_AT].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Counted from behind the name.
const USER_TICKS_AT: usize = 11;
const SYSTEM_TICKS_AT: usize = 12;
/// The kernel's USER_HZ, the same on every architecture in use.
const TICKS_PER_SECOND: u64 = 100;
