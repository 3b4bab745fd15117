//! TCP: listeners that own their port alone, connections in two independent halves.
//!
//! A connection is read straight into the caller's memory and written straight from it. After a
//! read that did not fill its buffer the socket is taken to be empty, and the next read waits for
//! the ring before it tries again: one receive per message.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use glommio::io::PollableFd;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrLike, SockaddrStorage, connect, setsockopt, socket,
    sockopt,
};

use super::counters::count;
use super::patient::Patient;
use super::socket::{IOVECS_MAX, Readiness, Socket, owned, retry};
use super::time::now;
use crate::deadline::within;

/// Connections that wait to be accepted.
const BACKLOG: libc::c_int = 1024;

/// By which a buffer without spare capacity grows for a read.
const GROWTH: usize = 64 << 10;

/// Accepts connections on a port that nobody else can bind meanwhile.
pub struct Listener {
    fd: PollableFd<TcpListener>,
    local: SocketAddr,
}

impl Listener {
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        // SAFETY: it takes numbers only. std's own backlog is short.
        if unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let local = listener.local_addr()?;
        Ok(Listener { fd: PollableFd::new(listener)?, local })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The next connection. Errors concern that one, or the lack of descriptors: the listener
    /// stays usable, but a caller should wait a little before it goes on.
    pub async fn accept(&self) -> io::Result<Conn> {
        loop {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let none = std::ptr::null_mut();
            // SAFETY: the descriptor is open, and null asks for no address.
            let accepted = retry(|| unsafe {
                libc::accept4(self.fd.as_raw_fd(), none, std::ptr::null_mut(), flags) as isize
            })?;
            if let Some(fd) = accepted {
                let fd = owned(fd);
                count(|counters| &counters.accepts, 1);
                return Ok(Conn { socket: Socket::new(fd)? });
            }
            Patient::new(self.fd.readable()).await?;
        }
    }
}

/// A connection.
pub struct Conn {
    socket: Socket,
}

impl Conn {
    pub async fn connect(addr: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let deadline = now() + timeout;
        let addr = SockaddrStorage::from(addr);
        let family = addr.family().unwrap_or(AddressFamily::Inet);
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Stream, flags, None)?;
        match connect(fd.as_raw_fd(), &addr) {
            Ok(()) => {}
            Err(nix::errno::Errno::EINPROGRESS) => {
                let fd = PollableFd::new(fd)?;
                let connected = within(deadline, Patient::new(fd.writable())).await;
                connected.map_err(|elapsed| io::Error::new(io::ErrorKind::TimedOut, elapsed))??;
                return Self::connected(fd.into_inner());
            }
            Err(error) => return Err(error.into()),
        }
        Self::connected(fd)
    }

    fn connected(fd: OwnedFd) -> io::Result<Self> {
        let error = nix::sys::socket::getsockopt(&fd, sockopt::SocketError)?;
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        Ok(Conn { socket: Socket::new(fd)? })
    }

    pub fn peer_addr(&self) -> SocketAddr {
        self.socket.peer
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.socket.local
    }

    /// Whether small writes leave at once.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        Ok(setsockopt(self.socket.as_fd(), sockopt::TcpNoDelay, &nodelay)?)
    }

    /// Bytes that the kernel buffers per direction; `None` leaves it to the kernel.
    pub fn set_buffers(&self, send: Option<usize>, receive: Option<usize>) -> io::Result<()> {
        if let Some(bytes) = send {
            setsockopt(self.socket.as_fd(), sockopt::SndBuf, &bytes)?;
        }
        if let Some(bytes) = receive {
            setsockopt(self.socket.as_fd(), sockopt::RcvBuf, &bytes)?;
        }
        Ok(())
    }

    /// The socket is closed when both halves are gone.
    pub fn split(self) -> (Reader, Writer) {
        let socket = Rc::new(self.socket);
        let reader =
            Reader { socket: Rc::clone(&socket), readiness: Readiness::new(), drained: true };
        (reader, Writer { socket, readiness: Readiness::new() })
    }
}

/// The half that receives.
pub struct Reader {
    socket: Rc<Socket>,
    readiness: Readiness,
    /// Nothing was left after the last receive.
    drained: bool,
}

impl Reader {
    /// Bytes read; 0 at the end of the stream, or when `space` is empty.
    pub async fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if space.is_empty() {
            return Ok(0);
        }
        loop {
            if self.drained {
                self.socket.readable(&mut self.readiness).await?;
                self.drained = false;
            }
            // SAFETY: the pointer and the length are those of a slice.
            let got = unsafe { self.socket.receive(space.as_mut_ptr(), space.len())? };
            self.drained = got.is_none_or(|got| got < space.len());
            if let Some(got) = got {
                return Ok(got);
            }
        }
    }

    /// Appends at most `max` bytes to `buffer`. It grows only when it has no spare capacity and
    /// something has arrived, so a connection that is silent holds no memory. 0 at the end of the
    /// stream.
    pub async fn read_buf(&mut self, buffer: &mut BytesMut, max: usize) -> io::Result<usize> {
        if max == 0 {
            return Ok(0);
        }
        loop {
            if self.drained {
                self.socket.readable(&mut self.readiness).await?;
                self.drained = false;
            }
            if buffer.len() == buffer.capacity() {
                buffer.reserve(max.min(GROWTH));
            }
            let space = buffer.chunk_mut();
            let len = space.len().min(max);
            // SAFETY: the chunk is writable, and `len` does not exceed it.
            let got = unsafe { self.socket.receive(space.as_mut_ptr(), len)? };
            self.drained = got.is_none_or(|got| got < len);
            if let Some(got) = got {
                // SAFETY: the kernel has written `got` bytes there.
                unsafe { buffer.advance_mut(got) };
                return Ok(got);
            }
        }
    }

    /// Fills `space`, or fails with `UnexpectedEof`.
    pub async fn read_exact(&mut self, space: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < space.len() {
            match self.read(&mut space[filled..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => filled += got,
            }
        }
        Ok(())
    }

    pub fn peer_addr(&self) -> SocketAddr {
        self.socket.peer
    }

    pub fn closer(&self) -> Closer {
        Closer { socket: Rc::downgrade(&self.socket) }
    }
}

/// The half that sends.
pub struct Writer {
    socket: Rc<Socket>,
    readiness: Readiness,
}

impl Writer {
    /// Sends all of `parts`, in order, without copying them.
    pub async fn send(&mut self, parts: &[Bytes]) -> io::Result<()> {
        let mut parts = parts;
        // Of the first part.
        let mut skip = 0;
        loop {
            while let Some(first) = parts.first()
                && first.len() == skip
            {
                parts = &parts[1..];
                skip = 0;
            }
            if parts.is_empty() {
                return Ok(());
            }
            let batch = &parts[..parts.len().min(IOVECS_MAX)];
            match self.socket.send(batch, skip)? {
                Some(sent) => (parts, skip) = advance(parts, skip + sent),
                None => self.socket.writable(&mut self.readiness).await?,
            }
        }
    }

    /// Ends our direction: the peer reads an end of stream, and can still send.
    pub fn shutdown(&mut self) {
        self.socket.shutdown(libc::SHUT_WR);
    }

    pub fn closer(&self) -> Closer {
        Closer { socket: Rc::downgrade(&self.socket) }
    }
}

/// What is left of `parts` behind the first `offset` bytes, and how far into its first part.
fn advance(parts: &[Bytes], mut offset: usize) -> (&[Bytes], usize) {
    let mut parts = parts;
    while let Some(first) = parts.first()
        && offset >= first.len()
    {
        offset -= first.len();
        parts = &parts[1..];
    }
    (parts, offset)
}

/// Ends a connection from a third place. It does not keep the socket open.
#[derive(Clone)]
pub struct Closer {
    socket: Weak<Socket>,
}

impl Closer {
    /// Both halves fail from now on, one that waits included.
    pub fn close(&self) {
        if let Some(socket) = self.socket.upgrade() {
            socket.close();
        }
    }
}
