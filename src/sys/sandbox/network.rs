//! Network setup for a command in a network namespace of its own.

use nix::errno::Errno;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Brings up loopback, the only interface that a new network namespace has.
#[expect(unsafe_code, reason = "no safe call changes an interface")]
pub(super) fn bring_up_loopback() -> io::Result<()> {
    // SAFETY: an all-zero value is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the call takes no pointer.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(Errno::last().into());
    }
    // SAFETY: nothing else owns this new descriptor.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: the request is valid during the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } {
        0 => Ok(()),
        _ => Err(Errno::last().into()),
    }
}
