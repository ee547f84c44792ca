//! The entries of `/dev` and `/proc` that a command may use.

use super::mount::{self, MountScope, NO_DEVICES, NO_PROGRAMS, NO_SETUID, READ_ONLY};
use crate::sys::path::hold_place;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Devices that are not backed by hardware.
pub(super) const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Symlinks in `/dev` with their targets.
pub(super) const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Creates a set of pseudoterminals that belongs to the command alone.
pub(super) fn terminals() -> io::Result<OwnedFd> {
    let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620")];
    mount::make(c"devpts", &options, NO_SETUID | NO_PROGRAMS)
}

/// Returns a mount of a system device, through which nobody, not even root, can change the device's permissions.
pub(super) fn node(name: &str) -> io::Result<OwnedFd> {
    let node = mount::clone(&hold_place(&Path::new("/dev").join(name))?)?;
    mount::limit(&node, READ_ONLY | NO_SETUID | NO_PROGRAMS, MountScope::Below)?;
    Ok(node)
}

/// Entries of `/proc` that contain information only an administrator may see.
const SECRET: [&CStr; 11] = [
    c"keys",
    c"key-users",
    c"kcore",
    c"kmsg",
    c"kpagecgroup",
    c"kpagecount",
    c"kpageflags",
    c"latency_stats",
    c"sched_debug",
    c"timer_list",
    c"vmcore",
];

const PROCESS_LIMITS: u64 = NO_SETUID | NO_DEVICES | NO_PROGRAMS;

/// Mounts a `/proc` that shows only this PID namespace's processes, and returns the mount.
pub(super) fn show_processes() -> io::Result<OwnedFd> {
    let processes = mount::make(c"proc", &[], PROCESS_LIMITS)?;
    mount::attach(&processes, &hold_place(Path::new("/proc"))?)?;
    Ok(processes)
}

/// Makes the entries of `/proc` other than processes read-only, because root outside the sandbox is also root inside
/// it. This hardly affects programs, which write to these entries only for tuning.
pub(super) fn protect_machine(processes: &OwnedFd, nothing: &File) -> io::Result<()> {
    // Users other than root could read only two of these entries.
    let secret = if nix::unistd::geteuid().is_root() { &SECRET[..] } else { &SECRET[..2] };
    for name in secret {
        let cover = mount::clone(nothing)?;
        mount::limit(&cover, PROCESS_LIMITS | READ_ONLY, MountScope::Below)?;
        match mount::attach_entry(&cover, processes, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            attached => attached?,
        }
    }
    mount::limit(processes, READ_ONLY, MountScope::This)
}

/// Returns those directories in `/sys` that expose more than hardware.
pub(super) fn hidden_sysfs_paths() -> Vec<PathBuf> {
    ["/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security", "/sys/firmware", "/sys/fs/bpf", "/sys/fs/pstore"]
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.is_dir())
        .collect()
}
