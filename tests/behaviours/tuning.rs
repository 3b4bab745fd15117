//! What tunes a core, each flag and key seen to take effect on a running broker, from outside: in
//! /proc, in the metrics, in what clients see.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrStorage, bind, connect, getpeername,
    getsockopt, socket, sockopt,
};
use protocol::messages::api_versions::ApiVersionsRequest;
use protocol::messages::fetch::FetchRequest;
use protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use protocol::messages::produce::ProduceResponse;
use protocol::{ErrorCode, Str};

use crate::broker::{Broker, DEADLINE, SLOTS, new_directory};
use crate::scenario::{
    Topic, batch, fetch_request, only_outcome, only_partition, produce_request, wait_until,
};
use crate::wire::Connection;

fn told(flags: &[&str]) -> Broker {
    Broker::start_told(flags.iter().map(|flag| (*flag).to_owned()).collect())
}

/// A broker that is told by a file.
fn told_by_file(text: &str) -> Broker {
    let path = new_directory("told").with_extension("toml");
    std::fs::write(&path, text).unwrap();
    told(&["--config", path.to_str().unwrap()])
}

/// `--ring-depth` and `--io-memory-per-core`: every ring of a core has as many entries and as much
/// registered memory as it was told, by the file, or by a table of its own.
#[test]
fn rings_and_registered_memory_are_as_told() {
    let broker = told_by_file(
        "ring-depth = 64\nio-memory-per-core = \"128KiB\"\n\
         [core.1]\nring-depth = 512\nio-memory-per-core = \"256KiB\"\n",
    );
    let mut rings: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for ring in rings_of(broker.pid()) {
        *rings.entry(ring).or_default() += 1;
    }
    let per_core = 3;
    let wanted = [((64, 128 << 10), per_core), ((512, 256 << 10), per_core)];
    assert_eq!(rings, BTreeMap::from(wanted), "entries and registered bytes of the rings");
    assert!(broker.printed().contains("128KiB to 256KiB of I/O buffers"), "{}", broker.printed());
}

/// Entries of the submission queue and bytes of the registered buffers of each ring.
fn rings_of(pid: i32) -> Vec<(usize, usize)> {
    let folder = format!("/proc/{pid}/fd");
    let is_ring = |name: &String| {
        let target = std::fs::read_link(format!("{folder}/{name}"));
        target.is_ok_and(|target| target.to_string_lossy().contains("io_uring"))
    };
    let names = std::fs::read_dir(&folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let ring = |name: String| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{name}")).unwrap();
        let mask = text.lines().find_map(|line| line.strip_prefix("SqMask:")).unwrap().trim();
        let mask = mask.strip_prefix("0x").map(|hex| usize::from_str_radix(hex, 16));
        let (_, buffers) = text.split_once("UserBufs:").unwrap();
        // One a line, `0: ADDRESS/LENGTH`, behind their number.
        let buffers = buffers.lines().skip(1).take_while(|line| line.contains(": 0x"));
        let bytes = buffers.map(|line| line.rsplit_once('/').unwrap().1.parse::<usize>().unwrap());
        (mask.unwrap().unwrap() + 1, bytes.sum())
    };
    names.filter(is_ring).map(ring).collect()
}

/// `--spin-before-park`: a core that is told to polls while it waits, which takes processor time;
/// here by a table of the file for one core, beside one that is not told so.
#[test]
fn a_core_that_spins_does_not_sleep_while_it_waits() {
    let broker = told_by_file("[core.1]\nspin-before-park = \"10ms\"\n");
    let topic = Topic::on_both_slots(&broker, "spinning");
    let taken = |core: u16| {
        let partition = topic.leaders.iter().position(|leader| *leader == core).unwrap() as i32;
        let mut connection = topic.leader(&broker, partition);
        // Nobody writes: each is answered when its time is over, before a spinning core sleeps.
        let nothing = FetchRequest { max_wait_ms: 5, ..fetch_request(&[(&topic, partition, 0)]) };
        let before = broker.metric("coretide_core_cpu_seconds_total", core);
        for _ in 0..100 {
            connection.ask(12, &nothing);
        }
        broker.metric("coretide_core_cpu_seconds_total", core) - before
    };
    let (parks, spins) = (taken(0), taken(1));
    assert!(spins >= 3.0 * parks, "spinning took {spins} s, parking {parks} s");
}

/// `--commit-linger`: no write is committed sooner, whether it goes to the journal or not.
#[test]
fn a_commit_lingers_with_a_journal_and_without() {
    const LINGER: Duration = Duration::from_millis(10);
    for journal in ["16MiB", "0"] {
        let broker = told(&["--commit-linger", "10ms", "--journal-size", journal]);
        let topic = Topic::new(&broker, "lingering");
        let core = topic.leaders[0];
        let mut leader = topic.leader(&broker, 0);
        if journal != "0" {
            wait_until("commits go to the journal", || {
                leader.write(&topic, 0, batch(&["x"]));
                broker.metric("coretide_journaled_commits_total", core) > 0.0
            });
        }
        for _ in 0..10 {
            let begun = Instant::now();
            leader.write(&topic, 0, batch(&["x"]));
            let took = begun.elapsed();
            assert!(took >= LINGER, "committed within {took:?}; --journal-size {journal}");
        }
    }
}

/// `--commit-bytes-max`: a write takes no more than that, however much is pending.
#[test]
fn a_commit_takes_no_more_bytes_than_told() {
    const MOST: f64 = 65_536.0;
    // So that much is pending.
    let broker = told(&["--commit-bytes-max", "64KiB", "--commit-linger", "10ms"]);
    let topic = Topic::new(&broker, "in-pieces");
    let mut leader = topic.leader(&broker, 0);
    let value = "x".repeat(30_000);
    for _ in 0..40 {
        leader.send(9, &produce_request(-1, &topic, 0, batch(&[&value])));
    }
    for _ in 0..40 {
        let (_, answer) = leader.receive_as::<ProduceResponse>(9);
        assert_eq!(only_outcome(answer).error_code, ErrorCode::NONE);
    }
    let count = |name: &str| broker.metric(name, topic.leaders[0]);
    let bytes = count("coretide_committed_bytes_total");
    let commits = count("coretide_commits_total");
    assert!(bytes >= 40.0 * 30_000.0, "{bytes}");
    assert!(bytes / commits <= MOST, "{bytes} bytes in {commits} commits");
}

/// `--read-ahead`: who reads in order finds what comes next in memory, as far as told; with 0,
/// nothing is read that was not asked for.
#[test]
fn readers_in_order_are_read_ahead_of_as_far_as_told() {
    const WINDOW: usize = 512 << 10;
    const STEP: usize = 64 << 10;
    for (read_ahead, windows_ahead) in [("4MiB", 6), ("0", 0)] {
        let mut broker = told(&["--read-ahead", read_ahead]);
        let topic = Topic::new(&broker, "in-order");
        let value = "x".repeat(STEP - 200);
        let mut leader = topic.leader(&broker, 0);
        for _ in 0..(8 << 20) / STEP {
            leader.write(&topic, 0, batch(&[&value]));
        }
        broker.restart_in_order();
        let topic = Topic::find(&broker, &topic.name);
        let mut leader = topic.leader(&broker, 0);
        let steps = 16;
        for offset in 0..steps {
            let read = leader.ask(12, &one_step(&topic, offset, STEP));
            assert!(only_partition(read).records.is_some());
        }
        let asked_for = (steps as usize * STEP).div_ceil(WINDOW) + 1;
        let read = || broker.metric("coretide_disk_reads_total", topic.leaders[0]) as usize;
        if windows_ahead > 0 {
            wait_until("windows ahead are read", || read() >= asked_for + windows_ahead);
        } else {
            assert!(read() <= asked_for, "{} windows, asked for {asked_for}", read());
        }
    }
}

fn one_step(topic: &Topic, offset: i64, bytes: usize) -> FetchRequest {
    let mut request = fetch_request(&[(topic, 0, offset)]);
    request.topics[0].partitions[0].partition_max_bytes = bytes as i32;
    request
}

/// `--memory-per-core`, by flag and by table.
#[test]
fn a_core_has_the_memory_that_it_was_told() {
    let broker = told_by_file("[core.1]\nmemory-per-core = \"96MiB\"\n");
    let budget = |core| broker.metric("coretide_memory_budget_bytes", core) as u64;
    assert_eq!((budget(0), budget(1)), (64 << 20, 96 << 20));
    assert!(broker.printed().contains("64MiB to 96MiB per slot"), "{}", broker.printed());
}

/// `--socket-send-buffer` and `--socket-receive-buffer`, as the kernel has them: it counts as much
/// again for its own use.
#[test]
fn sockets_have_the_buffers_that_were_told() {
    let broker = told_by_file(
        "socket-send-buffer = \"64KiB\"\n\
         [core.1]\nsocket-send-buffer = \"128KiB\"\nsocket-receive-buffer = \"32KiB\"\n",
    );
    let sizes = |core: u16| {
        let mut connection = broker.connect(core);
        connection.ask(0, &ApiVersionsRequest::default());
        let socket = socket_of(broker.pid(), connection.address());
        let send = getsockopt(&socket, sockopt::SndBuf).unwrap();
        (send, getsockopt(&socket, sockopt::RcvBuf).unwrap())
    };
    let (untold_send, untold_receive) = {
        let other = Broker::shared();
        let mut connection = other.connect(0);
        connection.ask(0, &ApiVersionsRequest::default());
        let socket = socket_of(other.pid(), connection.address());
        let send = getsockopt(&socket, sockopt::SndBuf).unwrap();
        (send, getsockopt(&socket, sockopt::RcvBuf).unwrap())
    };
    assert_ne!(untold_send, 2 * (64 << 10), "the system's own size shows nothing");
    assert_eq!(sizes(0), (2 * (64 << 10), untold_receive));
    assert_eq!(sizes(1), (2 * (128 << 10), 2 * (32 << 10)));
}

/// The broker's end of the connection that comes from `peer`.
fn socket_of(pid: i32, peer: SocketAddr) -> OwnedFd {
    // SAFETY: it takes numbers only.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let process = owned(process).unwrap();
    let names = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let mut found = names.filter_map(|entry| {
        let number: libc::c_int = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        // SAFETY: it takes numbers only.
        let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
        // What was closed meanwhile, and what is no connection, is not it.
        let copy = owned(copy)?;
        let peer_of = getpeername::<SockaddrStorage>(copy.as_raw_fd()).ok()?;
        let peer_of = *peer_of.as_sockaddr_in()?;
        (SocketAddr::V4(peer_of.into()) == peer).then_some(copy)
    });
    found.next().unwrap()
}

fn owned(number: libc::c_long) -> Option<OwnedFd> {
    let number = libc::c_int::try_from(number).ok().filter(|number| *number >= 0)?;
    // SAFETY: the kernel has just handed it out, and nobody else knows it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A buffer that the kernel does not grant is said so at the start.
#[test]
fn buffers_that_the_kernel_does_not_grant_are_warned_about() {
    let broker = told(&["--socket-send-buffer", "64MiB", "--socket-receive-buffer", "64MiB"]);
    for limit in ["wmem_max", "rmem_max"] {
        let granted = std::fs::read_to_string(format!("/proc/sys/net/core/{limit}")).unwrap();
        let is_less = granted.trim().parse::<u64>().unwrap() < 64 << 20;
        let printed = broker.printed();
        assert_eq!(printed.contains(&format!("raise net.core.{limit}")), is_less, "{printed}");
    }
}

/// `--max-connections-per-core`: who comes too late is turned away at once, also when many come
/// together, the rest is served as before, and places become free again.
#[test]
fn a_core_serves_no_more_connections_than_told() {
    const MOST: usize = 3;
    let broker = told(&["--max-connections-per-core", "3"]);
    let mut crowd: Vec<TcpStream> = (0..20).map(|_| visit(broker.address(0))).collect();
    let mut served = Vec::new();
    let mut refused = 0;
    for mut visitor in crowd.drain(..) {
        if is_served(&mut visitor) {
            served.push(visitor);
        } else {
            refused += 1;
        }
    }
    assert_eq!((served.len(), refused), (MOST, 20 - MOST));
    assert_eq!(broker.metric("coretide_connections", 0) as usize, MOST);
    assert_eq!(broker.metric("coretide_connections_refused_total", 0) as usize, 20 - MOST);
    assert!(broker.printed().contains("--max-connections-per-core is reached"));
    assert!(served.iter_mut().all(is_served), "they are served on");
    assert!(is_served(&mut visit(broker.address(1))), "the other core has places of its own");

    drop(served.pop());
    wait_until("the place is free again", || {
        let mut visitor = visit(broker.address(0));
        let is_served = is_served(&mut visitor);
        served.extend(is_served.then_some(visitor));
        is_served
    });
    assert!(!is_served(&mut visit(broker.address(0))), "only one place was free");
}

/// `max.connections` counts the whole host, and can be changed while it runs.
#[test]
fn a_host_keeps_no_more_connections_than_told() {
    let broker = Broker::start_with(&["max.connections=2"]);
    let mut admin = broker.connect(0);
    admin.ask(0, &ApiVersionsRequest::default());
    let mut second = visit(broker.address(1));
    assert!(is_served(&mut second));
    assert!(!is_served(&mut visit(broker.address(0))) && !is_served(&mut visit(broker.address(1))));
    set_for_all(&mut admin, "max.connections", "3");
    let mut third = visit(broker.address(0));
    assert!(is_served(&mut third));
    assert!(!is_served(&mut visit(broker.address(1))));
    assert!(is_served(&mut second), "who was there before is served on");
}

/// `max.connections.per.ip` and its overrides, by where clients come from.
#[test]
fn an_address_has_no_more_connections_than_told() {
    let overrides = "max.connections.per.ip.overrides=127.0.0.2:3";
    let broker = Broker::start_with(&["max.connections.per.ip=1", overrides]);
    let from = |last: u8| visit_from(Ipv4Addr::new(127, 0, 0, last), broker.address(0));
    let (mut one, mut another) = (from(1), from(3));
    assert!(is_served(&mut one) && is_served(&mut another));
    assert!(!is_served(&mut from(1)) && !is_served(&mut from(3)));
    let mut three: Vec<TcpStream> = (0..3).map(|_| from(2)).collect();
    assert!(three.iter_mut().all(is_served));
    assert!(!is_served(&mut from(2)));
    drop(one);
    wait_until("the address has its place again", || is_served(&mut from(1)));
}

fn set_for_all(connection: &mut Connection, key: &'static str, value: &'static str) {
    let config = AlterableConfig {
        name: Str::from_static(key),
        value: Some(Str::from_static(value)),
        ..Default::default()
    };
    let brokers = 4;
    let resource = AlterConfigsResource {
        resource_type: brokers,
        resource_name: Str::from_static(""),
        configs: vec![config],
    };
    let request =
        IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let answer = connection.ask(1, &request);
    assert_eq!(answer.responses[0].error_code, ErrorCode::NONE, "{answer:?}");
}

fn visit(address: SocketAddr) -> TcpStream {
    TcpStream::connect_timeout(&address, DEADLINE).unwrap()
}

fn visit_from(source: Ipv4Addr, address: SocketAddr) -> TcpStream {
    let SocketAddr::V4(address) = address else { panic!("the broker listens on {address}") };
    let visitor =
        socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(visitor.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(source, 0))).unwrap();
    connect(visitor.as_raw_fd(), &SockaddrIn::from(address)).unwrap();
    TcpStream::from(visitor)
}

/// Whether a request is answered; else the connection has been closed.
fn is_served(visitor: &mut TcpStream) -> bool {
    visitor.set_read_timeout(Some(DEADLINE)).unwrap();
    // ApiVersions 0, correlation id 7, no client id.
    let request = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];
    if visitor.write_all(&request).is_err() {
        return false;
    }
    let mut size = [0; 4];
    match visitor.read_exact(&mut size) {
        Ok(()) => {
            let mut answer = vec![0; u32::from_be_bytes(size) as usize];
            visitor.read_exact(&mut answer).unwrap();
            true
        }
        Err(why) => {
            let silent =
                matches!(why.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
            assert!(!silent, "neither an answer nor an end");
            false
        }
    }
}

const _: () = assert!(SLOTS == 2, "core 1 is the last");
