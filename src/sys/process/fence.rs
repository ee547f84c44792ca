//! A command held by rules alone, where the kernel makes no namespaces: the helper stays free of them, out of its reach.

use crate::sys::sandbox::{Confinement, Strength};
use std::io;
use std::process::Command;

/// What lasts as long as the command: its temporary directory, removed after it.
#[derive(Debug)]
pub(super) struct Fence {
    _temporary: tempfile::TempDir,
}

/// Has the command hold itself by Landlock and seccomp before it becomes the shell; nothing where namespaces hold it, or nothing.
///
/// `/tmp` is everybody's and cannot be written, so that what asks for the temporary directory finds one of the command's own.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only code between fork and exec can hold the command without the helper")]
pub(super) fn around(command: &mut Command, confinement: Option<&Confinement>) -> io::Result<Option<Fence>> {
    use std::os::unix::process::CommandExt;
    let Some(confinement) = confinement.filter(|confinement| confinement.strength == Strength::Landlock) else {
        return Ok(None);
    };
    let temporary = tempfile::Builder::new().prefix("aye-").tempdir()?;
    let place = std::fs::canonicalize(temporary.path())?;
    let mut confinement = confinement.clone();
    confinement.writable.push(place.clone());
    let mut prepared = Some(crate::sys::sandbox::filter::prepare(&confinement)?);
    command.envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, &place)));
    // SAFETY: the helper has one thread, so that no lock is held by another; what needs the file system was done above.
    unsafe {
        command.pre_exec(move || prepared.take().map_or(Ok(()), crate::sys::sandbox::filter::Prepared::enforce));
    }
    Ok(Some(Fence { _temporary: temporary }))
}
