//! Local socket that serves a single user. Other users cannot connect, and every client is checked.

use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{MsgFlags, recv};
use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener as Blocking, UnixStream};
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

/// Sticky bit of a directory, which restricts users to deleting their own files.
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o022;

/// Listener on a socket, which is removed when the listener is dropped.
pub(crate) struct SocketListener {
    inner: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket, since another process may have created a new socket at the same path.
    identity: (u64, u64),
}

/// A connected client.
pub(crate) enum Peer {
    /// A client run by the same user.
    Own(UnixStream),
    Other {
        stream: UnixStream,
        uid: Option<u32>,
    },
}

/// Why a server cannot listen at a path, with a hint if there is one.
#[derive(Debug)]
pub(crate) struct BindError {
    pub why: String,
    pub hint: Option<&'static str>,
}

impl BindError {
    fn with_hint(why: String, hint: &'static str) -> Self {
        Self { why, hint: Some(hint) }
    }
}

impl From<String> for BindError {
    fn from(why: String) -> Self {
        Self { why, hint: None }
    }
}

impl SocketListener {
    /// Binds the socket, creating its directory if necessary. Must be called from within a Tokio runtime.
    pub(crate) fn bind(path: &Path) -> Result<Self, BindError> {
        let shown = path.display();
        let directory = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Err(format!("`{shown}` is not a valid socket path").into()),
        };
        if !directory.exists() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|error| format!("cannot create `{}`: {error}", directory.display()))?;
        }
        let opened = File::open(directory).map_err(|error| format!("cannot open `{}`: {error}", directory.display()))?;
        let metadata = opened.metadata().map_err(|error| format!("cannot inspect `{}`: {error}", directory.display()))?;
        if let Some(why) = not_ours(&metadata) {
            let why = format!("`{}` {why}", directory.display());
            return Err(BindError::with_hint(why, "choose a directory that only you can write to"));
        }
        // The lock prevents two processes from replacing a stale socket at the same time. Without it, only one of them
        // can bind.
        let _alone = Flock::lock(opened, FlockArg::LockExclusive).ok();
        make_way(path)?;
        let inner = private(|| Blocking::bind(path)).map_err(|error| format!("cannot listen on `{shown}`: {error}"))?;
        let found = path.symlink_metadata().map_err(|error| format!("cannot inspect `{shown}`: {error}"))?;
        let identity = (found.dev(), found.ino());
        let inner = inner.set_nonblocking(true).and_then(|()| UnixListener::from_std(inner));
        let inner = inner.map_err(|error| format!("cannot listen on `{shown}`: {error}"))?;
        Ok(Self { inner, path: path.to_owned(), identity })
    }

    /// Waits for the next client. This method is cancel safe.
    pub(crate) async fn accept(&self) -> io::Result<Peer> {
        let (stream, _) = self.inner.accept().await?;
        let uid = stream.peer_cred().map(|peer| peer.uid()).ok();
        let stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        Ok(if uid == Some(geteuid().as_raw()) { Peer::Own(stream) } else { Peer::Other { stream, uid } })
    }
}

impl Drop for SocketListener {
    fn drop(&mut self) {
        let ours = self.path.symlink_metadata().is_ok_and(|found| (found.dev(), found.ino()) == self.identity);
        if ours {
            // The next process that listens at this path removes a socket that is left behind.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Runs `make` with a umask that denies other users all permissions.
fn private<T>(make: impl FnOnce() -> T) -> T {
    let before = umask(Mode::from_bits_truncate(0o177));
    let made = make();
    umask(before);
    made
}

/// Returns the reason why other users could replace the socket, or `None` if they cannot.
fn not_ours(directory: &Metadata) -> Option<&'static str> {
    let (mode, owner) = (directory.mode(), directory.uid());
    if !directory.is_dir() {
        Some("is not a directory")
    } else if owner != geteuid().as_raw() && owner != 0 {
        Some("belongs to another user")
    } else if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
        Some("is writable by others")
    } else {
        None
    }
}

/// Removes a socket left behind by a process that has ended. Fails if the socket is in use, or if the file is not a
/// socket that belongs to this user.
fn make_way(path: &Path) -> Result<(), BindError> {
    let shown = path.display();
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot inspect `{shown}`: {error}").into()),
    };
    if !found.file_type().is_socket() || found.uid() != geteuid().as_raw() {
        return Err(BindError::with_hint(format!("`{shown}` exists and is not your socket"), "choose another path"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| format!("cannot remove the stale socket `{shown}`: {error}").into())
        }
        Err(error) => Err(format!("`{shown}` exists, and connecting to it failed: {error}").into()),
        Ok(_) => {
            let why = format!("another process is listening on `{shown}`");
            Err(BindError::with_hint(why, "choose another path, or stop that process"))
        }
    }
}

/// Returns whether a descriptor is a socket from which data can be read. The data is not consumed, because the socket
/// may belong to another program, such as the supervisor that started aye.
pub(crate) fn has_data(socket: impl AsFd) -> bool {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    recv(socket.as_fd().as_raw_fd(), &mut [0], flags).is_ok_and(|bytes| bytes > 0)
}
