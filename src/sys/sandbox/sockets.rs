//! Sockets in the file system. A process that can write to a socket can communicate with its server, whatever
//! namespaces separate the two.

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::sys::stat::Mode;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Returns the real paths of all sockets on which a program is listening.
pub(super) fn served_sockets() -> Vec<PathBuf> {
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    let named: BTreeSet<_> = table.split(|byte| *byte == b'\n').filter_map(socket_path).collect();
    let (absolute, relative): (Vec<_>, Vec<_>) = named.into_iter().partition(|path| path.is_absolute());
    // A relative name was relative to the working directory of its process, which has probably not changed.
    let directories = if relative.is_empty() { BTreeSet::new() } else { working_directories() };
    let guessed = directories.iter().flat_map(|directory| relative.iter().map(|path| directory.join(path)));
    let real = absolute.into_iter().chain(guessed).filter_map(|path| std::fs::canonicalize(path).ok());
    real.filter(is_socket).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the working directories of all processes that this user may inspect.
fn working_directories() -> BTreeSet<PathBuf> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = processes.filter(|entry| entry.file_name().as_bytes().iter().all(u8::is_ascii_digit));
    numbered.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok()).collect()
}

/// Returns whether a program in any namespace is listening on the socket at this path. Returns `true` if that cannot be
/// determined.
pub(crate) fn is_served(path: &Path) -> bool {
    // With the wrong socket type, the kernel returns an error without notifying the program.
    let asked = || -> nix::Result<()> {
        let place = openat(AT_FDCWD, path, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?;
        let address = UnixAddr::new(format!("/proc/self/fd/{}", place.as_raw_fd()).as_str())?;
        let datagrams = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        connect(datagrams.as_raw_fd(), &address)
    };
    !matches!(asked(), Err(Errno::ECONNREFUSED | Errno::ENOENT | Errno::ENOTDIR))
}

fn is_socket(path: &PathBuf) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Returns the path in a line of `/proc/net/unix`. It follows seven fields and may contain spaces. Returns `None` if
/// the name starts with `@`, because such a socket is not in the file system.
fn socket_path(line: &[u8]) -> Option<PathBuf> {
    let mut rest = line;
    for _ in 0..7 {
        rest = rest.trim_ascii_start();
        rest = &rest[rest.iter().position(|byte| *byte == b' ')?..];
    }
    let name = &rest[1..];
    (!name.is_empty() && name[0] != b'@' && line.contains(&b':')).then(|| PathBuf::from(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_counts_as_served_while_a_process_listens() {
        let directory = tempfile::tempdir().unwrap();
        let (stream, datagram, left) = (directory.path().join("s"), directory.path().join("d"), directory.path().join("l"));
        let listener = std::os::unix::net::UnixListener::bind(&stream).unwrap();
        listener.set_nonblocking(true).unwrap();
        let receiver = std::os::unix::net::UnixDatagram::bind(&datagram).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
        assert_eq!([&stream, &datagram, &left].map(|path| is_served(path)), [true, true, false]);
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "the check does not connect");
        drop((listener, receiver));
        assert_eq!([&stream, &datagram].map(|path| is_served(path)), [false, false]);
    }

    #[test]
    fn socket_paths_may_contain_spaces() {
        let line = b"ffff8880: 00000002 00000000 00010000 0001 01 17406 /home/me/a socket";
        assert_eq!(socket_path(line), Some(PathBuf::from("/home/me/a socket")));
        assert_eq!(socket_path(b"f: 2 0 10000 1 1   416 ./s"), Some(PathBuf::from("./s")));
        for other in
            ["Num       RefCount Protocol Flags    Type St Inode Path", "f: 3 0 0 1 3 17406", "f: 2 0 1 1 1 17406 @/tmp/abstract"]
        {
            assert_eq!(socket_path(other.as_bytes()), None, "{other}");
        }
    }
}
