//! A command's process tree, and signals sent to all processes in it.

#[cfg(target_os = "linux")]
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, killpg, signal};
use nix::unistd::{Pid, getpid};
use std::collections::HashMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// How to find a command's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeMethod {
    /// All processes in the PID namespace except this one, which is the first process in it.
    Namespace,
    /// All descendants of this process, which also adopts their orphans.
    Descendants,
}

/// Role that this process has once namespaces have been created.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "other systems have no namespaces"))]
pub(super) enum NamespaceRole {
    Outside(Pid),
    Inside,
    /// The kernel does not allow this user to create namespaces.
    Refused,
}

/// Exit code of the inner process if its namespaces could not be set up, in which case the job has not been started.
pub(super) const NO_NAMESPACES: i32 = 97;

impl TreeMethod {
    /// Returns all processes that currently belong to the command.
    pub(super) fn processes(self) -> Vec<Pid> {
        match self {
            Self::Namespace if getpid().as_raw() == 1 => {
                let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
                let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
                numbers.filter(|number| *number != 1).map(Pid::from_raw).collect()
            }
            Self::Namespace | Self::Descendants => descendants(),
        }
    }

    pub(super) fn signal(self, signal: Signal) {
        match self {
            // In any other process than the first of a namespace, this call would signal all processes of the user.
            Self::Namespace if getpid().as_raw() == 1 => {
                let _ = kill(Pid::from_raw(-1), signal);
            }
            Self::Namespace | Self::Descendants => {
                for pid in descendants() {
                    let _ = kill(pid, signal);
                }
            }
        }
    }
}

/// Sends a signal to a command's process group. The command leads the group, has a session of its own, and must not
/// have been reaped yet.
pub(super) fn signal_group(leader: Pid, signal: Signal) {
    let _ = killpg(leader, signal);
}

/// Returns all descendants of this process, parents before their children.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    for pid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        if let Some(parent) = parent_pid(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut pending = vec![std::process::id().cast_signed()];
    while let Some(parent) = pending.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            found.push(Pid::from_raw(child));
            pending.push(child);
        }
    }
    found
}

/// Returns the parent of a process: the fourth field of `stat`. The second field is a name in parentheses that may
/// contain any character.
fn parent_pid(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Makes this process, rather than init, the parent of orphans among its descendants.
pub(super) fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    prctl::set_child_subreaper(true)?;
    Ok(())
}

/// Arranges for the command to start in a new session, to end together with the helper, and to have default signal
/// handlers.
#[expect(unsafe_code, reason = "only code between fork and exec can do this")]
pub(super) fn detach(command: &mut Command) {
    // SAFETY: all calls are async-signal-safe, no handler is installed, and nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            #[cfg(target_os = "linux")]
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            for resettable in Signal::iterator().filter(|signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP)) {
                signal(resettable, SigHandler::SigDfl)?;
            }
            SigSet::empty().thread_set_mask()?;
            Ok(())
        });
    }
}

/// Forks into a new PID and mount namespace and, if this process needs one, into a new user namespace.
#[cfg(target_os = "linux")]
pub(super) fn enter_namespaces() -> NamespaceRole {
    use crate::sys::sandbox::{fork_into, map_own};
    use nix::unistd::{getegid, geteuid};
    // For root, a user namespace would remove rights that the user's own shell has.
    let user = if geteuid().is_root() { 0 } else { libc::CLONE_NEWUSER };
    let (uid, gid) = (geteuid(), getegid());
    match fork_into(user | libc::CLONE_NEWPID | libc::CLONE_NEWNS) {
        Err(_) => NamespaceRole::Refused,
        Ok(Some(first)) => NamespaceRole::Outside(first),
        Ok(None) => {
            if user != 0 && map_own(uid.as_raw(), gid.as_raw()).is_err() {
                std::process::exit(NO_NAMESPACES);
            }
            NamespaceRole::Inside
        }
    }
}

/// Ties the lifetime of this process, the first one in the namespace, to the outer process, and mounts a `/proc` that
/// shows only the namespace's processes.
#[cfg(target_os = "linux")]
pub(super) fn settle_namespaces() -> io::Result<()> {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // Mounts made outside are visible here, but mounts made here stay private.
    mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount(c"proc", c"/proc", c"proc", flags, None)?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn enter_namespaces() -> NamespaceRole {
    NamespaceRole::Refused
}

#[cfg(not(target_os = "linux"))]
pub(super) fn settle_namespaces() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
