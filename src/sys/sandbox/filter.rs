//! Filters of a sandboxed command's first process, inherited by all others. None of them can be removed again.

mod capabilities;
mod landlock;
mod limits;
mod places;
mod seccomp;
#[cfg(test)]
mod tests;

pub use self::landlock::version as landlock_version;
use super::{Confinement, Strength};
pub use limits::{end_before_others, limit_process_ids, limit_shared_memory, limits_process_ids};
use nix::sys::prctl;
pub use seccomp::available as has_seccomp;
use std::io;

/// Limits, powers, paths and system calls, for the process that calls this: all that is mounted must be mounted, and
/// [`limit_process_ids`] called.
///
/// Whoever calls it has one thread, and needs no more than to start the command, watch it and end it afterwards.
pub fn apply(confinement: &Confinement) -> io::Result<()> {
    prepare(confinement)?.enforce()
}

/// What needs memory and the file system done, so that the rest can happen between fork and exec.
pub fn prepare(confinement: &Confinement) -> io::Result<Prepared> {
    Ok(Prepared {
        strength: confinement.strength,
        limits: limits::prepare(confinement)?,
        rules: landlock::prepare(confinement).map_err(|error| named("Landlock", error))?,
        filters: seccomp::prepare(confinement).map_err(|error| named("seccomp", error))?,
    })
}

/// What will hold the process that enforces it.
#[derive(Debug)]
pub struct Prepared {
    strength: Strength,
    limits: limits::Limits,
    rules: landlock::Rules,
    filters: seccomp::Filters,
}

impl Prepared {
    pub fn enforce(self) -> io::Result<()> {
        self.limits.enforce().map_err(|error| named("limits", error))?;
        capabilities::drop_all_but_file_powers(self.strength).map_err(|error| named("capabilities", error))?;
        prctl::set_no_new_privs()?;
        // The command may look into processes of its own, not into the one that holds it. What it starts is as usual again.
        prctl::set_dumpable(false)?;
        self.rules.enforce().map_err(|error| named("Landlock", error))?;
        self.filters.enforce().map_err(|error| named("seccomp", error))
    }
}

fn named(part: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{part}: {error}"))
}
