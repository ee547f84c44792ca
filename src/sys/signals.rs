//! Signal settings inherited from the parent process.

/// Returns whether this process ignores the terminal's hangup signal, as it does under `nohup`. Must be called before a
/// handler is installed.
#[cfg(target_os = "linux")]
pub(crate) fn is_hangup_ignored() -> bool {
    const SIGHUP: u32 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}

#[cfg(not(target_os = "linux"))]
pub fn is_hangup_ignored() -> bool {
    false
}

/// Makes this process the leader of a new session without a terminal, so it no longer receives the terminal's signals.
/// Has no effect if the process already leads a process group.
pub(crate) fn leave_terminal() {
    let _ = nix::unistd::setsid();
}
