//! Desktop clipboard programs. They receive the text on stdin, never on the command line.

mod content;

pub(crate) use content::{ClipboardContent, read};

use super::programs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time after which a clipboard program is reported as not responding.
const TIMEOUT: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// A clipboard program, with the arguments that make it copy its standard input to the clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClipboardProgram {
    pub path: PathBuf,
    pub name: &'static str,
    arguments: &'static [&'static str],
}

/// Clipboard programs as (name, arguments, required environment variable). An empty variable name means none is
/// required.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    ("wl-copy", &[], "WAYLAND_DISPLAY"),
    ("xclip", &["-selection", "clipboard"], "DISPLAY"),
    ("xsel", &["--clipboard", "--input"], "DISPLAY"),
    ("pbcopy", &[], ""),
    ("termux-clipboard-set", &[], ""),
];
/// Programs that can work over SSH, where the desktop is on another machine that only X forwarding can reach.
const OVER_NETWORK: [&str; 2] = ["xclip", "xsel"];

/// Returns the first clipboard program that is installed and usable, judging by the environment variables.
pub(crate) fn find(variable: impl Fn(&str) -> Option<String>) -> Option<ClipboardProgram> {
    let paths = variable("PATH")?;
    let in_path = |name: &str| programs::find(name, &paths);
    // tmux passes the text to its terminal, wherever that is.
    if variable("TMUX").is_some()
        && let Some(path) = in_path("tmux")
    {
        return Some(ClipboardProgram { path, name: "tmux", arguments: &["load-buffer", "-w", "-"] });
    }
    let is_remote = is_remote(&variable);
    PROGRAMS.iter().find_map(|(name, arguments, needs)| {
        if (is_remote && !OVER_NETWORK.contains(name)) || (!needs.is_empty() && variable(needs).is_none()) {
            return None;
        }
        Some(ClipboardProgram { path: in_path(name)?, name, arguments })
    })
}

/// Returns whether the user is connected over SSH.
fn is_remote(variable: &impl Fn(&str) -> Option<String>) -> bool {
    ["SSH_CONNECTION", "SSH_TTY"].iter().any(|name| variable(name).is_some())
}

impl ClipboardProgram {
    /// Passes the text to the program. The error is a message for the user.
    pub(crate) fn take(&self, text: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.name);
        let mut child = Command::new(&self.path)
            .args(self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let Some(mut input) = child.stdin.take() else { return Err(format!("cannot write to {}", self.name)) };
        let text = text.to_owned();
        // The text is written on another thread, because a program that does not read must not block aye.
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let begun = Instant::now();
        loop {
            match child.try_wait().map_err(failed)? {
                Some(status) if status.success() => {
                    let _ = writer.join();
                    return Ok(());
                }
                Some(status) => return Err(format!("{} failed: {status}", self.name)),
                None if begun.elapsed() > TIMEOUT => {
                    child.kill().and_then(|()| child.wait()).map_err(failed)?;
                    return Err(format!("{} did not respond", self.name));
                }
                None => std::thread::sleep(LOOK),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    /// Returns a directory that contains programs with these names, each of which writes its input to a file.
    fn programs(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            let path = directory.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\ncat > {}/got-{name}\n", directory.path().display())).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        directory
    }

    fn found(directory: &Path, variables: &[&str]) -> Option<ClipboardProgram> {
        find(|name| match name {
            "PATH" => Some(directory.to_string_lossy().into_owned()),
            name => variables.contains(&name).then(|| "x".to_owned()),
        })
    }

    #[test]
    fn the_clipboard_program_depends_on_the_desktop() {
        let directory = programs(&["wl-copy", "xclip", "tmux"]);
        let name = |variables: &[&str]| found(directory.path(), variables).map(|program| program.name);
        assert_eq!(name(&["WAYLAND_DISPLAY", "DISPLAY"]), Some("wl-copy"));
        assert_eq!(name(&["DISPLAY"]), Some("xclip"));
        assert_eq!(name(&["TMUX", "DISPLAY"]), Some("tmux"));
        assert_eq!(name(&["SSH_TTY", "WAYLAND_DISPLAY"]), None, "nobody uses the clipboard of the remote machine");
        assert_eq!(name(&["SSH_TTY", "DISPLAY"]), Some("xclip"), "forwarded X");
        assert_eq!(name(&[]), None);
    }

    #[test]
    fn the_clipboard_program_receives_the_exact_text() {
        let directory = programs(&["xclip"]);
        let text = "你好\n$(rm -rf /)\n".repeat(20_000);
        found(directory.path(), &["DISPLAY"]).unwrap().take(&text).unwrap();
        assert_eq!(std::fs::read_to_string(directory.path().join("got-xclip")).unwrap(), text);
    }
}
