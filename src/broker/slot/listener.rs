//! The client listener of one slot: accepts, counts, limits, closes the idle.

use std::rc::Rc;
use std::time::Duration;

use runtime::net::{Conn, Listener};
use runtime::task::{Either, race};
use runtime::time;

use crate::connection;
use crate::slot::Slot;

/// Accepts clients until the process is asked to stop.
pub(super) async fn run(slot: Rc<Slot>, listener: Listener) {
    loop {
        match race(listener.accept(), runtime::shutdown_requested()).await {
            Either::Left(Ok(conn)) => admit(&slot, conn),
            Either::Left(Err(why)) => {
                tracing::warn!(core = slot.index.0, %why, "cannot accept a connection");
                time::sleep(ACCEPT_RETRY).await;
            }
            Either::Right(()) => return,
        }
    }
}

fn admit(slot: &Rc<Slot>, conn: Conn) {
    let settings = slot.settings();
    let address = conn.peer_addr().ip();
    let address_max = settings.connections_of(address) as usize;
    let tuning = slot.host.tuning(slot.index);
    if !slot.connections.admit(tuning.connections_max) {
        let most = tuning.connections_max;
        slot.metrics.connections_refused.increment();
        let core = slot.index.0;
        let why = "--max-connections-per-core is reached";
        tracing::warn!(core, most, peer = %address, "a client was turned away: {why}");
        return;
    }
    if let Err(why) = conn.set_buffers(tuning.send_buffer_bytes, tuning.receive_buffer_bytes) {
        tracing::debug!(peer = %conn.peer_addr(), %why, "cannot size the socket's buffers");
    }
    if !slot.host.connections.admit(address, settings.max_connections as usize, address_max) {
        slot.connections.leave();
        slot.metrics.connections_refused.increment();
        let core = slot.index.0;
        let why = "max.connections or max.connections.per.ip is reached";
        tracing::warn!(core, peer = %address, "a client was turned away: {why}");
        return;
    }
    slot.metrics.connections_accepted.increment();
    runtime::task::spawn(client(slot.clone(), conn));
}

async fn client(slot: Rc<Slot>, conn: Conn) {
    let address = conn.peer_addr().ip();
    let id = slot.connections.next_id();
    connection::serve(slot.clone(), conn, id).await;
    slot.connections.leave();
    slot.host.connections.leave(address);
}

/// Closes connections that said nothing for connections.max.idle.ms.
pub(super) async fn close_idle(slot: Rc<Slot>) {
    loop {
        match race(time::sleep(IDLE_SWEEP), runtime::shutdown_requested()).await {
            Either::Left(()) => {
                let idle = slot.settings().connections_max_idle_ms;
                let idle = Duration::from_millis(idle.max(0) as u64);
                let closed = slot.connections.close_idle(time::now(), idle);
                if closed > 0 {
                    tracing::debug!(core = slot.index.0, closed, "closed idle connections");
                }
            }
            Either::Right(()) => return,
        }
    }
}

const ACCEPT_RETRY: Duration = Duration::from_millis(50);
const IDLE_SWEEP: Duration = Duration::from_secs(5);
