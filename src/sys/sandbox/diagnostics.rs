//! Diagnostics of a missing sandbox: the reason, and how to get one.

use super::kernel::setting;
use nix::errno::Errno;
use std::io;

/// A kernel that refused the namespaces themselves.
pub(super) fn no_namespaces(error: &io::Error) -> String {
    let errno = error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw);
    match errno {
        _ if setting("kernel/unprivileged_userns_clone") == Some(0) => {
            "only root may make user namespaces here; `sysctl kernel.unprivileged_userns_clone=1` as root lets everyone"
                .to_owned()
        }
        _ if setting("user/max_user_namespaces") == Some(0) => {
            "user namespaces are switched off here; `sysctl user.max_user_namespaces=15000` as root switches them on".to_owned()
        }
        Errno::ENOSPC | Errno::EUSERS => {
            "there are as many namespaces as this system allows; end some programs, or raise `user.max_user_namespaces`"
                .to_owned()
        }
        Errno::EPERM | Errno::EACCES => {
            "this system lets no program make user namespaces; in a container its seccomp profile must allow `clone` with \
             CLONE_NEWUSER and `mount`"
                .to_owned()
        }
        Errno::EINVAL | Errno::ENOSYS => "this kernel was built without user namespaces".to_owned(),
        other => format!("the kernel makes no namespaces: {}", other.desc()),
    }
}

/// A process that is in its namespaces and may not mount there all the same.
pub(super) fn no_mounts(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOSYS) => "this kernel is too old: Linux 5.12 or newer is needed".to_owned(),
        Some(Errno::EPERM | Errno::EACCES) if setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) => {
            "AppArmor lets programs without a profile mount nothing; `sysctl kernel.apparmor_restrict_unprivileged_userns=0` as \
             root lifts that, or give `aye` a profile with `userns`"
                .to_owned()
        }
        Some(Errno::EPERM | Errno::EACCES) => {
            "this system lets no program mount in a user namespace; in a container its security profile must allow it".to_owned()
        }
        _ => format!("mounts could not be changed: {error}"),
    }
}

/// A `/proc` of one's own is refused where parts of the system's are covered.
pub(super) fn no_processes(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM) => {
            "its own `/proc`: parts of this one are covered, as in a container; one started with its `/proc` unmasked has room for it"
                .to_owned()
        }
        _ => format!("its own `/proc`: {error}"),
    }
}
