//! Runs commands that are confined only by Landlock, on systems where mounting is impossible. The helper itself is not
//! confined, and the commands have no access to it.

use super::messages::Job;
use std::io;
use std::process::Command;

/// Resources needed for as long as the command runs: its temporary directory, which is removed on drop.
#[derive(Debug)]
pub(super) struct SandboxResources {
    _temporary: tempfile::TempDir,
}

/// Returns the shell that runs the job's line: unconfined, already in namespaces, or confined by Landlock.
#[cfg(not(target_os = "macos"))]
pub(super) fn shell(job: &Job) -> io::Result<(Command, Option<SandboxResources>)> {
    use crate::sys::sandbox::Backend;
    let mut command = Command::new(&job.shell);
    command.args(&job.words);
    let fence = match &job.confinement {
        Some(confinement) if confinement.strength == Backend::Landlock => Some(confine_command(&mut command, confinement)?),
        Some(_) | None => None,
    };
    Ok((command, fence))
}

/// Returns the shell that runs the job's line, confined by a system sandbox profile if required.
#[cfg(target_os = "macos")]
pub(super) fn shell(job: &Job) -> io::Result<(Command, Option<SandboxResources>)> {
    let Some(confinement) = &job.confinement else {
        let mut command = Command::new(&job.shell);
        command.args(&job.words);
        return Ok((command, None));
    };
    let mut command = Command::new("/usr/bin/sandbox-exec");
    let (fence, confinement) = SandboxResources::with_temporary(&mut command, confinement)?;
    let profile = crate::sys::sandbox::seatbelt::profile(&confinement, None)?;
    command.args(["-p", &profile, &job.shell]).args(&job.words);
    Ok((command, Some(fence)))
}

impl SandboxResources {
    /// Gives the command a temporary directory of its own, because the command cannot write to the shared `/tmp`.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn with_temporary(
        command: &mut Command,
        confinement: &crate::sys::sandbox::Confinement,
    ) -> io::Result<(Self, crate::sys::sandbox::Confinement)> {
        let temporary = tempfile::Builder::new().prefix("aye-").tempdir()?;
        let place = std::fs::canonicalize(temporary.path())?;
        command.envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, &place)));
        let mut confinement = confinement.clone();
        confinement.writable.push(place);
        Ok((Self { _temporary: temporary }, confinement))
    }
}

/// Makes the command confine itself with Landlock and seccomp before it becomes the shell.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only code between fork and exec can confine the command without the helper")]
fn confine_command(command: &mut Command, confinement: &crate::sys::sandbox::Confinement) -> io::Result<SandboxResources> {
    use crate::sys::sandbox::filter::{PreparedFilters, prepare};
    use std::os::unix::process::CommandExt;
    let (fence, confinement) = SandboxResources::with_temporary(command, confinement)?;
    let mut prepared = Some(prepare(&confinement)?);
    // SAFETY: the helper has only one thread, so no other thread holds a lock. File system access has already happened
    // above.
    unsafe {
        command.pre_exec(move || prepared.take().map_or(Ok(()), PreparedFilters::enforce));
    }
    Ok(fence)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn confine_command(_command: &mut Command, _confinement: &crate::sys::sandbox::Confinement) -> io::Result<SandboxResources> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no sandbox"))
}
