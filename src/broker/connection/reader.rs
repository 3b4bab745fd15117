//! Reads frames and begins their requests, one after the other.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use runtime::local::Lease;
use runtime::net::Reader;
use runtime::time::{self, Instant};

use crate::connection::frames::FrameBuffer;
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
    lease: Option<Lease>,
    /// When the first byte of the frame at hand came.
    frame_begun: Option<Instant>,
    /// When bytes came last.
    arrived: Instant,
}

impl Receiving {
    fn new() -> Receiving {
        let (frames, step) = (FrameBuffer::default(), limits::RECEIVE_STEP_MIN_BYTES);
        Receiving { frames, step, lease: None, frame_begun: None, arrived: time::now() }
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
        self.lease = None;
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
            match slot.stopping.or(from.read_buf(buffer, step)).await {
                Some(read) => read,
                None => return false,
            }
        } else {
            let Some(deadline) = self.deadline() else { return false };
            match time::within(deadline, self.receive_more(slot, from)).await {
                Ok(read) => read,
                Err(_) => {
                    slot.log_close(connection, "a frame that had begun did not arrive in time");
                    return false;
                }
            }
        };
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
    fn deadline(&self) -> Option<Instant> {
        let allowance = self.frames.frame_bytes() / limits::FRAME_BYTES_PER_SECOND_MIN;
        let allowance = limits::FRAME_DEADLINE + Duration::from_secs(allowance as u64);
        Some(self.frame_begun? + allowance)
    }

    /// Reads on in a begun frame; what it takes beyond the bytes that are free to all has to be
    /// leased first.
    async fn receive_more(&mut self, slot: &Rc<Slot>, from: &mut Reader) -> io::Result<usize> {
        let wanted = self.frames.wanted(self.step);
        let total = self.frames.pending() + wanted;
        let needed = total.saturating_sub(limits::RECEIVE_UNLEASED_BYTES);
        let held = self.lease.as_ref().map_or(0, Lease::bytes);
        if needed > held {
            let more = slot.receive_budget.lease(needed - held).await;
            match &mut self.lease {
                Some(lease) => lease.merge(more),
                None => self.lease = Some(more),
            }
        }
        self.frames.buffer().reserve(wanted);
        from.read_buf(self.frames.buffer(), wanted).await
    }
}
