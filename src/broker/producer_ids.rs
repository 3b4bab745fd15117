//! Producer ids of one slot, taken from blocks that the controller allocates.
//!
//! A block belongs to one slot for good: what is left of it at a stop is never given to anyone, so
//! ids are unique over slots, hosts and crashes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use metadata::controller as decisions;
use metadata::{Decision, Refusal};
use runtime::local::Event;

use crate::controller::{self, Stopping};
use crate::slot::Slot;

/// Why a producer got no id.
#[derive(Debug)]
pub enum NoProducerId {
    Stopping,
    Refused(Refusal),
}

impl From<Stopping> for NoProducerId {
    fn from(_: Stopping) -> NoProducerId {
        NoProducerId::Stopping
    }
}

/// The block at hand.
#[derive(Default)]
pub struct ProducerIds {
    next: Cell<i64>,
    end: Cell<i64>,
    asking: Cell<bool>,
    asked: RefCell<Event>,
}

impl ProducerIds {
    /// An id that nobody had before.
    pub async fn next(&self, slot: &Rc<Slot>) -> Result<i64, NoProducerId> {
        loop {
            let id = self.next.get();
            if id < self.end.get() {
                self.next.set(id + 1);
                return Ok(id);
            }
            if self.asking.replace(true) {
                let answered = self.asked.borrow().listen();
                answered.await;
                continue;
            }
            let allocated = self.allocate(slot).await;
            self.asking.set(false);
            self.asked.borrow().notify_all();
            allocated?;
        }
    }

    async fn allocate(&self, slot: &Rc<Slot>) -> Result<(), NoProducerId> {
        let (host, index) = (slot.host.id, slot.index);
        let block =
            controller::decide(slot, move |context| {
                match decisions::allocate_producer_ids(context, host, index) {
                    Ok(Decision { records, response, warnings }) => {
                        Decision { records, response: Ok(response), warnings }
                    }
                    Err(refusal) => Decision {
                        records: Vec::new(),
                        response: Err(refusal),
                        warnings: Vec::new(),
                    },
                }
            });
        let block = block.await?.map_err(NoProducerId::Refused)?;
        self.next.set(block.first);
        self.end.set(block.first + block.count);
        Ok(())
    }
}
