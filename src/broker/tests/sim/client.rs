//! A small Kafka client on the simulated network: one connection, any number of requests in flight.
//!
//! Law: answers are handed out in the order of the requests, and an answer to anything but the
//! oldest request fails the test. A lost connection loses every request that had no answer yet.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use protocol::{Decoder, Encoder, Message, RequestHeader, ResponseHeader, Str};
use runtime::local::{Event, Queue};
use runtime::net::{Closer, Conn, Reader, Writer};
use runtime::task::spawn;
use runtime::time::{now, within};

/// The connection failed, or the answer took too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const REQUESTS_MAX: usize = 256;

/// Where an answer is put.
#[derive(Default)]
struct Slot {
    answer: RefCell<Option<Result<Bytes, Lost>>>,
    settled: Event,
}

impl Slot {
    fn settle(&self, answer: Result<Bytes, Lost>) {
        let mut slot = self.answer.borrow_mut();
        if slot.is_none() {
            *slot = Some(answer);
            self.settled.notify_all();
        }
    }
}

struct Link {
    outgoing: Queue<Vec<Bytes>>,
    waiting: RefCell<VecDeque<(i32, Rc<Slot>)>>,
    requests: Cell<i32>,
    lost: Cell<bool>,
    closer: Closer,
}

impl Link {
    fn lose(&self) {
        self.lost.set(true);
        self.closer.close();
        self.outgoing.close();
        for (_, slot) in self.waiting.take() {
            slot.settle(Err(Lost));
        }
    }
}

/// A connection to one node. Dropping it closes it.
pub struct Client {
    link: Rc<Link>,
    pub address: SocketAddr,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.link.lose();
    }
}

/// An answer on its way.
pub struct Answer<A> {
    slot: Rc<Slot>,
    version: i16,
    expected: PhantomData<A>,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Result<Self, Lost> {
        let conn = Conn::connect(address, CONNECT_TIMEOUT).await.map_err(|_| Lost)?;
        let (reader, writer) = conn.split();
        let link = Rc::new(Link {
            outgoing: Queue::bounded(REQUESTS_MAX),
            waiting: RefCell::default(),
            requests: Cell::new(0),
            lost: Cell::new(false),
            closer: reader.closer(),
        });
        spawn(send_all(link.clone(), writer));
        spawn(receive_all(link.clone(), reader));
        Ok(Self { link, address })
    }

    pub fn is_lost(&self) -> bool {
        self.link.lost.get()
    }

    /// Sends a request behind those that were sent before.
    pub fn send<R: Message, A: Message>(&self, request: &R, version: i16) -> Answer<A> {
        let slot = Rc::new(Slot::default());
        let correlation_id = self.enqueue(request, version);
        if self.is_lost() {
            slot.settle(Err(Lost));
        } else {
            self.link.waiting.borrow_mut().push_back((correlation_id, slot.clone()));
        }
        Answer { slot, version, expected: PhantomData }
    }

    /// Sends a request to which there is no answer. False when it surely did not leave.
    pub fn send_unanswered<R: Message>(&self, request: &R, version: i16) -> bool {
        self.enqueue(request, version);
        !self.is_lost()
    }

    /// Sends a request and waits for the answer.
    pub async fn call<R: Message, A: Message>(
        &self,
        request: &R,
        version: i16,
        timeout: Duration,
    ) -> Result<A, Lost> {
        self.send(request, version).wait(timeout).await.inspect_err(|_| self.link.lose())
    }

    fn enqueue<R: Message>(&self, request: &R, version: i16) -> i32 {
        let correlation_id = self.link.requests.get();
        self.link.requests.set(correlation_id + 1);
        let header = RequestHeader {
            api_key: R::KEY.number(),
            api_version: version,
            correlation_id,
            client_id: Some(Str::from("simulated")),
        };
        let mut encoder = Encoder::framed(256);
        header.encode(&mut encoder);
        request.encode(&mut encoder, version);
        if self.link.outgoing.try_push(encoder.finish()).is_err() {
            self.link.lose();
        }
        correlation_id
    }
}

impl<A: Message> Answer<A> {
    /// Waits for the answer.
    pub async fn wait(self, timeout: Duration) -> Result<A, Lost> {
        let deadline = now() + timeout;
        let frame = loop {
            let settled = self.slot.settled.listen();
            if let Some(answer) = self.slot.answer.borrow_mut().take() {
                break answer?;
            }
            within(deadline, settled).await.map_err(|_| Lost)?;
        };
        let mut decoder = Decoder::new(frame);
        let decoded = ResponseHeader::decode(&mut decoder, A::KEY, self.version)
            .and_then(|_| A::decode(&mut decoder, self.version));
        let answer = decoded.unwrap_or_else(|error| panic!("an unreadable answer: {error:?}"));
        assert_eq!(decoder.remaining(), 0, "bytes behind the answer {answer:?}");
        Ok(answer)
    }
}

async fn send_all(link: Rc<Link>, mut writer: Writer) {
    while let Some(frame) = link.outgoing.pop().await {
        if writer.send(&frame).await.is_err() {
            break;
        }
    }
    link.lose();
}

async fn receive_all(link: Rc<Link>, mut reader: Reader) {
    let mut buffer = BytesMut::new();
    loop {
        while let Some(frame) = split_frame(&mut buffer) {
            let correlation_id = frame.as_ref().get_i32();
            let oldest = link.waiting.borrow_mut().pop_front();
            match oldest {
                Some((expected, slot)) => {
                    assert_eq!(correlation_id, expected, "answers out of order");
                    slot.settle(Ok(frame));
                }
                None => assert!(link.lost.get(), "an answer that nobody asked for"),
            }
        }
        buffer.reserve(64 << 10);
        if !reader.read_buf(&mut buffer, 64 << 10).await.is_ok_and(|count| count > 0) {
            return link.lose();
        }
    }
}

/// The first whole frame, without its size.
fn split_frame(buffer: &mut BytesMut) -> Option<Bytes> {
    if buffer.len() < 4 {
        return None;
    }
    let size = buffer.as_ref().get_i32() as usize;
    if buffer.len() < 4 + size {
        return None;
    }
    buffer.advance(4);
    Some(buffer.split_to(size).freeze())
}
