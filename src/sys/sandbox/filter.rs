//! Filters for the first process of a sandboxed command. All other processes inherit the filters, and none can remove
//! them.

mod capabilities;
mod connections;
mod landlock;
mod limits;
mod places;
mod seccomp;
#[cfg(test)]
mod tests;

pub(crate) use self::landlock::version as landlock_version;
use super::{Backend, Confinement};
pub(in crate::sys) use connections::ConnectionRecorder;
pub(crate) use limits::{limit_process_ids, limit_shared_memory, limits_process_ids, prefer_as_oom_victim};
use nix::sys::prctl;
pub(crate) use seccomp::available as has_seccomp;
use std::io;

/// Applies limits, capabilities, path rules and the system call filter to the calling process. All mounts must already
/// be in place, and [`limit_process_ids`] must have been called.
///
/// The caller must be single-threaded. Afterwards, all it can do is start, watch and end the command. It must handle
/// the command's attempts to connect, because each of them waits until it is recorded.
pub(in crate::sys) fn apply(confinement: &Confinement) -> io::Result<ConnectionRecorder> {
    prepare(confinement)?.enforce()?;
    Ok(ConnectionRecorder::install(confinement))
}

/// Prepares everything that needs memory or access to the file system, so that the remaining steps can be performed
/// between fork and exec.
pub(crate) fn prepare(confinement: &Confinement) -> io::Result<PreparedFilters> {
    Ok(PreparedFilters {
        strength: confinement.strength,
        limits: limits::prepare(confinement)?,
        rules: landlock::prepare(confinement).map_err(|error| with_part_name("Landlock", error))?,
        filters: seccomp::prepare(confinement).map_err(|error| with_part_name("seccomp", error))?,
    })
}

/// Restrictions prepared for the process that will enforce them.
#[derive(Debug)]
pub(crate) struct PreparedFilters {
    strength: Backend,
    limits: limits::Limits,
    rules: landlock::LandlockRules,
    filters: seccomp::Filters,
}

impl PreparedFilters {
    pub(crate) fn enforce(self) -> io::Result<()> {
        self.limits.enforce().map_err(|error| with_part_name("limits", error))?;
        capabilities::keep_only_file_capabilities(self.strength).map_err(|error| with_part_name("capabilities", error))?;
        prctl::set_no_new_privs()?;
        // The command may inspect its own processes, but not the process that confines it. Child processes are not
        // affected.
        prctl::set_dumpable(false)?;
        self.rules.enforce().map_err(|error| with_part_name("Landlock", error))?;
        self.filters.enforce().map_err(|error| with_part_name("seccomp", error))
    }
}

fn with_part_name(part: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{part}: {error}"))
}
