//! What operators see: how far groups are behind, what partitions hold, how cores do.
//!
//! Every slot copies its numbers (`numbers`); slot 0 gathers them, joins them (`lag`), asks the
//! slots how old the first unread records are (`ages`), and writes the text (`exposition`), all of
//! it in slices of a fraction of a millisecond with rests between them. A thread beside the core
//! would not be gentler: on the core's CPU it keeps the core waiting until the scheduler's next
//! tick. Nothing here is on the path of a record but one look at the clock's timeline per batch
//! (`timeline`).

mod ages;
mod exposition;
mod lag;
mod numbers;
mod process;
mod pulse;
mod timeline;

use std::rc::Rc;

use runtime::mesh::{OneshotSender, oneshot};
use runtime::task;

pub use ages::{AgeQuestion, ages};
pub use numbers::{SlotNumbers, collect};
pub use pulse::keep_pulse;
pub use timeline::{Appended, Timeline};

use crate::slot::Slot;
use crate::slot::links::Message;
use lag::Lags;

/// What slot 0 asks the others at a scrape.
pub enum Question {
    Numbers(OneshotSender<SlotNumbers>),
    Ages(Vec<AgeQuestion>, OneshotSender<Vec<Option<i64>>>),
}

/// The numbers of all slots as Prometheus text, in pieces.
pub async fn scrape(slot: &Rc<Slot>) -> Vec<String> {
    let numbers = gather(slot).await;
    let series_max = slot.host.metrics_series;
    let mut lags = Lags::join(&numbers, series_max).await;
    for (asked, questions) in lags.questions() {
        let (places, questions): (Vec<usize>, Vec<AgeQuestion>) = questions.into_iter().unzip();
        let ages = if asked == slot.index {
            Some(ages(slot, questions).await)
        } else {
            let question = |reply| Message::Monitor(Question::Ages(questions, reply));
            slot.links.ask(asked, question).await
        };
        // A slot that is going away gives none.
        lags.answer(&places, &ages.unwrap_or_default());
    }
    let process = task::blocking(process::numbers).await;
    exposition::text(numbers, process, lags, series_max).await
}

async fn gather(slot: &Rc<Slot>) -> Vec<SlotNumbers> {
    let mut answers = Vec::new();
    for other in slot.host.slot_indexes().filter(|&other| other != slot.index) {
        let (reply, answer) = oneshot();
        slot.links.send(other, Message::Monitor(Question::Numbers(reply))).await;
        answers.push(answer);
    }
    let mut all = vec![collect(slot).await];
    for answer in answers {
        all.extend(answer.await.ok());
    }
    all.sort_by_key(|it: &SlotNumbers| it.slot);
    all
}

/// Answers slot 0, beside everything else that this slot does.
pub fn answer(slot: &Rc<Slot>, question: Question) {
    let slot = slot.clone();
    task::spawn(async move {
        // Whoever asked may have left.
        match question {
            Question::Numbers(reply) => drop(reply.send(collect(&slot).await)),
            Question::Ages(asked, reply) => drop(reply.send(ages(&slot, asked).await)),
        }
    });
}
