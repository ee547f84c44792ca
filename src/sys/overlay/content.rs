//! Content of a file before the command: decides whether a file that was touched or replaced since is still the same.

use super::node::{Kind, Node};
use super::{Change, Changes};
use crate::sys::path::pass_below;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, fstat};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Maximum number of files whose content is noted, and of their bytes. Of the others, size and times decide.
const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 256 * 1024 * 1024;
const CHUNK_BYTES: usize = 128 * 1024;

/// SHA-256 digest of the content of a file, or of the target of a symlink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentDigest([u8; 32]);

impl ContentDigest {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the digest of an entry that is in this state; `None` if it has no content, or is in another state by now.
    pub(super) fn read(parent: &OwnedFd, name: &OsStr, node: &Node) -> io::Result<Option<Self>> {
        match node.kind {
            Kind::Link => Ok(Some(Self(Sha256::digest(readlinkat(parent, name)?.as_bytes()).into()))),
            Kind::File => {
                let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
                let mut file = match openat(parent, name, flags, Mode::empty()) {
                    Ok(file) => File::from(file),
                    Err(Errno::EACCES | Errno::ENOENT | Errno::ELOOP) => return Ok(None),
                    Err(errno) => return Err(errno.into()),
                };
                let digest = digest(&mut file)?;
                Ok(Some(Self(digest)).filter(|_| fstat(&file).is_ok_and(|stat| node.is_still(&Node::from_stat(&stat)))))
            }
            Kind::Directory | Kind::Special => Ok(None),
        }
    }
}

fn digest(file: &mut File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Notes the content of the files that the changes replace, delete or give another mode.
pub(super) fn note_contents(changes: &mut Changes, lower: &OwnedFd) -> io::Result<()> {
    let mut bytes_left = MAX_BYTES;
    let has_content = |change: &&mut Change| matches!(change.before, Some(node) if node.kind != Kind::Directory);
    for change in changes.entries.iter_mut().filter(has_content).take(MAX_FILES) {
        let (Some(before), Some(name)) = (change.before, change.path.file_name()) else { continue };
        if before.bytes > bytes_left {
            continue;
        }
        bytes_left -= before.bytes;
        let Ok(parent) = pass_below(lower, change.path.parent().unwrap_or(Path::new(""))) else { continue };
        change.content = ContentDigest::read(&parent, name, &before)?;
    }
    Ok(())
}
