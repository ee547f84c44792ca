//! Staging: prepares content on its target file system, strips overlayfs markers from it, and syncs it.

use super::node::Node;
use super::plan::{Source, Step, StepAction};
use super::progress::ProgressCounter;
use super::{Change, Changes, NodeKind, xattr};
use crate::sys::path::{open_below, open_directory, pass_below};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmod, fchmodat, fstat, mkdirat};
use nix::unistd::{Gid, Uid, fchown, symlinkat};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Number of files or directories above which the whole file system is synced instead, even though that may also write
/// other programs' data.
pub(super) const MAX_SINGLE_SYNCS: usize = 64;
/// Number of threads that sync files concurrently, which lets the file system batch the writes.
const CONCURRENT_SYNCS: usize = 8;
const CHUNK: usize = 1024 * 1024;

/// Returns whether files can be renamed between the directories. To find out, renames an entry that does not exist: the
/// kernel compares the mounts before it looks up the name.
pub(super) fn is_same_mount(from: &OwnedFd, to: &OwnedFd) -> bool {
    let nothing = format!(".aye-{}", uuid::Uuid::new_v4().simple());
    let same_device = fstat(from).ok().map(|stat| stat.st_dev) == fstat(to).ok().map(|stat| stat.st_dev);
    same_device && renameat(from, nothing.as_str(), to, nothing.as_str()) == Err(Errno::ENOENT)
}

pub(super) fn stage_name(number: usize) -> OsString {
    OsString::from(number.to_string())
}

/// Prepares the files that the steps move to their paths, and counts them. With `copies`, they must be copied to another
/// file system.
pub(super) fn stage(
    changes: &Changes,
    upper: &OwnedFd,
    stage: &OwnedFd,
    steps: &mut [Step],
    copies: bool,
    counter: &mut ProgressCounter<'_>,
) -> io::Result<()> {
    let after: BTreeMap<&Path, (&Change, Node)> =
        changes.entries.iter().filter_map(|change| Some((change.path.as_path(), (change, change.after?)))).collect();
    let lower = open_directory(&changes.layered.directory)?;
    let number = |what: &StepAction| match what {
        StepAction::Directory { number } | StepAction::Link { number, .. } => *number,
        _ => 0,
    };
    let mut next = steps.iter().map(|step| number(&step.what)).max().unwrap_or(0) + 1;
    let places = steps.iter().filter(|step| step.is_placement()).count();
    let alone = places <= MAX_SINGLE_SYNCS;
    if !copies {
        open_parents(upper, steps)?;
    }
    let mut unsynced = Vec::new();
    for step in steps {
        match &mut step.what {
            StepAction::Directory { number } => mkdirat(stage, stage_name(*number).as_os_str(), Mode::S_IRWXU)?,
            StepAction::Place { source, .. } => {
                let Some((change, after)) = after.get(step.path.as_path()) else { continue };
                let before = open_previous(&lower, change);
                let before = before.as_ref().map(|(directory, name)| (directory, *name));
                if copies {
                    unsynced.extend(copy(upper, (&step.path, before), after, (stage, &stage_name(next)))?.filter(|_| alone));
                    *source = Source::Staged(next);
                    next += 1;
                } else if after.kind == NodeKind::File {
                    let file = open_mine(upper, &step.path, after)?;
                    clean(&file, before, after)?;
                    if alone {
                        unsynced.push(file);
                    }
                }
                counter.add_one();
            }
            StepAction::Open { .. } | StepAction::Remove { .. } | StepAction::Link { .. } | StepAction::Dress { .. } => {}
        }
    }
    if alone { sync_each(&unsynced) } else { sync_all(if copies { stage } else { upper }) }
}

/// Syncs only these files, several of them concurrently.
fn sync_each(files: &[File]) -> io::Result<()> {
    let each = files.len().div_ceil(CONCURRENT_SYNCS).max(1);
    std::thread::scope(|scope| {
        let sync = |files: &[File]| files.iter().try_for_each(File::sync_all);
        let mut parts = files.chunks(each);
        let first = parts.next();
        let others: Vec<_> = parts.map(|part| scope.spawn(move || sync(part))).collect();
        let mut synced = first.map_or(Ok(()), sync);
        for other in others {
            let ended = other.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes to the disk crashed")));
            synced = synced.and(ended);
        }
        synced
    })
}

/// Syncs a directory's entries, if the file system supports that.
pub(super) fn sync_names(directory: &OwnedFd) -> io::Result<()> {
    let readable = match openat(directory, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()) {
        Ok(readable) => File::from(readable),
        // The directory may already have its final mode, which prevents reading it. Its changes are then written later.
        Err(Errno::EACCES) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    match readable.sync_all() {
        Err(error) if matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::EINVAL | Errno::ENOTSUP)) => Ok(()),
        synced => synced,
    }
}

/// Makes the upper directories that entries are moved out of writable.
fn open_parents(upper: &OwnedFd, steps: &[Step]) -> io::Result<()> {
    if Uid::effective().is_root() {
        return Ok(());
    }
    let placed = steps.iter().filter(|step| step.is_placement());
    let parents: BTreeSet<&Path> =
        placed.filter_map(|step| step.path.parent()).filter(|path| path.file_name().is_some()).collect();
    for path in parents {
        let (parent, name) = open_parent_of(upper, path)?;
        let mode = Node::at(&parent, name)?.map_or(0, |node| node.mode);
        if mode & 0o700 != 0o700 {
            let open = Mode::from_bits_truncate((mode | 0o700) as libc::mode_t);
            fchmodat(&parent, name, open, FchmodatFlags::NoFollowSymlink)?;
        }
    }
    Ok(())
}

/// Syncs a whole file system.
pub(super) fn sync_all(directory: &OwnedFd) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let readable = openat(directory, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        nix::unistd::syncfs(&readable)?;
    }
    #[cfg(not(target_os = "linux"))]
    sync_names(directory)?;
    Ok(())
}

/// Opens a file in the upper directory even if its mode does not permit that.
fn open_mine(upper: &OwnedFd, path: &Path, after: &Node) -> io::Result<File> {
    let (parent, name) = open_parent_of(upper, path)?;
    if after.mode & 0o600 != 0o600 && !Uid::effective().is_root() {
        fchmodat(&parent, name, Mode::S_IRUSR | Mode::S_IWUSR, FchmodatFlags::NoFollowSymlink)?;
    }
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    Ok(File::from(openat(&parent, name, flags, Mode::empty())?))
}

fn open_parent_of<'a>(root: &OwnedFd, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    Ok((pass_below(root, path.parent().unwrap_or(Path::new("")))?, name))
}

/// Returns the location of the old file from which a changed or moved file inherits its attributes.
fn open_previous<'a>(lower: &OwnedFd, change: &'a Change) -> Option<(OwnedFd, &'a OsStr)> {
    let was_file = change.before.is_some_and(|before| before.kind == NodeKind::File);
    let path = change.moved_from.as_deref().or(was_file.then_some(change.path.as_path()))?;
    open_parent_of(lower, path).ok()
}

/// Removes overlayfs markers, then sets the old file's attributes and the final mode.
fn clean(file: &File, before: Option<(&OwnedFd, &OsStr)>, after: &Node) -> io::Result<()> {
    fchmod(file, Mode::S_IRUSR | Mode::S_IWUSR)?;
    xattr::strip(file)?;
    xattr::restore(file, before)?;
    Ok(fchmod(file, Mode::from_bits_truncate(after.mode as libc::mode_t))?)
}

/// Copies a file or symlink, preserving its times, its holes and the old file's attributes. Returns the file if it must
/// be synced.
fn copy(
    upper: &OwnedFd,
    (path, before): (&Path, Option<(&OwnedFd, &OsStr)>),
    after: &Node,
    (stage, name): (&OwnedFd, &OsStr),
) -> io::Result<Option<File>> {
    if after.kind == NodeKind::Link {
        let (parent, link) = open_parent_of(upper, path)?;
        symlinkat(readlinkat(&parent, link)?.as_os_str(), stage, name)?;
        if Uid::effective().is_root() {
            let owner = (Some(Uid::from_raw(after.owner)), Some(Gid::from_raw(after.group)));
            nix::unistd::fchownat(stage, name, owner.0, owner.1, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        }
        return Ok(None);
    }
    let mut from = open_mine(upper, path, after)?;
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut to = File::from(openat(stage, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    copy_content(&mut from, &mut to, after.bytes)?;
    xattr::restore(&to, before)?;
    set_owner(&to, after)?;
    fchmod(&to, Mode::from_bits_truncate(after.mode as libc::mode_t))?;
    set_modified(&to, after)?;
    Ok(Some(to))
}

fn set_owner(file: &File, after: &Node) -> io::Result<()> {
    let now = Node::from_stat(&fstat(file)?);
    if now.owners() == after.owners() {
        return Ok(());
    }
    match fchown(file, Some(Uid::from_raw(after.owner)), Some(Gid::from_raw(after.group))) {
        Err(errno) if Uid::effective().is_root() => Err(errno.into()),
        _ => Ok(()),
    }
}

fn set_modified(file: &File, after: &Node) -> io::Result<()> {
    use nix::sys::time::TimeSpec;
    let modified = TimeSpec::new(after.modified.0, after.modified.1);
    Ok(nix::sys::stat::futimens(file, &TimeSpec::UTIME_OMIT, &modified)?)
}

/// Copies a file's content, skipping holes.
fn copy_content(from: &mut File, to: &mut File, bytes: u64) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while let Some((start, end)) = data(from, at, bytes)? {
        from.seek(SeekFrom::Start(start))?;
        to.seek(SeekFrom::Start(start))?;
        let mut left = end - start;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let count = from.read(&mut buffer[..most])?;
            if count == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a file in the preview was truncated"));
            }
            to.write_all(&buffer[..count])?;
            left -= count as u64;
        }
        at = end;
    }
    to.set_len(bytes)
}

/// Returns the next range, starting at or after `at`, that is not a hole, or `None` if only holes follow.
fn data(file: &File, at: u64, bytes: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= bytes {
        return Ok(None);
    }
    #[cfg(target_os = "linux")]
    {
        use nix::unistd::{Whence, lseek};
        let position = |found: libc::off_t| u64::try_from(found).unwrap_or(bytes).min(bytes);
        let start = match lseek(file, at as libc::off_t, Whence::SeekData) {
            Ok(start) => position(start),
            Err(Errno::ENXIO) => return Ok(None),
            Err(Errno::EINVAL) => return Ok(Some((at, bytes))),
            Err(errno) => return Err(errno.into()),
        };
        let end = position(lseek(file, start as libc::off_t, Whence::SeekHole)?);
        Ok((start < end).then_some((start, end)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        Ok(Some((at, bytes)))
    }
}

/// Creates and opens a directory in `parent`.
pub(super) fn make(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    mkdirat(parent, name, Mode::S_IRWXU)?;
    Ok(open_below(parent, Path::new(name), OFlag::O_RDONLY | OFlag::O_DIRECTORY)?)
}
