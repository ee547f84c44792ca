//! Run of the binary without a terminal: its output, events and exit code.

use super::TIMEOUT;
use super::project::Invocation;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Process that may still be running.
pub struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

/// Result of a finished process.
#[derive(Debug)]
pub struct Output {
    /// Exit code, or 128 plus the number of the signal.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Running {
    pub(super) fn start(invocation: &Invocation<'_>, input: Option<&str>) -> Self {
        let mut command = Command::new(invocation.program);
        restore_hangup_signal(&mut command);
        let mut child = command
            .args(&invocation.arguments)
            .current_dir(&invocation.directory)
            .env_clear()
            .envs(invocation.environment.iter().map(|(name, value)| (name, value)))
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            let input = input.to_owned();
            // The program may exit without reading its input.
            thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        }
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Waits for the end of the process. Fails if the process does not end in time or panicked.
    #[track_caller]
    pub fn finish(mut self) -> Output {
        let ended = wait_until(TIMEOUT, || self.child.try_wait().unwrap().is_some());
        if !ended {
            self.child.kill().unwrap();
        }
        let status = self.child.wait().unwrap();
        let stdout = self.stdout.recv_timeout(TIMEOUT).unwrap_or_default();
        let stderr = self.stderr.recv_timeout(TIMEOUT).unwrap_or_default();
        assert!(ended, "it did not end\nstdout:\n{stdout}\nstderr:\n{stderr}");
        assert!(!stderr.contains("panicked at"), "it panicked:\n{stderr}");
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Output { code, stdout, stderr }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Kills the process, like a crash. The process has ended when this method returns.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Resets `SIGHUP` to its default action in a command, even if the tests were started with `nohup`.
#[expect(unsafe_code, reason = "no safe call changes what a child does on a signal")]
pub(super) fn restore_hangup_signal(command: &mut Command) {
    let reset = || {
        // SAFETY: `signal` may be called between fork and exec, and the default action installs no handler.
        unsafe { nix::sys::signal::signal(Signal::SIGHUP, nix::sys::signal::SigHandler::SigDfl) }?;
        Ok(())
    };
    // SAFETY: the closure allocates no memory and takes no lock.
    unsafe { command.pre_exec(reset) };
}

fn collect(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (to, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(from.read_to_end(&mut bytes));
        drop(to.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}

impl Output {
    /// Fails, and prints all output, unless the exit code is `code`.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Parses stdout as events in JSON Lines.
    #[track_caller]
    pub fn events(&self) -> Events {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        Events(self.stdout.lines().map(parse).collect())
    }

    /// Parses stdout as one JSON value.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr))
    }

    /// Fails unless stderr names this line of this file.
    #[track_caller]
    pub fn points_at(self, file: &str, line: usize) -> Self {
        let named = |text: &str| {
            text.match_indices(file).any(|(at, _)| {
                let after = &text[at + file.len()..];
                let after = after.trim_start_matches(['`', ':', ',', ' ']).trim_start_matches("line ");
                after.strip_prefix(&line.to_string()).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
            })
        };
        assert!(named(&self.stderr), "stderr does not name line {line} of {file}:\n{}", self.stderr);
        self
    }

    /// Fails unless stderr contains all of these words.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "stderr does not say `{word}`:\n{}", self.stderr);
        }
        self
    }
}

/// Events of one run.
#[derive(Debug)]
pub struct Events(pub Vec<Value>);

impl Events {
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|event| event["eventType"].as_str().unwrap_or("?")).collect()
    }

    /// Returns the payloads of all events with this name.
    pub fn all(&self, name: &str) -> Vec<&Value> {
        self.0.iter().filter(|event| event["eventType"] == name).map(|event| &event["payload"]).collect()
    }

    /// Returns the payload of the only event with this name. Fails if there is none or more than one.
    #[track_caller]
    pub fn only(&self, name: &str) -> &Value {
        let found = self.all(name);
        assert_eq!(found.len(), 1, "how often `{name}` came: {:?}", self.names());
        found[0]
    }

    /// Returns the streamed text.
    pub fn text(&self) -> String {
        self.all("text_chunk").iter().filter_map(|chunk| chunk["text"].as_str()).collect()
    }

    /// Fails unless events with these names occur in this order. Other events may occur between them.
    #[track_caller]
    pub fn in_order(&self, names: &[&str]) {
        let all = self.names();
        let mut rest = all.iter();
        for name in names {
            assert!(rest.any(|event| event == name), "`{name}` is missing at its place in {all:?}");
        }
    }
}

/// Polls a condition that has no event to wait for. Returns whether the condition became true in time.
pub fn wait_until(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the number of processes with exactly this command line, in any namespace.
#[cfg(target_os = "linux")]
pub fn processes_running(command: &[&str]) -> usize {
    let wanted = command.join("\0") + "\0";
    let runs = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes());
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(char::is_numeric))
        .filter_map(|entry| runs(entry).then_some(()))
        .count()
}
