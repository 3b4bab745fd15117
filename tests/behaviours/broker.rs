//! The `coretide` process under test: free ports, a data directory, start, kill, stop.
//!
//! A broker ends with this process at the latest, whatever happens to the test: the kernel kills
//! it when the thread that started it ends, and that thread stays until the broker's output does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::wire::Connection;

/// One host with two slots: nodes 1000 and 1001.
pub struct Broker {
    pub port: u16,
    pub data: PathBuf,
    flags: Vec<String>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    /// Lines of standard output; closed when the process ends.
    lines: Mutex<Receiver<String>>,
    printed: Arc<Mutex<String>>,
    /// Ends when standard error does.
    errors: JoinHandle<()>,
}

impl Broker {
    /// The broker that most tests share.
    pub fn shared() -> &'static Broker {
        static SHARED: OnceLock<Broker> = OnceLock::new();
        SHARED.get_or_init(Broker::start_new)
    }

    /// A broker of one's own, on an empty directory.
    pub fn start_new() -> Broker {
        Broker::start_with(&[])
    }

    /// A broker of one's own with `--set` for each of these.
    pub fn start_with(settings: &[&str]) -> Broker {
        let set = |setting: &&str| ["--set".to_owned(), (*setting).to_owned()];
        Broker::start_told(settings.iter().flat_map(set).collect())
    }

    /// A broker of one's own that is told these flags, too.
    pub fn start_told(flags: Vec<String>) -> Broker {
        let mut broker =
            Broker { port: free_ports(), data: new_directory("data"), flags, running: None };
        while let Err(printed) = broker.try_start() {
            // Somebody else on this machine may have taken a port since it was found free.
            assert!(printed.contains("is taken"), "not ready; it printed:\n{printed}");
            broker.port = free_ports();
        }
        broker
    }

    /// Starts it and waits until it says that it is ready.
    pub fn start(&mut self) {
        if let Err(printed) = self.try_start() {
            panic!("not ready; it printed:\n{printed}");
        }
    }

    /// Starts it; in vain, gives what it printed.
    fn try_start(&mut self) -> Result<(), String> {
        assert!(self.running.is_none(), "it runs already");
        let mut running = launch(&self.arguments());
        let deadline = Instant::now() + DEADLINE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match running.lines.lock().unwrap().recv_timeout(left) {
                Ok(line) if line.starts_with("coretide: ready") => break,
                Ok(_) => {}
                Err(_) => {
                    drop(running.child.kill());
                    running.child.wait().unwrap();
                    running.errors.join().unwrap();
                    return Err(running.printed.lock().unwrap().clone());
                }
            }
        }
        self.running = Some(running);
        Ok(())
    }

    /// What `serve` is told.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec!["serve".to_owned()];
        let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
        flag("--data-dir", self.data.display().to_string());
        flag("--cores", "0,1".to_owned());
        flag("--memory-per-core", "64MiB".to_owned());
        flag("--listen", self.address(0).to_string());
        flag("--admin-listen", self.admin_address().to_string());
        words.extend(self.flags.iter().cloned());
        words
    }

    /// kill -9, and waits until the process is gone.
    pub fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.child.kill().unwrap();
            running.child.wait().unwrap();
        }
    }

    /// SIGTERM, and waits for the end.
    pub fn stop(&mut self) -> ExitStatus {
        let mut running = self.running.take().unwrap();
        let pid = Pid::from_raw(running.child.id().cast_signed());
        kill(pid, Signal::SIGTERM).unwrap();
        let deadline = Instant::now() + DEADLINE;
        let left = || deadline.saturating_duration_since(Instant::now());
        while running.lines.get_mut().unwrap().recv_timeout(left()).is_ok() {}
        assert!(Instant::now() < deadline, "still running:\n{}", running.printed.lock().unwrap());
        running.child.wait().unwrap()
    }

    /// Starts it again, told these flags, too.
    pub fn start_again_told(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self.start();
    }

    pub fn restart_after_kill(&mut self) {
        self.kill();
        self.start();
    }

    pub fn restart_in_order(&mut self) {
        let status = self.stop();
        assert!(status.success(), "{status}");
        self.start();
    }

    /// What it has printed since its last start.
    pub fn printed(&self) -> String {
        self.running.as_ref().unwrap().printed.lock().unwrap().clone()
    }

    pub fn pid(&self) -> i32 {
        self.running.as_ref().unwrap().child.id().cast_signed()
    }

    pub fn is_running(&mut self) -> bool {
        self.running.as_mut().unwrap().child.try_wait().unwrap().is_none()
    }

    pub fn address(&self, slot: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port + slot).into()
    }

    pub fn bootstrap(&self) -> String {
        self.address(0).to_string()
    }

    fn admin_address(&self) -> SocketAddr {
        self.address(SLOTS)
    }

    pub fn connect(&self, slot: u16) -> Connection {
        Connection::open(self.address(slot))
    }

    /// Status line and body of a request to the admin port.
    pub fn http(&self, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.admin_address()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    /// The value of one metric of one core.
    pub fn metric(&self, name: &str, core: u16) -> f64 {
        metric(&self.http("GET /metrics").1, name, core)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
        drop(std::fs::remove_dir_all(&self.data));
    }
}

/// The value that a scrape gives for one metric of one core.
pub fn metric(scraped: &str, name: &str, core: u16) -> f64 {
    let start = format!("{name}{{core=\"{core}\"}} ");
    let found = scraped.lines().find_map(|line| line.strip_prefix(&start));
    found.unwrap_or_else(|| panic!("no {start}in:\n{scraped}")).trim().parse().unwrap()
}

/// Runs a command of the program to its end.
pub fn run(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = {
        let _alone = alone();
        command.spawn().unwrap()
    };
    let pid = Pid::from_raw(child.id().cast_signed());
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let (done, ended) = channel();
    std::thread::spawn(move || {
        // A command that does not read its input may have closed it.
        drop(stdin.write_all(input.as_bytes()));
        drop(stdin);
        done.send(child.wait_with_output())
    });
    match ended.recv_timeout(DEADLINE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            kill(pid, Signal::SIGKILL).unwrap();
            panic!("coretide {} does not end", arguments.join(" "));
        }
    }
}

/// Runs a command that has to succeed, and gives what it printed.
pub fn run_well(arguments: &[&str], input: &str) -> String {
    let output = run(arguments, input);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "coretide {}: {out}{err}", arguments.join(" "));
    out
}

/// Runs a command that has to fail, and gives what it complained.
pub fn run_refused(arguments: &[&str]) -> String {
    let output = run(arguments, "");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(!output.status.success(), "coretide {} went well: {out}{err}", arguments.join(" "));
    err
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn launch(arguments: &[String]) -> Running {
    let (hand_over, handed) = channel();
    let arguments = arguments.to_vec();
    std::thread::spawn(move || {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: prctl is async-signal-safe, and nothing else happens between fork and exec.
        unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?)) };
        let mut child = {
            let _alone = alone();
            command.spawn().unwrap()
        };
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let printed = Arc::new(Mutex::new(String::new()));
        let (line_out, lines) = channel();
        let also_printed = printed.clone();
        let errors = std::thread::spawn(move || keep(stderr, &also_printed, |_| {}));
        let (lines, kept) = (Mutex::new(lines), printed.clone());
        hand_over.send(Running { child, lines, printed: kept, errors }).unwrap();
        keep(stdout, &printed, |line| drop(line_out.send(line)));
    });
    handed.recv().unwrap()
}

fn keep(from: impl Read, printed: &Mutex<String>, each: impl Fn(String)) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        let mut printed = printed.lock().unwrap();
        printed.push_str(&line);
        printed.push('\n');
        drop(printed);
        each(line);
    }
}

/// The first of three neighbouring ports, below the range that the kernel hands out.
pub fn free_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = (std::process::id() % 2_500) as u16;
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let first = 20_000 + (begin + step) % 2_500 * 4;
        let _alone = alone();
        let held: Vec<_> = (first..=first + SLOTS)
            .map_while(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
            .collect();
        if held.len() == usize::from(SLOTS) + 1 {
            return first;
        }
    }
}

/// Looking for ports and starting processes exclude each other: a child holds what its parent had
/// open, until it becomes the program.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap()
}

/// A path of one's own for a directory that does not exist yet.
pub fn new_directory(what: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static SWEPT: OnceLock<()> = OnceLock::new();
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("behaviours");
    SWEPT.get_or_init(|| remove_leftovers(&all));
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = all.join(std::process::id().to_string());
    std::fs::create_dir_all(&path).unwrap();
    path.join(format!("{what}-{number}"))
}

/// Removes the directories of earlier runs, whose processes are gone.
fn remove_leftovers(all: &Path) {
    let Ok(entries) = std::fs::read_dir(all) else { return };
    for entry in entries.map_while(Result::ok) {
        if !Path::new("/proc").join(entry.file_name()).exists() {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

/// Any one thing that is waited for comes within this time, even on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(60);
pub const SLOTS: u16 = 2;
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_coretide");
