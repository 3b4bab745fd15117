//! The simulated network: streams, half-close, resets, cuts, refusals, exclusive ports.
#![cfg(sim)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use runtime::net::{Conn, Listener, Reader, Writer};
use runtime::sim::{Options, SimHost, Simulation};
use runtime::task::spawn;
use runtime::time::{now, sleep};
use runtime::{Config, Core, Exit};

const SECOND: Duration = Duration::from_secs(1);

struct Pair {
    simulation: Simulation,
    server: SimHost,
    client: SimHost,
    address: SocketAddr,
}

fn pair(seed: u64) -> Pair {
    let simulation = Simulation::new(seed, Options::default());
    let (server, client) = (simulation.add_host("server"), simulation.add_host("client"));
    let address = SocketAddr::new(server.ip(), 9092);
    Pair { simulation, server, client, address }
}

impl Pair {
    fn serve<Fut: Future<Output = ()> + 'static>(
        &self,
        serve: impl Fn(Reader, Writer) -> Fut + Clone + Send + 'static,
    ) {
        self.simulation.start(&self.server, Config::new(vec![0]), move |_: Core<()>| {
            let serve = serve.clone();
            async move {
                let listener = Listener::bind("0.0.0.0:9092".parse().unwrap()).unwrap();
                loop {
                    let (reader, writer) = listener.accept().await.unwrap().split();
                    spawn(serve(reader, writer));
                }
            }
        });
    }

    fn ask<Fut: Future<Output = ()> + 'static>(
        &self,
        ask: impl Fn(SocketAddr) -> Fut + Clone + Send + 'static,
    ) {
        let address = self.address;
        self.simulation.start(&self.client, Config::new(vec![0]), move |_: Core<()>| {
            let asking = ask(address);
            async move {
                asking.await;
                Exit::Clean
            }
        });
    }

    fn finish(&self) {
        let done = self
            .simulation
            .run_until(|s| s.exited(&self.client).is_some(), Duration::from_secs(99));
        assert!(done, "the client never finished");
    }
}

async fn connect(address: SocketAddr) -> (Reader, Writer) {
    Conn::connect(address, SECOND).await.unwrap().split()
}

async fn echo(mut reader: Reader, mut writer: Writer) {
    let mut buffer = BytesMut::new();
    while reader.read_buf(&mut buffer, 4096).await.is_ok_and(|count| count > 0) {
        if writer.send(&[buffer.split().freeze()]).await.is_err() {
            return;
        }
    }
    writer.shutdown();
}

/// Sends the same megabyte in many parts and reads it back, whatever the windows and short reads.
#[test]
fn a_stream_keeps_every_byte_in_order() {
    for seed in 0..10 {
        let pair = pair(seed);
        pair.serve(echo);
        pair.ask(|address| async move {
            let (mut reader, mut writer) = connect(address).await;
            let body: Vec<u8> = (0..1_000_000u32).map(|i| (i * 7 % 251) as u8).collect();
            let expected = body.clone();
            spawn(async move {
                let body = Bytes::from(body);
                let parts: Vec<Bytes> =
                    (0..100).map(|i| body.slice(i * 10_000..(i + 1) * 10_000)).collect();
                writer.send(&parts).await.unwrap();
                writer.shutdown();
            });
            let mut back = BytesMut::new();
            while reader.read_buf(&mut back, 64 << 10).await.unwrap() > 0 {}
            assert!(back == expected, "the bytes came back changed");
        });
        pair.finish();
    }
}

#[test]
fn after_half_close_the_answer_still_arrives() {
    let pair = pair(1);
    pair.serve(|mut reader, mut writer| async move {
        let mut all = BytesMut::new();
        while reader.read_buf(&mut all, 100).await.unwrap() > 0 {}
        writer.send(&[all.freeze()]).await.unwrap();
    });
    pair.ask(|address| async move {
        let (mut reader, mut writer) = connect(address).await;
        writer.send(&[Bytes::from_static(b"question")]).await.unwrap();
        writer.shutdown();
        let mut answer = [0; 8];
        reader.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"question");
        assert_eq!(reader.read(&mut answer).await.unwrap(), 0);
        let after = writer.send(&[Bytes::from_static(b"more")]).await;
        assert_eq!(after.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
    pair.finish();
}

#[test]
fn nobody_listens_is_refused_and_nobody_there_times_out() {
    let pair = pair(2);
    pair.simulation.start(&pair.server, Config::new(vec![0]), |_: Core<()>| async {
        std::future::pending::<Exit>().await
    });
    pair.ask(|address| async move {
        let refused = Conn::connect(address, SECOND).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let start = now();
        let nowhere = "10.9.9.9:9092".parse().unwrap();
        let lost = Conn::connect(nowhere, SECOND).await.err().unwrap();
        assert_eq!(lost.kind(), ErrorKind::TimedOut);
        assert_eq!(now().since(start), SECOND);
    });
    pair.finish();
}

#[test]
fn a_port_is_bound_once_per_host_and_free_again_after_a_kill() {
    let pair = pair(3);
    let bind_all = |_: Core<()>| async {
        let any = "0.0.0.0:9092".parse().unwrap();
        let first = Listener::bind(any).unwrap();
        assert_eq!(Listener::bind(any).err().unwrap().kind(), ErrorKind::AddrInUse);
        let loopback = "127.0.0.1:9092".parse().unwrap();
        assert_eq!(Listener::bind(loopback).err().unwrap().kind(), ErrorKind::AddrInUse);
        drop(first);
        let _specific = Listener::bind(loopback).unwrap();
        let foreign = "10.9.9.9:9092".parse().unwrap();
        assert_eq!(Listener::bind(foreign).err().unwrap().kind(), ErrorKind::AddrNotAvailable);
        std::future::pending::<Exit>().await
    };
    for _ in 0..3 {
        pair.simulation.start(&pair.server, Config::new(vec![0]), bind_all);
        pair.simulation.start(&pair.client, Config::new(vec![0]), bind_all);
        pair.simulation.run_for(SECOND);
        pair.simulation.kill(&pair.server);
        pair.simulation.kill(&pair.client);
    }
}

/// What a client sees of its server's end: bytes until then, then the end of the stream or a reset.
async fn read_to_the_end(mut reader: Reader) -> Result<usize, ErrorKind> {
    let mut buffer = [0; 1000];
    let mut total = 0;
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) => return Ok(total),
            Ok(count) => total += count,
            Err(error) => return Err(error.kind()),
        }
    }
}

#[test]
fn a_killed_process_closes_its_sockets() {
    let pair = pair(4);
    pair.serve(|_reader, mut writer| async move {
        writer.send(&[Bytes::from_static(b"hello")]).await.unwrap();
        std::future::pending::<()>().await;
        drop(writer);
    });
    pair.ask(|address| async move {
        let (reader, _writer) = connect(address).await;
        assert_eq!(read_to_the_end(reader).await, Ok(5));
    });
    pair.simulation.run_for(SECOND);
    pair.simulation.kill(&pair.server);
    pair.finish();
}

#[test]
fn a_host_without_power_is_silent_and_resets_old_connections_once_it_is_back() {
    let pair = pair(5);
    pair.serve(echo);
    pair.ask(|address| async move {
        let (reader, mut writer) = connect(address).await;
        sleep(SECOND).await;
        let start = now();
        writer.send(&[Bytes::from_static(b"anyone?")]).await.unwrap();
        assert_eq!(read_to_the_end(reader).await, Err(ErrorKind::ConnectionReset));
        assert!(now().since(start) >= Duration::from_secs(4));
        let failed = writer.send(&[Bytes::from_static(b"x")]).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::ConnectionReset);
    });
    pair.simulation.run_for(SECOND / 2);
    pair.simulation.power_loss(&pair.server);
    pair.simulation.run_for(5 * SECOND);
    pair.serve(echo);
    pair.finish();
}

#[test]
fn a_cut_link_delays_bytes_and_loses_none() {
    let pair = pair(6);
    pair.serve(echo);
    pair.ask(|address| async move {
        let (mut reader, mut writer) = connect(address).await;
        sleep(SECOND).await;
        let start = now();
        writer.send(&[Bytes::from_static(b"through the wall")]).await.unwrap();
        let mut back = [0; 16];
        reader.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"through the wall");
        assert!(now().since(start) >= Duration::from_secs(3));
    });
    pair.simulation.run_for(SECOND / 2);
    pair.simulation.cut(&pair.client, &pair.server);
    pair.simulation.run_for(4 * SECOND);
    pair.simulation.heal(&pair.server, &pair.client);
    pair.finish();
}

#[test]
fn a_reset_ends_both_sides_and_a_closer_ends_a_pending_read() {
    let pair = pair(7);
    pair.serve(echo);
    pair.ask(|address| async move {
        let (reader, _writer) = connect(address).await;
        assert_eq!(read_to_the_end(reader).await, Err(ErrorKind::ConnectionReset));
        let (reader, _writer) = connect(address).await;
        let closer = reader.closer();
        spawn(async move {
            sleep(SECOND).await;
            closer.close();
        });
        assert_eq!(read_to_the_end(reader).await, Err(ErrorKind::ConnectionAborted));
    });
    pair.simulation.run_for(SECOND);
    pair.simulation.reset(&pair.client, &pair.server);
    pair.finish();
}

/// A peer that reads nothing fills the window, and then the sender waits.
#[test]
fn a_slow_reader_pushes_back() {
    let pair = pair(8);
    pair.serve(|mut reader, _writer| async move {
        sleep(10 * SECOND).await;
        let mut buffer = BytesMut::new();
        while reader.read_buf(&mut buffer, 1 << 20).await.is_ok_and(|count| count > 0) {}
    });
    pair.ask(|address| async move {
        let (_reader, mut writer) = connect(address).await;
        let start = now();
        writer.send(&[Bytes::from(vec![0; 3 << 20])]).await.unwrap();
        assert!(now().since(start) > 9 * SECOND);
    });
    pair.finish();
}
