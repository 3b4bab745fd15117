//! TCP as the processes of a simulated host see it.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::network::{Acceptor, Socket};
use super::process::Host;
use super::time::{after, sleep, sleep_until};
use super::world::{Context, World, current};
use crate::deadline::within;
use crate::instant::Instant;

/// How long a host that nobody reaches is tried anew.
const CONNECT_RETRY: Duration = Duration::from_millis(50);

/// A listening socket. Dropping it refuses later connections.
pub struct Listener {
    world: Rc<World>,
    acceptor: Rc<Acceptor>,
}

impl Listener {
    /// Listens exclusively: an address that is in use is an error.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let Context { world, process, .. } = current();
        let acceptor = world.network.listen(&world, &process, address)?;
        Ok(Self { world, acceptor })
    }

    pub async fn accept(&self) -> io::Result<Conn> {
        let socket = poll_fn(|task| self.acceptor.poll_accept(task.waker())).await;
        Ok(Conn { end: End::new(&self.world, socket) })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.acceptor.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.acceptor.process.alive() {
            self.world.network.unlisten(&self.world, &self.acceptor);
        }
    }
}

/// Closes the socket when the last half is dropped.
struct End {
    world: Rc<World>,
    socket: Rc<Socket>,
}

impl End {
    fn new(world: &Rc<World>, socket: Rc<Socket>) -> Rc<Self> {
        Rc::new(Self { world: world.clone(), socket })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.socket.process.alive() {
            self.socket.close(&self.world);
        }
    }
}

/// A connection whose halves are still together.
pub struct Conn {
    end: Rc<End>,
}

impl Conn {
    /// Connects, or fails with `TimedOut` when nobody answers in time.
    pub async fn connect(address: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let context = current();
        let deadline = Instant::from_nanos(after(context.world.now_ns(), timeout));
        match within(deadline, handshake(&context, address)).await {
            Ok(connected) => connected,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    pub fn peer_addr(&self) -> SocketAddr {
        self.end.socket.remote
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.end.socket.local
    }

    /// Packets are never held back here; there is nothing to switch off.
    pub fn set_nodelay(&self, _nodelay: bool) -> io::Result<()> {
        Ok(())
    }

    /// Bytes that the kernel buffers per direction; `None` leaves it to the seed.
    pub fn set_buffers(&self, _send: Option<usize>, receive: Option<usize>) -> io::Result<()> {
        if let Some(bytes) = receive {
            self.end.socket.set_window(bytes);
        }
        Ok(())
    }

    pub fn split(self) -> (Reader, Writer) {
        (Reader { end: self.end.clone() }, Writer { end: self.end })
    }
}

async fn handshake(context: &Context, address: SocketAddr) -> io::Result<Conn> {
    let Context { world, process, .. } = context;
    let near = &process.host;
    let server = loop {
        let server = world.network.route(world, near, address.ip());
        if let Some(server) = server.filter(|server| reaches(world, near, server)) {
            break server;
        }
        sleep(CONNECT_RETRY).await;
    };
    sleep(world.network.latency(world, near.id, server.id)).await;
    let answer = world.network.connect(world, process, &server, address);
    let connected = answer.map(|socket| Conn { end: End::new(world, socket) });
    let arrival = after(world.now_ns(), world.network.latency(world, server.id, near.id));
    sleep_until(Instant::from_nanos(arrival)).await;
    connected
}

/// Whether a packet gets there and the answer back.
fn reaches(world: &World, near: &Host, far: &Host) -> bool {
    far.powered.get()
        && !world.network.is_cut(near.id, far.id)
        && !world.network.is_cut(far.id, near.id)
}

/// Ends a connection from the side, also while a read or a send is pending.
#[derive(Clone)]
pub struct Closer {
    world: Rc<World>,
    socket: Rc<Socket>,
}

impl Closer {
    /// Both halves fail from now on, one that waits included.
    pub fn close(&self) {
        if self.socket.process.alive() {
            self.socket.abort(&self.world);
        }
    }
}

/// The receiving half.
pub struct Reader {
    end: Rc<End>,
}

impl Reader {
    /// Reads at least one byte; 0 is the end of the stream.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let End { world, socket } = &*self.end;
        poll_fn(|task| socket.poll_read(world, into, task.waker())).await
    }

    /// Appends at most `max` bytes to `into`, which grows only if it has no spare capacity. 0 is
    /// the end of the stream.
    pub async fn read_buf(&mut self, into: &mut BytesMut, max: usize) -> io::Result<usize> {
        let End { world, socket } = &*self.end;
        let before = into.len();
        let room = into.chunk_mut().len().min(max);
        let read = poll_fn(|task| {
            into.resize(before + room.min(socket.readable_bytes().max(1)), 0);
            socket.poll_read(world, &mut into[before..], task.waker())
        })
        .await;
        into.truncate(before + *read.as_ref().unwrap_or(&0));
        read
    }

    /// Fills `into` or fails, with `UnexpectedEof` when the stream ends before.
    pub async fn read_exact(&mut self, into: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            match self.read(&mut into[filled..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(())
    }

    pub fn peer_addr(&self) -> SocketAddr {
        self.end.socket.remote
    }

    pub fn closer(&self) -> Closer {
        Closer { world: self.end.world.clone(), socket: self.end.socket.clone() }
    }
}

/// The sending half.
pub struct Writer {
    end: Rc<End>,
}

impl Writer {
    /// Sends all of `parts`, in order, or fails.
    pub async fn send(&mut self, parts: &[Bytes]) -> io::Result<()> {
        let End { world, socket } = &*self.end;
        for part in parts {
            let mut rest = part.clone();
            while !rest.is_empty() {
                let sent = poll_fn(|task| socket.poll_write(world, &rest, task.waker())).await?;
                rest.advance(sent);
            }
        }
        Ok(())
    }

    /// Ends our direction: the peer reads an end of stream, and can still send.
    pub fn shutdown(&mut self) {
        let End { world, socket } = &*self.end;
        socket.shut_write(world);
    }

    pub fn closer(&self) -> Closer {
        Closer { world: self.end.world.clone(), socket: self.end.socket.clone() }
    }
}
