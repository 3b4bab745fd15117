//! The admin port: `/healthz`, `/readyz` and `/metrics` over plain HTTP/1.1, one request per
//! connection.
//!
//! Served by slot 0 from before the partitions are opened until after the last client has gone:
//! who is told that the process lives (`/healthz`) is not yet told that it serves (`/readyz`).

use std::cell::{Cell, RefCell};
use std::iter;
use std::rc::Rc;
use std::time::Duration;

use ::metrics::CONTENT_TYPE;
use bytes::{Bytes, BytesMut};
use runtime::local::Event;
use runtime::net::{Conn, Listener, Reader};
use runtime::task::{Either, Unhurried, race};
use runtime::{task, time};

use crate::monitor::scrape;
use crate::slot::{Slot, Stop};

/// The admin port of a host.
#[derive(Default)]
pub struct Admin {
    /// Known once all slots serve.
    slot: RefCell<Option<Rc<Slot>>>,
    ended: Stop,
    open: Cell<usize>,
    /// One scrape at a time: two would only make both late.
    scraping: Cell<bool>,
    scraped: Event,
}

impl Admin {
    /// All slots serve clients.
    pub fn on_ready(&self, slot: &Rc<Slot>) {
        *self.slot.borrow_mut() = Some(slot.clone());
    }

    /// Accepts no more.
    pub fn end(&self) {
        self.ended.set();
    }

    pub async fn serve(self: Rc<Self>, listener: Listener) {
        loop {
            match race(listener.accept(), self.ended.wait()).await {
                Either::Left(Ok(conn)) if self.open.get() < CONNECTIONS_MAX => {
                    self.open.set(self.open.get() + 1);
                    let admin = self.clone();
                    task::spawn(async move {
                        let deadline = time::now() + REQUEST_DEADLINE;
                        if time::within(deadline, admin.answer(conn)).await.is_err() {
                            tracing::debug!("an admin request took too long");
                        }
                        admin.open.set(admin.open.get() - 1);
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

    async fn answer(&self, conn: Conn) {
        let peer = conn.peer_addr();
        let (mut from, mut to) = conn.split();
        let response = match read_head(&mut from).await {
            Some(head) => self.respond(&head).await,
            None => http(400, PLAIN, "expected an HTTP/1.1 GET request\n"),
        };
        let mut pace = Unhurried::default();
        for piece in response {
            if let Err(why) = to.send(&[piece]).await {
                tracing::debug!(%peer, %why, "cannot answer an admin request");
                break;
            }
            pace.turn().await;
        }
        to.shutdown();
    }

    async fn respond(&self, (method, path): &(String, String)) -> Vec<Bytes> {
        if method != "GET" {
            return http(405, PLAIN, "only GET is served here\n");
        }
        let slot = self.slot.borrow().clone();
        match (path.split('?').next().unwrap_or_default(), slot) {
            ("/healthz", _) => http(200, PLAIN, "ok\n"),
            ("/readyz" | "/metrics", None) => http(503, PLAIN, "starting\n"),
            ("/readyz", Some(slot)) if slot.stopping.is_set() => http(503, PLAIN, "stopping\n"),
            ("/readyz", Some(_)) => http(200, PLAIN, "ready\n"),
            ("/metrics", Some(slot)) => {
                let text = self.scrape(&slot).await;
                http_pieces(200, CONTENT_TYPE, text)
            }
            _ => http(404, PLAIN, "served here: /healthz, /readyz and /metrics\n"),
        }
    }

    async fn scrape(&self, slot: &Rc<Slot>) -> Vec<String> {
        while self.scraping.replace(true) {
            self.scraped.listen().await;
        }
        let _turn = Turn(self);
        scrape(slot).await
    }
}

/// The one scrape under way; also one that is given up ends.
struct Turn<'a>(&'a Admin);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.scraping.set(false);
        self.0.scraped.notify_all();
    }
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

fn http(status: u16, content_type: &str, body: &str) -> Vec<Bytes> {
    http_pieces(status, content_type, vec![body.to_owned()])
}

fn http_pieces(status: u16, content_type: &str, body: Vec<String>) -> Vec<Bytes> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        405 => "Method Not Allowed",
        503 => "Service Unavailable",
        _ => "Not Found",
    };
    let length: usize = body.iter().map(String::len).sum();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    // A short answer is one packet.
    let mut body = body.into_iter();
    let first = head + &body.next().unwrap_or_default();
    iter::once(first).chain(body).map(Bytes::from).collect()
}

const PLAIN: &str = "text/plain";
const CONNECTIONS_MAX: usize = 64;
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
const HEAD_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
