//! How a host starts and ends: limits, failures, panics, signals, the watchdog.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runtime::file::{AlignedBuf, File, Mode};
use runtime::{Config, Core, Exit};

pub struct Ended {
    pub code: Option<i32>,
    pub stderr: String,
}

pub const APART: &str = "RUNTIME_TEST_APART";

/// Runs `body` in a process of its own, as the same test of the same program.
pub fn apart(test: &str, body: fn()) -> Child {
    if std::env::var_os(APART).is_some() {
        body();
        std::process::exit(0);
    }
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(APART, test)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub fn finish(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ended { code: output.status.code(), stderr }
}

/// Waits until the child has printed a line with `text`.
fn wait_for(child: &mut Child, text: &str) {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "ended without printing {text}");
        if line.contains(text) {
            break;
        }
    }
    child.stdout = Some(lines.into_inner());
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[test]
fn every_core_runs_and_the_host_waits_for_all() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    // Three executors share two CPUs, or one.
    let exit = runtime::run(Config::new(vec![0, 0, 0]), move |core: Core<()>| {
        let counted = Arc::clone(&counted);
        async move {
            assert_eq!(core.count, 3);
            counted.fetch_add(1 << (8 * core.index), Ordering::SeqCst);
            Exit::Clean
        }
    });
    assert_eq!(exit, Exit::Clean);
    assert_eq!(ran.load(Ordering::SeqCst), 0x01_01_01);
}

#[test]
fn the_first_failure_ends_the_others() {
    let exit = runtime::run(Config::new(vec![0, 0, 0]), |core: Core<()>| async move {
        if core.index == 1 {
            return Exit::Failed("the disk is gone".to_owned());
        }
        std::future::pending().await
    });
    assert_eq!(exit, Exit::Failed("the disk is gone".to_owned()));
}

#[test]
fn a_cpu_that_does_not_exist_is_a_failure() {
    let exit = runtime::run(Config::new(vec![0, 9999]), |_core: Core<()>| std::future::pending());
    let Exit::Failed(why) = exit else { panic!("it cannot have worked") };
    assert!(why.contains("CPU 9999"), "{why}");
}

#[test]
fn limits_are_raised_to_what_is_allowed() {
    use nix::sys::resource::{Resource, getrlimit};
    let limits = runtime::raise_limits();
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    assert_eq!((soft, limits.open_files), (hard, hard));
    assert_eq!(getrlimit(Resource::RLIMIT_MEMLOCK).unwrap().0, limits.memlock);
    let small = runtime::Limits { open_files: 1024, memlock: 8 << 20 };
    assert_eq!(small.io_memory(2), ((8 << 20) / 6) & !0xffff);
    assert!(small.io_memory(2) * 3 * 2 <= 8 << 20);
}

#[test]
fn a_panic_in_a_task_ends_the_process() {
    let ended =
        finish(apart("process::a_panic_in_a_task_ends_the_process", child_panics_in_a_task));
    assert_eq!(ended.code, Some(70));
    assert!(ended.stderr.contains("core-1") && ended.stderr.contains("a task went wrong"));
}

#[test]
fn a_panic_beside_the_loop_ends_the_process() {
    let ended = finish(apart(
        "process::a_panic_beside_the_loop_ends_the_process",
        child_panics_beside_the_loop,
    ));
    assert_eq!(ended.code, Some(70));
    assert!(ended.stderr.contains("blocking work went wrong"), "{}", ended.stderr);
}

#[test]
fn an_executor_ends_only_after_the_work_beside_it() {
    let name = "process::an_executor_ends_only_after_the_work_beside_it";
    let ended = finish(apart(name, child_ends_with_work_in_flight));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

#[test]
fn a_lock_is_held_by_everything_that_can_still_write() {
    let name = "process::a_lock_is_held_by_everything_that_can_still_write";
    let ended = finish(apart(name, child_locks));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn abort_says_why() {
    let ended = finish(apart("process::abort_says_why", child_aborts));
    assert_eq!(ended.code, Some(70));
    assert!(ended.stderr.contains("fatal: this cannot go on"), "{}", ended.stderr);
}

#[test]
fn a_core_without_progress_ends_the_process() {
    let ended = finish(apart("process::a_core_without_progress_ends_the_process", child_stalls));
    assert_eq!(ended.code, Some(70));
    assert!(ended.stderr.contains("core 1 made no progress"), "{}", ended.stderr);
}

#[test]
fn idle_and_busy_cores_count_as_alive() {
    let config = Config { watchdog: Duration::from_millis(400), ..Config::new(vec![0, 0]) };
    let exit = runtime::run(config, |core: Core<()>| async move {
        let end = runtime::time::now() + Duration::from_secs(2);
        while core.index == 1 && runtime::time::now() < end {
            runtime::task::yield_now().await;
        }
        runtime::time::sleep_until(end).await;
        Exit::Clean
    });
    assert_eq!(exit, Exit::Clean);
}

#[test]
fn a_stopped_process_is_not_taken_for_a_stalled_one() {
    let mut child =
        apart("process::a_stopped_process_is_not_taken_for_a_stalled_one", child_serves);
    wait_for(&mut child, "serving");
    signal(&child, Signal::SIGSTOP);
    // Longer than the child's watchdog waits, and nothing else to wait for.
    let stopped = Instant::now();
    while stopped.elapsed() < Duration::from_secs(2) {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    signal(&child, Signal::SIGCONT);
    signal(&child, Signal::SIGTERM);
    let ended = finish(child);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn sigterm_reaches_every_core() {
    for asked in [Signal::SIGTERM, Signal::SIGINT] {
        let mut child = apart("process::sigterm_reaches_every_core", child_serves);
        wait_for(&mut child, "serving");
        signal(&child, asked);
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        assert_eq!(output.matches("shutting down").count(), 2, "{output}");
        assert_eq!(finish(child).code, Some(0));
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut child = apart("process::a_second_signal_ends_at_once", child_ignores_the_first_signal);
    wait_for(&mut child, "serving");
    signal(&child, Signal::SIGTERM);
    wait_for(&mut child, "not yet");
    signal(&child, Signal::SIGTERM);
    assert_eq!(finish(child).code, Some(128 + libc::SIGTERM));
}

#[test]
fn the_numbers_of_a_core() {
    let dir = crate::TempDir::on_disk("numbers");
    let path = dir.join("file");
    crate::on_core(move || {
        let path = path.clone();
        async move {
            let before = runtime::stats();
            runtime::task::blocking(|| ()).await;
            let file = File::create_new(&path, Mode::DirectSync).await.unwrap();
            file.write_at(0, AlignedBuf::zeroed(8192).freeze()).await.unwrap();
            file.read_at(0, 4096).await.unwrap();
            file.sync().await.unwrap();
            file.close().await.unwrap();
            let end = runtime::time::now() + Duration::from_millis(20);
            while runtime::time::now() < end {
                runtime::task::yield_now().await;
            }
            let after = runtime::stats();
            assert_eq!(after.blocking_calls, before.blocking_calls + 1);
            assert_eq!((after.file_writes, after.file_written_bytes), (1, 8192));
            assert_eq!((after.file_reads, after.file_read_bytes), (1, 4096));
            assert_eq!(after.file_syncs, 1);
            assert!(after.alive - before.alive >= Duration::from_millis(20));
            assert!(after.busy > before.busy);
            assert!(after.processor > before.processor);
        }
    });
}

fn child_panics_in_a_task() {
    runtime::run(Config::new(vec![0, 0]), |core: Core<()>| async move {
        if core.index == 1 {
            runtime::task::spawn(async { panic!("a task went wrong") });
        }
        std::future::pending().await
    });
}

fn child_panics_beside_the_loop() {
    runtime::run(Config::new(vec![0]), |_core: Core<()>| async move {
        runtime::task::blocking(|| panic!("blocking work went wrong")).await
    });
}

/// More work than there are threads; some of it is waited for, some was given up.
fn child_ends_with_work_in_flight() {
    struct Left(Arc<AtomicUsize>);
    impl Drop for Left {
        fn drop(&mut self) {
            self.0.fetch_add(100, Ordering::SeqCst);
        }
    }
    let (left, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&done);
    let exit = runtime::run(Config::new(vec![0]), move |_core: Core<()>| {
        let leaves = Left(Arc::clone(&left));
        let (left, done) = (Arc::clone(&left), Arc::clone(&counted));
        let work = move || {
            let (left, done) = (Arc::clone(&left), Arc::clone(&done));
            runtime::task::blocking(move || {
                let mut since = None;
                while since.get_or_insert_with(Instant::now).elapsed() < Duration::from_millis(50) {
                    if left.load(Ordering::SeqCst) == 0 {
                        since = None;
                    }
                    std::thread::yield_now();
                }
                done.fetch_add(1, Ordering::SeqCst);
            })
        };
        async move {
            let _leaves = leaves;
            for _waited_for in 0..3 {
                runtime::task::spawn(work());
            }
            let given_up = runtime::time::within(runtime::time::now(), work()).await;
            assert!(given_up.is_err());
            runtime::task::yield_now().await;
            Exit::Clean
        }
    });
    assert_eq!((exit, done.load(Ordering::SeqCst)), (Exit::Clean, 4));
}

fn child_locks() {
    let dir = crate::TempDir::on_disk("locks");
    let path = dir.join("lock");
    let exit = runtime::run(Config::new(vec![0, 0]), move |core: Core<()>| {
        let path = path.clone();
        async move {
            let guard = match core.index {
                0 => Some(runtime::fs::lock(&path).await.unwrap()),
                _ => None,
            };
            core.mesh.send(1 - core.index, ()).await;
            core.mesh.recv().await;
            let rings = std::fs::read_dir("/proc/self/fd").unwrap().flatten().filter(|each| {
                let target = std::fs::read_link(each.path());
                target.is_ok_and(|target| target.as_os_str() == "anon_inode:[io_uring]")
            });
            let infos: Vec<String> = rings
                .map(|ring| std::path::Path::new("/proc/self/fdinfo").join(ring.file_name()))
                .map(|info| std::fs::read_to_string(info).unwrap())
                .collect();
            assert_eq!(infos.len(), 6, "three of each executor");
            assert!(infos.iter().all(|info| info.contains("UserFiles:\t1")), "{infos:?}");
            core.mesh.send(1 - core.index, ()).await;
            core.mesh.recv().await;
            drop(guard);
            Exit::Clean
        }
    });
    assert_eq!(exit, Exit::Clean);
}

fn child_aborts() {
    runtime::abort("this cannot go on");
}

fn child_stalls() {
    let config = Config { watchdog: Duration::from_millis(400), ..Config::new(vec![0, 0]) };
    runtime::run(config, |core: Core<()>| async move {
        if core.index == 1 {
            loop {
                std::hint::spin_loop();
            }
        }
        std::future::pending().await
    });
}

fn child_serves() {
    let started = Arc::new(AtomicUsize::new(0));
    let config = Config { watchdog: Duration::from_millis(500), ..Config::new(vec![0, 0]) };
    let exit = runtime::run(config, move |_core: Core<()>| {
        let started = Arc::clone(&started);
        async move {
            if started.fetch_add(1, Ordering::SeqCst) == 1 {
                println!("serving");
            }
            runtime::shutdown_requested().await;
            // Still true for whoever asks later.
            runtime::shutdown_requested().await;
            println!("shutting down");
            Exit::Clean
        }
    });
    assert_eq!(exit, Exit::Clean);
}

fn child_ignores_the_first_signal() {
    runtime::run(Config::new(vec![0]), |_core: Core<()>| async move {
        println!("serving");
        runtime::shutdown_requested().await;
        println!("not yet");
        std::future::pending().await
    });
}
