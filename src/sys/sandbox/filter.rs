//! What a process gives up before it runs a command.

use super::Confinement;
use std::io;

/// For now only the way to more rights.
pub(in crate::sys) fn apply(_confinement: &Confinement) -> io::Result<()> {
    Ok(nix::sys::prctl::set_no_new_privs()?)
}
