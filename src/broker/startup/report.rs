//! What a start prints: what was found, what was chosen, and what on this machine limits it.

use std::collections::BTreeSet;
use std::path::Path;

use metadata::Image;
use metadata::configs::{BrokerLayers, Warning};
use protocol::NodeId;
use runtime::Limits;
use runtime::fs::FsInfo;

use crate::config::ByteSize;
use crate::host::Host;

/// Prints the report on standard output.
pub(super) fn print(host: &Host, cpus: &[usize], limits: Limits, warnings: &[Warning]) {
    let slots = usize::from(host.slots);
    println!("coretide {}", env!("CARGO_PKG_VERSION"));
    println!("  data      {}, {}", host.data_dir.display(), file_system(&host.data_dir));
    println!("  cores     {}", cores(slots, cpus));
    println!("  listen    {}, told to clients as {}", listen(host), advertised(host));
    println!("  memory    {}", memory(host, slots));
    println!("  limits    {}", limit_words(host, limits, slots));
    println!(
        "  durable   an acknowledged write is on stable storage unless flush.messages says less"
    );
    for warning in warnings {
        println!("  warning   {warning}");
    }
    for warning in tuning_warnings(host, limits) {
        println!("  warning   {warning}");
    }
    if !host.listen.ip().is_loopback() {
        println!(
            "  warning   no authentication: anyone who reaches these ports can read and write \
             every topic"
        );
    }
}

/// Prints what the data directory's file system can do.
pub(super) fn print_disk(info: &FsInfo, clean: bool) {
    let (kind, logical, physical) = (&info.kind, info.logical_sector, info.physical_sector);
    let direct = match info.direct_io {
        true => "direct I/O",
        false => "no direct I/O: writes go through the page cache, each synced",
    };
    println!("  disk      {kind}, {direct}, sectors of {logical} (logical) and {physical} bytes");
    if !clean {
        println!(
            "  recovery  the last stop was not orderly; logs are checked from their last mark"
        );
    }
}

/// Says that slots stand empty while others have partitions to give, as after a start with more
/// cores than before.
pub(super) fn print_empty_slots(host: &Host, image: &Image) {
    let loads: Vec<usize> = host.slot_indexes().map(|slot| image.load_of(host.id, slot)).collect();
    let empty = loads.iter().filter(|load| **load == 0).count();
    if empty > 0 && loads.iter().any(|load| *load > 1) {
        let slots = loads.len();
        println!(
            "  balance   {empty} of {slots} slots have no partition; `coretide rebalance` moves \
             some there"
        );
    }
}

/// Warns of what was given and does not count because the cluster says otherwise.
pub(super) fn print_outranked(host: &Host, image: &Image) {
    let mut told = BTreeSet::new();
    for slot in host.slot_indexes() {
        let layers = BrokerLayers::of_node(image, NodeId::of(host.id, slot), &host.statics);
        for outranked in layers.outranked() {
            let line = outranked.to_string();
            if told.insert(line.clone()) {
                println!("  warning   {line}");
            }
        }
    }
}

fn listen(host: &Host) -> String {
    match host.slots {
        1 => host.listen.to_string(),
        _ => format!("{} and the next {} ports", host.listen, host.slots - 1),
    }
}

fn advertised(host: &Host) -> String {
    match host.advertised_host.contains(':') {
        true => format!("[{}]:{}", host.advertised_host, host.advertised_port),
        false => format!("{}:{}", host.advertised_host, host.advertised_port),
    }
}

fn cores(slots: usize, cpus: &[usize]) -> String {
    let words: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let shared = match slots > cpus.len() {
        true => format!("; this directory was made with {slots} slots, so several share a CPU"),
        false => String::new(),
    };
    let slots = if slots == 1 { "1 slot".to_owned() } else { format!("{slots} slots") };
    format!("{slots} on CPU {}{shared}", words.join(","))
}

fn memory(host: &Host, slots: usize) -> String {
    let budgets = || host.slot_indexes().map(|slot| host.tuning(slot).memory);
    let total = ByteSize::new(budgets().sum());
    let per_core = match (budgets().min(), budgets().max()) {
        (Some(min), Some(max)) if min != max => {
            format!("{} to {}", ByteSize::new(min), ByteSize::new(max))
        }
        _ => ByteSize::new(total.bytes() / slots as u64).to_string(),
    };
    match machine_memory() {
        Some(machine) if total.bytes() > machine / 10 * 9 => format!(
            "{per_core} per slot, {total} in all: more than this machine's {} allow; \
             lower --memory-per-core",
            ByteSize::new(machine)
        ),
        Some(machine) => {
            format!("{per_core} per slot, {total} in all, of {}", ByteSize::new(machine))
        }
        None => format!("{per_core} per slot, {total} in all"),
    }
}

fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

fn limit_words(host: &Host, limits: Limits, slots: usize) -> String {
    let of = |slot| host.tuning(slot).io_memory.unwrap_or(limits.io_memory(slots)) as u64;
    let pinned = || host.slot_indexes().map(of);
    let (least, most) = (pinned().min(), pinned().max());
    let pinned = match (least, most) {
        (Some(least), Some(most)) if least != most => {
            format!("{} to {}", ByteSize::new(least), ByteSize::new(most))
        }
        _ => ByteSize::new(most.unwrap_or(0)).to_string(),
    };
    let memlock = match limits.memlock {
        u64::MAX => "unlimited".to_owned(),
        bytes => ByteSize::new(bytes).to_string(),
    };
    format!("{} open files; memlock {memlock}, {pinned} of I/O buffers per slot", limits.open_files)
}

/// What was asked for and the machine does not grant.
fn tuning_warnings(host: &Host, limits: Limits) -> BTreeSet<String> {
    let mut warnings = BTreeSet::new();
    let given = |slot| host.tuning(slot).io_memory.unwrap_or(0) as u64;
    let pinned: u64 = host.slot_indexes().map(given).sum();
    if pinned.saturating_mul(RINGS) > limits.memlock {
        warnings.insert(format!(
            "io-memory-per-core: {} in all count {RINGS} times, more than the memlock limit of {}; \
             cores that come too late have none",
            ByteSize::new(pinned),
            ByteSize::new(limits.memlock)
        ));
    }
    for slot in host.slot_indexes() {
        let tuning = host.tuning(slot);
        for (key, bytes, limit) in [
            ("socket-send-buffer", tuning.send_buffer_bytes, "wmem_max"),
            ("socket-receive-buffer", tuning.receive_buffer_bytes, "rmem_max"),
        ] {
            let granted = std::fs::read_to_string(format!("/proc/sys/net/core/{limit}")).ok();
            let granted = granted.and_then(|text| text.trim().parse::<usize>().ok());
            if let (Some(bytes), Some(granted)) = (bytes, granted)
                && granted < bytes
            {
                warnings.insert(format!(
                    "{key}: the kernel gives {} instead of {}; raise net.core.{limit}",
                    ByteSize::new(granted as u64),
                    ByteSize::new(bytes as u64)
                ));
            }
        }
    }
    warnings
}

fn file_system(path: &Path) -> String {
    let existing = path.ancestors().find(|each| each.exists()).unwrap_or(Path::new("/"));
    let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
    match nix::sys::statvfs::statvfs(existing) {
        Ok(stat) => {
            let free = stat.blocks_available() * stat.fragment_size();
            format!("{} free", ByteSize::new(free))
        }
        Err(why) => format!("free space unknown ({why})"),
    }
}

/// Of each executor; the kernel counts registered memory once for each.
const RINGS: u64 = 3;
