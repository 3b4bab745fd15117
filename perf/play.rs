//! A run as the load cores play it: senders, readers, or both side by side.
//!
//! Side by side both ends live in the same process, so that one clock stamps both.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use runtime::time::{Instant, now};

use crate::assignment::{Share, part_of};
use crate::cluster::Cluster;
use crate::consume::{Reader, Reading};
use crate::produce::{self, Connection, Sending};
use crate::stage::{Group, LoadCore};
use crate::tally::Live;

/// Everything a load core needs to know of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    pub cluster: Cluster,
    pub senders: Vec<Share>,
    pub readers: Vec<Share>,
    pub sending: Option<Sending>,
    pub reading: Option<Reading>,
    /// Requests of all senders, if that ends the run.
    pub requests: Option<u64>,
    /// Records of all readers, if that ends the run.
    pub records: Option<u64>,
}

/// One core's part of a plan.
pub async fn play(core: LoadCore, plan: Plan) -> anyhow::Result<()> {
    let cluster = Rc::new(plan.cluster);
    let is_ours = |index: &usize| index % core.count == core.index;
    let mut readers = Vec::new();
    if let Some(reading) = plan.reading {
        let reading = Rc::new(reading);
        for index in (0..plan.readers.len()).filter(is_ours) {
            let (cluster, reading) = (Rc::clone(&cluster), Rc::clone(&reading));
            let records = plan.records.unwrap_or(u64::MAX);
            let records = part_of(records, index, plan.readers.len());
            readers.push((Reader::open(cluster, reading, &plan.readers[index]).await?, records));
        }
    }
    let mut senders = Vec::new();
    let sending = plan.sending.map(Rc::new);
    if let Some(sending) = &sending {
        let count = plan.senders.len();
        for index in (0..count).filter(is_ours) {
            let requests = part_of(plan.requests.unwrap_or(u64::MAX), index, count);
            let share = plan.senders[index].clone();
            let connection = Connection { index, count, share, requests };
            let opened = produce::open(&cluster, sending, &connection).await?;
            senders.push((connection, opened));
        }
    }
    core.ready().await;
    let along = sending.is_some();
    let (sending_tasks, reading_tasks) = (Group::default(), Group::default());
    for (reader, records) in readers {
        let enough = until_delivered(core.clone(), along);
        reading_tasks.spawn(reader.run(core.clone(), records, enough));
    }
    for (connection, opened) in senders {
        let (cluster, sending) = (Rc::clone(&cluster), sending.clone());
        let Some(sending) = sending else { continue };
        sending_tasks.spawn(produce::run(core.clone(), cluster, sending, connection, opened));
    }
    sending_tasks.join().await;
    core.sent_all();
    reading_tasks.join().await;
    Ok(())
}

/// A reader beside senders goes on until everything that was acknowledged has arrived, or until
/// nothing is to be hoped for any more.
fn until_delivered(core: LoadCore, along: bool) -> impl Fn() -> bool {
    let given_up = std::cell::Cell::new(None::<Instant>);
    move || {
        if !along {
            return core.is_over();
        }
        if !core.all_sent() {
            return false;
        }
        let deadline = given_up.get().unwrap_or_else(|| now() + DELIVERY_PATIENCE);
        given_up.set(Some(deadline));
        missing(core.tally.live()) == 0 || now() >= deadline
    }
}

/// Records that were acknowledged and have not arrived.
pub fn missing(live: &Live) -> u64 {
    let acknowledged = live.acknowledged_records.load(Ordering::Relaxed);
    acknowledged.saturating_sub(live.delivered_records.load(Ordering::Relaxed))
}

const DELIVERY_PATIENCE: Duration = Duration::from_secs(5);
