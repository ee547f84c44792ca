//! Runs commands with a deadline, at which all of their processes are killed.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

/// Runs a command, detached from the terminal, while `read` reads its output. At the deadline, kills the command's
/// processes and returns `None`.
///
/// # Errors
/// Returns an error if the command cannot be started.
pub(crate) fn run_until<T>(
    command: &mut Command,
    deadline: Instant,
    read: impl FnOnce(&mut Child) -> T,
) -> io::Result<Option<(ExitStatus, T)>> {
    detach(command);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (ended, end) = channel::<()>();
    let left = deadline.saturating_duration_since(Instant::now());
    let watch = std::thread::spawn(move || {
        let is_late = matches!(end.recv_timeout(left), Err(RecvTimeoutError::Timeout));
        if let Some(group) = id.filter(|_| is_late) {
            // Fails if all processes have already ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        is_late
    });
    let value = read(&mut child);
    if let Some(id) = id {
        // Until the process is reaped below, its ID cannot be reused for another process group.
        let _ = waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    }
    drop(ended);
    let is_late = watch.join().unwrap_or(true);
    let status = child.wait()?;
    Ok((!is_late).then_some((status, value)))
}

/// Makes the command start in a new session and process group, detached from the terminal.
#[expect(unsafe_code, reason = "there is no other way to start a program in a new session")]
fn detach(command: &mut Command) {
    // SAFETY: between fork and exec, only `setsid` is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(io::Error::from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::time::Duration;

    fn output(child: &mut Child) -> String {
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn all_processes_of_a_command_are_killed_at_the_deadline() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 600 & sleep 600"]);
        // Both programs have the output open, so the read ends only when both have ended.
        assert!(run_until(&mut command, Instant::now(), output).unwrap().is_none());
    }

    #[test]
    fn a_command_that_ends_in_time_returns_its_status_and_its_output() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo said; exit 3"]);
        let (status, text) = run_until(&mut command, Instant::now() + Duration::from_secs(300), output).unwrap().unwrap();
        assert_eq!((status.code(), text.as_str()), (Some(3), "said\n"));
    }
}
