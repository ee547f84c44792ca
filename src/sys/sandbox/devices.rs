//! The parts of `/dev` and `/proc` that a command may use.

use super::mount::{self, NO_DEVICES, NO_PROGRAMS, NO_SETUID, READ_ONLY, Reach};
use crate::sys::path::hold_place;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Those that are nobody's hardware.
pub(super) const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Names below `/dev`, and where they lead.
pub(super) const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Terminals of the command's own.
pub(super) fn terminals() -> io::Result<OwnedFd> {
    let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620")];
    mount::make(c"devpts", &options, NO_SETUID | NO_PROGRAMS)
}

/// A device of the system; its permissions stay what they are, even for root.
pub(super) fn node(name: &str) -> io::Result<OwnedFd> {
    let node = mount::clone(&hold_place(&Path::new("/dev").join(name))?)?;
    mount::limit(&node, READ_ONLY | NO_SETUID | NO_PROGRAMS, Reach::Below)?;
    Ok(node)
}

/// Entries of `/proc` that tell of the whole machine what only its administrator may know.
const SECRET: [&str; 11] = [
    "kcore",
    "kmsg",
    "keys",
    "key-users",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "sched_debug",
    "timer_list",
    "vmcore",
];

const PROCESS_LIMITS: u64 = NO_SETUID | NO_DEVICES | NO_PROGRAMS;

/// Shows the processes of this PID namespace in `/proc`.
pub(super) fn show_processes() -> io::Result<OwnedFd> {
    let processes = mount::make(c"proc", &[], PROCESS_LIMITS)?;
    mount::attach(&processes, &hold_place(Path::new("/proc"))?)?;
    Ok(processes)
}

/// What else stands there belongs to the machine: root outside is root there, so that nothing of it may be written.
pub(super) fn protect_machine(processes: &OwnedFd, nothing: &File) -> io::Result<()> {
    let is_root = nix::unistd::geteuid().is_root();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if kind.is_symlink() || name.as_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let secret = SECRET.iter().any(|secret| name == *secret);
        // Single files belong to root.
        let writable = kind.is_dir() || (is_root && entry.metadata()?.permissions().mode() & 0o222 != 0);
        if !secret && !writable {
            continue;
        }
        let name = CString::new(name.as_bytes())?;
        let cover = if secret { mount::clone(nothing)? } else { mount::clone_entry(processes, &name)? };
        mount::limit(&cover, PROCESS_LIMITS | READ_ONLY, Reach::Below)?;
        mount::attach_entry(&cover, processes, &name)?;
    }
    Ok(())
}

/// What of `/sys` shows more than the machine's parts.
pub(super) fn hidden_parts() -> Vec<PathBuf> {
    ["/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security", "/sys/firmware", "/sys/fs/bpf", "/sys/fs/pstore"]
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.is_dir())
        .collect()
}
