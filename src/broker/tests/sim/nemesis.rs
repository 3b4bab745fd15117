//! What goes wrong in a run, and how it is put right.
//!
//! Law: everything is drawn from the seed of the run. After each fault the server is brought back,
//! and a server that ends by itself although nothing was broken is a finding.

use std::path::Path;
use std::time::Duration;

use runtime::Exit;
use runtime::sim::{DiskOp, Ending};

use super::history::Key;
use super::run::Run;
use super::stage::{DATA_DIR, Stage};

const EIO: i32 = 5;

/// How long an orderly stop may take.
const STOP_MAX: Duration = Duration::from_secs(30);

/// Whether a fault hit a segment that was deleted, or the directory of a deleted partition.
fn is_being_removed(fault: &str) -> bool {
    fault.ends_with(".deleted") || fault.contains("/data/deleted/")
}

/// How soon after a failed write the server has to be gone.
const DEATH_MAX: Duration = Duration::from_secs(2);

const CHECKPOINT: &str = "checkpoint";
const DERIVED: [&str; 6] =
    [".index", ".timeindex", ".producers", "leader-epochs", "sealed-segments", CHECKPOINT];

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    Kill,
    PowerLoss,
    Stop,
    /// Ends the server at a point of its code.
    AtPoint(Ending),
    Reset,
    Cut,
    SlowDisk,
    WriteFails,
    SyncFails,
    ReadFails,
    DiskFull,
    /// Bits flip in files that can be made again from the batches, or the files disappear.
    DerivedDamage,
    WallJump,
}

pub const FAULTS: [Fault; 16] = [
    Fault::Kill,
    Fault::Kill,
    Fault::PowerLoss,
    Fault::PowerLoss,
    Fault::AtPoint(Ending::Exit),
    Fault::AtPoint(Ending::PowerLoss),
    Fault::Stop,
    Fault::Reset,
    Fault::Cut,
    Fault::SlowDisk,
    Fault::WriteFails,
    Fault::SyncFails,
    Fault::ReadFails,
    Fault::DiskFull,
    Fault::DerivedDamage,
    Fault::WallJump,
];

pub struct Nemesis<'a> {
    pub stage: &'a Stage,
    pub run: &'a Run,
}

impl Nemesis<'_> {
    fn below(&self, bound: u64) -> u64 {
        self.stage.simulation.below(bound)
    }

    fn wait(&self, millis_max: u64) {
        let millis = self.below(millis_max);
        self.stage.simulation.run_for(Duration::from_millis(millis));
    }

    /// Lets things go on, and then something wrong.
    pub fn strike(&self, fault: Fault) {
        self.wait(self.below(1000));
        self.check_alive();
        let moment = self.stage.simulation.now().as_nanos() / 1_000_000;
        self.run.faults.borrow_mut().push(format!("{moment} ms {fault:?}"));
        let Stage { simulation, server, clients, .. } = self.stage;
        match fault {
            Fault::Kill => {
                simulation.kill(server);
                self.run.reach("killed");
            }
            Fault::PowerLoss => self.lose_power(),
            Fault::Stop => self.stop(),
            Fault::AtPoint(ending) => self.crash_at_a_point(ending),
            Fault::Reset => {
                simulation.reset(server, clients);
                self.run.reach("connections reset");
            }
            Fault::Cut => {
                simulation.cut(server, clients);
                self.wait(4000);
                simulation.heal(server, clients);
                self.run.reach("link cut");
            }
            Fault::SlowDisk => {
                let slowness = Duration::from_millis(1 + self.below(900));
                simulation.disk(server).set_slow(1 + self.below(400) as u32, slowness);
                self.wait(5000);
                simulation.disk(server).heal();
                self.run.reach("disk slow");
            }
            Fault::WriteFails => self.fail_disk(DiskOp::Write),
            Fault::SyncFails => self.fail_disk(DiskOp::Sync),
            Fault::ReadFails => {
                simulation.disk(server).set_error_rate(DiskOp::Read, 100);
                self.wait(2000);
                simulation.disk(server).heal();
                self.run.reach("reads failed");
            }
            Fault::DiskFull => self.fill_disk(),
            Fault::DerivedDamage => self.damage_derived(),
            Fault::WallJump => {
                let hours = self.below(49) as i64 - 24;
                simulation.jump_wall_clock(server, hours * 3_600_000);
                self.run.reach("wall clock jumped");
            }
        }
        self.bring_back();
    }

    fn lose_power(&self) {
        let Stage { simulation, server, .. } = self.stage;
        self.note_power_loss();
        simulation.power_loss(server);
        self.run.reach("power lost");
    }

    fn note_power_loss(&self) {
        let now = self.stage.simulation.now().as_nanos();
        self.run.history.borrow_mut().power_losses.push(now);
    }

    fn stop(&self) {
        let Stage { simulation, server, .. } = self.stage;
        simulation.terminate(server);
        let stopped = simulation.run_until(|s| !s.is_running(server), STOP_MAX);
        match simulation.exited(server) {
            Some(Exit::Clean) => self.run.reach("stopped in order"),
            other => self.run.find(format!("asked to stop: in time {stopped}, {other:?}")),
        }
        if !stopped {
            simulation.kill(server);
        }
    }

    fn crash_at_a_point(&self, ending: Ending) {
        let Stage { simulation, server, .. } = self.stage;
        let points: Vec<&'static str> = simulation.reached().into_keys().collect();
        if points.is_empty() {
            return;
        }
        let point = points[self.below(points.len() as u64) as usize];
        simulation.crash_at(server, point, self.below(3) as u32, ending);
        if ending == Ending::PowerLoss {
            self.note_power_loss();
        }
        if simulation.run_until(|s| !s.is_running(server), Duration::from_secs(2)) {
            self.run.reach("crashed at a point");
        }
        simulation.call_off_crashes(server);
    }

    fn fail_disk(&self, op: DiskOp) {
        let Stage { simulation, server, .. } = self.stage;
        let disk = simulation.disk(server);
        disk.fail_after(op, DATA_DIR, self.below(6) as u32, EIO);
        let hit = simulation.run_until(|_| disk.planned_faults() == 0, Duration::from_secs(2));
        disk.heal();
        if !hit {
            return;
        }
        self.run.reach(if op == DiskOp::Write { "a write failed" } else { "a sync failed" });
        let died = simulation.run_until(|s| !s.is_running(server), DEATH_MAX);
        match simulation.exited(server) {
            Some(Exit::Failed(_)) => {}
            // Nobody needs what is being removed.
            None if op == DiskOp::Write && is_being_removed(&disk.last_fault()) => {
                self.run.reach("a removal failed");
            }
            other => {
                let hit = disk.last_fault();
                self.run.find(format!("after a failed {hit}: ended {died}, {other:?}"));
                simulation.kill(server);
            }
        }
    }

    fn fill_disk(&self) {
        let Stage { simulation, server, .. } = self.stage;
        if self.run.topics.borrow().is_empty() {
            // It may not have started yet, for which it needs room.
            return;
        }
        let disk = simulation.disk(server);
        disk.set_free(self.below([8_000, 200_000][self.below(2) as usize]));
        self.wait(6000);
        disk.set_capacity(u64::MAX);
        self.run.reach("disk full");
        // It cannot start without room, and says so.
        let exit = simulation.exited(server);
        if !matches!(&exit, Some(Exit::Failed(why)) if why.contains("No space left")) {
            self.check_alive();
        }
    }

    /// Kills the server and damages some of what its batches could give back.
    fn damage_derived(&self) {
        let Stage { simulation, server, .. } = self.stage;
        simulation.kill(server);
        let disk = simulation.disk(server);
        for (path, size) in disk.files() {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let derived = DERIVED.iter().any(|ending| name.ends_with(ending));
            if !derived || size == 0 || self.below(3) > 0 {
                continue;
            }
            match self.below(4) {
                0 if !name.ends_with(CHECKPOINT) => drop(disk.remove(&path)),
                _ => drop(disk.flip_bit(&path, self.below(size), self.below(8) as u32)),
            }
            self.run.reach("derived file damaged");
        }
    }

    /// Ends the server and flips one bit that batches have written. Says in which partition.
    pub fn damage_a_batch(&self) -> Option<Key> {
        let Stage { simulation, server, .. } = self.stage;
        match self.below(2) {
            0 => self.stop(),
            _ => simulation.kill(server),
        }
        let disk = simulation.disk(server);
        let logs: Vec<_> = disk
            .files()
            .into_iter()
            .filter(|(path, _)| path.extension().is_some_and(|ending| ending == "log"))
            .filter_map(|(path, _)| Some((self.key_of(&path)?, path)))
            .collect();
        let (key, path) = logs.get(self.below(logs.len() as u64) as usize)?;
        let bytes = disk.read(path)?;
        let written = bytes.iter().rposition(|byte| *byte != 0)? as u64 + 1;
        disk.flip_bit(path, self.below(written), self.below(8) as u32);
        self.run.reach("batch damaged");
        Some(*key)
    }

    /// The partition that a file below `<topic>-<partition>` belongs to.
    fn key_of(&self, path: &Path) -> Option<Key> {
        let dir = path.parent()?.file_name()?.to_str()?;
        let (topic, partition) = dir.rsplit_once('-')?;
        let topics = self.run.topics.borrow();
        let found = topics.iter().rfind(|each| *each.name == *topic && !each.deleted.get())?;
        Some(found.key(partition.parse().ok()?))
    }

    /// Starts the server again, after a while, if it does not run.
    pub fn bring_back(&self) {
        let Stage { simulation, server, .. } = self.stage;
        if !simulation.is_running(server) {
            self.wait(300);
            self.stage.start_server();
        }
    }

    /// A server that has ended although nothing was broken is a finding.
    pub fn check_alive(&self) {
        let Stage { simulation, server, .. } = self.stage;
        if !simulation.is_running(server) {
            let exit = simulation.exited(server);
            self.run.find(format!("the server ended by itself: {exit:?}"));
            self.stage.start_server();
        }
    }
}
