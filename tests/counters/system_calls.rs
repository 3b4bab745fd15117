//! A broker in a process of its own, whose core is traced: every system call it makes is counted,
//! and it says how much it has copied.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::load::{Load, PROGRAM, counter, directory, free_address};

pub struct Traced {
    /// System calls of the core for each request.
    pub calls: f64,
    /// Bytes copied for each byte of records.
    pub copies: f64,
}

pub fn count(load: &Load) -> Traced {
    let (address, admin) = (free_address(), free_address());
    let data = directory(&format!("traced-{}", load.name));
    let mut command = Command::new(PROGRAM);
    command.arg("serve").arg("--data-dir").arg(&data).args(["--listen", &address.to_string()]);
    command.args(["--cores", "0", "--admin-listen", &admin.to_string()]).stdout(Stdio::null());
    // SAFETY: prctl is async-signal-safe, and nothing else happens between fork and exec.
    unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?)) };
    let mut broker = Ended(command.spawn().unwrap());
    load.prepare(address, admin);
    let copied_before = counter(admin, "copied_bytes");
    let traced = Counter::start(core_of(&broker.0));
    let moved = load.run(address);
    let calls = traced.calls.load(Ordering::SeqCst);
    let copied = counter(admin, "copied_bytes") - copied_before;
    broker.0.kill().unwrap();
    traced.finish();
    drop(broker);
    drop(std::fs::remove_dir_all(data));
    Traced { calls: calls as f64 / moved.requests, copies: copied / moved.bytes }
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The thread that is the broker's only core.
fn core_of(broker: &Child) -> Pid {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", broker.id())).unwrap();
    let is_core = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "core-0")
    };
    let task = tasks.map(|task| task.unwrap().path()).find(is_core).unwrap();
    Pid::from_raw(task.file_name().unwrap().to_str().unwrap().parse().unwrap())
}

struct Counter {
    calls: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Counter {
    fn start(core: Pid) -> Counter {
        let calls = Arc::new(AtomicU64::new(0));
        let attached = Arc::new(AtomicBool::new(false));
        let (counted, told) = (calls.clone(), attached.clone());
        // Everything about a traced thread has to come from the same thread.
        let thread = std::thread::spawn(move || trace(core, &counted, &told));
        while !attached.load(Ordering::SeqCst) {
            assert!(!thread.is_finished(), "the broker cannot be traced");
            std::thread::yield_now();
        }
        Counter { calls, thread }
    }

    fn finish(self) {
        self.thread.join().unwrap();
    }
}

/// Until the thread ends.
fn trace(core: Pid, calls: &AtomicU64, attached: &AtomicBool) {
    ptrace::seize(core, ptrace::Options::PTRACE_O_TRACESYSGOOD).unwrap();
    ptrace::interrupt(core).unwrap();
    let mut stops = 0u64;
    loop {
        let signal = match waitpid(core, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::PtraceSyscall(_)) => {
                // Once at its beginning and once at its end.
                stops += 1;
                calls.store(stops.div_ceil(2), Ordering::SeqCst);
                None
            }
            Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
            Ok(WaitStatus::PtraceEvent(..)) => None,
            _ => return,
        };
        let signal = signal.filter(|signal| *signal != Signal::SIGTRAP);
        if ptrace::syscall(core, signal).is_err() {
            return;
        }
        attached.store(true, Ordering::SeqCst);
    }
}
