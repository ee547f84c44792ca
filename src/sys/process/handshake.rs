//! Handshake with the helper. The helper creates file descriptors in the command's namespaces and passes them to aye
//! before the command starts: the socket of aye's proxy, the terminal, and the pipe for the command's input. The
//! command does not inherit them.

use super::messages::{self, HelperReport, Job, TerminalSize};
use crate::sys::sandbox::{Backend, NetworkAccess};
use nix::cmsg_space;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, getsockopt, recvmsg, sendmsg, sockopt};
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use tokio::io::Interest;

/// Maximum number of descriptors that the helper passes: the socket, the terminal and the pipe.
const MAX_DESCRIPTORS: usize = 3;
/// Maximum number of descriptors that the kernel passes in one message. The receive buffer has space for all of them,
/// because any that did not fit would stay open unnoticed.
const KERNEL_DESCRIPTORS: usize = 253;

/// Descriptors that the helper creates.
pub(super) struct HelperDescriptors {
    listener: Option<TcpListener>,
    terminal: Option<Pair>,
    input: Option<Pipe>,
}

struct Pipe {
    reads: OwnedFd,
    writes: OwnedFd,
}

struct Pair {
    master: OwnedFd,
    slave: OwnedFd,
}

/// Descriptors that remain for the command once aye has received its own.
pub(super) struct CommandDescriptors {
    proxy: Option<u16>,
    slave: Option<OwnedFd>,
    reads: Option<OwnedFd>,
}

impl HelperDescriptors {
    /// Creates the descriptors. Must be called in the command's namespaces.
    pub(super) fn make(job: &Job) -> Result<Self, String> {
        let listener = is_proxied(job)
            .then(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .transpose()
            .map_err(|error| format!("cannot set up the sandbox: aye's proxy cannot listen in it: {error}"))?;
        let terminal = job.terminal.map(open_terminal).transpose();
        let terminal = terminal.map_err(|error| format!("cannot create a terminal for the command: {error}"))?;
        let input =
            job.is_fed.then(open_pipe).transpose().map_err(|error| format!("cannot create the command's input: {error}"))?;
        Ok(Self { listener, terminal, input })
    }

    /// Sends aye's descriptors to aye, and returns those that remain for the command.
    pub(super) fn send(self, control: &mut UnixStream) -> io::Result<CommandDescriptors> {
        let Self { listener, terminal, input } = self;
        let port = listener.as_ref().map(TcpListener::local_addr).transpose()?.map(|address| address.port());
        let ready = HelperReport::Ready { proxy: listener.is_some(), terminal: terminal.is_some(), input: input.is_some() };
        let listening = listener.iter().map(AsRawFd::as_raw_fd);
        let terminals = terminal.iter().map(|pair| pair.master.as_raw_fd());
        let descriptors: Vec<_> = listening.chain(terminals).chain(input.iter().map(|pipe| pipe.writes.as_raw_fd())).collect();
        let bytes = messages::encode(&ready)?;
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let rights = if descriptors.is_empty() { &rights[..0] } else { &rights[..] };
        let sent = sendmsg::<()>(control.as_raw_fd(), &[IoSlice::new(&bytes)], rights, NO_SIGNAL, None)?;
        control.write_all(&bytes[sent..])?;
        Ok(CommandDescriptors { proxy: port, slave: terminal.map(|pair| pair.slave), reads: input.map(|pipe| pipe.reads) })
    }
}

impl CommandDescriptors {
    /// Sets the command's proxy variables, and attaches its terminal or its input pipe.
    pub(super) fn attach_to(self, command: &mut Command) -> io::Result<()> {
        if let Some(port) = self.proxy {
            let proxy = format!("http://{}:{port}", Ipv4Addr::LOCALHOST);
            for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
                command.env(name, &proxy).env(name.to_ascii_lowercase(), &proxy);
            }
            command.env("NO_PROXY", OWN_HOSTS).env("no_proxy", OWN_HOSTS);
        }
        if let Some(slave) = self.slave {
            command.stdin(Stdio::from(slave.try_clone()?)).stdout(Stdio::from(slave.try_clone()?)).stderr(Stdio::from(slave));
            take_terminal(command);
        }
        if let Some(reads) = self.reads {
            command.stdin(Stdio::from(reads));
        }
        Ok(())
    }
}

/// Hosts that the command contacts without the proxy, because they are servers in its own network namespace.
const OWN_HOSTS: &str = "localhost,127.0.0.1,::1";

/// Returns whether the command uses aye's proxy, which it does only if it has a network namespace of its own.
fn is_proxied(job: &Job) -> bool {
    let held = job.confinement.as_ref();
    held.is_some_and(|held| held.strength == Backend::Namespaces && held.network == NetworkAccess::Proxied)
}

fn open_terminal(size: TerminalSize) -> io::Result<Pair> {
    let pair = openpty(&winsize(size), None)?;
    for end in [&pair.master, &pair.slave] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    Ok(Pair { master: pair.master, slave: pair.slave })
}

/// Opens a pipe neither of whose ends is inherited by processes started later.
fn open_pipe() -> io::Result<Pipe> {
    let (reads, writes) = nix::unistd::pipe()?;
    for end in [&reads, &writes] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    Ok(Pipe { reads, writes })
}

pub(super) fn winsize(size: TerminalSize) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Makes the command's standard input the controlling terminal of its session, which must be new.
#[expect(unsafe_code, reason = "only code between fork and exec can do this")]
fn take_terminal(command: &mut Command) {
    // SAFETY: the closure makes one system call on an open descriptor, and allocates nothing.
    unsafe {
        command.pre_exec(|| match libc::ioctl(libc::STDIN_FILENO, libc::c_ulong::from(libc::TIOCSCTTY) as _, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// Descriptors that aye receives.
#[derive(Debug, Default)]
pub(super) struct HostDescriptors {
    /// Listener for the proxy, in the command's network namespace.
    pub listener: Option<tokio::net::TcpListener>,
    /// Master side of the command's terminal, in non-blocking mode.
    pub terminal: Option<OwnedFd>,
    /// Write end of the command's input pipe.
    pub input: Option<tokio::net::unix::pipe::Sender>,
}

/// Receives the helper's first message: either the descriptors, or a report that the start failed. Unexpected
/// descriptors are rejected.
pub(super) async fn ready(control: &tokio::net::UnixStream) -> io::Result<Result<HostDescriptors, HelperReport>> {
    let mut descriptors = Vec::new();
    let report = receive_with(control, &mut descriptors).await?;
    let HelperReport::Ready { proxy, terminal, input } = report else {
        return if descriptors.is_empty() { Ok(Err(report)) } else { Err(garbage("unexpected descriptors")) };
    };
    if descriptors.len() != usize::from(proxy) + usize::from(terminal) + usize::from(input) {
        return Err(garbage("the wrong number of descriptors"));
    }
    let mut descriptors = descriptors.into_iter();
    let mut pieces = HostDescriptors::default();
    if proxy {
        let listener = descriptors.next().ok_or_else(|| garbage("no socket"))?;
        pieces.listener = Some(listening(listener)?);
    }
    if terminal {
        let master = descriptors.next().ok_or_else(|| garbage("no terminal"))?;
        if !nix::unistd::isatty(&master)? {
            return Err(garbage("a descriptor that is not a terminal"));
        }
        set_nonblocking(&master)?;
        pieces.terminal = Some(master);
    }
    if input {
        let writes = descriptors.next().ok_or_else(|| garbage("no pipe"))?;
        // Fails if the descriptor is not the write end of a pipe.
        pieces.input = Some(tokio::net::unix::pipe::Sender::from_owned_fd(writes)?);
    }
    Ok(Ok(pieces))
}

/// Receives a later message, which must not carry any descriptors.
pub(super) async fn receive(control: &tokio::net::UnixStream) -> io::Result<HelperReport> {
    let mut descriptors = Vec::new();
    let report = receive_with(control, &mut descriptors).await?;
    if descriptors.is_empty() && !matches!(report, HelperReport::Ready { .. }) {
        return Ok(report);
    }
    Err(garbage("an unexpected message"))
}

fn garbage(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the helper sent {what}"))
}

fn listening(descriptor: OwnedFd) -> io::Result<tokio::net::TcpListener> {
    if !getsockopt(&descriptor, sockopt::AcceptConn)? {
        return Err(garbage("a socket that does not listen"));
    }
    let listener = TcpListener::from(descriptor);
    if !listener.local_addr()?.ip().is_loopback() {
        return Err(garbage("a socket that is not on the loopback interface"));
    }
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

fn set_nonblocking(descriptor: &impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_truncate(fcntl(descriptor, FcntlArg::F_GETFL)?);
    fcntl(descriptor, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

async fn receive_with(control: &tokio::net::UnixStream, descriptors: &mut Vec<OwnedFd>) -> io::Result<HelperReport> {
    let mut header = [0; 4];
    read_exact(control, &mut header, descriptors).await?;
    let length = messages::length(header)?;
    if length > MAX_REPORT_BYTES {
        return Err(garbage("a report that is too long"));
    }
    let mut text = vec![0; length];
    read_exact(control, &mut text, descriptors).await?;
    Ok(serde_json::from_slice(&text)?)
}

/// Maximum size of a report in bytes.
const MAX_REPORT_BYTES: usize = 64 * 1024;

async fn read_exact(control: &tokio::net::UnixStream, into: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<()> {
    let mut filled = 0;
    while filled < into.len() {
        let (count, more) = control.async_io(Interest::READABLE, || read_once(control, &mut into[filled..])).await?;
        descriptors.extend(more);
        if descriptors.len() > MAX_DESCRIPTORS {
            return Err(garbage("too many descriptors"));
        }
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += count;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
const NO_SIGNAL: MsgFlags = MsgFlags::MSG_NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: MsgFlags = MsgFlags::empty();

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOSED_ON_EXEC: MsgFlags = MsgFlags::MSG_CMSG_CLOEXEC;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOSED_ON_EXEC: MsgFlags = MsgFlags::empty();

#[expect(unsafe_code, reason = "the kernel passes a bare descriptor number")]
fn read_once(control: &tokio::net::UnixStream, into: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = cmsg_space!([std::os::fd::RawFd; KERNEL_DESCRIPTORS]);
    let mut slices = [IoSliceMut::new(into)];
    let message = recvmsg::<()>(control.as_raw_fd(), &mut slices, Some(&mut space), CLOSED_ON_EXEC)?;
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just created these descriptors for this process, and nothing else owns them.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    if CLOSED_ON_EXEC.is_empty() {
        for descriptor in &descriptors {
            fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        }
    }
    Ok((message.bytes, descriptors))
}
