//! From facts to flags. Pure.

use std::path::Path;

use super::machine::Machine;

/// One flag of `coretide serve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    pub name: &'static str,
    pub value: String,
    pub why: String,
}

/// What we would do with the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice {
    pub flags: Vec<Flag>,
    /// What only the administrator can change.
    pub administrator: Vec<String>,
}

impl Advice {
    /// The whole command.
    pub fn command(&self, data_dir: &Path) -> String {
        let flags = self.flags.iter().map(|flag| format!(" {} {}", flag.name, flag.value));
        format!("coretide serve --data-dir {}{}", data_dir.display(), flags.collect::<String>())
    }

    fn flag(&mut self, name: &'static str, value: impl Into<String>, why: impl Into<String>) {
        self.flags.push(Flag { name, value: value.into(), why: why.into() });
    }
}

/// Flags in the order in which one would explain them.
pub fn advise(machine: &Machine) -> Advice {
    let mut advice = Advice::default();
    let slots = cores(machine, &mut advice);
    memory(machine, slots, &mut advice);
    disk(machine, &mut advice);
    limits(machine, slots, &mut advice);
    processor(machine, &mut advice);
    network(machine, &mut advice);
    advice
}

fn cores(machine: &Machine, advice: &mut Advice) -> usize {
    let cpus = &machine.cpus;
    if cpus.len() < SPARE_ONE_FROM {
        let why = "every CPU: there are too few to set one aside for interrupts and others";
        advice.flag("--cores", "all", why);
        return cpus.len();
    }
    let ours: Vec<String> = cpus[1..].iter().map(usize::to_string).collect();
    let why = format!("all but CPU {}, which interrupts and other processes can have", cpus[0]);
    advice.flag("--cores", ours.join(","), why);
    ours.len()
}

fn memory(machine: &Machine, slots: usize, advice: &mut Advice) {
    let share = machine.memory_bytes / 2 / slots.max(1) as u64 / MEMORY_STEP * MEMORY_STEP;
    let share = share.clamp(MEMORY_MIN, MEMORY_MAX);
    let why = format!(
        "half of the memory over {slots} slot(s), {} GiB at most: beyond that it only helps \
         readers who are far behind",
        MEMORY_MAX >> 30
    );
    advice.flag("--memory-per-core", format!("{}MiB", share >> 20), why);
    if machine.memory_bytes > 0 && share * slots as u64 > machine.memory_bytes / 10 * 9 {
        let line = "There is too little memory for so many cores: use fewer, or add memory.";
        advice.administrator.push(line.to_owned());
    }
    if machine.huge_pages.as_deref() == Some("never") {
        let line = "Huge pages are switched off: large writes and reads cost more CPU, and go to \
                    the disk in small pieces. \
                    echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
        advice.administrator.push(line.to_owned());
    }
}

fn disk(machine: &Machine, advice: &mut Advice) {
    let disk = &machine.disk;
    if !disk.file_system.direct_io {
        advice.administrator.push(format!(
            "The data directory is on {}, which has no direct I/O; use ext4 or XFS.",
            disk.file_system.kind
        ));
    }
    // Virtual disks often call themselves rotating: what was measured knows better.
    let is_slow = disk.speed.as_ref().is_none_or(|it| it.commit_millis > COMMIT_MILLIS_SLOW);
    if let Some(device) = &disk.device {
        let rotates = device.rotational && is_slow;
        if rotates {
            let why = "a rotating disk: fewer, longer reads";
            advice.flag("--read-ahead", "4MiB", why);
        }
        if !rotates && !matches!(device.scheduler.as_str(), "none" | "") {
            advice.administrator.push(format!(
                "Requests to {0} are sorted by '{1}', which costs CPU and gains nothing without \
                 a head to move: echo none > /sys/block/{0}/queue/scheduler (until the next \
                 boot; a udev rule keeps it)",
                device.name, device.scheduler
            ));
        }
    }
    let Some(speed) = &disk.speed else { return };
    // Small commits of all partitions share one write at a time: how many the disk takes at once
    // says nothing about them.
    if speed.commit_millis > COMMIT_MILLIS_SLOW {
        let why = format!(
            "a durable write takes {:.1} ms: fewer, fuller ones cost hardly more",
            speed.commit_millis
        );
        advice.flag("--commit-linger", "500us", why);
    } else {
        let why = format!(
            "a durable write takes {:.2} ms; waiting would only add to it",
            speed.commit_millis
        );
        advice.flag("--commit-linger", "0us", why);
    }
    if speed.commit_millis > COMMIT_MILLIS_SLOW {
        advice.administrator.push(format!(
            "A durable write takes {:.1} ms: every acknowledged produce waits that long. A disk \
             with a protected write cache answers in a tenth of it.",
            speed.commit_millis
        ));
    }
}

fn limits(machine: &Machine, slots: usize, advice: &mut Advice) {
    let limits = machine.limits;
    let io_memory = limits.io_memory(slots);
    if io_memory < IO_MEMORY_GOOD {
        advice.administrator.push(format!(
            "memlock leaves {} KiB of registered I/O memory a core: raise it \
             (LimitMEMLOCK=infinity in the unit, or ulimit -l).",
            io_memory >> 10
        ));
    }
    if limits.open_files < OPEN_FILES_GOOD {
        advice.administrator.push(format!(
            "{} open files are allowed; with many partitions and clients {OPEN_FILES_GOOD} are \
             better (LimitNOFILE in the unit, or ulimit -n).",
            limits.open_files
        ));
    }
}

fn processor(machine: &Machine, advice: &mut Advice) {
    if machine.isolated.is_empty() {
        let why = "the CPUs are shared with others; polling spares wake-ups of idle cores, and \
                   costs CPU all the time";
        advice.flag("--spin-before-park", "0us", why);
    } else {
        let why = format!("CPUs {} are isolated: polling disturbs nobody", machine.isolated);
        advice.flag("--spin-before-park", "50us", why);
    }
    if let Some(governor) = machine.governor.as_ref().filter(|it| *it != "performance") {
        advice.administrator.push(format!(
            "The frequency governor is '{governor}': cores that sleep between requests wake up \
             slow. cpupower frequency-set -g performance"
        ));
    }
    if machine.nodes.len() > 1 {
        advice.administrator.push(format!(
            "There are {} NUMA nodes ({}): a slot's memory comes from the node of its core, so \
             keep network card, disk and --cores on one node if one is enough.",
            machine.nodes.len(),
            machine.nodes.join(" | ")
        ));
    }
}

fn network(machine: &Machine, advice: &mut Advice) {
    for network in &machine.networks {
        let mut places = network.interrupts.clone();
        places.sort();
        places.dedup();
        if network.receive_queues > 1 && places.len() == 1 {
            advice.administrator.push(format!(
                "All interrupts of {} may go to CPUs {}: spread its {} receive queues over the \
                 cores (irqbalance, or /proc/irq/N/smp_affinity_list).",
                network.name, places[0], network.receive_queues
            ));
        }
        if network.receive_queues == 1 && machine.cpus.len() >= SPARE_ONE_FROM {
            advice.administrator.push(format!(
                "{} has one receive queue: one CPU takes all packets. Use more queues (ethtool \
                 -L), or spread in software (/sys/class/net/{}/queues/rx-0/rps_cpus).",
                network.name, network.name
            ));
        }
    }
}

/// From so many CPUs on, one is left to the rest of the machine.
const SPARE_ONE_FROM: usize = 8;
const MEMORY_STEP: u64 = 64 << 20;
const MEMORY_MIN: u64 = 64 << 20;
const MEMORY_MAX: u64 = 2 << 30;
const COMMIT_MILLIS_SLOW: f64 = 2.0;
const IO_MEMORY_GOOD: usize = 1 << 20;
const OPEN_FILES_GOOD: u64 = 65_536;
