//! Process tree of a command, and signals to all of it.

use crate::sys::sandbox::{fork_into, map_own};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, signal};
use nix::unistd::{Pid, getegid, geteuid, getpid};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use std::collections::HashMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// How the command's processes are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    /// All but this one in the PID namespace whose first process this is.
    Namespace,
    /// Whatever descends from this process, which inherits orphans.
    Descendants,
}

/// Which of the two processes this is after the namespaces were made.
pub(super) enum Side {
    Outside(Pid),
    Inside,
    /// The kernel makes no namespaces for this user.
    Refused,
}

/// Exit code of the inner process when its namespaces could not be set up; the job is still unread then.
pub(super) const NO_NAMESPACES: i32 = 97;

impl Tree {
    /// All of its processes at this moment.
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
            // Anywhere but in the first process of a namespace this would reach all that the person runs.
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

/// Everything below this process, parents before their children.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    for pid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        if let Some(parent) = parent_of(pid) {
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

/// The fourth field of `stat`; the second is a name in brackets and may hold anything.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Makes orphans below this process its children instead of the system's.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(prctl::set_child_subreaper(true)?)
}

/// Gives the command a session of its own, its death with the helper's, and signals as a shell expects them.
#[expect(unsafe_code, reason = "only code between fork and exec can do this")]
pub(super) fn detach(command: &mut Command) {
    // SAFETY: all calls are async-signal-safe, no handler is installed, and nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            for resettable in Signal::iterator().filter(|signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP)) {
                signal(resettable, SigHandler::SigDfl)?;
            }
            SigSet::empty().thread_set_mask()?;
            Ok(())
        });
    }
}

/// Forks into a new PID and mount namespace, with a user namespace around them where this process may not do it without.
pub(super) fn enter_namespaces() -> Side {
    // For root a user namespace would take away rights that the person's own shell has.
    let user = if geteuid().is_root() { 0 } else { libc::CLONE_NEWUSER };
    let (uid, gid) = (geteuid(), getegid());
    match fork_into(user | libc::CLONE_NEWPID | libc::CLONE_NEWNS) {
        Err(_) => Side::Refused,
        Ok(Some(first)) => Side::Outside(first),
        Ok(None) => {
            if user != 0 && map_own(uid.as_raw(), gid.as_raw()).is_err() {
                std::process::exit(NO_NAMESPACES);
            }
            Side::Inside
        }
    }
}

/// Ties this first process of the namespace to the one outside, and shows the namespace's own processes in `/proc`.
pub(super) fn settle_namespaces() -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // What is mounted outside stays visible; what is mounted here stays here.
    mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount(c"proc", c"/proc", c"proc", flags, None)?)
}
