//! The facts about a machine that matter to a broker, from /proc, /sys and a short measurement.
//! What cannot be read is unknown, never guessed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use runtime::fs::FsInfo;
use runtime::{Config, Limits};

use crate::machine::{DiskSpeed, disk_speed};
use crate::stage::run_once;

/// Everything that was found.
#[derive(Debug, Clone)]
pub struct Machine {
    /// CPUs that this process may use.
    pub cpus: Vec<usize>,
    /// CPUs of each NUMA node, as the kernel lists them.
    pub nodes: Vec<String>,
    pub governor: Option<String>,
    /// Cores that the scheduler leaves alone (`isolcpus`).
    pub isolated: String,
    pub memory_bytes: u64,
    /// Who gets huge pages without asking for each of them: "always", "madvise" or "never".
    pub huge_pages: Option<String>,
    pub limits: Limits,
    pub disk: Disk,
    pub networks: Vec<Network>,
}

#[derive(Debug, Clone)]
pub struct Disk {
    pub file_system: FsInfo,
    pub device: Option<Device>,
    /// None if it was not measured.
    pub speed: Option<DiskSpeed>,
}

/// The block device below the data directory.
#[derive(Debug, Clone)]
pub struct Device {
    pub name: String,
    /// The one in force.
    pub scheduler: String,
    pub rotational: bool,
    pub write_cache: String,
    pub poll_queues: bool,
}

/// A network interface with hardware below it.
#[derive(Debug, Clone)]
pub struct Network {
    pub name: String,
    pub receive_queues: usize,
    /// CPUs that its interrupts may go to, one entry for each interrupt.
    pub interrupts: Vec<String>,
}

impl Machine {
    /// Looks, and measures the disk below `folder` for about `duration`.
    pub fn look(folder: &Path, duration: Duration) -> anyhow::Result<Machine> {
        let limits = runtime::raise_limits();
        let allowed = sched_getaffinity(Pid::from_raw(0)).context("asking for the CPUs")?;
        let is_ours = |cpu: &usize| allowed.is_set(*cpu).unwrap_or(false);
        let cpus: Vec<usize> = (0..CpuSet::count()).filter(is_ours).collect();
        let cpu = cpus.first().copied().context("this process may use no CPU")?;
        let place = folder.to_owned();
        let file_system = run_once(Config::new(vec![cpu]), move || {
            let place = place.clone();
            async move { Ok(runtime::fs::info(&place).await?) }
        })?;
        let speed =
            if duration.is_zero() { None } else { Some(disk_speed(cpu, folder, duration)?) };
        Ok(Machine {
            nodes: nodes(),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            isolated: read("/sys/devices/system/cpu/isolated").unwrap_or_default(),
            memory_bytes: memory_bytes().unwrap_or(0),
            huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|text| chosen(&text).to_owned()),
            limits,
            disk: Disk { file_system, device: device_of(folder), speed },
            networks: networks(),
            cpus,
        })
    }

    /// For people: what, and what was found.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let unknown = || "unknown (not told to this process)".to_owned();
        let disk = &self.disk;
        let (kind, info) = (&disk.file_system.kind, &disk.file_system);
        let direct = if info.direct_io { "direct I/O" } else { "no direct I/O" };
        let mut lines = vec![
            ("CPUs", format!("{} ({})", self.cpus.len(), listed(&self.cpus))),
            ("NUMA", format!("{} node(s): {}", self.nodes.len(), self.nodes.join(" | "))),
            ("governor", self.governor.clone().unwrap_or_else(unknown)),
            ("memory", format!("{:.1} GiB", self.memory_bytes as f64 / GIB)),
            ("huge pages", self.huge_pages.clone().unwrap_or_else(unknown)),
            ("limits", limit_words(self.limits)),
            (
                "file system",
                format!(
                    "{kind}, {direct}, sectors of {} and {} bytes, {:.0} GiB free",
                    info.logical_sector,
                    info.physical_sector,
                    info.free as f64 / GIB
                ),
            ),
            ("device", disk.device.as_ref().map_or_else(unknown, Device::words)),
        ];
        if let Some(speed) = &disk.speed {
            lines.push((
                "disk",
                format!(
                    "a durable write of 4 KiB takes {:.2} ms in the median; {:.0}/s one by one, \
                     {:.0}/s over 16 files; {:.0} MB/s written, {:.0} MB/s read",
                    speed.commit_millis,
                    speed.commits_alone,
                    speed.commits_at_once,
                    speed.write_megabytes,
                    speed.read_megabytes
                ),
            ));
        }
        for network in &self.networks {
            let queues = network.receive_queues;
            let places = network.interrupts.join(" | ");
            let line =
                format!("{}: {queues} receive queue(s), IRQs on CPUs {places}", network.name);
            lines.push(("network", line));
        }
        lines
    }
}

impl Device {
    fn words(&self) -> String {
        let kind = if self.rotational { "says it rotates" } else { "does not rotate" };
        let poll = if self.poll_queues { "poll queues" } else { "no poll queues" };
        format!(
            "{}, {kind}, scheduler {}, {} cache, {poll}",
            self.name, self.scheduler, self.write_cache
        )
    }
}

fn limit_words(limits: Limits) -> String {
    let memlock = match limits.memlock {
        u64::MAX => "unlimited".to_owned(),
        bytes => format!("{} KiB", bytes >> 10),
    };
    format!("{} open files, memlock {memlock}", limits.open_files)
}

fn listed(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The word in brackets, as the kernel marks the choice in force; else all of it.
fn chosen(text: &str) -> &str {
    let marked = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    marked.map_or(text, |(marked, _)| marked)
}

fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn nodes() -> Vec<String> {
    let base = Path::new("/sys/devices/system/node");
    let nodes = names(base)
        .into_iter()
        .filter(|name| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok()));
    nodes.filter_map(|name| read(base.join(name).join("cpulist"))).collect()
}

fn memory_bytes() -> Option<u64> {
    let text = read("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

fn device_of(folder: &Path) -> Option<Device> {
    let device = fs::metadata(folder).ok()?.dev();
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let path = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    // A partition has its queue where the whole disk is.
    let parent = path.parent().map(Path::to_owned);
    let has_queue = |path: &PathBuf| path.join("queue").is_dir();
    let disk = Some(path).filter(has_queue).or_else(|| parent.filter(has_queue))?;
    let queue = |name: &str| read(disk.join("queue").join(name)).unwrap_or_default();
    let schedulers = queue("scheduler");
    Some(Device {
        name: disk.file_name()?.to_string_lossy().into_owned(),
        scheduler: chosen(&schedulers).to_owned(),
        rotational: queue("rotational") == "1",
        write_cache: queue("write_cache"),
        poll_queues: queue("io_poll") == "1",
    })
}

fn networks() -> Vec<Network> {
    let base = Path::new("/sys/class/net");
    let real = names(base).into_iter().filter(|name| base.join(name).join("device").exists());
    let network = |name: String| {
        let folder = base.join(&name);
        let queues = names(folder.join("queues"));
        let receive_queues = queues.iter().filter(|queue| queue.starts_with("rx-")).count();
        Network { receive_queues, interrupts: interrupts_of(&name, &folder), name }
    };
    real.map(network).collect()
}

/// By the device's message-signalled interrupts, or by its name in /proc/interrupts.
fn interrupts_of(name: &str, folder: &Path) -> Vec<String> {
    let mut numbers = names(folder.join("device/msi_irqs"));
    if numbers.is_empty() {
        let device = fs::canonicalize(folder.join("device")).unwrap_or_default();
        let device = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_its = |line: &&str| {
            line.split_whitespace().any(|word| {
                word.starts_with(name) || (!device.is_empty() && word.starts_with(&device))
            })
        };
        let text = read("/proc/interrupts").unwrap_or_default();
        let lines = text.lines().filter(is_its);
        numbers =
            lines.filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    }
    let place = |number: &String| read(format!("/proc/irq/{number}/smp_affinity_list"));
    numbers.iter().filter_map(place).collect()
}

const GIB: f64 = (1u64 << 30) as f64;
