//! Reads frames and begins their requests, one after the other.

use std::rc::Rc;

use bytes::Bytes;
use runtime::net::Reader;
use runtime::time;

use crate::connection::frames::FrameBuffer;
use crate::connection::responder::{Begun, Pipeline};
use crate::connection::{Connection, Outcome, limits};
use crate::dispatch;
use crate::slot::Slot;

/// Runs until the client closes, misbehaves, or the slot stops.
pub(super) async fn run(
    slot: &Rc<Slot>,
    connection: &Rc<Connection>,
    pipeline: &Rc<Pipeline>,
    mut from: Reader,
) {
    let mut frames = FrameBuffer::default();
    loop {
        match frames.next_frame(slot.socket_request_bytes_max()) {
            Ok(Some(frame)) => {
                if !begin(slot, connection, pipeline, frame).await {
                    return;
                }
            }
            Ok(None) => {
                if !receive(slot, &mut from, &mut frames, connection).await {
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
    frame: Bytes,
) -> bool {
    let received = time::now();
    connection.last_active.set(received);
    slot.metrics.bytes_in.add(frame.len() as u64);
    let (api, outcome) = dispatch::begin(slot, connection, frame).await;
    match outcome {
        Outcome::Silent => {
            slot.metrics.on_answered(api, received, time::now());
            true
        }
        Outcome::Close(why) => {
            // Answers of earlier requests still leave before the connection ends.
            slot.log_close(connection, &why);
            false
        }
        reply @ (Outcome::Reply(_) | Outcome::Later(_)) => {
            pipeline.push(connection, Begun { api, received, outcome: reply }).await
        }
    }
}

/// Waits for more bytes. False at the end of the stream.
async fn receive(
    slot: &Rc<Slot>,
    from: &mut Reader,
    frames: &mut FrameBuffer,
    connection: &Connection,
) -> bool {
    let wanted = frames.wanted(limits::RECEIVE_STEP_BYTES);
    let read = if frames.pending() == 0 {
        match slot.stopping.or(from.read_buf(frames.buffer(), wanted)).await {
            Some(read) => read,
            None => return false,
        }
    } else {
        let deadline = time::now() + limits::FRAME_DEADLINE;
        match time::within(deadline, from.read_buf(frames.buffer(), wanted)).await {
            Ok(read) => read,
            Err(_) => {
                slot.log_close(connection, "no byte of a begun frame arrived for 30 s");
                return false;
            }
        }
    };
    match read {
        Ok(0) => {
            if frames.pending() > 0 {
                tracing::debug!(peer = %connection.peer, "closed in the middle of a frame");
            }
            false
        }
        Ok(_) => true,
        Err(why) => {
            tracing::debug!(peer = %connection.peer, %why, "cannot read");
            false
        }
    }
}
