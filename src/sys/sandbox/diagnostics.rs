//! Explains why a sandbox is unavailable and how to fix the problem.

use super::kernel::setting;
use nix::errno::Errno;
use std::io;

/// Returns the reason why the kernel refuses to create the namespaces.
pub(super) fn no_namespaces(error: &io::Error) -> String {
    let errno = error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw);
    match errno {
        _ if setting("kernel/unprivileged_userns_clone") == Some(0) => {
            "only root may create user namespaces here; to allow all users, run `sysctl kernel.unprivileged_userns_clone=1` as root"
                .to_owned()
        }
        _ if setting("user/max_user_namespaces") == Some(0) => {
            "user namespaces are disabled here; to enable them, run `sysctl user.max_user_namespaces=10000` as root".to_owned()
        }
        Errno::ENOSPC | Errno::EUSERS => {
            "the limit on namespaces has been reached; stop some programs, or raise `user.max_user_namespaces`"
                .to_owned()
        }
        Errno::EPERM | Errno::EACCES => {
            "this system does not allow user namespaces; in a container, the seccomp profile must allow `clone` with CLONE_NEWUSER \
             and `mount`"
                .to_owned()
        }
        Errno::EINVAL | Errno::ENOSYS => "this kernel was built without user namespaces".to_owned(),
        other => format!("cannot create namespaces: {}", other.desc()),
    }
}

/// Returns the reason why a process in namespaces of its own cannot mount file systems.
pub(super) fn no_mounts(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOSYS) => "this kernel is too old: Linux 5.12 or newer is needed".to_owned(),
        Some(Errno::EPERM | Errno::EACCES) if setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) => {
            "AppArmor does not let programs without a profile mount file systems; run \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0` as root, or give `aye` a profile with `userns`"
                .to_owned()
        }
        Some(Errno::EPERM | Errno::EACCES) => {
            "this system does not allow mounts in a user namespace; in a container, the security profile must allow them"
                .to_owned()
        }
        _ => format!("cannot change mounts: {error}"),
    }
}

/// Returns the reason why `/proc` could not be mounted. The kernel refuses to mount it if parts of the outer `/proc`
/// are masked.
pub(super) fn no_processes(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM) => {
            "cannot mount `/proc`: parts of it are masked, as in a container; start the container with `/proc` unmasked"
                .to_owned()
        }
        _ => format!("cannot mount `/proc`: {error}"),
    }
}
