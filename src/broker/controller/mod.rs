//! The active controller: one task on slot 0 that takes jobs in order, lets the pure crate decide
//! them, commits the records through the quorum and publishes the new image to every slot.
//!
//! A job's answer leaves only when its records are committed and every slot acts on them, so that
//! what a client was told is true on any node it asks next.

mod log;
mod moving;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use metadata::MetadataRecord;
use metadata::controller as decisions;
use metadata::{Decision, Image};
use protocol::SlotIndex;
use quorum::Status;
use runtime::local::Queue;
use runtime::mesh::{OneshotReceiver, OneshotSender, oneshot};
use runtime::task::{self, Either};
use runtime::time;

pub use log::{MetadataLog, OpenError};

use crate::slot::Slot;
use crate::slot::links::Message;

/// Something for the controller task.
pub enum Job {
    /// To be decided on slot 0 with the newest image.
    Decide(Decide),
    /// The same, but it may take long.
    DecideBeside(Decide),
    /// Tell how the quorum stands.
    Describe(OneshotSender<Status>),
}

type Decide = Box<dyn FnOnce(&decisions::Context<'_>) -> Decided + Send>;

/// Records to commit and what to do once they are in force.
pub struct Decided {
    records: Vec<MetadataRecord>,
    answer: Box<dyn FnOnce() + Send>,
}

/// The controller is stopping; the question may be asked again elsewhere.
#[derive(Debug, thiserror::Error)]
#[error("the controller is stopping")]
pub struct Stopping;

/// Lets the controller decide: `decide` returns records to commit and the answer that becomes true
/// with them.
pub async fn decide<R: Send + 'static>(
    slot: &Slot,
    decide: impl FnOnce(&decisions::Context<'_>) -> Decision<R> + Send + 'static,
) -> Result<R, Stopping> {
    send(slot, decide, Job::Decide).await
}

/// As `decide`, for what may take long: it is decided beside the executor of slot 0.
pub async fn decide_beside<R: Send + 'static>(
    slot: &Slot,
    decide: impl FnOnce(&decisions::Context<'_>) -> Decision<R> + Send + 'static,
) -> Result<R, Stopping> {
    send(slot, decide, Job::DecideBeside).await
}

async fn send<R: Send + 'static>(
    slot: &Slot,
    decide: impl FnOnce(&decisions::Context<'_>) -> Decision<R> + Send + 'static,
    job: impl FnOnce(Decide) -> Job,
) -> Result<R, Stopping> {
    let (reply, answer) = oneshot();
    let job = job(Box::new(move |context| {
        let Decision { records, response, warnings } = decide(context);
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        // Whoever asked may have left meanwhile; what was decided holds all the same.
        Decided { records, answer: Box::new(move || drop(reply.send(response))) }
    }));
    slot.links.send(CONTROLLER_SLOT, Message::Controller(job)).await;
    answer.await.map_err(|_| Stopping)
}

/// How the metadata quorum stands.
pub async fn quorum_status(slot: &Slot) -> Result<Status, Stopping> {
    let question = |reply| Message::Controller(Job::Describe(reply));
    slot.links.ask(CONTROLLER_SLOT, question).await.ok_or(Stopping)
}

/// The jobs that wait for the controller task.
pub struct Controller {
    jobs: Queue<Job>,
}

impl Default for Controller {
    fn default() -> Controller {
        Controller { jobs: Queue::bounded(JOBS_MAX) }
    }
}

impl Controller {
    /// Queues a job; one that comes after the end is dropped, which its sender notices.
    pub async fn take(&self, job: Job) {
        drop(self.jobs.push(job).await);
    }

    pub fn close(&self) {
        self.jobs.close();
    }

    /// Runs until closed; returns the log so that it can be closed in order.
    pub async fn run(&self, slot: Rc<Slot>, mut log: MetadataLog) -> MetadataLog {
        while let Some(job) = self.jobs.pop().await {
            let (image, host, random) = (log.image(), slot.host.clone(), random());
            let decide = move |job: Decide| {
                job(&decisions::Context { image: &image, statics: &host.statics, random })
            };
            let decided = match job {
                Job::Decide(job) => decide(job),
                Job::DecideBeside(job) => task::blocking(move || decide(job)).await,
                Job::Describe(reply) => {
                    drop(reply.send(log.status()));
                    continue;
                }
            };
            if !decided.records.is_empty() {
                carry_out(&slot, &mut log, decided.records).await;
            }
            (decided.answer)();
        }
        log
    }
}

/// Commits what was decided and makes every slot act on it.
async fn carry_out(slot: &Rc<Slot>, log: &mut MetadataLog, records: Vec<MetadataRecord>) {
    let leaving = log.image().hand_overs(&records, slot.host.id);
    if leaving.is_empty() {
        log.commit(records).await;
        return publish(slot, log.image(), &BTreeSet::new()).await;
    }
    let begun = time::now();
    let let_go = moving::let_go(slot, &leaving).await;
    runtime::reached("move: let go");
    log.commit(records).await;
    runtime::reached("move: committed");
    moving::announce(slot, &leaving, let_go).await;
    publish(slot, log.image(), &moving::receivers(&leaving)).await;
    moving::say(&log.image(), &leaving, time::now().since(begun));
}

/// As much chance as one decision may need.
pub fn random() -> u128 {
    let (high, low) = (runtime::time::random_u64(), runtime::time::random_u64());
    u128::from(high) << 64 | u128::from(low)
}

/// Makes every slot act on `image`, then returns; those in `first` before the others.
async fn publish(slot: &Rc<Slot>, image: Arc<Image>, first: &BTreeSet<SlotIndex>) {
    let (ahead, others): (Vec<_>, Vec<_>) =
        slot.host.slot_indexes().partition(|each| first.contains(each));
    for some in [ahead, others] {
        let mut answers = Vec::new();
        for other in some.iter().filter(|&&other| other != slot.index) {
            let (applied, answer) = oneshot();
            to_slot(slot, *other, Message::Publish(image.clone(), applied)).await;
            answers.push(answer);
        }
        if some.contains(&slot.index) {
            slot.apply(image.clone()).await;
        }
        for answer in answers {
            answered(slot, answer).await;
        }
        if !first.is_empty() {
            runtime::reached("move: acted on");
        }
    }
}

/// A slot that has stopped takes and answers nothing; it acts on the image at its next start. One
/// stops only when all do.
async fn to_slot(slot: &Slot, other: SlotIndex, message: Message) {
    task::race(slot.links.send(other, message), others_stopped(slot)).await;
}

async fn answered<T>(slot: &Slot, answer: OneshotReceiver<T>) -> Option<T> {
    match task::race(answer, others_stopped(slot)).await {
        Either::Left(answer) => answer.ok(),
        Either::Right(()) => None,
    }
}

async fn others_stopped(slot: &Slot) {
    slot.others_stopped.wait_for(usize::from(slot.host.slots) - 1).await;
}

/// The slot whose executor runs the controller.
pub const CONTROLLER_SLOT: SlotIndex = SlotIndex(0);
const JOBS_MAX: usize = 1024;
