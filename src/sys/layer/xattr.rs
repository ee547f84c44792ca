//! The marks that overlayfs leaves on what it writes.

use rustix::fs::{fgetxattr, flistxattr, fremovexattr};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;

const OPAQUE: &str = "user.overlay.opaque";
const MARKS: &[u8] = b"user.overlay.";
/// Powers given to a program, as a set-id bit does.
const POWERS: &[u8] = b"security.capability";
/// The longest list of names that the kernel gives.
const MAX_LIST: usize = 64 * 1024;

/// Whether nothing of the directory below is seen through it.
pub(super) fn is_opaque(directory: impl AsFd) -> bool {
    let mut value = [0_u8; 4];
    fgetxattr(directory, OPAQUE, &mut value[..]).is_ok_and(|length| value.get(..length) == Some(b"y"))
}

/// Takes the marks away, and powers as well; all else stays.
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

/// Gives `to` what `from` has of a person's own, and access lists as far as the file system takes them.
pub(super) fn carry(from: impl AsFd, to: impl AsFd) -> io::Result<()> {
    for name in names(&from)? {
        let own = name.starts_with(b"user.") && !name.starts_with(MARKS);
        if !own && name != b"system.posix_acl_access" {
            continue;
        }
        let mut value = vec![0; MAX_LIST];
        let Ok(length) = fgetxattr(&from, name.as_slice(), &mut value[..]) else { continue };
        let set = rustix::fs::fsetxattr(&to, name.as_slice(), &value[..length], rustix::fs::XattrFlags::empty());
        if matches!(set, Err(Errno::NOSPC | Errno::DQUOT)) {
            return Ok(set?);
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
