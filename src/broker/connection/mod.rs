//! One client connection: a reader that turns frames into begun requests and a responder that
//! sends their answers in request order.
//!
//! Invariants: requests are begun in arrival order, so what a producer sends is appended in that
//! order; answers leave in request order; at most [`limits::IN_FLIGHT_MAX`] requests and
//! [`limits::UNSENT_BYTES_MAX`] bytes of ready answers wait, then the socket is not read any more.
//! Deliberately absent: what the requests mean (see `dispatch`).

mod frames;
pub mod limits;
mod reader;
mod receive_memory;
mod responder;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use protocol::Str;
use runtime::local::Lease;
use runtime::net::{Closer, Conn};
use runtime::time::Instant;

pub use frames::{FrameBuffer, FrameError};
pub use receive_memory::{Held, ReceiveMemory};

use crate::slot::{Slot, Stop};

/// What the handlers may know and remember about the connection that a request came by.
pub struct Connection {
    pub id: u64,
    pub peer: SocketAddr,
    /// The name and version the client gave in ApiVersions, for logs and metrics.
    pub client_software: RefCell<Option<(Str, Str)>>,
    /// The client id of the last request, in memory of its own.
    client_id: RefCell<Option<Str>>,
    pub(crate) closer: Closer,
    pub(crate) last_active: Cell<Instant>,
    pub(crate) unsent_bytes: Cell<usize>,
    /// The client sends nothing any more: what waits for others need not wait on for it.
    pub left: Stop,
}

impl Connection {
    /// The same client id without the frame that it came in, which could otherwise not go before
    /// the answer. A client hardly ever changes it, so that nothing is copied.
    pub fn detached(&self, client_id: Option<Str>) -> Option<Str> {
        let mut last = self.client_id.borrow_mut();
        if *last != client_id {
            *last = client_id.as_ref().map(Str::detach);
        }
        last.clone()
    }
}

/// What became of a request once its handler ran as far as it must in order.
pub enum Outcome {
    /// The encoded answer, size prefix included.
    Reply(Answer),
    /// The answer comes when the future ends; later requests may begin meanwhile.
    Later(Pin<Box<dyn Future<Output = Outcome>>>),
    /// No answer at all (acks=0).
    Silent,
    /// The connection ends; the text says why.
    Close(String),
}

/// An encoded answer.
#[derive(Default)]
pub struct Answer {
    pub chunks: Vec<Bytes>,
    /// The memory that the chunks keep from being reused, until they are sent.
    pub lease: Option<Lease>,
    /// How long it waited for others to write what was asked for.
    pub waited: Duration,
}

impl Answer {
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }
}

/// Serves one accepted connection until either side ends it.
pub async fn serve(slot: Rc<Slot>, conn: Conn, id: u64) {
    let peer = conn.peer_addr();
    if let Err(why) = conn.set_nodelay(true) {
        tracing::debug!(%peer, %why, "cannot set TCP_NODELAY");
    }
    let (from, to) = conn.split();
    let connection = Rc::new(Connection {
        id,
        peer,
        client_software: RefCell::new(None),
        client_id: RefCell::new(None),
        closer: from.closer(),
        last_active: Cell::new(runtime::time::now()),
        unsent_bytes: Cell::new(0),
        left: Stop::default(),
    });
    slot.connections.add(&connection);
    let in_progress = slot.settings().queued_max_requests.max(1) as usize;
    let pipeline = Rc::new(responder::Pipeline::bounded(in_progress));
    runtime::task::spawn(responder::run(slot.clone(), connection.clone(), pipeline.clone(), to));
    reader::run(&slot, &connection, &pipeline, from).await;
    connection.left.set();
    pipeline.close();
    pipeline.ended().await;
    slot.connections.remove(&connection);
}
