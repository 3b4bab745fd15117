//! Determinism of the simulator: equal seeds give equal worlds, different seeds different ones.
#![cfg(sim)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use runtime::file::{AlignedBuf, File, Mode};
use runtime::net::{Conn, Listener};
use runtime::sim::{Options, Simulation};
use runtime::task::{blocking, spawn, yield_now};
use runtime::time::{now, random_u64, sleep, wall_ms};
use runtime::{Config, Core, Exit, fs, shutdown_requested};

type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, line: String) {
    log.lock().unwrap().push(line);
}

async fn server(core: Core<u64>, log: Log) -> Exit {
    if core.index == 0 {
        let listener = Listener::bind("0.0.0.0:9092".parse().unwrap()).unwrap();
        fs::create_dir_all("/data").await.unwrap();
        let file = File::create_new("/data/log", Mode::DirectSync).await.unwrap();
        let mut at = 0;
        loop {
            let (mut reader, mut writer) = listener.accept().await.unwrap().split();
            let mut buffer = [0; 16];
            while let Ok(count) = reader.read(&mut buffer).await {
                if count == 0 {
                    break;
                }
                file.write_at(at, AlignedBuf::zeroed(4096).freeze()).await.unwrap();
                at += 4096;
                core.mesh.send(1, at).await;
                let answer = Bytes::copy_from_slice(&buffer[..count]);
                writer.send(&[answer]).await.unwrap();
            }
            note(&log, format!("closed at {} random {}", now().as_nanos(), random_u64()));
        }
    }
    loop {
        let (from, at) = core.mesh.recv().await;
        let sum = blocking(move || at * 2).await;
        note(&log, format!("from {from}: {sum} at {}", now().as_nanos()));
        yield_now().await;
    }
}

async fn client(to: SocketAddr, log: Log) -> Exit {
    for round in 0..4u8 {
        let connected = Conn::connect(to, Duration::from_secs(1)).await;
        let Ok(conn) = connected else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (mut reader, mut writer) = conn.split();
        writer.send(&[Bytes::from(vec![round; 40])]).await.unwrap();
        let mut back = [0; 40];
        reader.read_exact(&mut back).await.unwrap();
        assert_eq!(back, [round; 40]);
        note(&log, format!("round {round} at {}", wall_ms()));
    }
    Exit::Clean
}

fn run(seed: u64) -> (u64, Vec<String>) {
    let simulation = Simulation::new(seed, Options::default());
    let (server_host, client_host) = (simulation.add_host("server"), simulation.add_host("client"));
    let log = Log::default();
    let address = SocketAddr::new(server_host.ip(), 9092);
    let seen = log.clone();
    simulation.start(&server_host, Config::new(vec![0, 1]), move |core| server(core, seen.clone()));
    let seen = log.clone();
    simulation.start(&client_host, Config::new(vec![0]), move |_: Core<()>| {
        client(address, seen.clone())
    });
    let done = simulation
        .run_until(|simulation| simulation.exited(&client_host).is_some(), Duration::from_secs(60));
    assert!(done, "the client never finished");
    simulation.kill(&server_host);
    let lines = log.lock().unwrap().clone();
    (simulation.trace_hash(), lines)
}

#[test]
fn equal_seeds_give_equal_worlds_and_different_seeds_different_ones() {
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 0..30 {
        let first = run(seed);
        assert_eq!(first, run(seed), "seed {seed} does not reproduce");
        assert!(first.1.len() >= 6, "{:?}", first.1);
        hashes.insert(first.0);
    }
    assert_eq!(hashes.len(), 30);
}

#[test]
fn interleaved_worlds_do_not_disturb_each_other() {
    let alone = run(7);
    let other = std::thread::spawn(|| run(8));
    assert_eq!(alone, run(7));
    assert_eq!(other.join().unwrap(), run(8));
}

#[test]
fn time_passes_only_when_nothing_can_run() {
    let simulation = Simulation::new(1, Options::default());
    let host = simulation.add_host("host");
    simulation.start(&host, Config::new(vec![0]), |_: Core<()>| async {
        let start = now();
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!(now(), start);
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(now().since(start), Duration::from_secs(3600));
        Exit::Clean
    });
    assert!(simulation.run_until(|s| s.exited(&host).is_some(), Duration::from_secs(3601)));
    assert_eq!(simulation.exited(&host), Some(Exit::Clean));
}

#[test]
fn the_wall_clock_jumps_and_the_monotonic_clock_does_not() {
    let simulation = Simulation::new(1, Options::default());
    let host = simulation.add_host("host");
    let log = Log::default();
    let seen = log.clone();
    simulation.start(&host, Config::new(vec![0]), move |_: Core<()>| {
        let seen = seen.clone();
        async move {
            let (wall, mono) = (wall_ms(), now());
            sleep(Duration::from_secs(2)).await;
            note(&seen, format!("{} {:?}", wall_ms() - wall, now().since(mono)));
            Exit::Clean
        }
    });
    simulation.run_for(Duration::from_secs(1));
    simulation.jump_wall_clock(&host, -3_600_000);
    simulation.run_for(Duration::from_secs(2));
    assert_eq!(log.lock().unwrap()[0], "-3598000 2s");
}

#[test]
fn sigterm_reaches_every_core_and_the_process_ends_clean() {
    let simulation = Simulation::new(3, Options::default());
    let host = simulation.add_host("host");
    simulation.start(&host, Config::new(vec![0, 1, 2]), |core: Core<()>| async move {
        if core.index == 2 {
            sleep(Duration::from_millis(50)).await;
        }
        shutdown_requested().await;
        Exit::Clean
    });
    simulation.run_for(Duration::from_secs(1));
    assert_eq!(simulation.exited(&host), None);
    simulation.terminate(&host);
    assert!(simulation.run_until(|s| s.exited(&host).is_some(), Duration::from_secs(1)));
    assert_eq!(simulation.exited(&host), Some(Exit::Clean));
}

#[test]
fn an_abort_ends_the_host_with_its_message_and_runs_nothing_further() {
    struct Tattle(Log);
    impl Drop for Tattle {
        fn drop(&mut self) {
            note(&self.0, "dropped".to_owned());
            // Without effect: the process is dead.
            spawn(async { panic!("a dead process spawned a task") });
            assert_eq!(random_u64(), 0);
        }
    }
    let simulation = Simulation::new(3, Options::default());
    let host = simulation.add_host("host");
    let log = Log::default();
    let seen = log.clone();
    simulation.start(&host, Config::new(vec![0, 1]), move |core: Core<()>| {
        let tattle = Tattle(seen.clone());
        async move {
            let _tattle = tattle;
            if core.index == 1 {
                sleep(Duration::from_millis(5)).await;
                runtime::abort("core 1 has had enough");
            }
            sleep(Duration::from_secs(5)).await;
            panic!("it went on after the abort")
        }
    });
    assert!(simulation.run_until(|s| s.exited(&host).is_some(), Duration::from_secs(9)));
    simulation.run_for(Duration::from_secs(9));
    let message = "core 1 has had enough".to_owned();
    assert_eq!(simulation.exited(&host), Some(Exit::Failed(message)));
    assert_eq!(log.lock().unwrap().len(), 2);
}

#[test]
fn one_failed_core_ends_the_others() {
    let simulation = Simulation::new(3, Options::default());
    let host = simulation.add_host("host");
    simulation.start(&host, Config::new(vec![0, 1]), |core: Core<()>| async move {
        match core.index {
            0 => Exit::Failed("no luck".to_owned()),
            _ => std::future::pending().await,
        }
    });
    assert!(simulation.run_until(|s| s.exited(&host).is_some(), Duration::from_secs(1)));
    assert_eq!(simulation.exited(&host), Some(Exit::Failed("no luck".to_owned())));
}

#[test]
fn messages_between_two_cores_keep_their_order_and_a_full_lane_makes_senders_wait() {
    for seed in 0..20 {
        let simulation = Simulation::new(seed, Options::default());
        let host = simulation.add_host("host");
        simulation.start(&host, Config::new(vec![0, 1]), |core: Core<u32>| async move {
            if core.index == 0 {
                for message in 0..3000 {
                    core.mesh.send(1, message).await;
                }
                assert_eq!(core.mesh.sent(), 3000);
                return Exit::Clean;
            }
            sleep(Duration::from_secs(1)).await;
            for message in 0..3000 {
                assert_eq!(core.mesh.recv().await, (0, message));
            }
            Exit::Clean
        });
        assert!(simulation.run_until(|s| s.exited(&host).is_some(), Duration::from_secs(60)));
        assert_eq!(simulation.exited(&host), Some(Exit::Clean), "seed {seed}");
    }
}

#[test]
fn the_tasks_of_a_core_end_with_its_main_future() {
    let simulation = Simulation::new(3, Options::default());
    let host = simulation.add_host("host");
    let log = Log::default();
    let seen = log.clone();
    simulation.start(&host, Config::new(vec![0, 1]), move |core: Core<()>| {
        let seen = seen.clone();
        async move {
            let index = core.index;
            spawn(async move {
                sleep(Duration::from_secs(5)).await;
                note(&seen, format!("core {index}"));
            });
            sleep(Duration::from_secs(if index == 0 { 1 } else { 9 })).await;
            Exit::Clean
        }
    });
    assert!(simulation.run_until(|s| s.exited(&host).is_some(), Duration::from_secs(10)));
    assert_eq!(*log.lock().unwrap(), ["core 1"]);
}
