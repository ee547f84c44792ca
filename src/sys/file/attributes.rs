//! File attributes other than content, owner and mode: extended attributes and the access control list.

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;

/// Copies the user's extended attributes and the access control list from the old file to the new one, as far as both
/// are accessible. If the old file has no access control list, a list that the new file inherited from its directory is
/// removed, because it could admit users whom the old file excluded.
pub(super) fn keep_attributes(directory: &OwnedFd, name: &OsStr, new: &File) {
    const MAX_BYTES: usize = 64 * 1024;
    const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let Ok(old) = openat(directory, name, flags, Mode::empty()) else { return };
    let mut names = vec![0; MAX_BYTES];
    let Ok(length) = rustix::fs::flistxattr(&old, &mut names[..]) else { return };
    let listed = names[..length].split(|byte| *byte == 0);
    if listed.clone().all(|name| name != ACCESS_LIST) {
        let _ = rustix::fs::fremovexattr(new, ACCESS_LIST);
    }
    for name in listed {
        let kept = name.starts_with(b"user.") || name == ACCESS_LIST;
        let Ok(name) = std::ffi::CString::new(name) else { continue };
        let mut value = vec![0; MAX_BYTES];
        if kept && let Ok(length) = rustix::fs::fgetxattr(&old, name.as_c_str(), &mut value[..]) {
            let _ = rustix::fs::fsetxattr(new, name.as_c_str(), &value[..length], rustix::fs::XattrFlags::empty());
        }
    }
}
