//! Process instances: identify one run of a process and tell whether it is still alive.

use serde::{Deserialize, Serialize};

/// One run of a process. A process ID alone would not identify it, because IDs are reused, for example after a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Instance {
    pub pid: u32,
    /// Start time since boot, in the kernel's unit, or 0 if the system does not provide it.
    pub start_time: u64,
    /// Boot ID, or an empty string if the system does not provide it.
    pub boot_id: String,
}

/// Returns the host name, or an empty string if the system does not provide it.
pub(crate) fn host_name() -> String {
    nix::sys::utsname::uname().map(|system| system.nodename().to_string_lossy().into_owned()).unwrap_or_default()
}

impl Instance {
    pub(crate) fn current() -> Self {
        let pid = std::process::id();
        Self { pid, start_time: running_since(pid).unwrap_or_default(), boot_id: boot_id() }
    }

    /// Returns the process that currently has this ID.
    #[cfg(test)]
    pub(crate) fn from_pid(pid: u32) -> Option<Self> {
        Some(Self { pid, start_time: running_since(pid)?, boot_id: boot_id() })
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && running_since(self.pid) == Some(self.start_time)
    }

    /// Sends SIGTERM to exactly this process, never to another one that has been given the same ID. Returns `false` if
    /// the process has already ended.
    #[cfg(target_os = "linux")]
    pub(crate) fn terminate(&self) -> std::io::Result<bool> {
        use rustix::io::Errno;
        use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => process,
            Err(Errno::SRCH) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        // The descriptor refers to one process. Checking after opening it ensures that it is the right one.
        if !self.is_alive() {
            return Ok(false);
        }
        match pidfd_send_signal(&process, Signal::TERM) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    #[cfg(all(unix, not(target_os = "linux")))]
    pub fn terminate(&self) -> std::io::Result<bool> {
        use nix::sys::signal::{Signal, kill};
        let Ok(pid) = i32::try_from(self.pid) else { return Ok(false) };
        if !self.is_alive() {
            return Ok(false);
        }
        kill(nix::unistd::Pid::from_raw(pid), Signal::SIGTERM)?;
        Ok(true)
    }

    #[cfg(not(unix))]
    pub fn terminate(&self) -> std::io::Result<bool> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

#[cfg(target_os = "linux")]
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// Returns the start time of a process, or `None` if the process does not exist or is a zombie.
#[cfg(target_os = "linux")]
fn running_since(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain spaces and parentheses, so the fields are counted from the last parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn boot_id() -> String {
    String::new()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn running_since(pid: u32) -> Option<u64> {
    use nix::errno::Errno;
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).ok()?);
    match nix::sys::signal::kill(pid, None) {
        Ok(()) | Err(Errno::EPERM) => Some(0),
        Err(_) => None,
    }
}

#[cfg(not(unix))]
fn running_since(pid: u32) -> Option<u64> {
    (pid == std::process::id()).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_process_is_alive_and_has_a_stable_identity() {
        assert!(Instance::current().is_alive());
        assert_eq!(Instance::current(), Instance::current());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_id_with_another_start_time_or_boot_id_is_dead() {
        let now = Instance::current();
        assert!(!Instance { start_time: now.start_time + 1, ..now.clone() }.is_alive());
        assert!(!Instance { boot_id: "another".to_owned(), ..now }.is_alive());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_exact_process_is_terminated() {
        use std::os::unix::process::ExitStatusExt;
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let instance = Instance { pid, start_time: running_since(pid).unwrap(), boot_id: boot_id() };
        let another = Instance { start_time: instance.start_time + 1, ..instance.clone() };
        assert!(!another.terminate().unwrap());
        assert!(instance.is_alive());
        assert!(instance.terminate().unwrap());
        assert_eq!(child.wait().unwrap().signal(), Some(15));
        assert!(!instance.terminate().unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_exited_process_is_dead_before_and_after_reaping() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let instance = Instance { pid, start_time: running_since(pid).unwrap(), boot_id: boot_id() };
        assert!(instance.is_alive());
        drop(child.stdin.take());
        // Wait until the process has ended, without reaping it.
        while running_since(pid).is_some() {
            std::thread::yield_now();
        }
        assert!(!instance.is_alive());
        child.wait().unwrap();
        assert!(!instance.is_alive());
    }
}
