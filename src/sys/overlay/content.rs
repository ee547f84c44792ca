//! File content before and after the command. It reveals whether a change is real, and whether a file that was later
//! touched or replaced still has the same content.

use super::compare::{chunk_bytes, same_bytes};
use super::node::{Node, NodeKind};
use super::progress::{Progress, ProgressHook, Stage};
use super::{Change, xattr};
use crate::sys::parallel::{self, CHUNK_ITEMS};
use crate::sys::path::pass_below;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstat};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of files that are read solely to record their content. Any further files are compared by size and
/// times.
const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 256 * 1024 * 1024;
const READING: OFlag = OFlag::O_RDONLY.union(OFlag::O_NOFOLLOW).union(OFlag::O_NONBLOCK).union(OFlag::O_CLOEXEC);
const SET_ID: u32 = 0o6000;

/// SHA-256 digest of a file's content or of a symlink's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentDigest([u8; 32]);

impl ContentDigest {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the digest of an entry in the state `node`, or `None` if the entry has no content or is no longer in
    /// that state.
    pub(super) fn read(parent: &OwnedFd, name: &OsStr, node: &Node) -> io::Result<Option<Self>> {
        match node.kind {
            NodeKind::Link => Ok(Some(Self(Sha256::digest(readlinkat(parent, name)?.as_bytes()).into()))),
            NodeKind::File => {
                let Some(file) = open(parent, name)? else { return Ok(None) };
                let digest = digest(&file, node.bytes)?;
                Ok(Some(Self(digest)).filter(|_| fstat(&file).is_ok_and(|stat| node.is_still(&Node::from_stat(&stat)))))
            }
            NodeKind::Directory | NodeKind::Special => Ok(None),
        }
    }
}

fn digest(mut file: &File, expected: u64) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; chunk_bytes(expected)];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Which contents of a change to record.
#[derive(Debug, Clone, Copy)]
struct ContentChoice {
    old: bool,
    new: bool,
}

/// Compares the content of each changed file with its old content. Records both the content that a change replaces or
/// deletes and the content that it writes.
pub(super) fn compare(entries: &mut [Change], upper: &OwnedFd, lower: &OwnedFd, progress: ProgressHook<'_>) -> io::Result<()> {
    let noted = contents_to_record(entries);
    let (done, total) = (AtomicUsize::new(0), Some(entries.len()));
    let chunks = entries.chunks_mut(CHUNK_ITEMS).zip(noted.chunks(CHUNK_ITEMS));
    let compared = parallel::map(chunks, |(entries, noted)| {
        let mut places = EntryParents { upper, lower, parent: None };
        entries.iter_mut().zip(noted).try_for_each(|(change, noted)| places.compare(change, *noted))?;
        let done = done.fetch_add(entries.len(), Ordering::Relaxed) + entries.len();
        progress(Progress { stage: Stage::Comparing, done, total });
        Ok(())
    });
    compared.into_iter().collect()
}

/// Selects the contents to record. The selection depends only on the changes, so it is the same when they are collected
/// again.
fn contents_to_record(entries: &[Change]) -> Vec<ContentChoice> {
    let (mut files, mut old_bytes, mut new_bytes) = (MAX_FILES, MAX_BYTES, MAX_BYTES);
    let fits = |bytes: u64, left: &mut u64| {
        let fits = bytes <= *left;
        *left -= if fits { bytes } else { 0 };
        fits
    };
    let choose = |change: &Change| {
        let (before, after) = (content_bytes(change.before), content_bytes(change.after));
        let new = after.is_some_and(|bytes| fits(bytes, &mut new_bytes));
        // The old content of a file with the same size is read in any case.
        let is_free = before.is_some() && before == after;
        let old = before.is_some_and(|bytes| (is_free || files > 0) && fits(bytes, &mut old_bytes));
        files -= usize::from(old && !is_free);
        ContentChoice { old, new }
    };
    entries.iter().map(choose).collect()
}

/// Returns the size in bytes of a file or symlink, or `None` for other entries.
fn content_bytes(node: Option<Node>) -> Option<u64> {
    node.filter(|node| matches!(node.kind, NodeKind::File | NodeKind::Link)).map(|node| node.bytes)
}

/// Directories that contain an entry in the upper tree and in the real tree.
struct EntryParents<'a> {
    upper: &'a OwnedFd,
    lower: &'a OwnedFd,
    parent: Option<ParentDirectory>,
}

struct ParentDirectory {
    path: PathBuf,
    upper: Option<OwnedFd>,
    lower: Option<OwnedFd>,
}

impl EntryParents<'_> {
    fn parent(&mut self, path: &Path) -> &ParentDirectory {
        match self.parent.take() {
            Some(known) if known.path == path => self.parent.insert(known),
            _ => {
                let [upper, lower] = [self.upper, self.lower].map(|root| pass_below(root, path).ok());
                self.parent.insert(ParentDirectory { path: path.to_owned(), upper, lower })
            }
        }
    }

    fn compare(&mut self, change: &mut Change, noted: ContentChoice) -> io::Result<()> {
        let path = std::mem::take(&mut change.path);
        let compared = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => self.parent(parent).compare(name, change, noted),
            _ => Ok(()),
        };
        change.path = path;
        compared
    }
}

impl ParentDirectory {
    fn compare(&self, name: &OsStr, change: &mut Change, noted: ContentChoice) -> io::Result<()> {
        let is_link = |node: &Node| node.kind == NodeKind::Link;
        let old = self.lower.as_ref().zip(change.before);
        let new = self.upper.as_ref().zip(change.after);
        match new {
            Some((upper, after)) if after.kind == NodeKind::File => self.compare_file(name, upper, after, change, noted)?,
            Some((upper, after)) if is_link(&after) => {
                change.written = ContentDigest::read(upper, name, &after)?.filter(|_| noted.new);
                let (Some((lower, before)), true) = (old, change.before.as_ref().is_some_and(is_link)) else {
                    return self.note_old(name, change, noted);
                };
                change.same_content = readlinkat(upper, name)? == readlinkat(lower, name)?;
                change.content = ContentDigest::read(lower, name, &before)?.filter(|_| noted.old);
            }
            _ => self.note_old(name, change, noted)?,
        }
        Ok(())
    }

    /// Records old content for which there is no new content to compare it with.
    fn note_old(&self, name: &OsStr, change: &mut Change, noted: ContentChoice) -> io::Result<()> {
        if let (true, Some(lower), Some(before)) = (noted.old, &self.lower, change.before) {
            change.content = ContentDigest::read(lower, name, &before)?;
        }
        Ok(())
    }

    fn compare_file(
        &self,
        name: &OsStr,
        upper: &OwnedFd,
        after: Node,
        change: &mut Change,
        noted: ContentChoice,
    ) -> io::Result<()> {
        let new = open(upper, name)?;
        let written = match &new {
            Some(file) if noted.new => Some(ContentDigest(digest(file, after.bytes)?)),
            _ => None,
        };
        let old = self.lower.as_ref().zip(change.before.filter(|before| before.kind == NodeKind::File));
        let Some((lower, before)) = old else {
            self.note_old(name, change, noted)?;
            change.lost_set_id = take_set_id(change.after.as_mut(), None);
            change.lost_attributes = match &new {
                Some(new) => xattr::files_differ(new, None),
                None => xattr::differ((upper, name), None),
            };
            change.written = written;
            return self.without_list(name, upper, change);
        };
        let real = open(lower, name)?;
        let content = match &real {
            Some(file) if noted.old => Some(ContentDigest(digest(file, before.bytes)?)),
            _ => None,
        };
        let same = before.bytes == after.bytes
            && match (written, content) {
                (Some(written), Some(content)) => written == content,
                _ => same_file((upper, name), &after, (lower, name))?,
            };
        let is_still = |file: &File| fstat(file).is_ok_and(|stat| before.is_still(&Node::from_stat(&stat)));
        change.content = content.filter(|_| real.as_ref().is_some_and(is_still));
        change.written = written;
        change.same_content = same;
        change.lost_set_id = take_set_id(change.after.as_mut(), Some(&before).filter(|_| same));
        change.lost_attributes = match (&new, &real) {
            (Some(new), Some(real)) => xattr::files_differ(new, Some(real)),
            _ => xattr::differ((upper, name), Some((lower, name))),
        };
        self.without_list(name, upper, change)
    }

    /// Removes the effect that a new access control list has on the mode.
    fn without_list(&self, name: &OsStr, upper: &OwnedFd, change: &mut Change) -> io::Result<()> {
        let is_file = change.before.is_some_and(|before| before.kind == NodeKind::File);
        let before = self.lower.as_ref().filter(|_| is_file).map(|lower| (lower, name));
        if let (true, Some(after)) = (change.lost_attributes, change.after.as_mut()) {
            after.mode = xattr::mode_without_list((upper, name), before, after.mode);
        }
        Ok(())
    }
}

/// Opens a file for reading. Returns `None` if it cannot be read or is no longer a file.
fn open(parent: &OwnedFd, name: &OsStr) -> io::Result<Option<File>> {
    match openat(parent, name, READING, Mode::empty()) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(Errno::EACCES | Errno::ENOENT | Errno::ELOOP) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns whether two files of the same size have the same content. An unreadable file never equals another one.
fn same_file(upper: (&OwnedFd, &OsStr), new: &Node, lower: (&OwnedFd, &OsStr)) -> io::Result<bool> {
    let bytes = new.bytes;
    let mut new = match openat(upper.0, upper.1, READING, Mode::empty()) {
        // The file belongs to the user, whatever its mode.
        Err(Errno::EACCES) => {
            let chmod = |mode| fchmodat(upper.0, upper.1, mode, FchmodatFlags::NoFollowSymlink);
            chmod(Mode::S_IRUSR | Mode::S_IWUSR)?;
            let opened = openat(upper.0, upper.1, READING, Mode::empty());
            chmod(Mode::from_bits_truncate(new.mode as libc::mode_t))?;
            File::from(opened?)
        }
        opened => File::from(opened?),
    };
    match open(lower.0, lower.1)? {
        Some(mut old) => same_bytes(&mut new, &mut old, bytes),
        None => Ok(false),
    }
}

/// Removes set-ID bits, except those that the file already had if its content is unchanged. Returns whether any bit was
/// removed.
fn take_set_id(after: Option<&mut Node>, same: Option<&Node>) -> bool {
    let Some(after) = after else { return false };
    let had = same.map_or(0, |before| before.mode & SET_ID);
    let lost = after.mode & SET_ID & !had != 0;
    after.mode &= !SET_ID | had;
    lost
}
