//! Editor at the other end of `aye acp`, which checks each message against the schema of the protocol.

use super::project::Project;
use super::{TIMEOUT, wait_until};
use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

const SCHEMA: &str = "file:///acp.json";

/// Function that answers a permission request with one of its options, or leaves the request open.
type Answers = Box<dyn FnMut(&Value) -> Option<Value>>;

/// Function that answers a request about files with a `result` or an `error`, or leaves the request open.
type OfFiles = Box<dyn FnMut(&Value) -> Option<Value>>;

pub struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    stderr: Receiver<String>,
    next: u64,
    /// Methods of the requests that were sent, by ID.
    asked: HashMap<u64, String>,
    /// Received updates, in order.
    pub updates: Vec<Value>,
    /// Received permission requests, in order.
    pub questions: Vec<Value>,
    answers: Answers,
    /// Received requests about files, in order.
    pub of_files: Vec<Value>,
    files: Option<OfFiles>,
    responses: VecDeque<Value>,
    schema: Option<Schema>,
}

impl Editor {
    /// Starts the process and initializes the connection.
    pub fn start(project: &Project, arguments: &[&str]) -> Self {
        Self::start_with(project, arguments, &json!({"session": {"notices": {}}}))
    }

    /// Starts the process and initializes the connection with these client capabilities.
    pub fn start_with(project: &Project, arguments: &[&str], can: &Value) -> Self {
        let mut editor = Self::silent(project, arguments);
        let hello = json!({"protocolVersion": 1, "clientCapabilities": can});
        assert_eq!(editor.call("initialize", hello).unwrap()["protocolVersion"], 1);
        editor
    }

    /// Starts the process and sends nothing.
    pub fn silent(project: &Project, arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["acp"].into_iter().chain(arguments.iter().copied()).collect();
        let mut command = project.command(&all);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (to, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let value =
                    serde_json::from_str(&line).unwrap_or_else(|error| json!({"broken": line, "error": error.to_string()}));
                if to.send(value).is_err() {
                    return;
                }
            }
        });
        let (to, stderr) = channel();
        let mut from = child.stderr.take().unwrap();
        thread::spawn(move || {
            let mut text = String::new();
            drop(from.read_to_string(&mut text));
            drop(to.send(text));
        });
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            lines,
            stderr,
            next: 0,
            asked: HashMap::new(),
            updates: Vec::new(),
            questions: Vec::new(),
            answers: Box::new(|_| None),
            of_files: Vec::new(),
            files: None,
            responses: VecDeque::new(),
            schema: Schema::read(),
        }
    }

    /// From now on, answers each permission request with the first option of this kind.
    pub fn answers_with(&mut self, kind: &'static str) {
        self.answers = Box::new(move |question| {
            let options = question["params"]["options"].as_array()?;
            let option = options.iter().find(|option| option["kind"] == kind)?;
            Some(json!({"outcome": "selected", "optionId": option["optionId"]}))
        });
    }

    /// From now on, answers each request about files with `says`. Without this call, such a request fails the test.
    pub fn says_of_files(&mut self, says: impl FnMut(&Value) -> Option<Value> + 'static) {
        self.files = Some(Box::new(says));
    }

    /// Sends a line unchanged.
    pub fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush()).unwrap();
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request without waiting for the response. Returns the ID of the request.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.asked.insert(self.next, method.to_owned());
        self.write(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}).to_string());
        self.next
    }

    /// Sends a request. Returns its result or its error.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Waits for the response to a request. Returns its result or its error.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let found = |message: &Value| message["id"] == id;
        loop {
            if let Some(at) = self.responses.iter().position(found)
                && let Some(response) = self.responses.remove(at)
            {
                return response.get("error").map_or_else(|| Ok(response["result"].clone()), |error| Err(error.clone()));
            }
            self.hear();
        }
    }

    /// Receives messages until the condition holds.
    #[track_caller]
    pub fn wait_for(&mut self, what: impl Fn(&Self) -> bool) {
        while !what(self) {
            self.hear();
        }
    }

    /// Receives and checks the next message.
    #[track_caller]
    fn hear(&mut self) {
        let Ok(message) = self.lines.recv_timeout(TIMEOUT) else {
            let stderr = self.stderr.try_recv().unwrap_or_default();
            panic!("nothing more came; updates: {:#?}\nquestions: {:#?}\n{stderr}", self.updates, self.questions);
        };
        assert!(message.get("broken").is_none(), "stdout carries nothing but messages: {message}");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        self.check(&message);
        match (message.get("method").and_then(Value::as_str), message.get("id").cloned()) {
            (Some("session/update"), None) => self.updates.push(message["params"].clone()),
            (Some("session/request_permission"), Some(id)) => {
                self.questions.push(message.clone());
                if let Some(outcome) = (self.answers)(&message) {
                    self.write(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}).to_string());
                }
            }
            (Some("fs/read_text_file" | "fs/write_text_file"), Some(id)) if self.files.is_some() => {
                self.of_files.push(message.clone());
                if let Some(mut answer) = self.files.as_mut().and_then(|says| says(&message)) {
                    (answer["jsonrpc"], answer["id"]) = ("2.0".into(), id);
                    self.write(&answer.to_string());
                }
            }
            (Some("$/cancel_request"), None) => {}
            (None, Some(_)) => self.responses.push_back(message),
            _ => panic!("nobody expects this: {message}"),
        }
    }

    /// Answers a permission request that was left open.
    pub fn decide(&mut self, number: usize, outcome: Value) {
        let id = self.questions[number]["id"].clone();
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}).to_string());
    }

    #[track_caller]
    fn check(&self, message: &Value) {
        let Some(schema) = &self.schema else { return };
        let (definition, value) = match message.get("method").and_then(Value::as_str) {
            Some("session/update") => ("SessionNotification".to_owned(), &message["params"]),
            Some("session/request_permission") => ("RequestPermissionRequest".to_owned(), &message["params"]),
            Some("fs/read_text_file") => ("ReadTextFileRequest".to_owned(), &message["params"]),
            Some("fs/write_text_file") => ("WriteTextFileRequest".to_owned(), &message["params"]),
            Some("$/cancel_request") => ("CancelRequestNotification".to_owned(), &message["params"]),
            Some(other) => panic!("`{other}` is no method of an agent"),
            None if message.get("error").is_some() => ("Error".to_owned(), &message["error"]),
            None => {
                let method = message["id"].as_u64().and_then(|id| self.asked.get(&id)).unwrap_or_else(|| panic!("{message}"));
                (schema.response_of(method), &message["result"])
            }
        };
        schema.check(&definition, value);
    }

    /// Creates a session in this directory. Returns its ID.
    #[track_caller]
    pub fn new_session(&mut self, directory: &Path) -> String {
        let made = self.call("session/new", json!({"cwd": directory, "mcpServers": []})).unwrap();
        made["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn ask_prompt(&mut self, session: &str, text: &str) -> u64 {
        self.ask("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    /// Sends a prompt and waits for its end. Returns the stop reason.
    #[track_caller]
    pub fn prompt(&mut self, session: &str, text: &str) -> String {
        let id = self.ask_prompt(session, text);
        let answer = self.answer(id).unwrap_or_else(|error| panic!("the prompt failed: {error}"));
        answer["stopReason"].as_str().unwrap().to_owned()
    }

    /// Returns the updates of one kind.
    pub fn told(&self, kind: &str) -> Vec<&Value> {
        self.updates.iter().map(|update| &update["update"]).filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// Returns the text from the agent, for one session or for all.
    pub fn text(&self, session: Option<&str>) -> String {
        let own = self.updates.iter().filter(|update| session.is_none_or(|session| update["sessionId"] == session));
        let chunks = own.map(|update| &update["update"]).filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input and waits for the end of the process. Returns the exit code and stderr.
    #[track_caller]
    pub fn leave(mut self) -> (i32, String) {
        drop(self.stdin.take());
        self.ended()
    }

    #[track_caller]
    pub fn ended(&mut self) -> (i32, String) {
        let ended = wait_until(TIMEOUT, || self.child.try_wait().unwrap().is_some());
        let stderr = if ended { self.stderr.recv_timeout(TIMEOUT).unwrap_or_default() } else { String::new() };
        assert!(ended, "it does not end");
        assert!(!stderr.contains("panicked"), "{stderr}");
        (self.child.wait().unwrap().code().unwrap_or(-1), stderr)
    }

    /// Returns whether messages are checked, which requires the schema from the shared test material.
    pub fn checks_messages(&self) -> bool {
        self.schema.is_some()
    }

    /// Kills the process, like a crash.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Schema of the protocol.
struct Schema {
    whole: Value,
    compiled: std::cell::RefCell<(Schemas, Compiler, HashMap<String, SchemaIndex>)>,
}

impl Schema {
    fn read() -> Option<Self> {
        if !cfg!(aye_shared) {
            return None;
        }
        let text = std::fs::read_to_string(shared!("fixtures/acp/schema.v1.json")).unwrap();
        let whole: Value = serde_json::from_str(&text).unwrap();
        let mut compiler = Compiler::new();
        compiler.add_resource(SCHEMA, whole.clone()).unwrap();
        Some(Self { whole, compiled: std::cell::RefCell::new((Schemas::new(), compiler, HashMap::new())) })
    }

    fn response_of(&self, method: &str) -> String {
        let all = self.whole["$defs"].as_object().unwrap();
        let own = |(name, definition): &(&String, &Value)| definition["x-method"] == method && name.ends_with("Response");
        all.iter().find(own).map(|(name, _)| name.clone()).unwrap_or_else(|| panic!("`{method}` has no response in the schema"))
    }

    #[track_caller]
    fn check(&self, definition: &str, value: &Value) {
        let (schemas, compiler, indices) = &mut *self.compiled.borrow_mut();
        let index = *indices
            .entry(definition.to_owned())
            .or_insert_with(|| compiler.compile(&format!("{SCHEMA}#/$defs/{definition}"), schemas).unwrap());
        if let Err(error) = schemas.validate(value, index) {
            panic!("not a `{definition}`: {error:#}\n{value:#}");
        }
    }
}
