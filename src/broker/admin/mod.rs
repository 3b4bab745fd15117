//! The admin port: `/healthz` and `/metrics` over plain HTTP/1.1, one request per connection.
//!
//! Served by slot 0, which asks the other slots for their numbers at each scrape.

use std::rc::Rc;
use std::time::Duration;

use ::metrics::{CONTENT_TYPE, Snapshot, render};
use bytes::{Bytes, BytesMut};
use runtime::mesh::oneshot;
use runtime::net::{Conn, Listener, Reader};
use runtime::task::{Either, race};
use runtime::{task, time};

use crate::slot::Slot;
use crate::slot::links::Message;

/// Accepts until the process is asked to stop.
pub async fn serve(slot: Rc<Slot>, listener: Listener) {
    let open = Rc::new(std::cell::Cell::new(0usize));
    loop {
        match race(listener.accept(), runtime::shutdown_requested()).await {
            Either::Left(Ok(conn)) if open.get() < CONNECTIONS_MAX => {
                open.set(open.get() + 1);
                let (slot, open) = (slot.clone(), open.clone());
                task::spawn(async move {
                    let deadline = time::now() + REQUEST_DEADLINE;
                    if time::within(deadline, answer(&slot, conn)).await.is_err() {
                        tracing::debug!("an admin request took too long");
                    }
                    open.set(open.get() - 1);
                });
            }
            Either::Left(Ok(_refused)) => {}
            Either::Left(Err(why)) => {
                tracing::warn!(%why, "cannot accept an admin connection");
                time::sleep(ACCEPT_RETRY).await;
            }
            Either::Right(()) => return,
        }
    }
}

/// The numbers of all slots as one snapshot.
pub async fn scrape(slot: &Slot) -> Snapshot {
    let mut all = crate::slot::snapshot(slot);
    let mut answers = Vec::new();
    for other in slot.host.slot_indexes().filter(|&other| other != slot.index) {
        let (reply, answer) = oneshot();
        slot.links.send(other, Message::Scrape(reply)).await;
        answers.push(answer);
    }
    for answer in answers {
        if let Ok(snapshot) = answer.await {
            all.merge(snapshot);
        }
    }
    all
}

async fn answer(slot: &Slot, conn: Conn) {
    let peer = conn.peer_addr();
    let (mut from, mut to) = conn.split();
    let response = match read_head(&mut from).await {
        Some(head) => respond(slot, &head).await,
        None => http(400, "text/plain", "expected an HTTP/1.1 GET request\n"),
    };
    if let Err(why) = to.send(&[response]).await {
        tracing::debug!(%peer, %why, "cannot answer an admin request");
    }
    to.shutdown();
}

/// Method and path of the request; none when it is not HTTP or its head is too long.
async fn read_head(from: &mut Reader) -> Option<(String, String)> {
    let mut buffer = BytesMut::with_capacity(HEAD_BYTES_MAX);
    while buffer.len() < HEAD_BYTES_MAX {
        let room = HEAD_BYTES_MAX - buffer.len();
        match from.read_buf(&mut buffer, room).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&buffer) {
            Ok(httparse::Status::Complete(_)) => {
                return Some((request.method?.to_owned(), request.path?.to_owned()));
            }
            Ok(httparse::Status::Partial) => {}
            Err(_) => return None,
        }
    }
    None
}

async fn respond(slot: &Slot, (method, path): &(String, String)) -> Bytes {
    if method != "GET" {
        return http(405, "text/plain", "only GET is served here\n");
    }
    match path.split('?').next().unwrap_or_default() {
        "/healthz" => http(200, "text/plain", "ok\n"),
        "/metrics" => http(200, CONTENT_TYPE, &render(&scrape(slot).await)),
        _ => http(404, "text/plain", "served here: /healthz and /metrics\n"),
    }
}

fn http(status: u16, content_type: &str, body: &str) -> Bytes {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        405 => "Method Not Allowed",
        _ => "Not Found",
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    Bytes::from(head + body)
}

const CONNECTIONS_MAX: usize = 64;
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
const HEAD_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
