//! The marks that overlayfs leaves on what it writes.

use rustix::fs::{fgetxattr, flistxattr, fremovexattr, lgetxattr, llistxattr};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

const OPAQUE: &str = "user.overlay.opaque";
const MARKS: &[u8] = b"user.overlay.";
/// Powers given to a program, as a set-id bit does.
const POWERS: &[u8] = b"security.capability";
/// Access lists, of an entry and of what is made in a directory.
const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACCESS: &[u8] = b"system.posix_acl_default";
/// The tag of the owning group in an access list.
const GROUP_OBJECT: u16 = 0x04;
/// What the system itself writes on files.
const LABELS: &[&[u8]] = &[b"security.selinux", b"security.apparmor", b"security.SMACK64", b"security.ima", b"security.evm"];
/// The longest list of names that the kernel gives.
const MAX_LIST: usize = 64 * 1024;

/// Whether nothing of the directory below is seen through it.
pub(super) fn is_opaque(directory: impl AsFd) -> bool {
    let mut value = [0_u8; 4];
    fgetxattr(directory, OPAQUE, &mut value[..]).is_ok_and(|length| value.get(..length) == Some(b"y"))
}

/// Takes the marks away, and powers as well.
pub(super) fn strip(file: impl AsFd) -> io::Result<()> {
    for name in names(&file)? {
        if name.starts_with(MARKS) || name == POWERS {
            match fremovexattr(&file, name.as_slice()) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Ok(())
}

/// Attributes that a command could have changed, by name. A value that cannot be read is none.
type Own = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Those of a file or directory: a user's own, access lists, and what programs keep in `security.*`; not the labels of the system.
fn own(directory: &OwnedFd, name: &OsStr) -> Own {
    let path = entry(directory, name);
    let mut list = vec![0; MAX_LIST];
    let Ok(length) = llistxattr(&path, &mut list[..]) else { return Own::new() };
    let names = list[..length].split(|byte| *byte == 0).filter(|name| is_own(name));
    names.map(|name| (name.to_vec(), value(&path, name))).collect()
}

fn value(path: &Path, name: &[u8]) -> Option<Vec<u8>> {
    let mut value = vec![0; MAX_LIST];
    let length = lgetxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

/// An entry by its directory, which nobody can exchange meanwhile. The entry is not opened: its mode may not allow that.
fn entry(directory: &OwnedFd, name: &OsStr) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name)
}

fn is_own(name: &[u8]) -> bool {
    let access = name == ACCESS || name == DEFAULT_ACCESS;
    let program = name.starts_with(b"security.") && name != POWERS && !LABELS.iter().any(|label| name.starts_with(label));
    access || program || name.starts_with(b"user.") && !name.starts_with(MARKS)
}

/// Whether an entry has other attributes than the one that was there before; of a new one whether it has any.
pub(super) fn differ(upper: (&OwnedFd, &OsStr), before: Option<(&OwnedFd, &OsStr)>) -> bool {
    own(upper.0, upper.1) != before.map_or_else(Own::new, |(directory, name)| own(directory, name))
}

/// The mode that an entry has without an access list that is new: the group bits of one with a list say what the list allows at most.
pub(super) fn mode_without_list(upper: (&OwnedFd, &OsStr), before: Option<(&OwnedFd, &OsStr)>, mode: u32) -> u32 {
    let list = |(directory, name): (&OwnedFd, &OsStr)| value(&entry(directory, name), ACCESS);
    let new = list(upper).filter(|new| before.and_then(list).as_ref() != Some(new));
    new.and_then(|list| permissions_of_group(&list)).map_or(mode, |group| mode & !0o070 | (mode & (group << 3) & 0o070))
}

/// What an access list gives the owning group. Its entries are a tag, permissions and an id.
fn permissions_of_group(list: &[u8]) -> Option<u32> {
    let mut entries = list.get(4..)?.chunks_exact(8);
    let found = entries.find(|entry| u16::from_le_bytes([entry[0], entry[1]]) == GROUP_OBJECT)?;
    Some(u32::from(u16::from_le_bytes([found[2], found[3]])) & 0o7)
}

/// Gives a file the attributes of the one that was there before, and no others: what a command did to them is not kept.
pub(super) fn restore(to: &File, before: Option<(&OwnedFd, &OsStr)>) -> io::Result<()> {
    let wanted = before.map_or_else(Own::new, |(directory, name)| own(directory, name));
    for name in names(to)?.iter().filter(|name| is_own(name) && !wanted.contains_key(*name)) {
        match fremovexattr(to, name.as_slice()) {
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    for (name, value) in &wanted {
        let Some(value) = value else { continue };
        let set = rustix::fs::fsetxattr(to, name.as_slice(), value, rustix::fs::XattrFlags::empty());
        if let Err(errno @ (Errno::NOSPC | Errno::DQUOT)) = set {
            return Err(errno.into());
        }
    }
    Ok(())
}

fn names(file: impl AsFd) -> io::Result<Vec<Vec<u8>>> {
    let mut list = vec![0; 1024];
    let length = match flistxattr(&file, &mut list[..]) {
        Err(Errno::RANGE) => {
            list.resize(MAX_LIST, 0);
            flistxattr(&file, &mut list[..])
        }
        listed => listed,
    };
    match length {
        Ok(length) => Ok(list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()),
        // A file system without them.
        Err(Errno::NOTSUP) => Ok(Vec::new()),
        Err(errno) => Err(errno.into()),
    }
}
