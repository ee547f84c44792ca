//! Minimal client of `aye serve`, and of other programs that speak line-based JSON-RPC.

use super::{Project, TIMEOUT};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

/// Connection to one program.
pub struct Rpc {
    child: Option<Child>,
    /// Stream of a socket connection; `None` for a child process.
    stream: Option<UnixStream>,
    to: Option<Box<dyn Write + Send>>,
    lines: Receiver<String>,
    errors: Receiver<String>,
    /// All messages received so far, in order.
    pub seen: Vec<Value>,
    next_id: u64,
}

impl Rpc {
    /// Starts `aye serve --stdio` with these global flags.
    pub fn start(project: &Project, flags: &[&str]) -> Self {
        let mut words = flags.to_vec();
        words.extend(["serve", "--stdio"]);
        Self::start_with(project, &words)
    }

    /// Starts another program that speaks line-based JSON-RPC.
    pub fn start_with(project: &Project, words: &[&str]) -> Self {
        let mut command = project.command(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let to: ChildStdin = child.stdin.take().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let errors = lines_of(child.stderr.take().unwrap());
        Self { child: Some(child), stream: None, to: Some(Box::new(to)), lines, errors, seen: Vec::new(), next_id: 0 }
    }

    /// Connects to a socket.
    pub fn connect(path: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        let lines = lines_of(stream.try_clone()?);
        let (_, errors) = channel();
        let to = Box::new(stream.try_clone()?);
        Ok(Self { child: None, stream: Some(stream), to: Some(to), lines, errors, seen: Vec::new(), next_id: 0 })
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends bytes unchanged.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let to = self.to.as_mut().unwrap();
        to.write_all(bytes)?;
        to.flush()
    }

    #[track_caller]
    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Sends a request. Returns its ID.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    /// Returns the next message, or `None` at the end of the connection.
    #[track_caller]
    pub fn next(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(TIMEOUT) {
            Ok(line) => {
                let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"));
                self.seen.push(message.clone());
                Some(message)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing more came after {:#?}\n{}", self.seen.last(), self.stderr()),
        }
    }

    /// Returns the next message that matches. Skips the messages before it.
    #[track_caller]
    pub fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            match self.next() {
                Some(message) if is(&message) => return message,
                Some(_) => {}
                None => panic!("the connection ended first; last came {:#?}\n{}", self.seen.last(), self.stderr()),
            }
        }
    }

    /// Waits for the response to a request and returns it completely.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request that must fail. Returns the error code.
    #[track_caller]
    pub fn fails(&mut self, method: &str, params: Value) -> i64 {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        assert!(!answer["error"]["message"].as_str().unwrap_or_default().is_empty(), "{method}: {answer}");
        answer["error"]["code"].as_i64().unwrap()
    }

    /// Returns the payload of the next event with this name.
    #[track_caller]
    pub fn event(&mut self, name: &str) -> Value {
        self.until(|message| message["params"]["eventType"] == name)["params"]["payload"].clone()
    }

    /// Creates a session in the project. Returns the result.
    #[track_caller]
    pub fn create(&mut self, project: &Project) -> Value {
        self.call("CreateSession", Self::hello(project))
    }

    /// Returns the parameters that create a session in the project.
    pub fn hello(project: &Project) -> Value {
        json!({
            "clientInfo": {"name": "test", "version": "1"}, "supportedCapabilities": [],
            "workspaceHint": project.path(""),
        })
    }

    /// Closes the input.
    pub fn hang_up(&mut self) {
        self.to = None;
    }

    /// Closes the input and waits for the end of the process. Returns the exit code.
    #[track_caller]
    pub fn leave(mut self) -> i32 {
        self.hang_up();
        while self.next().is_some() {}
        self.code()
    }

    /// Waits for the process to end on its own. Returns the exit code.
    #[track_caller]
    pub fn code(&mut self) -> i32 {
        let child = self.child.as_mut().unwrap();
        let ended = super::wait_until(TIMEOUT, || child.try_wait().unwrap().is_some());
        assert!(ended, "the process goes on");
        let status = child.wait().unwrap();
        status.code().unwrap_or_else(|| panic!("{status}"))
    }

    /// Reads to the end of the connection. Returns the exit code.
    #[track_caller]
    pub fn finish(mut self) -> i32 {
        while self.next().is_some() {}
        self.code()
    }

    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid() as i32), signal).unwrap();
    }

    /// Returns the stderr lines of the process since the last call.
    pub fn stderr(&self) -> String {
        self.errors.try_iter().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn lines_of(from: impl Read + Send + 'static) -> Receiver<String> {
    let (to, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
