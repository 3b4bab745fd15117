//! One TCP socket: non-blocking system calls, and the ring to wait until they would succeed.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use bytes::Bytes;
use glommio::io::{PollState, PollableFd};

use super::counters::count;
use super::patient::Turnstile;

/// Shared by the halves of a connection; closed when both are gone.
pub(crate) struct Socket {
    fd: PollableFd<OwnedFd>,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    /// By a `Closer`: whatever is still to be read or written fails.
    closed: Cell<bool>,
}

/// One direction's wait for the ring. It belongs to the half and not to the future that waits: a
/// wait that is given up goes on, and the next one finds what it found.
pub(crate) struct Readiness {
    registration: PollState,
    turnstile: Turnstile,
}

impl Readiness {
    pub(crate) fn new() -> Self {
        Readiness { registration: PollState::new(), turnstile: Turnstile::new() }
    }
}

/// Buffers that one system call takes at most.
pub(crate) const IOVECS_MAX: usize = 64;

impl Socket {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        // std knows how to ask a socket for its addresses.
        let stream = std::net::TcpStream::from(fd);
        let peer = stream.peer_addr()?;
        let local = stream.local_addr()?;
        let fd = PollableFd::new(OwnedFd::from(stream))?;
        Ok(Socket { fd, peer, local, closed: Cell::new(false) })
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(crate) fn as_fd(&self) -> &OwnedFd {
        self.fd.get_ref()
    }

    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.shutdown(libc::SHUT_RDWR);
    }

    /// What the peer may see is its business: a socket that is not connected any more is fine.
    pub(crate) fn shutdown(&self, how: libc::c_int) {
        // SAFETY: the descriptor is open as long as `self` lives.
        unsafe { libc::shutdown(self.raw(), how) };
    }

    pub(crate) async fn readable(&self, readiness: &mut Readiness) -> io::Result<()> {
        poll_fn(|cx| {
            let Readiness { registration, turnstile } = readiness;
            turnstile.pass(cx, |cx| self.fd.poll_readable(cx, registration))
        })
        .await?;
        self.check_open()
    }

    pub(crate) async fn writable(&self, readiness: &mut Readiness) -> io::Result<()> {
        poll_fn(|cx| {
            let Readiness { registration, turnstile } = readiness;
            turnstile.pass(cx, |cx| self.fd.poll_writable(cx, registration))
        })
        .await?;
        self.check_open()
    }

    pub(crate) fn check_open(&self) -> io::Result<()> {
        if self.closed.get() {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the connection was closed on this side",
            ));
        }
        Ok(())
    }

    /// Receives into `space`, at most `len` bytes of it. `None` when there is nothing yet.
    ///
    /// # Safety
    /// `space` points to `len` bytes that may be written.
    pub(crate) unsafe fn receive(&self, space: *mut u8, len: usize) -> io::Result<Option<usize>> {
        self.check_open()?;
        count(|counters| &counters.receives, 1);
        // SAFETY: the caller vouches for the memory.
        let got =
            retry(|| unsafe { libc::recv(self.raw(), space.cast(), len, libc::MSG_DONTWAIT) })?;
        count(|counters| &counters.received_bytes, got.unwrap_or(0));
        Ok(got)
    }

    /// Sends what it can of `parts`, the first of them from `skip` on. `None` when there is no
    /// room.
    pub(crate) fn send(&self, parts: &[Bytes], skip: usize) -> io::Result<Option<usize>> {
        self.check_open()?;
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut iovecs = [empty; IOVECS_MAX];
        let mut used = 0;
        for (part, iovec) in parts.iter().zip(&mut iovecs) {
            let part = if used == 0 { &part[skip..] } else { &part[..] };
            *iovec = libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
            used += 1;
        }
        // SAFETY: all zeros is a valid message header.
        let mut header = unsafe { std::mem::zeroed::<libc::msghdr>() };
        header.msg_iov = iovecs.as_mut_ptr();
        header.msg_iovlen = used as _;
        count(|counters| &counters.sends, 1);
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the header points to `used` iovecs, each of which is a slice of `parts`.
        let sent = retry(|| unsafe { libc::sendmsg(self.raw(), &header, flags) })?;
        count(|counters| &counters.sent_bytes, sent.unwrap_or(0));
        Ok(sent)
    }
}

/// Calls again when a signal got in between. `None` when the call would block.
pub(crate) fn retry(mut call: impl FnMut() -> isize) -> io::Result<Option<usize>> {
    loop {
        if let Ok(done) = usize::try_from(call()) {
            return Ok(Some(done));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => return Ok(None),
            _ => return Err(error),
        }
    }
}

/// Takes over a descriptor that a system call just returned.
pub(crate) fn owned(fd: usize) -> OwnedFd {
    // SAFETY: it was returned open, to us alone, and fits: descriptors are C integers.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}
