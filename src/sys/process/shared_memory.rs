//! Limits a command's shared memory for which the kernel offers unprivileged users no limit: unnamed in-memory files
//! and shared mappings. The helper checks their total size while the command runs.

use super::tree::TreeMethod;
use nix::unistd::Pid;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Prefix that the target of a symlink in `/proc/PID/fd` has if the descriptor refers to an unnamed in-memory file.
const NAMELESS: &str = "/memfd:";
/// Minimum pause after each check, as a multiple of the time that the check took.
const REST: u32 = 50;
const BLOCK_BYTES: u64 = 512;
const KILOBYTE: u64 = 1024;

/// A command's memory limit, and the time at which the next check is due.
pub(super) struct SharedMemory {
    max_bytes: Option<u64>,
    next: Instant,
}

impl SharedMemory {
    pub(super) fn new(max_bytes: Option<u64>) -> Self {
        Self { max_bytes, next: Instant::now() }
    }

    pub(super) fn is_watched(&self) -> bool {
        self.max_bytes.is_some()
    }

    /// Returns whether the tree's processes exceed the limit. Returns `false` without checking if the next check is not
    /// due yet.
    pub(super) fn is_over(&mut self, tree: TreeMethod, least_rest: Duration) -> bool {
        let begun = Instant::now();
        let Some(most) = self.max_bytes.filter(|_| begun >= self.next) else { return false };
        let processes = tree.processes();
        let is_over = is_over_limit(&processes, most);
        let ended = Instant::now();
        self.next = ended + (ended - begun).saturating_mul(REST).max(least_rest);
        is_over
    }
}

/// Returns whether unnamed files or mappings exceed the limit. Because the two overlap, each is compared with the limit
/// separately.
fn is_over_limit(processes: &[Pid], most: u64) -> bool {
    // This fast sum counts a page once for each process that maps it, so it is never too low.
    let at_most: u64 = processes.iter().filter_map(|pid| status_bytes(*pid)).sum();
    (at_most > most && mapped_bytes(processes) > most) || nameless(processes) > most
}

fn status_bytes(pid: Pid) -> Option<u64> {
    figure(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "RssShmem:")
}

/// Returns the size of the mapped shared memory in bytes. A page mapped by several processes is divided among them. If
/// that figure is unreadable for a process, its own total is used instead.
fn mapped_bytes(processes: &[Pid]) -> u64 {
    let of = |pid: &Pid| {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
        rollup.and_then(|rollup| figure(&rollup, "Pss_Shmem:")).or_else(|| status_bytes(*pid))
    };
    processes.iter().filter_map(of).sum()
}

/// Returns the value in bytes from a line of the form `NAME   1234 kB`.
fn figure(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes.saturating_mul(KILOBYTE))
}

/// Returns the total size in bytes of the unnamed in-memory files that the processes have open, counting each file
/// once.
fn nameless(processes: &[Pid]) -> u64 {
    let mut files = HashMap::new();
    for pid in processes {
        let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        for entry in open.flatten() {
            let path = entry.path();
            let leads =
                std::fs::read_link(&path).is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(NAMELESS.as_bytes()));
            if let Some(data) = leads.then(|| std::fs::metadata(&path).ok()).flatten() {
                files.insert((data.dev(), data.ino()), data.blocks().saturating_mul(BLOCK_BYTES));
            }
        }
    }
    files.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_figures_are_parsed_as_bytes() {
        let status = "Name:\tx\nRssAnon:\t      12 kB\nRssShmem:\t     2048 kB\n";
        assert_eq!(figure(status, "RssShmem:"), Some(2 << 20));
        assert_eq!(figure(status, "Pss_Shmem:"), None);
        assert_eq!(figure("RssShmem:\tmuch kB\n", "RssShmem:"), None);
    }

    #[test]
    fn a_memfd_counts_once_however_often_opened() {
        use std::io::Write;
        let own = Pid::this();
        let before = nameless(&[own]);
        let name = nix::sys::memfd::memfd_create(c"x", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap();
        let mut file = std::fs::File::from(name);
        file.write_all(&vec![1; 3 << 20]).unwrap();
        let again = file.try_clone().unwrap();
        assert_eq!(nameless(&[own, own]) - before, 3 << 20);
        drop((file, again));
        assert_eq!(nameless(&[own]), before);
    }
}
