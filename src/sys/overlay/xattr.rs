//! Markers and attributes that overlayfs stores for files and directories.

use rustix::fs::{fgetxattr, flistxattr, fremovexattr, lgetxattr, llistxattr, lremovexattr};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

const OPAQUE: &str = "user.overlay.opaque";
const MARKS: &[u8] = b"user.overlay.";
/// Attribute that contains a program's capabilities, whose effect is similar to that of a set-ID bit.
const POWERS: &[u8] = b"security.capability";
/// Attribute that contains an entry's access control list.
const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACCESS: &[u8] = b"system.posix_acl_default";
/// Tag that identifies the owning group in an access control list.
const GROUP_OBJECT: u16 = 0x04;
/// Security labels that the system itself writes.
const LABELS: &[&[u8]] = &[b"security.selinux", b"security.apparmor", b"security.SMACK64", b"security.ima", b"security.evm"];
/// Maximum length in bytes of the kernel's list of attribute names.
const MAX_LIST: usize = 64 * 1024;
/// Buffer size in bytes that suffices for most lists of attribute names.
const SHORT_LIST: usize = 512;

/// Returns whether a directory in the upper layer hides the entries of the real directory below it.
pub(super) fn is_opaque(directory: impl AsFd) -> bool {
    let mut value = [0_u8; 4];
    fgetxattr(directory, OPAQUE, &mut value[..]).is_ok_and(|length| value.get(..length) == Some(b"y"))
}

/// Removes overlayfs markers and file capabilities.
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

/// Removes an entry's access control lists.
pub(crate) fn remove_access_lists(path: &Path) -> io::Result<()> {
    for name in [ACCESS, DEFAULT_ACCESS] {
        match lremovexattr(path, name) {
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::PERM) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Attributes that a command could have changed, by name. The value is `None` if it is unreadable.
type AttributeMap = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Returns the attributes of a file or directory: user attributes, access control lists, and attributes in
/// `security.*`. Labels that the system itself writes are omitted.
fn read_attributes(directory: &OwnedFd, name: &OsStr) -> AttributeMap {
    let path = entry(directory, name);
    select(|list| llistxattr(&path, list), |name| value(&path, name))
}

/// Returns the same attributes as `read_attributes`, but for an open file.
fn read_file_attributes(file: &File) -> AttributeMap {
    select(|list| flistxattr(file, list), |name| read_value(|value| fgetxattr(file, name, value)))
}

fn select(list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>, value: impl Fn(&[u8]) -> Option<Vec<u8>>) -> AttributeMap {
    let mut short = [0_u8; SHORT_LIST];
    let mut long = Vec::new();
    let names = match list(&mut short) {
        Ok(length) => &short[..length],
        Err(Errno::RANGE) => {
            long.resize(MAX_LIST, 0);
            let Ok(length) = list(&mut long) else { return AttributeMap::new() };
            &long[..length]
        }
        Err(_) => return AttributeMap::new(),
    };
    let names = names.split(|byte| *byte == 0).filter(|name| is_preserved(name));
    names.map(|name| (name.to_vec(), value(name))).collect()
}

fn value(path: &Path, name: &[u8]) -> Option<Vec<u8>> {
    read_value(|value| lgetxattr(path, name, value))
}

fn read_value(get: impl FnOnce(&mut [u8]) -> rustix::io::Result<usize>) -> Option<Vec<u8>> {
    let mut value = vec![0; MAX_LIST];
    let length = get(&mut value).ok()?;
    value.truncate(length);
    Some(value)
}

/// Returns a path to an entry that goes through the descriptor of its directory, so the directory cannot be swapped for
/// another. The entry itself is not opened, because its mode may not permit that.
fn entry(directory: &OwnedFd, name: &OsStr) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name)
}

fn is_preserved(name: &[u8]) -> bool {
    let access = name == ACCESS || name == DEFAULT_ACCESS;
    let program = name.starts_with(b"security.") && name != POWERS && !LABELS.iter().any(|label| name.starts_with(label));
    access || program || name.starts_with(b"user.") && !name.starts_with(MARKS)
}

/// Returns whether an entry's attributes differ from those of the old entry. Without an old entry, returns whether the
/// entry has any attributes.
pub(super) fn differ(upper: (&OwnedFd, &OsStr), before: Option<(&OwnedFd, &OsStr)>) -> bool {
    read_attributes(upper.0, upper.1)
        != before.map_or_else(AttributeMap::new, |(directory, name)| read_attributes(directory, name))
}

/// Returns whether an open file's attributes differ from those of the old file. Without an old file, returns whether
/// the file has any attributes.
pub(super) fn files_differ(new: &File, before: Option<&File>) -> bool {
    read_file_attributes(new) != before.map_or_else(AttributeMap::new, read_file_attributes)
}

/// Returns an entry's mode without the effect of a new access control list. If there is such a list, the group bits of
/// the mode are its mask.
pub(super) fn mode_without_list(upper: (&OwnedFd, &OsStr), before: Option<(&OwnedFd, &OsStr)>, mode: u32) -> u32 {
    let list = |(directory, name): (&OwnedFd, &OsStr)| value(&entry(directory, name), ACCESS);
    let new = list(upper).filter(|new| before.and_then(list).as_ref() != Some(new));
    new.and_then(|list| permissions_of_group(&list)).map_or(mode, |group| mode & !0o070 | (mode & (group << 3) & 0o070))
}

/// Returns the owning group's permissions in an access control list. Each entry in the list consists of a tag,
/// permissions and an ID.
fn permissions_of_group(list: &[u8]) -> Option<u32> {
    let mut entries = list.get(4..)?.chunks_exact(8);
    let found = entries.find(|entry| u16::from_le_bytes([entry[0], entry[1]]) == GROUP_OBJECT)?;
    Some(u32::from(u16::from_le_bytes([found[2], found[3]])) & 0o7)
}

/// Gives a file exactly the old file's attributes, because attribute changes made by a command are not applied.
pub(super) fn restore(to: &File, before: Option<(&OwnedFd, &OsStr)>) -> io::Result<()> {
    let wanted = before.map_or_else(AttributeMap::new, |(directory, name)| read_attributes(directory, name));
    for name in names(to)?.iter().filter(|name| is_preserved(name) && !wanted.contains_key(*name)) {
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
        // The file system has no extended attributes.
        Err(Errno::NOTSUP) => Ok(Vec::new()),
        Err(errno) => Err(errno.into()),
    }
}
