//! What slots of one host say to each other. Cross-core messages carry decisions, questions and
//! numbers, never records; [`Links::sent`] counts them so that a test can prove it.

use std::cell::Cell;
use std::sync::Arc;

use metadata::Image;
use protocol::{SlotIndex, Uuid};
use runtime::mesh::{Mesh, OneshotSender, oneshot};

use crate::controller::Job;
use crate::host::Identity;
use crate::monitor::Question;
use crate::shard::LetGo;

/// One cross-core message.
pub enum Message {
    /// Slot 0 to the others, once: who we are and the metadata to start from.
    Start(Arc<Identity>, Arc<Image>),
    /// Any slot to slot 0: its partitions are open and its listener answers.
    Ready,
    /// Slot 0 to the others: newer metadata; answered when the slot acts on it.
    Publish(Arc<Image>, OneshotSender<()>),
    /// Slot 0 to the others: close these partitions, another slot will have them; answered when
    /// nothing of them goes on any more.
    LetGo(Vec<(Uuid, i32)>, OneshotSender<LetGo>),
    /// Slot 0 to the others: what the next metadata gives you, another slot has let go.
    Expect(LetGo),
    /// Any slot to slot 0: something for the controller.
    Controller(Job),
    /// Slot 0 to the others: copy your numbers.
    Monitor(Question),
    /// Any slot to slot 0: its connections are drained and its logs closed.
    Stopped,
}

/// This slot's ends of the channels to all others.
pub struct Links {
    mesh: Mesh<Message>,
    sent: Cell<u64>,
}

impl Links {
    pub fn new(mesh: Mesh<Message>) -> Links {
        Links { mesh, sent: Cell::new(0) }
    }

    pub async fn send(&self, to: SlotIndex, message: Message) {
        self.sent.set(self.sent.get() + 1);
        self.mesh.send(usize::from(to.0), message).await;
    }

    pub async fn receive(&self) -> (SlotIndex, Message) {
        let (from, message) = self.mesh.recv().await;
        (SlotIndex(from as u16), message)
    }

    /// Messages this slot has sent to any slot since it started.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Asks another slot and waits for its answer; `None` when that slot is going away.
    pub async fn ask<T: Send + 'static>(
        &self,
        to: SlotIndex,
        question: impl FnOnce(OneshotSender<T>) -> Message,
    ) -> Option<T> {
        let (reply, answer) = oneshot();
        self.send(to, question(reply)).await;
        answer.await.ok()
    }
}
