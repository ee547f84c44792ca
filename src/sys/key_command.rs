//! Runs a program, configured by the user, that prints an API key, such as `pass show …`. It is started without a shell
//! or a terminal, and its run time and output are limited.

use super::process::program_environment;
use super::programs::{find, find_outside};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Maximum length in bytes of the first output line. Anything longer is not a key.
const KEY_BYTES: usize = 16 << 10;
/// Maximum size of the whole output in bytes. A program that prints more than this is not printing a key.
const OUTPUT_BYTES: usize = 64 << 10;
/// Maximum number of characters of error output to include in a message.
const ERROR_CHARS: usize = 400;
const ERROR_BYTES: u64 = 8 << 10;
/// Time to wait for error output after the program has ended, since processes that it started may keep the pipe open.
const GRACE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyCommandError {
    #[error("`{0}` was not found in PATH (directories in the workspace are ignored)")]
    Missing(String),
    #[error("cannot start `{program}`: {reason}")]
    NotStarted { program: String, reason: String },
    #[error("`{program}` did not end within {seconds} s")]
    TimedOut { program: String, seconds: u64 },
    #[error("`{program}` failed ({status}){stderr}")]
    Failed { program: String, status: String, stderr: String },
    #[error("`{program}` printed more than {} KiB", OUTPUT_BYTES >> 10)]
    TooLong { program: String },
    #[error("`{program}` printed no key; expected one line of ASCII letters, digits and symbols without spaces{stderr}")]
    NoKey { program: String, stderr: String },
}

/// A program, with its arguments and environment.
#[derive(Debug, Clone)]
pub(crate) struct KeyProgram<'a> {
    /// Program and arguments. The program is an absolute path or a name to look up in `PATH`.
    pub argv: &'a [String],
    pub home: &'a Path,
    pub timeout: Duration,
    /// Environment variables that are withheld from the program: aye's API keys.
    pub withheld: &'a [String],
    /// Directories whose programs cannot be started by name.
    pub roots: &'a [PathBuf],
}

/// Output and exit status of a finished program.
struct ProgramOutput {
    stdout: Vec<u8>,
    status: std::io::Result<ExitStatus>,
}

impl KeyProgram<'_> {
    /// Runs the program and returns the first line of its output. Blocks until the program ends or times out.
    pub(crate) fn print_key(&self) -> Result<String, KeyCommandError> {
        let (text, stderr) = self.run()?;
        let line = text.lines().next().unwrap_or_default().trim();
        if line.is_empty() || line.len() > KEY_BYTES || !line.bytes().all(|byte| byte.is_ascii_graphic()) {
            let program = self.argv.first().cloned().unwrap_or_default();
            return Err(KeyCommandError::NoKey { program, stderr: error_tail(&stderr, line) });
        }
        Ok(line.to_owned())
    }

    /// Runs the program as [`KeyProgram::print_key`] does, and returns its full output.
    pub(crate) fn output(&self) -> Result<String, KeyCommandError> {
        self.run().map(|(text, _)| text)
    }

    /// Runs the program and, if it succeeds, returns its stdout and stderr.
    fn run(&self) -> Result<(String, Vec<u8>), KeyCommandError> {
        let (name, arguments) = self.argv.split_first().ok_or_else(|| KeyCommandError::Missing(String::new()))?;
        let mut environment = program_environment(std::env::vars_os(), self.withheld);
        // Programs that this program starts use the same search path.
        let search = find_outside(&std::env::var_os("PATH").unwrap_or_default(), self.roots);
        environment.retain(|(name, _)| name != "PATH");
        let path = self.program(name, &search.to_string_lossy())?;
        environment.push(("PATH".into(), search));
        let not_started =
            |error: std::io::Error| KeyCommandError::NotStarted { program: name.clone(), reason: error.to_string() };
        let mut child = Command::new(path)
            .args(arguments)
            .env_clear()
            .envs(environment)
            .current_dir(self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A separate process group is in the background of the terminal, so it cannot read what the user types into
            // aye.
            .process_group(0)
            .spawn()
            .map_err(not_started)?;
        let group = i32::try_from(child.id()).map(Pid::from_raw);
        let errors = drain_stderr(&mut child);
        let ended = collect_output(child);
        let kill = || {
            let _ = group.map(|group| killpg(group, Signal::SIGKILL));
        };
        let ended = match ended.recv_timeout(self.timeout) {
            Ok(ended) => ended,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                kill();
                return Err(KeyCommandError::TimedOut { program: name.clone(), seconds: self.timeout.as_secs() });
            }
        };
        if ended.stdout.len() > OUTPUT_BYTES {
            kill();
            return Err(KeyCommandError::TooLong { program: name.clone() });
        }
        let status = ended.status.map_err(not_started)?;
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        let stderr = errors.recv_timeout(GRACE).unwrap_or_default();
        if !status.success() {
            let status = status.code().map_or_else(|| "ended by a signal".to_owned(), |code| format!("exit code {code}"));
            let stderr = error_tail(&stderr, text.lines().next().unwrap_or_default().trim());
            return Err(KeyCommandError::Failed { program: name.clone(), status, stderr });
        }
        Ok((text, stderr))
    }

    fn program(&self, name: &str, search: &str) -> Result<PathBuf, KeyCommandError> {
        if let Some(below) = name.strip_prefix("~/") {
            return Ok(self.home.join(below));
        }
        if name.starts_with('/') {
            return Ok(PathBuf::from(name));
        }
        find(name, search).ok_or_else(|| KeyCommandError::Missing(name.to_owned()))
    }
}

/// Returns the end of the error output for use in a message, with the key redacted.
fn error_tail(stderr: &[u8], key: &str) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = if key.is_empty() { text } else { text.replace(key, "[key]") };
    if text.is_empty() {
        return String::new();
    }
    let start = text.chars().count().saturating_sub(ERROR_CHARS);
    let dots = if start > 0 { "…" } else { "" };
    format!(": {dots}{}", text.chars().skip(start).collect::<String>())
}

/// Reads the error output on a thread, so the program never blocks while writing it.
fn drain_stderr(child: &mut Child) -> Receiver<Vec<u8>> {
    let (tell, told) = channel();
    if let Some(mut stderr) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.by_ref().take(ERROR_BYTES).read_to_end(&mut bytes);
            let _ = tell.send(bytes);
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        });
    }
    told
}

/// Reads the output and waits for the program to exit, on a separate thread. The receiver can stop waiting after a
/// timeout.
fn collect_output(mut child: Child) -> Receiver<ProgramOutput> {
    let (tell, told) = channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let limit = OUTPUT_BYTES as u64 + 1;
        let _ = stdout.map(|stdout| stdout.take(limit).read_to_end(&mut bytes));
        if bytes.len() > OUTPUT_BYTES {
            let _ = child.kill();
        }
        let status = child.wait();
        let _ = tell.send(ProgramOutput { stdout: bytes, status });
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, timeout: Duration) -> Result<String, KeyCommandError> {
        let argv = ["sh", "-c", script].map(str::to_owned);
        KeyProgram { argv: &argv, home: Path::new("/"), timeout, withheld: &[], roots: &[] }.print_key()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_key_is_the_trimmed_first_line() {
        for script in ["echo k-1", "printf '  k-1 \\r\\nlogin: me\\n'", "printf k-1", "echo noise >&2; echo k-1"] {
            assert_eq!(run(script, LONG).as_deref(), Ok("k-1"), "{script}");
        }
    }

    #[test]
    fn invalid_output_is_an_error_that_quotes_stderr_but_not_the_key() {
        for (script, expected) in [
            ("exit 0", "`sh` printed no key"),
            ("echo two words", "`sh` printed no key"),
            ("printf '\\nk-1\\n'", "`sh` printed no key"),
            ("echo locked >&2; exit 3", "`sh` failed (exit code 3): locked"),
            ("kill -9 $$", "`sh` failed (ended by a signal)"),
            ("echo s3cret; echo the key s3cret is old >&2; exit 1", "`sh` failed (exit code 1): the key [key] is old"),
            ("head -c 100000 /dev/zero", "`sh` printed more than 64 KiB"),
        ] {
            let error = run(script, LONG).unwrap_err().to_string();
            assert!(error.starts_with(expected) && !error.contains("s3cret"), "{script}: {error}");
        }
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let error = run("sleep 1000 & sleep 1000", Duration::from_millis(50)).unwrap_err();
        assert_eq!(error, KeyCommandError::TimedOut { program: "sh".to_owned(), seconds: 0 });
    }

    #[test]
    fn programs_are_found_in_path_or_by_absolute_path() {
        let of = |name: &str| {
            let argv = [name.to_owned(), "k-1".to_owned()];
            KeyProgram { argv: &argv, home: Path::new("/"), timeout: LONG, withheld: &[], roots: &[] }.print_key()
        };
        assert_eq!(of("/bin/echo").as_deref(), Ok("k-1"));
        assert_eq!(of("no-such-program"), Err(KeyCommandError::Missing("no-such-program".to_owned())));
        assert!(matches!(of("/no/such/program"), Err(KeyCommandError::NotStarted { .. })));
    }
}
