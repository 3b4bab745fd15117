//! TCP.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use runtime::local::Queue;
use runtime::net::{Conn, Listener, Reader, Writer};
use runtime::task::{Either, race, spawn, yield_now};

use crate::on_core;
use crate::process::{apart, finish};

const LONG: Duration = Duration::from_secs(10);

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Both ends of a connection.
async fn pair() -> (Conn, Conn) {
    let listener = Listener::bind(loopback()).unwrap();
    let client = Conn::connect(listener.local_addr(), LONG).await.unwrap();
    let server = listener.accept().await.unwrap();
    assert_eq!(server.peer_addr(), client.local_addr());
    assert_eq!(client.peer_addr(), server.local_addr());
    (client, server)
}

#[test]
fn a_port_has_one_owner() {
    on_core(|| async {
        for addr in ["127.0.0.1:0", "[::1]:0"] {
            let first = Listener::bind(addr.parse().unwrap()).unwrap();
            let second = Listener::bind(first.local_addr());
            assert_eq!(second.err().map(|error| error.kind()), Some(io::ErrorKind::AddrInUse));
            let addr = first.local_addr();
            drop(first);
            Listener::bind(addr).unwrap();
        }
    });
}

#[test]
fn bytes_arrive_in_order_over_both_families() {
    on_core(|| async {
        for addr in ["127.0.0.1:0", "[::1]:0"] {
            let listener = Listener::bind(addr.parse().unwrap()).unwrap();
            let addr = listener.local_addr();
            spawn(async move {
                let server = listener.accept().await.unwrap();
                server.set_nodelay(true).unwrap();
                let (mut reader, mut writer) = server.split();
                let mut buffer = BytesMut::new();
                loop {
                    buffer.reserve(1000);
                    if reader.read_buf(&mut buffer, 1000).await.unwrap() == 0 {
                        break;
                    }
                    writer.send(&[buffer.split().freeze()]).await.unwrap();
                }
            });
            let client = Conn::connect(addr, LONG).await.unwrap();
            client.set_nodelay(true).unwrap();
            client.set_buffers(Some(64 << 10), Some(64 << 10)).unwrap();
            let (mut reader, mut writer) = client.split();
            for round in 0..200u32 {
                let sent = Bytes::from(round.to_be_bytes().repeat(100));
                writer.send(std::slice::from_ref(&sent)).await.unwrap();
                let mut got = vec![0; sent.len()];
                reader.read_exact(&mut got).await.unwrap();
                assert_eq!(got, sent);
            }
        }
        let stats = runtime::stats();
        // 200 messages there and back, over two families. One that leaves room in its buffer costs
        // one receive; one that fills it exactly, another that finds nothing.
        assert_eq!(stats.sent_bytes, 2 * 2 * 200 * 400);
        assert_eq!(stats.received_bytes, stats.sent_bytes);
        assert_eq!((stats.accepts, stats.sends), (2, 2 * 2 * 200));
        assert!(stats.receives <= 2 * 200 + 2 * 2 * 200, "{stats:?}");
    });
}

#[test]
fn a_thousand_parts_leave_whole_though_the_peer_is_slow() {
    on_core(|| async {
        let (client, server) = pair().await;
        let (_client_reader, mut writer) = client.split();
        let (mut reader, _server_writer) = server.split();
        let parts: Vec<Bytes> = (0..1000usize)
            .map(|index| Bytes::from(vec![(index % 251) as u8; index * 37 % 20_000]))
            .collect();
        let expected: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let done = Queue::bounded(1);
        let told = done.clone();
        spawn(async move {
            writer.send(&parts).await.unwrap();
            told.push(writer).await.unwrap_or_else(|_| panic!("the queue is open"));
        });
        // Nobody reads until the sender has run into the full socket.
        for _ in 0..100 {
            yield_now().await;
        }
        assert!(done.is_empty());
        let mut got = BytesMut::new();
        while got.len() < expected.len() {
            assert!(reader.read_buf(&mut got, 3000).await.unwrap() <= 3000);
        }
        assert_eq!(got, expected);
        assert!(done.pop().await.is_some());
    });
}

#[test]
fn reads_respect_what_they_are_given() {
    on_core(|| async {
        let (client, server) = pair().await;
        let (_reader, mut writer) = client.split();
        let (mut reader, _writer) = server.split();
        writer
            .send(&[Bytes::new(), Bytes::from_static(b"0123456789"), Bytes::new()])
            .await
            .unwrap();
        let mut buffer = BytesMut::with_capacity(64);
        let place = buffer.as_ptr();
        assert_eq!(reader.read_buf(&mut buffer, 4).await.unwrap(), 4);
        assert_eq!(reader.read_buf(&mut buffer, 0).await.unwrap(), 0);
        assert_eq!(reader.read(&mut []).await.unwrap(), 0);
        assert_eq!(reader.read_buf(&mut buffer, 100).await.unwrap(), 6);
        assert_eq!((&buffer[..], buffer.as_ptr()), (&b"0123456789"[..], place));
        drop((_reader, writer));
        assert_eq!(reader.read_buf(&mut buffer, 100).await.unwrap(), 0);
        let error = reader.read_exact(&mut [0; 4]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    });
}

#[test]
fn a_half_that_is_shut_leaves_the_other_open() {
    on_core(|| async {
        let (client, server) = pair().await;
        let (mut client_reader, mut client_writer) = client.split();
        let (mut server_reader, mut server_writer) = server.split();
        client_writer.send(&[Bytes::from_static(b"question")]).await.unwrap();
        client_writer.shutdown();
        let mut question = BytesMut::new();
        while server_reader.read_buf(&mut question, 100).await.unwrap() > 0 {}
        assert_eq!(question, "question");
        server_writer.send(&[Bytes::from_static(b"late answer")]).await.unwrap();
        let mut answer = [0; 11];
        client_reader.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"late answer");
        let error = client_writer.send(&[Bytes::from_static(b"more")]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    });
}

#[test]
fn dropping_one_half_keeps_the_connection() {
    on_core(|| async {
        let (client, server) = pair().await;
        let (client_reader, mut client_writer) = client.split();
        let (mut server_reader, server_writer) = server.split();
        drop((client_reader, server_writer));
        client_writer.send(&[Bytes::from_static(b"still there")]).await.unwrap();
        let mut got = [0; 11];
        server_reader.read_exact(&mut got).await.unwrap();
        drop(client_writer);
        assert_eq!(server_reader.read(&mut got).await.unwrap(), 0);
    });
}

#[test]
fn a_closer_releases_a_read_and_a_send_that_wait() {
    on_core(|| async {
        let (client, server) = pair().await;
        let (mut reader, mut writer) = client.split();
        let closer = reader.closer();
        let ended = Queue::bounded(2);
        let (read_ended, send_ended) = (ended.clone(), ended.clone());
        spawn(async move {
            let error = reader.read(&mut [0; 10]).await.unwrap_err();
            read_ended.push(error.kind()).await.unwrap();
        });
        spawn(async move {
            let error = writer.send(&[Bytes::from(vec![0; 64 << 20])]).await.unwrap_err();
            send_ended.push(error.kind()).await.unwrap();
        });
        for _ in 0..100 {
            yield_now().await;
        }
        assert!(ended.is_empty());
        closer.close();
        assert_eq!(ended.pop().await, Some(io::ErrorKind::ConnectionAborted));
        assert_eq!(ended.pop().await, Some(io::ErrorKind::ConnectionAborted));
        closer.close();
        drop(server);
    });
}

#[test]
fn what_was_not_read_before_the_close_is_not_read_after_it() {
    on_core(|| async {
        let (client, server) = pair().await;
        let (_reader, mut writer) = client.split();
        let (mut reader, server_writer) = server.split();
        writer.send(&[Bytes::from_static(b"unread")]).await.unwrap();
        server_writer.closer().close();
        let error = reader.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    });
}

#[test]
fn a_reset_is_an_error_at_the_other_end() {
    on_core(|| async {
        let listener = Listener::bind(loopback()).unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr()).unwrap();
        let (mut reader, _writer) = listener.accept().await.unwrap().split();
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        // SAFETY: the option is read from a structure of the given size.
        let set = unsafe {
            libc::setsockopt(
                client.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                std::ptr::from_ref(&linger).cast(),
                size_of_val(&linger) as libc::socklen_t,
            )
        };
        assert_eq!(set, 0);
        drop(client);
        let error = reader.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn connecting_fails_at_once_or_at_the_deadline() {
    on_core(|| async {
        let listener = Listener::bind(loopback()).unwrap();
        let nobody = listener.local_addr();
        drop(listener);
        let refused = Conn::connect(nobody, LONG).await.err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);

        let listener = std::net::TcpListener::bind(loopback()).unwrap();
        // SAFETY: it takes numbers only.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let addr = listener.local_addr().unwrap();
        // Nobody accepts, so the backlog fills and the kernel stops answering.
        let mut waiting = Vec::new();
        let error = loop {
            match Conn::connect(addr, Duration::from_millis(50)).await {
                Ok(conn) => waiting.push(conn),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    });
}

#[test]
fn an_accept_that_is_given_up_loses_no_connection() {
    on_core(|| async {
        let listener = Listener::bind(loopback()).unwrap();
        for _ in 0..50 {
            assert!(matches!(race(listener.accept(), async {}).await, Either::Right(())));
        }
        let client = Conn::connect(listener.local_addr(), LONG).await.unwrap();
        let server = listener.accept().await.unwrap();
        assert_eq!(server.peer_addr(), client.local_addr());
    });
}

#[test]
fn a_read_that_is_given_up_loses_no_byte() {
    on_core(|| async {
        let (client, server) = pair().await;
        let (client_reader, mut writer) = client.split();
        let (mut reader, _server_writer) = server.split();
        spawn(async move {
            for byte in 0..=255u8 {
                writer.send(&[Bytes::from(vec![byte])]).await.unwrap();
                yield_now().await;
            }
            drop(client_reader);
        });
        let mut got = Vec::new();
        let mut space = [0; 3];
        loop {
            match race(reader.read(&mut space), yield_now()).await {
                Either::Left(read) => match read.unwrap() {
                    0 => break,
                    len => got.extend_from_slice(&space[..len]),
                },
                Either::Right(()) => {}
            }
        }
        assert_eq!(got, (0..=255).collect::<Vec<u8>>());
    });
}

#[test]
fn nothing_leaks() {
    let ended = finish(apart("net::nothing_leaks", child_churns));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Connections that end in every way, with a read in flight.
async fn churn(rounds: usize) {
    let listener = Listener::bind(loopback()).unwrap();
    for round in 0..rounds {
        let client = Conn::connect(listener.local_addr(), LONG).await.unwrap();
        match round % 4 {
            0 => drop(listener.accept().await.unwrap()),
            1 => {
                let (mut reader, _writer) = listener.accept().await.unwrap().split();
                let _ = race(reader.read(&mut [0; 8]), yield_now()).await;
            }
            2 => {
                let (mut reader, _writer) = listener.accept().await.unwrap().split();
                drop(client);
                assert_eq!(reader.read(&mut [0; 8]).await.unwrap(), 0);
            }
            _ => {
                let (mut reader, writer): (Reader, Writer) =
                    listener.accept().await.unwrap().split();
                writer.closer().close();
                assert!(reader.read(&mut [0; 8]).await.is_err());
            }
        }
    }
}

/// One accept, one read and one file operation stay pending while their task is woken again and
/// again by something else.
async fn wait_patiently(polls: usize) {
    let listener = Listener::bind(loopback()).unwrap();
    let (client, server) = pair().await;
    let (_client_reader, mut client_writer) = client.split();
    let (mut server_reader, _server_writer) = server.split();
    let mut space = [0; 8];
    let mut accept = Box::pin(listener.accept());
    let mut read = Box::pin(server_reader.read(&mut space));
    for _ in 0..polls {
        match race(race(&mut accept, &mut read), yield_now()).await {
            Either::Right(()) => {}
            Either::Left(_) => panic!("nothing was sent"),
        }
    }
    client_writer.send(&[Bytes::from_static(b"at last")]).await.unwrap();
    assert_eq!(read.await.unwrap(), 7);
    let addr = listener.local_addr();
    let client = Conn::connect(addr, LONG).await.unwrap();
    assert_eq!(accept.await.unwrap().peer_addr(), client.local_addr());
}

fn child_churns() {
    on_core(|| async {
        // Warm up what is allocated once.
        churn(50).await;
        wait_patiently(50_000).await;
        let (descriptors, resident) = (open_descriptors(), resident_kib());
        churn(500).await;
        wait_patiently(300_000).await;
        assert_eq!(open_descriptors(), descriptors);
        let grown = resident_kib().saturating_sub(resident);
        assert!(grown < 4096, "grew by {grown} KiB");
    });
}
