//! Resource limits for a command: those of each process, and the number of processes.

use super::{Backend, Confinement};
use crate::sys::sandbox::ResourceLimits;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// Niceness of commands, which gives them a lower priority than the user's own programs.
pub(super) const NICER: i32 = 10;
/// OOM score adjustment. If memory runs out, it makes the kernel kill a command before the user's own programs.
const OOM_SCORE: &str = "500";
/// Time in seconds that a process has to exit on its own after `SIGXCPU`.
const CPU_GRACE_SECONDS: u64 = 1;
/// Process IDs below this number are not reused once the kernel has used every ID.
const RESERVED_PROCESS_IDS: u64 = 300;
/// First kernel version in which each namespace has a maximum process ID of its own. Older kernels have one for the
/// whole machine.
const PID_MAX_PER_NAMESPACE: (u32, u32) = (6, 14);
/// First kernel version that counts a user's processes separately for each user namespace.
const PROCESSES_PER_NAMESPACE: (u32, u32) = (5, 14);

/// Limits the number of processes in this PID namespace, including those of root. Must be called by the first process
/// in the namespace, while its `/proc` is writable and before it loses its capabilities.
pub(crate) fn limit_process_ids(limits: &ResourceLimits) -> io::Result<()> {
    let Some(processes) = limits.processes else { return Ok(()) };
    if !limits_process_ids() || std::process::id() != 1 {
        return Ok(());
    }
    let highest = processes.saturating_add(RESERVED_PROCESS_IDS + 1);
    let most = std::fs::read_to_string("/proc/sys/kernel/pid_max")?.trim().parse().unwrap_or(u64::MAX);
    if highest >= most {
        return Ok(());
    }
    std::fs::write("/proc/sys/kernel/pid_max", highest.to_string())
}

/// Returns whether this kernel can limit the number of processes per namespace.
pub(crate) fn limits_process_ids() -> bool {
    kernel_version() >= PID_MAX_PER_NAMESPACE
}

/// Limits the System V shared memory in this IPC namespace to `most` bytes. Before Linux 5.19, only root can set this
/// limit.
pub(crate) fn limit_shared_memory(most: Option<u64>) {
    let Some(most) = most.filter(|_| std::process::id() == 1) else { return };
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().and_then(|page| u64::try_from(page).ok());
    for (name, value) in [("shmmax", most), ("shmall", most / page.unwrap_or(4096).max(1))] {
        if let Err(error) = std::fs::write(format!("/proc/sys/kernel/{name}"), value.to_string()) {
            tracing::debug!(%error, name, "cannot limit shared memory");
        }
    }
}

/// Limits that can be set without looking anything up.
#[derive(Debug)]
pub(super) struct Limits {
    /// Resources, each with its soft and its hard limit.
    each: Vec<(Resource, u64, u64)>,
}

pub(super) fn prepare(confinement: &Confinement) -> io::Result<Limits> {
    let ResourceLimits { processes, memory_bytes, file_bytes, cpu_seconds, layer_bytes: _ } = confinement.limits;
    let mut each = vec![(Resource::RLIMIT_CORE, 0, 0)];
    let mut both = |resource, limit: Option<u64>| each.extend(limit.map(|limit| (resource, limit, limit)));
    both(Resource::RLIMIT_DATA, memory_bytes);
    both(Resource::RLIMIT_FSIZE, file_bytes);
    both(Resource::RLIMIT_NPROC, processes.and_then(|processes| countable(processes, confinement.strength)));
    each.extend(cpu_seconds.map(|seconds| (Resource::RLIMIT_CPU, seconds, seconds.saturating_add(CPU_GRACE_SECONDS))));
    Ok(Limits { each })
}

/// Converts the limit to the number against which the kernel compares. With namespaces, the kernel counts the command's
/// processes and the first process, and otherwise all processes of the user. Returns `None` if the kernel cannot count
/// processes per namespace.
fn countable(processes: u64, strength: Backend) -> Option<u64> {
    match strength {
        Backend::Namespaces if kernel_version() < PROCESSES_PER_NAMESPACE => None,
        Backend::Namespaces => Some(processes.saturating_add(1)),
        Backend::Landlock => Some(processes.saturating_add(threads_of_user())),
    }
}

impl Limits {
    pub(super) fn enforce(self) -> io::Result<()> {
        for (resource, soft, hard) in self.each {
            let (_, most) = getrlimit(resource)?;
            setrlimit(resource, soft.min(most), hard.min(most))?;
        }
        lower_priority();
        prefer_as_oom_victim();
        Ok(())
    }
}

/// Makes the kernel kill this process before others if memory runs out. Must be called during setup, while the
/// sandbox's own `/proc` is still writable.
pub(crate) fn prefer_as_oom_victim() {
    // Best effort: without `/proc`, there is no alternative.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
}

#[expect(unsafe_code, reason = "no safe call changes the priority")]
fn lower_priority() {
    // SAFETY: the call takes no pointers. If a filter blocks it, the command runs at normal priority.
    unsafe { libc::nice(NICER) };
}

/// Returns the number of threads that belong to this user, as the kernel counts them.
fn threads_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let user = nix::unistd::getuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let own = entries.flatten().filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == user));
    own.filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok())
        .filter_map(|status| status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<u64>().ok()))
        .sum()
}

/// Returns the kernel version, such as 6.18 for `6.18.44-…`. Returns 0.0 if it cannot be determined, so no feature is
/// assumed to exist.
fn kernel_version() -> (u32, u32) {
    let Ok(names) = nix::sys::utsname::uname() else { return (0, 0) };
    parse_version(&names.release().to_string_lossy())
}

pub(super) fn parse_version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
