//! Which run of which process this is, and whether that run still lives.

use serde::{Deserialize, Serialize};

/// One run of one process. A process id alone is not enough: it is used again, after a reboot at the latest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    pub pid: u32,
    /// In the kernel's own unit, since the start of the machine; 0 where the system does not say.
    pub start_time: u64,
    /// Changes with each start of the machine; empty where the system does not say.
    pub boot_id: String,
}

impl Instance {
    pub fn current() -> Self {
        let pid = std::process::id();
        Self { pid, start_time: running_since(pid).unwrap_or_default(), boot_id: boot_id() }
    }

    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && running_since(self.pid) == Some(self.start_time)
    }
}

#[cfg(target_os = "linux")]
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// When the process started; `None` when there is none, or only what its parent has not yet collected.
#[cfg(target_os = "linux")]
fn running_since(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold spaces and parentheses itself, so fields are counted from the last one.
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
    fn this_process_is_alive_and_always_the_same() {
        assert!(Instance::current().is_alive());
        assert_eq!(Instance::current(), Instance::current());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_same_process_id_from_another_time_or_boot_is_dead() {
        let now = Instance::current();
        assert!(!Instance { start_time: now.start_time + 1, ..now.clone() }.is_alive());
        assert!(!Instance { boot_id: "another".to_owned(), ..now }.is_alive());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_ended_is_dead_before_and_after_it_is_collected() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let instance = Instance { pid, start_time: running_since(pid).unwrap(), boot_id: boot_id() };
        assert!(instance.is_alive());
        drop(child.stdin.take());
        // Waits until it has ended, without collecting it.
        while running_since(pid).is_some() {
            std::thread::yield_now();
        }
        assert!(!instance.is_alive());
        child.wait().unwrap();
        assert!(!instance.is_alive());
    }
}
