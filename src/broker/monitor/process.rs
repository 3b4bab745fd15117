//! The numbers of the process that every exporter gives, under the names that all of them use.
//! Read from /proc, so never on the loop of a core.

use std::fs;

use ::metrics::Snapshot;

/// What can be read.
pub fn numbers() -> Snapshot {
    let mut out = Snapshot::default();
    add(&mut out);
    out
}

fn add(out: &mut Snapshot) {
    if let Some(open) = open_files() {
        out.gauge("process_open_fds", "Open files and sockets of the process.", &[], open as f64);
    }
    if let Some(max) = limit("Max open files") {
        out.gauge("process_max_fds", "Files and sockets that it may have open.", &[], max);
    }
    let Ok(text) = fs::read_to_string("/proc/self/stat") else { return };
    // The name of the program, in parentheses, may hold anything.
    let Some((_, rest)) = text.rsplit_once(')') else { return };
    let fields: Vec<u64> = rest.split_whitespace().map(|it| it.parse().unwrap_or(0)).collect();
    let field = |number: usize| fields.get(number - 3).copied().unwrap_or(0) as f64;
    let seconds = |ticks: f64| ticks / TICKS_PER_SECOND;
    let cpu = seconds(field(14) + field(15));
    out.float_counter("process_cpu_seconds", "Processor time used.", &[], cpu);
    let resident = field(24) * PAGE_BYTES;
    out.gauge("process_resident_memory_bytes", "Memory held.", &[], resident);
    out.gauge("process_virtual_memory_bytes", "Address space held.", &[], field(23));
    out.gauge("process_threads", "Threads of the process.", &[], field(20));
    if let Some(booted) = booted_at() {
        let at = booted + seconds(field(22));
        out.gauge("process_start_time_seconds", "When it started, since 1970.", &[], at);
    }
}

/// Since Linux 6.2 the size of the directory is the number of its entries, which costs nothing;
/// listing ten thousand files takes milliseconds.
fn open_files() -> Option<u64> {
    let told = fs::metadata("/proc/self/fd").ok()?.len();
    if told > 0 {
        return Some(told);
    }
    // One of them is open only for this.
    fs::read_dir("/proc/self/fd").ok().map(|entries| (entries.count() as u64).saturating_sub(1))
}

fn limit(name: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn booted_at() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// What the kernel counts in, on every architecture that is built for.
const TICKS_PER_SECOND: f64 = 100.0;
const PAGE_BYTES: f64 = 4096.0;
