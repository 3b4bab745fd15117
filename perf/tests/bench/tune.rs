//! What `coretide tune` makes of machines that differ in one fact.

use perf::machine::DiskSpeed;
use perf::tune::{Device, Disk, Machine, Network, advise};
use runtime::Limits;
use runtime::fs::FsInfo;

/// Nothing about it calls for the administrator.
fn machine() -> Machine {
    let file_system = FsInfo {
        kind: "ext4".to_owned(),
        free: 1 << 40,
        total: 1 << 40,
        direct_io: true,
        logical_sector: 512,
        physical_sector: 4096,
    };
    let device = Device {
        name: "nvme0n1".to_owned(),
        scheduler: "none".to_owned(),
        rotational: false,
        write_cache: "write through".to_owned(),
        poll_queues: false,
    };
    let speed = DiskSpeed {
        commit_millis: 0.05,
        commits_alone: 20_000.0,
        commits_at_once: 100_000.0,
        write_megabytes: 3000.0,
        read_megabytes: 3000.0,
    };
    let network = Network {
        name: "eth0".to_owned(),
        receive_queues: 8,
        interrupts: (0..8).map(|cpu: usize| cpu.to_string()).collect(),
    };
    Machine {
        cpus: (0..8).collect(),
        nodes: vec!["0-7".to_owned()],
        governor: Some("performance".to_owned()),
        isolated: String::new(),
        memory_bytes: 64 << 30,
        huge_pages: Some("madvise".to_owned()),
        limits: Limits { open_files: 1 << 20, memlock: u64::MAX },
        disk: Disk { file_system, device: Some(device), speed: Some(speed) },
        networks: vec![network],
    }
}

fn flag(machine: &Machine, name: &str) -> Option<String> {
    let flags = advise(machine).flags;
    flags.into_iter().find(|flag| flag.name == name).map(|flag| flag.value)
}

fn told(machine: &Machine, words: &str) -> bool {
    advise(machine).administrator.iter().any(|line| line.contains(words))
}

#[test]
fn a_good_machine_needs_no_administrator() {
    let machine = machine();
    assert_eq!(advise(&machine).administrator, Vec::<String>::new());
    assert_eq!(flag(&machine, "--cores").unwrap(), "1,2,3,4,5,6,7");
    assert_eq!(flag(&machine, "--memory-per-core").unwrap(), "2048MiB");
    assert_eq!(flag(&machine, "--commit-linger").unwrap(), "0us");
    assert_eq!(flag(&machine, "--spin-before-park").unwrap(), "0us");
    assert_eq!(flag(&machine, "--read-ahead"), None);
}

#[test]
fn memory_is_shared_by_the_cores() {
    let machine = Machine { memory_bytes: 4 << 30, cpus: vec![0, 1], ..machine() };
    assert_eq!(flag(&machine, "--cores").unwrap(), "all");
    assert_eq!(flag(&machine, "--memory-per-core").unwrap(), "1024MiB");
    assert!(told(&Machine { memory_bytes: 128 << 20, ..machine }, "too little memory"));
}

#[test]
fn a_slow_disk_gets_fuller_writes() {
    let mut machine = machine();
    let speed = machine.disk.speed.as_mut().unwrap();
    (speed.commit_millis, speed.commits_alone, speed.commits_at_once) = (8.0, 120.0, 180.0);
    assert_eq!(flag(&machine, "--commit-linger").unwrap(), "500us");
    assert!(told(&machine, "8.0 ms"));
    machine.disk.device.as_mut().unwrap().rotational = true;
    assert_eq!(flag(&machine, "--read-ahead").unwrap(), "4MiB");
}

#[test]
fn what_only_the_administrator_can_change_is_named() {
    let good = machine();
    let mut machine = good.clone();
    machine.governor = Some("powersave".to_owned());
    machine.huge_pages = Some("never".to_owned());
    machine.nodes = vec!["0-3".to_owned(), "4-7".to_owned()];
    machine.limits = Limits { open_files: 1024, memlock: 8 << 20 };
    machine.disk.file_system.direct_io = false;
    machine.disk.device.as_mut().unwrap().scheduler = "mq-deadline".to_owned();
    machine.networks[0].interrupts = vec!["0".to_owned(); 8];
    let words =
        ["powersave", "2 NUMA", "1024 open files", "memlock", "no direct I/O", "mq-deadline"];
    for words in words.into_iter().chain(["spread its 8 receive queues", "Huge pages"]) {
        assert!(told(&machine, words), "{words}: {:?}", advise(&machine).administrator);
        assert!(!told(&good, words), "{words}");
    }
}

#[test]
fn isolated_cores_may_poll() {
    let machine = Machine { isolated: "2-7".to_owned(), ..machine() };
    assert_eq!(flag(&machine, "--spin-before-park").unwrap(), "50us");
}
