//! Messages between the cores of one process.
//!
//! Law: a message takes a while, the order from one core to another is kept, none is lost while the
//! process lives, and a full lane makes its senders wait. The capacity of the lanes is the seed's
//! choice, so that code which relies on room in a lane is found out.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::process::Process;
use super::time::after;
use super::world::{Action, World};

/// The capacities of a lane from which the seed chooses.
const LANE_CAPACITIES: [usize; 3] = [4, 64, 1024];

/// From one core to one other.
struct Lane {
    /// Messages sent and not yet received.
    held: Cell<usize>,
    last_arrival_ns: Cell<u64>,
    senders: RefCell<VecDeque<Waker>>,
}

struct Inbox<M> {
    arrived: RefCell<VecDeque<(usize, M)>>,
    receivers: RefCell<Vec<Waker>>,
}

struct Lanes<M> {
    world: Rc<World>,
    process: Rc<Process>,
    count: usize,
    capacity: usize,
    lanes: Vec<Lane>,
    inboxes: Vec<Inbox<M>>,
}

/// One core's end of the channels to every core, itself included.
pub struct Mesh<M: Send + 'static> {
    all: Rc<Lanes<M>>,
    index: usize,
    sent: Cell<u64>,
}

pub(crate) fn mesh<M: Send + 'static>(
    world: &Rc<World>,
    process: &Rc<Process>,
    count: usize,
) -> Vec<Mesh<M>> {
    let lane = |_| Lane {
        held: Cell::new(0),
        last_arrival_ns: Cell::new(0),
        senders: RefCell::new(VecDeque::new()),
    };
    let inbox =
        |_| Inbox { arrived: RefCell::new(VecDeque::new()), receivers: RefCell::new(Vec::new()) };
    let all = Rc::new(Lanes {
        world: world.clone(),
        process: process.clone(),
        count,
        capacity: LANE_CAPACITIES[world.below(LANE_CAPACITIES.len() as u64) as usize],
        lanes: (0..count * count).map(lane).collect(),
        inboxes: (0..count).map(inbox).collect(),
    });
    (0..count).map(|index| Mesh { all: all.clone(), index, sent: Cell::new(0) }).collect()
}

impl<M: Send + 'static> Mesh<M> {
    /// Sends to core `to`, waiting while its lane is full.
    pub async fn send(&self, to: usize, message: M) {
        let mut message = Some(message);
        poll_fn(|task| {
            let Some(taken) = message.take() else { return Poll::Ready(()) };
            match self.try_send(to, taken) {
                Ok(()) => Poll::Ready(()),
                Err(back) => {
                    message = Some(back);
                    let lane = self.all.lane(self.index, to);
                    lane.senders.borrow_mut().push_back(task.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// Sends to core `to`; gives the message back when the lane is full.
    pub fn try_send(&self, to: usize, message: M) -> Result<(), M> {
        let all = &self.all;
        let lane = all.lane(self.index, to);
        if lane.held.get() >= all.capacity {
            return Err(message);
        }
        lane.held.set(lane.held.get() + 1);
        self.sent.set(self.sent.get() + 1);
        let delay = all.world.duration(&all.world.options.mesh_delay);
        let arrival = after(all.world.now_ns(), delay).max(lane.last_arrival_ns.get());
        lane.last_arrival_ns.set(arrival);
        let (from, lanes) = (self.index, all.clone());
        let deliver = move || lanes.deliver(from, to, message);
        all.world.schedule(arrival, Some(all.process.clone()), Action::Call(Box::new(deliver)));
        Ok(())
    }

    /// Receives the next message: the sending core and what it sent.
    pub async fn recv(&self) -> (usize, M) {
        poll_fn(|task| {
            let inbox = &self.all.inboxes[self.index];
            let next = inbox.arrived.borrow_mut().pop_front();
            match next {
                Some((from, message)) => {
                    self.all.on_received(from, self.index);
                    Poll::Ready((from, message))
                }
                None => {
                    let mut receivers = inbox.receivers.borrow_mut();
                    if !receivers.iter().any(|waiting| waiting.will_wake(task.waker())) {
                        receivers.push(task.waker().clone());
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Messages this core has sent.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }
}

impl<M: Send + 'static> Lanes<M> {
    fn lane(&self, from: usize, to: usize) -> &Lane {
        assert!(from < self.count && to < self.count, "there is no such core");
        &self.lanes[from * self.count + to]
    }

    fn deliver(&self, from: usize, to: usize, message: M) {
        self.world.record("mesh", &[from as u64, to as u64]);
        self.inboxes[to].arrived.borrow_mut().push_back((from, message));
        for receiver in self.inboxes[to].receivers.take() {
            receiver.wake();
        }
    }

    fn on_received(&self, from: usize, to: usize) {
        let lane = self.lane(from, to);
        lane.held.set(lane.held.get() - 1);
        for sender in lane.senders.take() {
            sender.wake();
        }
    }
}
