//! A load, what each of its messages may cost, and a way to make it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

pub struct Load {
    pub name: &'static str,
    pub partitions: u32,
    /// Its commits go to the journal, which a new broker has only after some seconds.
    pub journaled: bool,
    /// Of `coretide bench`.
    pub arguments: &'static str,
    /// About so many, in which the setting up of the run disappears.
    pub requests: u64,
    pub records_per_request: u64,
    pub limits: Limits,
}

/// For one request.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub calls: f64,
    pub allocations: f64,
    /// Bytes allocated for each byte of records that is moved.
    pub bytes_per_byte: f64,
    /// Bytes copied from one buffer of the broker to another for each byte of records.
    pub copies: f64,
}

impl Limits {
    pub fn exceeded_by(&self, counted: &Limits) -> impl Iterator<Item = String> + use<> {
        let all = [
            ("system calls", counted.calls, self.calls),
            ("allocations", counted.allocations, self.allocations),
            ("bytes allocated for each byte", counted.bytes_per_byte, self.bytes_per_byte),
            ("bytes copied for each byte", counted.copies, self.copies),
        ];
        let over = all.into_iter().filter(|(_, counted, limit)| counted > limit);
        over.map(|(what, counted, limit)| format!("{counted:.2} {what}, more than {limit}"))
    }
}

/// What a run has moved.
pub struct Moved {
    pub requests: f64,
    pub bytes: f64,
}

impl Load {
    /// Fills the topic, if the load reads.
    pub fn prepare(&self, address: SocketAddr, admin: SocketAddr) {
        let create = format!("--partitions {}", self.partitions);
        let fill = format!("produce --records 8000 --batch-bytes 64KiB --connections 8 {create}");
        if self.arguments.starts_with("consume") {
            bench(address, self.name, &fill);
        } else {
            // Once, so that everything that happens only once is over.
            let once = format!("{} --records 2000 {create}", self.arguments);
            bench(address, self.name, &once);
            for _ in 0..TRIES_MAX {
                if !self.journaled || counter(admin, "journaled_commits") > 0.0 {
                    return;
                }
                bench(address, self.name, &once);
            }
            panic!("{}: nothing goes to the journal", self.name);
        }
    }

    pub fn run(&self, address: SocketAddr) -> Moved {
        let records = self.requests * self.records_per_request;
        let line = format!("{} --records {records}", self.arguments);
        let run = bench(address, self.name, &line);
        let flow = &run["flow"];
        let flow = if flow["sent"].is_null() { &flow["received"] } else { &flow["sent"] };
        let number = |name: &str| flow[name].as_f64().unwrap();
        Moved { requests: number("requests"), bytes: number("bytes") }
    }
}

fn bench(address: SocketAddr, topic: &str, line: &str) -> Value {
    let mut command = Command::new(PROGRAM);
    command.arg("bench").args(line.split_whitespace());
    command.args(["--topic", topic, "--bootstrap", &address.to_string(), "--json"]);
    command.args(["--wait", "60s"]);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A counter of the broker's only core, as its metrics page has it.
pub fn counter(admin: SocketAddr, name: &str) -> f64 {
    let mut stream = TcpStream::connect(admin).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let name = format!("coretide_{name}_total{{core=\"0\"}} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&*name));
    line.unwrap_or_else(|| panic!("no {name}in:\n{page}")).parse().unwrap()
}

/// Where a broker of this test may listen.
pub fn free_address() -> SocketAddr {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    free.local_addr().unwrap()
}

/// An empty directory of one's own.
pub fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("counters-{name}"));
    drop(std::fs::remove_dir_all(&path));
    path
}

const TRIES_MAX: usize = 150;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_coretide");
