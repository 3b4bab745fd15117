//! Reads frames and begins their requests, one after the other.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use runtime::net::Reader;
use runtime::time::{self, Instant};

use crate::connection::frames::FrameBuffer;
use crate::connection::receive_memory::Held;
use crate::connection::responder::{Begun, Pipeline, Request};
use crate::connection::{Connection, Outcome, limits};
use crate::dispatch;
use crate::slot::{RequestTimes, Slot};

/// Runs until the client closes, misbehaves, or the slot stops.
pub(super) async fn run(
    slot: &Rc<Slot>,
    connection: &Rc<Connection>,
    pipeline: &Rc<Pipeline>,
    mut from: Reader,
) {
    let mut receiving = Receiving::new();
    loop {
        match receiving.frames.next_frame(slot.socket_request_bytes_max()) {
            Ok(Some(frame)) => {
                let arrived = receiving.arrived;
                if !begin(slot, connection, pipeline, (frame, arrived)).await {
                    return;
                }
                receiving.on_frame_begun();
            }
            Ok(None) => {
                if !receiving.receive(slot, &mut from, connection).await {
                    return;
                }
            }
            Err(why) => {
                slot.log_close(connection, &why.to_string());
                return;
            }
        }
    }
}

/// Begins one request. False when the connection is to be left.
async fn begin(
    slot: &Rc<Slot>,
    connection: &Rc<Connection>,
    pipeline: &Rc<Pipeline>,
    (frame, arrived): (Bytes, Instant),
) -> bool {
    let begun = time::now();
    connection.last_active.set(begun);
    slot.metrics.bytes_in.add(frame.len() as u64);
    let (api, outcome) = dispatch::begin(slot, connection, frame).await;
    match outcome {
        Outcome::Silent => {
            let now = time::now();
            let (done, waited) = (now, Duration::ZERO);
            slot.metrics.on_answered(api, RequestTimes { arrived, begun, done, waited }, now);
            true
        }
        Outcome::Close(why) => {
            // Answers of earlier requests still leave before the connection ends.
            slot.log_close(connection, &why);
            false
        }
        reply @ (Outcome::Reply(_) | Outcome::Later(_)) => {
            pipeline
                .push(
                    connection,
                    Begun { request: Request { api, arrived, begun }, outcome: reply },
                )
                .await
        }
    }
}

/// The bytes of the frames on their way, and the memory they hold.
struct Receiving {
    frames: FrameBuffer,
    /// How much is read at a time, between the limits; it follows what arrives.
    step: usize,
    /// For what a large frame takes beyond the first step.
    held: Held,
    /// When the first byte of the frame at hand came.
    frame_begun: Option<Instant>,
    /// When bytes came last.
    arrived: Instant,
}

impl Receiving {
    fn new() -> Receiving {
        let (frames, step) = (FrameBuffer::default(), limits::RECEIVE_STEP_MIN_BYTES);
        Receiving { frames, step, held: Held::default(), frame_begun: None, arrived: time::now() }
    }

    fn adapt_step(&mut self, got: usize) {
        let (min, max) = (limits::RECEIVE_STEP_MIN_BYTES, limits::RECEIVE_STEP_MAX_BYTES);
        if got >= self.step {
            self.step = (2 * self.step).min(max);
        } else if got < self.step / 4 {
            self.step = (self.step / 2).max(min);
        }
    }

    /// The frame was taken and its handler has done what it must in order. The beginning of the
    /// next one may have come with it.
    fn on_frame_begun(&mut self) {
        self.held = Held::default();
        self.frame_begun = (self.frames.pending() > 0).then(time::now);
    }

    /// Waits for more bytes. False when the connection is to be left.
    async fn receive(
        &mut self,
        slot: &Rc<Slot>,
        from: &mut Reader,
        connection: &Connection,
    ) -> bool {
        let read = if self.frames.pending() == 0 {
            self.frames.let_go();
            let (step, buffer) = (self.step, self.frames.buffer());
            buffer.reserve(step);
            slot.stopping.or(from.read_buf(buffer, step)).await
        } else {
            match self.receive_more(slot, from).await {
                Ok(read) => read,
                Err(time::Elapsed) => {
                    slot.log_close(connection, "a frame that had begun did not arrive in time");
                    return false;
                }
            }
        };
        let Some(read) = read else { return false };
        self.arrived = time::now();
        connection.last_active.set(self.arrived);
        match read {
            Ok(0) => {
                if self.frames.pending() > 0 {
                    tracing::debug!(peer = %connection.peer, "closed in the middle of a frame");
                }
                false
            }
            Ok(got) => {
                self.adapt_step(got);
                self.frame_begun.get_or_insert_with(time::now);
                true
            }
            Err(why) => {
                tracing::debug!(peer = %connection.peer, %why, "cannot read");
                false
            }
        }
    }

    /// When the frame at hand has to be complete: large ones may take longer, but not for ever.
    fn deadline(&self) -> Instant {
        let size = self.frames.frame_bytes();
        let allowance = Duration::from_secs((size / limits::FRAME_BYTES_PER_SECOND_MIN) as u64);
        let begun = self.frame_begun.unwrap_or_else(time::now);
        let deadline = begun + limits::FRAME_DEADLINE + allowance;
        self.held.deadline(size).map_or(deadline, |favoured| favoured.min(deadline))
    }

    /// Reads on in a begun frame; what it takes beyond the bytes that are free to all has to be
    /// leased first. `None` when the slot stops before there was memory for it.
    async fn receive_more(
        &mut self,
        slot: &Slot,
        from: &mut Reader,
    ) -> Result<Option<io::Result<usize>>, time::Elapsed> {
        let wanted = self.frames.wanted(self.step);
        let total = self.frames.pending() + wanted;
        let needed = total.saturating_sub(limits::RECEIVE_UNLEASED_BYTES);
        let memory = &slot.receive_memory;
        if !memory.try_grow(&mut self.held, needed) {
            let deadline = self.deadline();
            let grown = slot.stopping.or(memory.grow(&mut self.held, needed));
            if time::within(deadline, grown).await?.is_none() {
                return Ok(None);
            }
        }
        self.frames.reserve(wanted);
        let deadline = self.deadline();
        time::within(deadline, from.read_buf(self.frames.buffer(), wanted)).await.map(Some)
    }
}
