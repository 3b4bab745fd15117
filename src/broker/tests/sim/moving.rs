//! Moves whose decision cannot be written. The slot that has the partition has let go by then, and
//! who asks for it waits: that must not last.

use std::time::Duration;

use runtime::Exit;
use runtime::sim::DiskOp;

use super::administering::rearrange;
use super::producing::Producer;
use super::run::{Run, Session};
use super::scenario::{client, read_everything, report};
use super::stage::Stage;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const PARTITIONS: i32 = 3;
const MOVES: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(60);

/// How soon after a failed write the server has to be gone.
const DEATH_MAX: Duration = Duration::from_secs(2);

/// The server ends and says why, and with it all waiting. The next start serves the partition at
/// one of its two places, with everything that was acknowledged, and it can be moved again.
#[test]
fn a_move_that_cannot_be_committed_ends_the_server_and_is_over_with_the_next_start() {
    let mut between_owners = 0;
    for (seed, errno) in (0..12).zip([EIO, ENOSPC].into_iter().cycle()) {
        let stage = Stage::new(seed, 2, &[], None, "256KiB");
        let run = Run::new((0..2).map(|slot| stage.address(slot)).collect());
        stage.start_server();
        client(&stage, &run, produce_and_move(run.clone()));
        let count = |what: &str| stage.simulation.reached().get(what).copied().unwrap_or(0);
        let moved = stage.simulation.run_until(|_| count("move: acted on") >= MOVES, PATIENCE);
        assert!(moved, "seed {seed}: partitions move");

        let disk = stage.simulation.disk(&stage.server);
        disk.fail_after(DiskOp::Write, "/metadata/", seed as u32 % 6, errno);
        let hit = stage.simulation.run_until(|_| disk.planned_faults() == 0, PATIENCE);
        assert!(hit, "seed {seed}: metadata is written");
        let died = stage.simulation.run_until(|s| !s.is_running(&stage.server), DEATH_MAX);
        let exit = stage.simulation.exited(&stage.server);
        let says_why = matches!(&exit, Some(Exit::Failed(why)) if why.contains("commit metadata"));
        assert!(died && says_why, "seed {seed}: {exit:?}");
        between_owners += u64::from(count("move: let go") > count("move: committed"));

        let before = count("move: acted on");
        stage.start_server();
        let again =
            stage.simulation.run_until(|_| count("move: acted on") >= before + MOVES, PATIENCE);
        assert!(again, "seed {seed}: partitions move again");
        run.stopping.set(true);
        let done = stage.simulation.run_until(|_| run.active.get() == 0, PATIENCE);
        assert!(done, "seed {seed}: everything is acknowledged");
        read_everything(&stage, &run);
        let read = stage.simulation.run_until(|_| run.active.get() == 0, PATIENCE);
        assert!(read, "seed {seed}: everything can be read");
        assert_eq!(report(stage, &run).findings, Vec::<String>::new(), "seed {seed}");
    }
    assert!(between_owners > 6, "{between_owners} of the failures hit a move");
}

async fn produce_and_move(run: std::rc::Rc<Run>) {
    let made = Session::new(&run).create_topic("moved", PARTITIONS, &[]).await;
    let Some(topic) = made else { return };
    for _ in 0..4 {
        let mut producer = Producer::new(&run, topic.clone(), -1);
        producer.pause_ms = 20;
        let producing = run.clone();
        producing.active.set(producing.active.get() + 1);
        runtime::task::spawn(async move {
            producer.produce_idempotently(u64::MAX).await;
            producing.active.set(producing.active.get() - 1);
        });
    }
    rearrange(run).await;
}
