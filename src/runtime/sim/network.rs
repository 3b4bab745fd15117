//! The wires: byte streams between sockets of simulated hosts.
//!
//! Law: a stream keeps its order and loses nothing while both ends and the link live. Everything an
//! end sends is a packet in the inbox of the other end, which is delivered when its time has come
//! and the link is not cut. A cut link holds packets back, it does not drop them. An end that is
//! closed answers data with a reset; an end whose host lost power answers nothing until the host is
//! back.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};

use super::process::{Ending, Host, Process};
use super::time::after;
use super::world::{Action, World, hash_bytes};

/// Connections that wait to be accepted, per listener.
const BACKLOG_MAX: usize = 1024;

/// The bytes in flight and unread that one direction holds, from which the seed chooses.
const WINDOWS: [usize; 4] = [4 << 10, 64 << 10, 256 << 10, 1 << 20];

pub(crate) struct Network {
    acceptors: RefCell<Vec<Rc<Acceptor>>>,
    sockets: RefCell<BTreeMap<u64, Rc<Socket>>>,
    cuts: RefCell<BTreeSet<(u64, u64)>>,
    delays: RefCell<BTreeMap<(u64, u64), RangeInclusive<Duration>>>,
    connections_made: Cell<u64>,
}

/// A listening address of a process.
pub(crate) struct Acceptor {
    pub(crate) process: Rc<Process>,
    pub(crate) address: SocketAddr,
    backlog: RefCell<VecDeque<Rc<Socket>>>,
    waiting: RefCell<Vec<Waker>>,
}

enum Packet {
    Data(Bytes),
    Fin,
    Reset,
}

#[derive(Default)]
struct Inbox {
    in_flight: VecDeque<(u64, Packet)>,
    last_arrival_ns: u64,
    /// Bytes in flight and arrived.
    held_bytes: usize,
    arrived: VecDeque<Bytes>,
    ended: bool,
    reset: bool,
}

/// One end of a connection.
pub(crate) struct Socket {
    pub(crate) id: u64,
    pub(crate) process: Rc<Process>,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    remote_host: u64,
    window_bytes: Cell<usize>,
    inbox: RefCell<Inbox>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
    write_shut: Cell<bool>,
    /// Ended from the side while its owner still holds it.
    aborted: Cell<bool>,
    closed: Cell<bool>,
    vanished: Cell<bool>,
}

impl Network {
    pub(crate) fn new() -> Self {
        Self {
            acceptors: RefCell::new(Vec::new()),
            sockets: RefCell::new(BTreeMap::new()),
            cuts: RefCell::new(BTreeSet::new()),
            delays: RefCell::new(BTreeMap::new()),
            connections_made: Cell::new(0),
        }
    }

    // ---- links

    pub(crate) fn cut(&self, from: &Host, to: &Host) {
        self.cuts.borrow_mut().insert((from.id, to.id));
    }

    pub(crate) fn heal(&self, world: &Rc<World>, from: &Host, to: &Host) {
        self.cuts.borrow_mut().remove(&(from.id, to.id));
        self.redeliver(world, to.id);
    }

    pub(crate) fn is_cut(&self, from: u64, to: u64) -> bool {
        let cuts = self.cuts.borrow();
        !cuts.is_empty() && cuts.contains(&(from, to))
    }

    pub(crate) fn set_delay(&self, from: &Host, to: &Host, delay: RangeInclusive<Duration>) {
        self.delays.borrow_mut().insert((from.id, to.id), delay);
    }

    pub(crate) fn latency(&self, world: &World, from: u64, to: u64) -> Duration {
        let delays = self.delays.borrow();
        world.duration(delays.get(&(from, to)).unwrap_or(&world.options.network_delay))
    }

    /// Lets everything that is held back for a host try again.
    fn redeliver(&self, world: &Rc<World>, host: u64) {
        for socket in self.all() {
            if socket.process.host.id == host && !socket.inbox.borrow().in_flight.is_empty() {
                world.schedule(world.now_ns(), None, Action::Deliver(socket));
            }
        }
    }

    fn all(&self) -> Vec<Rc<Socket>> {
        self.sockets.borrow().values().cloned().collect()
    }

    /// Resets every connection between two hosts.
    pub(crate) fn reset(&self, world: &Rc<World>, a: &Host, b: &Host) {
        for socket in self.all() {
            let (here, there) = (socket.process.host.id, socket.remote_host);
            if (here, there) == (a.id, b.id) || (here, there) == (b.id, a.id) {
                world.record("net.reset", &[socket.id]);
                socket.receive(Packet::Reset);
            }
        }
    }

    // ---- processes come and go

    /// A host is up: the kernel answers again what was sent to its forgotten connections.
    pub(crate) fn on_host_started(&self, world: &Rc<World>, host: &Rc<Host>) {
        self.redeliver(world, host.id);
    }

    pub(crate) fn close_process(&self, world: &Rc<World>, process: &Rc<Process>, ending: Ending) {
        self.acceptors.borrow_mut().retain(|acceptor| !Rc::ptr_eq(&acceptor.process, process));
        for socket in self.all() {
            if !Rc::ptr_eq(&socket.process, process) {
                continue;
            }
            match ending {
                Ending::Exit => socket.close(world),
                Ending::PowerLoss => {
                    socket.vanished.set(true);
                    socket.closed.set(true);
                }
            }
        }
    }

    // ---- listeners

    pub(crate) fn listen(
        &self,
        world: &World,
        process: &Rc<Process>,
        wanted: SocketAddr,
    ) -> io::Result<Rc<Acceptor>> {
        let host = &process.host;
        let ip = wanted.ip();
        if !(ip.is_unspecified() || ip.is_loopback() || host.has_address(ip)) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let mut address = wanted;
        if address.port() == 0 {
            address.set_port(host.source_for(&wanted).port());
        }
        let mut acceptors = self.acceptors.borrow_mut();
        let taken = acceptors.iter().any(|other| {
            Rc::ptr_eq(&other.process.host, host)
                && other.address.port() == address.port()
                && (other.address.ip() == ip
                    || other.address.ip().is_unspecified()
                    || ip.is_unspecified())
        });
        if taken {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        world.record("net.listen", &[host.id, u64::from(address.port())]);
        let acceptor = Rc::new(Acceptor {
            process: process.clone(),
            address,
            backlog: RefCell::new(VecDeque::new()),
            waiting: RefCell::new(Vec::new()),
        });
        acceptors.push(acceptor.clone());
        Ok(acceptor)
    }

    pub(crate) fn unlisten(&self, world: &Rc<World>, acceptor: &Rc<Acceptor>) {
        self.acceptors.borrow_mut().retain(|other| !Rc::ptr_eq(other, acceptor));
        for socket in acceptor.backlog.take() {
            socket.close(world);
        }
    }

    /// The host that packets for `address` sent by `from` reach.
    pub(crate) fn route(
        &self,
        world: &World,
        from: &Rc<Host>,
        address: IpAddr,
    ) -> Option<Rc<Host>> {
        if address.is_loopback() {
            return Some(from.clone());
        }
        world.hosts.borrow().iter().find(|host| host.has_address(address)).cloned()
    }

    /// Completes the handshake with whoever listens; the error is what the kernel would answer.
    pub(crate) fn connect(
        &self,
        world: &Rc<World>,
        process: &Rc<Process>,
        server: &Rc<Host>,
        address: SocketAddr,
    ) -> io::Result<Rc<Socket>> {
        let listening = self.acceptors.borrow().iter().find_map(|acceptor| {
            let ip = acceptor.address.ip();
            let here = Rc::ptr_eq(&acceptor.process.host, server)
                && acceptor.address.port() == address.port()
                && (ip.is_unspecified() || ip == address.ip());
            here.then(|| acceptor.clone())
        });
        let Some(acceptor) = listening else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        if acceptor.backlog.borrow().len() >= BACKLOG_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let connection = self.connections_made.get();
        self.connections_made.set(connection + 1);
        let source = process.host.source_for(&address);
        let window = WINDOWS[world.below(WINDOWS.len() as u64) as usize];
        let end = |side: u64, process: &Rc<Process>, local, remote, remote_host| {
            Rc::new(Socket::new(2 * connection + side, process, (local, remote), remote_host))
        };
        let near = end(0, process, source, address, server.id);
        let far = end(1, &acceptor.process, address, source, process.host.id);
        for socket in [&near, &far] {
            socket.window_bytes.set(window);
            self.sockets.borrow_mut().insert(socket.id, socket.clone());
        }
        world.record("net.connect", &[connection, process.host.id, server.id]);
        acceptor.backlog.borrow_mut().push_back(far);
        for waiting in acceptor.waiting.take() {
            waiting.wake();
        }
        Ok(near)
    }

    fn find(&self, id: u64) -> Option<Rc<Socket>> {
        self.sockets.borrow().get(&id).cloned()
    }
}

impl Acceptor {
    pub(crate) fn poll_accept(&self, waker: &Waker) -> Poll<Rc<Socket>> {
        if let Some(socket) = self.backlog.borrow_mut().pop_front() {
            return Poll::Ready(socket);
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        Poll::Pending
    }
}

impl Socket {
    fn new(
        id: u64,
        process: &Rc<Process>,
        (local, remote): (SocketAddr, SocketAddr),
        remote_host: u64,
    ) -> Self {
        Self {
            id,
            process: process.clone(),
            local,
            remote,
            remote_host,
            window_bytes: Cell::new(0),
            inbox: RefCell::new(Inbox::default()),
            reader: RefCell::new(None),
            writer: RefCell::new(None),
            write_shut: Cell::new(false),
            aborted: Cell::new(false),
            closed: Cell::new(false),
            vanished: Cell::new(false),
        }
    }

    fn peer(&self, world: &World) -> Option<Rc<Socket>> {
        world.network.find(self.id ^ 1)
    }

    /// Limits what may be on its way to this end and unread there.
    pub(crate) fn set_window(&self, bytes: usize) {
        self.window_bytes.set(bytes.max(1));
    }

    // ---- packets

    /// Puts a packet on the wire to the other end.
    fn transmit(&self, world: &Rc<World>, packet: Packet) {
        let Some(peer) = self.peer(world) else { return };
        let latency = world.network.latency(world, self.process.host.id, self.remote_host);
        let mut inbox = peer.inbox.borrow_mut();
        let arrival = after(world.now_ns(), latency).max(inbox.last_arrival_ns);
        inbox.last_arrival_ns = arrival;
        if let Packet::Data(bytes) = &packet {
            inbox.held_bytes += bytes.len();
        }
        inbox.in_flight.push_back((arrival, packet));
        world.schedule(arrival, None, Action::Deliver(peer.clone()));
    }

    /// Hands over the packets whose time has come.
    pub(crate) fn deliver(self: &Rc<Self>, world: &Rc<World>) {
        let host = &self.process.host;
        while !world.network.is_cut(self.remote_host, host.id)
            && (host.powered.get() || !self.vanished.get())
        {
            let packet = {
                let mut inbox = self.inbox.borrow_mut();
                match inbox.in_flight.front() {
                    Some((arrival, _)) if *arrival <= world.now_ns() => inbox.in_flight.pop_front(),
                    _ => None,
                }
            };
            let Some((_, packet)) = packet else { return };
            if let Packet::Data(bytes) = &packet {
                let details = [self.id, bytes.len() as u64, hash_bytes(bytes)];
                world.record("net.data", &details);
            }
            if !self.closed.get() {
                self.receive(packet);
            } else if let Packet::Data(bytes) = packet {
                self.inbox.borrow_mut().held_bytes -= bytes.len();
                self.transmit(world, Packet::Reset);
            }
        }
    }

    fn receive(&self, packet: Packet) {
        {
            let mut inbox = self.inbox.borrow_mut();
            match packet {
                Packet::Data(bytes) => inbox.arrived.push_back(bytes),
                Packet::Fin => inbox.ended = true,
                Packet::Reset => {
                    inbox.reset = true;
                    inbox.arrived.clear();
                }
            }
        }
        self.wake_both();
    }

    fn wake_both(&self) {
        let (reader, writer) = (self.reader.take(), self.writer.take());
        for waker in [reader, writer].into_iter().flatten() {
            waker.wake();
        }
    }

    // ---- what the owner does

    pub(crate) fn poll_read(
        &self,
        world: &Rc<World>,
        into: &mut [u8],
        waker: &Waker,
    ) -> Poll<io::Result<usize>> {
        if into.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.check_open()?;
        let mut inbox = self.inbox.borrow_mut();
        if inbox.arrived.is_empty() {
            if inbox.ended {
                return Poll::Ready(Ok(0));
            }
            *self.reader.borrow_mut() = Some(waker.clone());
            return Poll::Pending;
        }
        let mut room = into.len();
        if world.chance(world.options.short_io_permille) {
            room = 1 + world.below(room as u64) as usize;
        }
        let mut filled = 0;
        while filled < room {
            let Some(first) = inbox.arrived.front_mut() else { break };
            let count = first.len().min(room - filled);
            into[filled..filled + count].copy_from_slice(&first[..count]);
            first.advance(count);
            filled += count;
            if first.is_empty() {
                inbox.arrived.pop_front();
            }
        }
        inbox.held_bytes -= filled;
        drop(inbox);
        let writer = self.peer(world).and_then(|peer| peer.writer.take());
        if let Some(writer) = writer {
            writer.wake();
        }
        Poll::Ready(Ok(filled))
    }

    fn check_open(&self) -> io::Result<()> {
        if self.aborted.get() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if self.inbox.borrow().reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }

    /// Bytes that are there to be read.
    pub(crate) fn readable_bytes(&self) -> usize {
        self.inbox.borrow().arrived.iter().map(Bytes::len).sum()
    }

    pub(crate) fn poll_write(
        &self,
        world: &Rc<World>,
        from: &[u8],
        waker: &Waker,
    ) -> Poll<io::Result<usize>> {
        self.check_open()?;
        if self.write_shut.get() || self.closed.get() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let Some(peer) = self.peer(world) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let room = peer.window_bytes.get().saturating_sub(peer.inbox.borrow().held_bytes);
        let mut count = from.len().min(room);
        if count == 0 {
            *self.writer.borrow_mut() = Some(waker.clone());
            return Poll::Pending;
        }
        if world.chance(world.options.short_io_permille) {
            count = 1 + world.below(count as u64) as usize;
        }
        self.transmit(world, Packet::Data(Bytes::copy_from_slice(&from[..count])));
        Poll::Ready(Ok(count))
    }

    /// No more will be sent from this end.
    pub(crate) fn shut_write(&self, world: &Rc<World>) {
        if !self.write_shut.replace(true) && !self.closed.get() {
            self.transmit(world, Packet::Fin);
        }
    }

    /// Ends both directions while the owner still holds the socket.
    pub(crate) fn abort(&self, world: &Rc<World>) {
        self.shut_write(world);
        self.aborted.set(true);
        self.wake_both();
    }

    /// Gives the socket back: the other end sees an end of stream, or a reset when bytes that had
    /// arrived were not read.
    pub(crate) fn close(&self, world: &Rc<World>) {
        if self.closed.get() {
            return;
        }
        let unread = !self.inbox.borrow().arrived.is_empty();
        if unread {
            self.transmit(world, Packet::Reset);
        } else {
            self.shut_write(world);
        }
        self.closed.set(true);
        world.record("net.close", &[self.id, u64::from(unread)]);
        let peer_gone = self.peer(world).is_none_or(|peer| peer.closed.get());
        if peer_gone {
            let mut sockets = world.network.sockets.borrow_mut();
            sockets.remove(&self.id);
            sockets.remove(&(self.id ^ 1));
        }
    }
}
