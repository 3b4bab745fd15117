//! TCP from the load CPU to the broker's CPU and back.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::ensure;
use bytes::Bytes;
use runtime::net::{Conn, Listener, Reader, Writer};
use runtime::time::now;

use super::{Finding, Place};
use crate::machine::prototype::Server;
use crate::stage::{Group, run_once};
use crate::tally::latency;

pub(super) fn measure(place: &Place) -> anyhow::Result<Vec<Finding>> {
    let duration = place.seconds;
    let sink = Server::start(place.broker(), sink)?;
    let to = sink.address;
    let rate = run_once(place.load(), move || stream(to, duration))?;
    drop(sink);
    let mut found = vec![Finding::new("loopback, one stream of 1 MiB sends", rate, "GB/s")];
    let mirror = Server::start(place.broker(), mirror)?;
    let to = mirror.address;
    let (rate, median) = run_once(place.load(), move || echo(to, 1, duration))?;
    found.push(Finding::new("loopback, 100 bytes there and back, 1 connection", rate, "1/s"));
    found.push(Finding::new("loopback, 100 bytes there and back, p50", median, "ms"));
    let (rate, _) = run_once(place.load(), move || echo(to, 64, duration))?;
    found.push(Finding::new("loopback, 100 bytes there and back, 64 connections", rate, "1/s"));
    Ok(found)
}

async fn sink(listener: Listener) {
    while let Ok(conn) = listener.accept().await {
        runtime::task::spawn(async move {
            let (mut reader, _writer) = conn.split();
            let mut space = vec![0; 1 << 20];
            while matches!(reader.read(&mut space).await, Ok(got) if got > 0) {}
        });
    }
}

async fn mirror(listener: Listener) {
    while let Ok(conn) = listener.accept().await {
        runtime::task::spawn(async move {
            let (mut reader, mut writer) = conn.split();
            let mut space = vec![0; 64 << 10];
            loop {
                let got = match reader.read(&mut space).await {
                    Ok(got) if got > 0 => got,
                    _ => return,
                };
                let back = Bytes::copy_from_slice(&space[..got]);
                if writer.send(&[back]).await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn stream(to: SocketAddr, duration: Duration) -> anyhow::Result<f64> {
    let (_reader, mut writer) = Conn::connect(to, CONNECT_TIMEOUT).await?.split();
    let chunk = Bytes::from(vec![7; 1 << 20]);
    let begun = now();
    let mut sent = 0u64;
    while now().since(begun) < duration {
        writer.send(std::slice::from_ref(&chunk)).await?;
        sent += chunk.len() as u64;
        runtime::task::yield_now().await;
    }
    Ok(sent as f64 / now().since(begun).as_secs_f64() / 1e9)
}

/// Messages per second and the median of the time there and back, in ms.
async fn echo(
    to: SocketAddr,
    connections: usize,
    duration: Duration,
) -> anyhow::Result<(f64, f64)> {
    let group = Group::default();
    let failed = Rc::new(Cell::new(0));
    let took = Rc::new(std::cell::RefCell::new(latency()));
    for _ in 0..connections {
        let conn = Conn::connect(to, CONNECT_TIMEOUT).await?;
        conn.set_nodelay(true)?;
        let (reader, writer) = conn.split();
        let (failed, took) = (Rc::clone(&failed), Rc::clone(&took));
        group.spawn(async move {
            if there_and_back(reader, writer, duration, &took).await.is_err() {
                failed.set(failed.get() + 1);
            }
        });
    }
    group.join().await;
    ensure!(failed.get() == 0, "{} of {connections} connections failed", failed.get());
    let took = took.borrow();
    let median = took.value_at_quantile(0.5) as f64 / 1e6;
    Ok((took.len() as f64 / duration.as_secs_f64(), median))
}

async fn there_and_back(
    mut reader: Reader,
    mut writer: Writer,
    duration: Duration,
    took: &std::cell::RefCell<crate::tally::Latency>,
) -> anyhow::Result<()> {
    let message = Bytes::from(vec![7; 100]);
    let mut space = [0; 100];
    let end = now() + duration;
    while now() < end {
        let begun = now();
        writer.send(std::slice::from_ref(&message)).await?;
        reader.read_exact(&mut space).await?;
        took.borrow_mut().saturating_record(now().since(begun).as_nanos() as u64);
    }
    Ok(())
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
