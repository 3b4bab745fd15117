//! The simulated disk: what survives a kill, what survives a loss of power, what can break.
#![cfg(sim)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::pending;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runtime::file::{AlignedBuf, Block, File, Mode};
use runtime::sim::{DiskOp, Ending, Options, SimHost, Simulation};
use runtime::{Config, Core, Exit, fs, reached};

const MINUTE: Duration = Duration::from_secs(60);
const EIO: i32 = 5;

/// `len` bytes of one value, which is a whole number of blocks for the direct modes.
fn filled(value: u8, len: usize) -> Block {
    let mut buffer = AlignedBuf::zeroed(len);
    buffer[..len].fill(value);
    buffer.freeze().slice(0..len)
}

struct World {
    simulation: Simulation,
    host: SimHost,
}

fn world(seed: u64) -> World {
    let options = Options { writeback_permille: 0, ..Options::default() };
    let simulation = Simulation::new(seed, options);
    let host = simulation.add_host("host");
    World { simulation, host }
}

impl World {
    /// Runs a process until its main future is done; the process stays, asleep.
    fn run<T: Send + 'static, Fut: Future<Output = T> + 'static>(
        &self,
        main: impl Fn() -> Fut + Clone + Send + 'static,
    ) -> T {
        let result = self.begin(main);
        self.simulation.run_until(|_| result.lock().unwrap().is_some(), MINUTE);
        let value = result.lock().unwrap().take();
        value.unwrap()
    }

    fn begin<T: Send + 'static, Fut: Future<Output = T> + 'static>(
        &self,
        main: impl Fn() -> Fut + Clone + Send + 'static,
    ) -> Arc<Mutex<Option<T>>> {
        let result = Arc::new(Mutex::new(None));
        let slot = result.clone();
        self.simulation.start(&self.host, Config::new(vec![0]), move |_: Core<()>| {
            let (body, slot) = (main(), slot.clone());
            async move {
                let value = body.await;
                *slot.lock().unwrap() = Some(value);
                pending::<Exit>().await
            }
        });
        result
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.simulation.disk(&self.host).read(path)
    }
}

async fn create(path: &str, mode: Mode) -> File {
    File::create_new(path, mode).await.unwrap()
}

/// One file with durable ones in it, and its name durable.
async fn file_of_ones(mode: Mode, len: usize) -> File {
    fs::create_dir_all("/d").await.unwrap();
    fs::sync_dir("/").await.unwrap();
    let file = create("/d/f", mode).await;
    file.preallocate(len as u64).await.unwrap();
    file.write_at(0, filled(1, len)).await.unwrap();
    file.sync().await.unwrap();
    fs::sync_dir("/d").await.unwrap();
    file
}

/// What the sectors of `bytes` are filled with. A sector of mixed bytes is a broken sector.
fn sectors(bytes: &[u8]) -> Vec<u8> {
    let whole = |sector: &[u8]| {
        assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is torn inside");
        sector[0]
    };
    bytes.chunks(512).map(whole).collect()
}

#[test]
fn a_kill_keeps_what_was_written_in_every_mode() {
    for mode in [Mode::Direct, Mode::DirectSync, Mode::Buffered, Mode::BufferedSync] {
        for seed in 0..10 {
            let world = world(seed);
            world.run(move || async move {
                fs::create_dir_all("/d").await.unwrap();
                let file = create("/d/f", mode).await;
                file.write_at(0, filled(7, 8192)).await.unwrap();
            });
            world.simulation.kill(&world.host);
            assert_eq!(world.read("/d/f"), Some(vec![7; 8192]));
        }
    }
}

#[test]
fn a_loss_of_power_keeps_what_a_syncing_write_returned_for() {
    for mode in [Mode::DirectSync, Mode::BufferedSync] {
        for seed in 0..50 {
            let world = world(seed);
            world.run(move || async move {
                let file = file_of_ones(mode, 8192).await;
                file.write_at(4096, filled(2, 4096)).await.unwrap();
                file.write_at(8192, filled(3, 4096)).await.unwrap();
            });
            world.simulation.power_loss(&world.host);
            let bytes = world.read("/d/f").unwrap();
            assert_eq!(bytes, [vec![1; 4096], vec![2; 4096], vec![3; 4096]].concat());
        }
    }
}

/// Every subset of old and new sectors may survive, nothing else, and all kinds of outcomes occur.
#[test]
fn a_loss_of_power_tears_what_was_not_synced_at_sectors_only() {
    for mode in [Mode::Direct, Mode::Buffered] {
        let mut outcomes = BTreeSet::new();
        for seed in 0..120 {
            let world = world(seed);
            world.run(move || async move {
                let file = file_of_ones(mode, 4096).await;
                file.write_at(0, filled(2, 4096)).await.unwrap();
            });
            world.simulation.power_loss(&world.host);
            outcomes.insert(sectors(&world.read("/d/f").unwrap()));
        }
        assert!(outcomes.iter().flatten().all(|value| [1, 2].contains(value)));
        assert!(outcomes.contains(&vec![1; 8]) && outcomes.contains(&vec![2; 8]));
        assert!(outcomes.len() > 20, "{} outcomes", outcomes.len());
    }
}

#[test]
fn a_syncing_write_in_flight_is_old_or_new_in_each_sector() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..200 {
        let world = world(seed);
        let started = Arc::new(Mutex::new(false));
        let seen = started.clone();
        world.begin(move || {
            let started = seen.clone();
            async move {
                let file = file_of_ones(Mode::DirectSync, 4096).await;
                *started.lock().unwrap() = true;
                file.write_at(0, filled(2, 4096)).await.unwrap();
                pending::<()>().await;
            }
        });
        world.simulation.run_until(|_| *started.lock().unwrap(), MINUTE);
        let wait = world.simulation.below(400);
        world.simulation.run_for(Duration::from_micros(wait));
        world.simulation.power_loss(&world.host);
        outcomes.insert(sectors(&world.read("/d/f").unwrap()));
    }
    assert!(outcomes.iter().flatten().all(|value| [1, 2].contains(value)));
    assert!(outcomes.contains(&vec![1; 8]) && outcomes.contains(&vec![2; 8]));
    assert!(outcomes.len() > 20, "{} outcomes", outcomes.len());
}

#[test]
fn a_file_that_grew_without_a_sync_may_come_back_short() {
    let mut sizes = BTreeSet::new();
    for seed in 0..100 {
        let world = world(seed);
        world.run(|| async {
            let file = file_of_ones(Mode::Buffered, 1000).await;
            file.write_at(1000, filled(2, 9000)).await.unwrap();
        });
        world.simulation.power_loss(&world.host);
        let bytes = world.read("/d/f").unwrap();
        assert!(bytes[..1000].iter().all(|byte| *byte == 1), "durable bytes are gone");
        assert!(bytes[1000..].iter().all(|byte| [0, 2].contains(byte)));
        sizes.insert(bytes.len());
    }
    assert!(sizes.contains(&1000) && sizes.contains(&10_000) && sizes.len() > 4, "{sizes:?}");
}

#[test]
fn a_name_may_be_missing_until_its_directory_was_synced() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..100 {
        let world = world(seed);
        world.run(|| async {
            file_of_ones(Mode::DirectSync, 4096).await;
            let file = create("/d/unsynced", Mode::DirectSync).await;
            file.write_at(0, filled(1, 4096)).await.unwrap();
        });
        world.simulation.power_loss(&world.host);
        assert_eq!(world.read("/d/f"), Some(vec![1; 4096]));
        match world.read("/d/unsynced") {
            None => lost += 1,
            // The name got through; then the bytes behind it, which were synced, must be there.
            Some(bytes) => {
                assert_eq!(bytes, vec![1; 4096]);
                kept += 1;
            }
        }
    }
    assert!(kept > 10 && lost > 10, "kept {kept}, lost {lost}");
}

#[test]
fn a_rename_is_whole_or_not_at_all_and_removed_files_may_return() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..200 {
        let world = world(seed);
        world.run(|| async {
            file_of_ones(Mode::Buffered, 10).await;
            for (name, value) in [("/d/a", 2), ("/d/gone", 3)] {
                let file = create(name, Mode::BufferedSync).await;
                file.write_at(0, filled(value, 10)).await.unwrap();
            }
            fs::create_dir_all("/e").await.unwrap();
            fs::sync_dir("/").await.unwrap();
            fs::sync_dir("/d").await.unwrap();
            fs::rename("/d/a", "/d/f").await.unwrap();
            fs::remove_file("/d/gone").await.unwrap();
            fs::rename("/d/f", "/e/moved").await.unwrap();
        });
        world.simulation.power_loss(&world.host);
        let value = |path| world.read(path).map(|bytes| bytes[0]);
        let names = ["/d/a", "/d/f", "/e/moved", "/d/gone"];
        outcomes.insert(names.map(value));
    }
    let renames = [[Some(2), Some(1), None], [None, Some(2), None], [None, None, Some(2)]];
    for outcome in &outcomes {
        let three = [outcome[0], outcome[1], outcome[2]];
        assert!(renames.contains(&three), "{outcome:?}");
    }
    assert_eq!(outcomes.len(), 6, "{outcomes:?}");
}

#[test]
fn an_atomic_write_leaves_the_old_contents_or_the_new_at_every_instant() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..200 {
        let world = world(seed);
        world.run(|| async {
            fs::create_dir_all("/d").await.unwrap();
            fs::sync_dir("/").await.unwrap();
            fs::write_atomic("/d/state", &[1; 700]).await.unwrap();
        });
        world.simulation.kill(&world.host);
        world.begin(|| async {
            fs::write_atomic("/d/state", &[2; 900]).await.unwrap();
        });
        let wait = world.simulation.below(6_000);
        world.simulation.run_for(Duration::from_micros(wait));
        if seed % 2 == 0 {
            world.simulation.kill(&world.host);
        } else {
            world.simulation.power_loss(&world.host);
        }
        match world.read("/d/state") {
            Some(bytes) if bytes == [1; 700] => old += 1,
            Some(bytes) if bytes == [2; 900] => new += 1,
            other => panic!("seed {seed}: {:?}", other.map(|bytes| bytes.len())),
        }
    }
    assert!(old > 20 && new > 20, "old {old}, new {new}");
}

#[test]
fn a_truncation_is_durable_on_return_and_what_follows_it_is_zeros() {
    for seed in 0..50 {
        let world = world(seed);
        world.run(|| async {
            let file = file_of_ones(Mode::DirectSync, 16_384).await;
            file.truncate(5000).await.unwrap();
            file.preallocate(12_288).await.unwrap();
        });
        world.simulation.power_loss(&world.host);
        let bytes = world.read("/d/f").unwrap();
        assert_eq!(bytes, [vec![1; 5000], vec![0; 7288]].concat());
    }
}

#[test]
fn a_lock_is_exclusive_and_ends_with_its_process() {
    for seed in 0..20 {
        let world = world(seed);
        for round in 0..4 {
            world.run(|| async {
                fs::create_dir_all("/d").await.unwrap();
                let first = fs::lock("/d/.lock").await.unwrap();
                let second = fs::lock("/d/.lock").await.err().unwrap();
                assert_eq!(second.kind(), ErrorKind::WouldBlock);
                drop(first);
                std::mem::forget(fs::lock("/d/.lock").await.unwrap());
            });
            if round % 2 == 0 {
                world.simulation.kill(&world.host);
            } else {
                world.simulation.power_loss(&world.host);
            }
        }
    }
}

#[test]
fn a_failed_write_or_sync_poisons_the_file() {
    for op in [DiskOp::Write, DiskOp::Sync] {
        let world = world(1);
        world.simulation.disk(&world.host).fail_after(op, "/d/x", 2, EIO);
        world.run(|| async {
            fs::create_dir_all("/d").await.unwrap();
            let file = create("/d/x", Mode::Buffered).await;
            let mut failures = 0;
            for round in 0..4 {
                let written = file.write_at(round * 10, filled(9, 10)).await;
                let synced = file.sync().await;
                failures += u64::from(written.is_err() || synced.is_err());
                assert_eq!(written.is_err() || synced.is_err(), round >= 2, "round {round}");
            }
            assert_eq!(failures, 2);
            assert!(file.read_at(0, 10).await.is_ok());
        });
    }
}

/// The next sync after a failed one succeeds, and what the failed one dropped is lost with the
/// power.
#[test]
fn a_failed_sync_is_not_made_good_by_a_later_one() {
    let mut lost = 0;
    for seed in 0..40 {
        let world = world(seed);
        world.simulation.disk(&world.host).fail_after(DiskOp::Sync, "/d/f", 2, EIO);
        world.run(|| async {
            let file = file_of_ones(Mode::Buffered, 4096).await;
            file.write_at(0, filled(2, 4096)).await.unwrap();
            assert!(file.sync().await.is_err());
            let again = File::open("/d/f", Mode::Buffered).await.unwrap();
            again.sync().await.unwrap();
        });
        world.simulation.power_loss(&world.host);
        lost += u32::from(world.read("/d/f").unwrap() == [1; 4096]);
    }
    assert!(lost > 5, "lost {lost}");
}

#[test]
fn a_full_disk_refuses_to_allocate_and_accepts_what_was_allocated() {
    let world = world(1);
    world.run(|| async {
        let file = file_of_ones(Mode::DirectSync, 4096).await;
        file.preallocate(64 << 10).await.unwrap();
    });
    world.simulation.kill(&world.host);
    world.simulation.disk(&world.host).set_free(8192);
    world.run(|| async {
        let file = File::open("/d/f", Mode::DirectSync).await.unwrap();
        let full = file.preallocate(1 << 20).await.unwrap_err();
        assert!(full.is_full(), "{full}");
        file.write_at(60 << 10, filled(4, 4096)).await.unwrap();
        file.preallocate(72 << 10).await.unwrap();
        assert_eq!(fs::info("/d").await.unwrap().free, 0);
        fs::remove_file("/d/f").await.unwrap();
        assert!(fs::info("/d").await.unwrap().free >= 72 << 10);
    });
}

#[test]
fn a_flipped_bit_is_read_back_flipped_also_after_a_loss_of_power() {
    let world = world(1);
    world.run(|| async {
        file_of_ones(Mode::DirectSync, 8192).await;
    });
    assert!(world.simulation.disk(&world.host).flip_bit("/d/f", 5000, 1));
    assert!(!world.simulation.disk(&world.host).flip_bit("/d/f", 8192, 1));
    world.simulation.power_loss(&world.host);
    let bytes = world.read("/d/f").unwrap();
    assert_eq!(bytes[5000], 3);
    assert_eq!(bytes.iter().filter(|byte| **byte != 1).count(), 1);
}

#[test]
fn directories_are_listed_renamed_and_removed() {
    let world = world(1);
    world.run(|| async {
        fs::create_dir_all("/data/topic-0").await.unwrap();
        create("/data/topic-0/b", Mode::Buffered).await.write_at(0, filled(1, 5)).await.unwrap();
        create("/data/topic-0/a", Mode::Buffered).await;
        let entries = fs::list("/data/topic-0").await.unwrap();
        let seen: Vec<_> = entries.iter().map(|e| (e.name.as_str(), e.is_dir, e.len)).collect();
        assert_eq!(seen, [("a", false, 0), ("b", false, 5)]);
        fs::create_dir_all("/data/deleted").await.unwrap();
        fs::rename("/data/topic-0", "/data/deleted/0").await.unwrap();
        assert!(!fs::exists("/data/topic-0").await.unwrap());
        assert_eq!(fs::read("/data/deleted/0/b").await.unwrap(), [1; 5]);
        let full = fs::rename("/data/deleted/0", "/data/deleted/0/b").await.unwrap_err();
        assert_eq!(full.kind(), ErrorKind::NotADirectory);
        fs::remove_dir_all("/data/deleted").await.unwrap();
        let missing = File::open("/data/deleted/0/b", Mode::Buffered).await.err().unwrap();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let entries = fs::list("/data").await.unwrap();
        assert!(entries.is_empty());
    });
}

/// A slow disk delays what is asked of it and nothing else.
#[test]
fn a_slow_disk_takes_its_time() {
    let world = world(1);
    world.simulation.disk(&world.host).set_slow(1000, Duration::from_secs(2));
    let start = Cell::new(world.simulation.now());
    world.run(|| async {
        fs::create_dir_all("/d").await.unwrap();
    });
    assert!(world.simulation.now().since(start.get()) >= Duration::from_secs(2));
}

#[test]
fn a_crash_can_wait_at_a_point_of_the_code() {
    for ending in [Ending::Exit, Ending::PowerLoss] {
        let world = world(1);
        world.simulation.crash_at(&world.host, "half way", 2, ending);
        world.begin(|| async {
            let file = file_of_ones(Mode::DirectSync, 4096).await;
            for round in 2..9 {
                file.write_at(0, filled(round, 4096)).await.unwrap();
                reached("half way");
            }
        });
        assert!(world.simulation.run_until(|s| !s.is_running(&world.host), MINUTE));
        assert_eq!(world.simulation.exited(&world.host), None);
        assert_eq!(world.simulation.reached()["half way"], 3);
        assert_eq!(world.read("/d/f"), Some(vec![4; 4096]));
    }
}
