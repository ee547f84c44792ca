//! Generated sessions for benchmarks, made up of steps that read and steps that change a file after an approval.

use super::{NewSession, Store};
use crate::ports::{Durability, Record};
use crate::protocol::{
    Action, Amendable, Approval, ApprovalId, CallArguments, CallId, Decision, FileDiffs, Message, MessageId, Mode, Part, Place,
    Proposal, Risk, Role, SessionId, StepId, StopReason, Target, TaskId, ToolCall, ToolResult, Usage, WorkspaceId,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const WORDS: [&str; 24] = [
    "let",
    "fn",
    "self",
    "return",
    "match",
    "reader",
    "session",
    "the",
    "buffer",
    "of",
    "error",
    "is",
    "value",
    "pub",
    "->",
    "{",
    "}",
    "(&mut",
    "Result<()>",
    "test",
    "bytes",
    "why",
    "//",
    "if",
];

/// Generator of deterministic text that resembles files and responses.
struct TextGenerator(u64);

impl TextGenerator {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            match self.number() % 4 {
                0 => text.push_str(&(self.number() % 100_000).to_string()),
                _ => text.push_str(WORDS[(self.number() % 24) as usize]),
            }
            text.push(if self.number().is_multiple_of(9) { '\n' } else { ' ' });
        }
        text.truncate(bytes);
        text
    }

    fn id(&mut self) -> String {
        [(); 4].map(|()| format!("{:06x}", self.number() & 0xff_ffff)).concat()
    }
}

/// Writes steps to a session that this process has locked.
pub struct Measure {
    store: Store,
    claim: super::Claim,
    writer: TextGenerator,
    task: TaskId,
    messages: usize,
    steps: u32,
    result_bytes: usize,
    durability: Durability,
    runtime: tokio::runtime::Runtime,
    /// Size of the conversation in bytes: prompts, responses, arguments, results and proposals, each of which is
    /// counted once.
    text_bytes: usize,
    /// Duration of each commit since the last call to `steps`.
    commits: Vec<Duration>,
}

/// Opens a store, closes it again, and returns the notices that it produced.
#[cfg(feature = "fuzzing")]
pub fn open(data_dir: &Path) -> Result<Vec<String>, String> {
    Store::open(data_dir).map(|store| store.notices().to_vec()).map_err(|error| error.to_string())
}

impl Measure {
    pub fn new(data_dir: &Path, workspace: &Path, workspace_id: &str, result_bytes: usize) -> Result<Self, String> {
        let store = Store::open(data_dir).map_err(|error| error.to_string())?;
        let claim = store.create(NewSession {
            id: SessionId::new(uuid::Uuid::new_v4().simple().to_string()),
            workspace_id: WorkspaceId::new(workspace_id),
            workspace: PathBuf::from(workspace),
            model: "anthropic/scripted".to_owned(),
            started_by: None,
            is_of_command: false,
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
        let mut measure = Self {
            store,
            claim,
            writer: TextGenerator(7),
            task: TaskId::new("task_001"),
            messages: 0,
            steps: 0,
            result_bytes,
            durability: Durability::Process,
            runtime,
            text_bytes: 0,
            commits: Vec::new(),
        };
        let prompt = measure.writer.text(120);
        let prompt = measure.message(Role::User, vec![Part::Text { text: prompt }]);
        measure.add_text(&prompt.text());
        measure.commit(vec![Record::TaskStarted { prompt, max_steps: 20_000 }, measure.step_started()])?;
        Ok(measure)
    }

    /// Sets whether subsequent writes survive a power failure.
    #[cfg(feature = "fuzzing")]
    pub fn sync(&mut self, synced: bool) {
        self.durability = if synced { Durability::Power } else { Durability::Process };
    }

    #[cfg(feature = "fuzzing")]
    pub fn id(&self) -> String {
        self.claim.id().to_string()
    }

    fn add_text(&mut self, text: &str) {
        self.text_bytes += text.len();
    }

    fn message(&mut self, role: Role, content: Vec<Part>) -> Message {
        self.messages += 1;
        Message {
            message_id: MessageId::new(format!("msg_{:05}", self.messages)),
            role,
            content,
            token_count: self.writer.number() % 900,
            task_id: self.task.clone(),
            step_id: Some(self.step()),
            timestamp: jiff::Timestamp::now(),
        }
    }

    fn step(&self) -> StepId {
        StepId::new(format!("step_{:04}", self.steps))
    }

    fn step_started(&self) -> Record {
        Record::StepStarted { task_id: self.task.clone(), step_id: self.step(), step_count: self.steps }
    }

    fn commit(&mut self, records: Vec<Record>) -> Result<(), String> {
        let journal = self.store.journal(self.claim.id(), Mode::Ask);
        let began = Instant::now();
        self.runtime.block_on(journal.append(records, self.durability)).map_err(|error| error.to_string())?;
        self.commits.push(began.elapsed());
        Ok(())
    }

    /// Writes `count` more steps, every second of which changes a file after an approval. Returns the duration of each
    /// commit since the last call.
    pub fn steps(&mut self, count: u32) -> Result<Vec<Duration>, String> {
        for _ in 0..count {
            self.steps += 1;
            let changes = self.steps.is_multiple_of(2);
            let path = format!("src/part_{}/file_{}.rs", self.writer.number() % 12, self.writer.number() % 40);
            let mut arguments = serde_json::Map::new();
            arguments.insert("path".to_owned(), path.clone().into());
            if changes {
                let (old, new) = (self.writer.text(60), self.writer.text(self.result_bytes / 2));
                arguments.insert("old".to_owned(), old.into());
                arguments.insert("new".to_owned(), new.into());
            } else {
                arguments.insert("offset".to_owned(), (self.writer.number() % 500).into());
            }
            self.add_text(&serde_json::to_string(&arguments).map_err(|error| error.to_string())?);
            let tool_name = if changes { "EditFile" } else { "ReadFile" }.to_owned();
            let tool_call_id = CallId::new(format!("toolu_{}", self.writer.id()));
            let call = ToolCall { tool_call_id, tool_name, arguments: CallArguments::Object(arguments) };
            let words = self.writer.text(90);
            self.add_text(&words);
            let message = self.message(Role::Assistant, vec![Part::Text { text: words }, Part::ToolCall(call.clone())]);
            let usage = Usage { input_tokens: 9_000 + self.writer.number() % 900, output_tokens: 80, ..Usage::default() };
            let answer = Record::Answer {
                message,
                usage,
                stop_reason: StopReason::ToolUse,
                latency_ms: self.writer.number() % 5_000,
                model: "anthropic/scripted".to_owned(),
                cost_usd: Some((self.writer.number() % 9_000) as f64 / 1e5),
                estimated: false,
            };
            if changes { self.change(call, answer, &path)? } else { self.read(call, answer, path)? }
        }
        Ok(std::mem::take(&mut self.commits))
    }

    fn read(&mut self, call: ToolCall, answer: Record, path: String) -> Result<(), String> {
        let intent = self.intent(&call, path, None);
        let started = Record::Started {
            tool_call_id: call.tool_call_id.clone(),
            rule: "built-in".to_owned(),
            places: Vec::new(),
            told: None,
            edited: None,
        };
        let text = self.writer.text(self.result_bytes);
        let mut records = vec![answer, intent, started];
        records.extend(self.finished(call, text));
        self.commit(records)
    }

    fn change(&mut self, call: ToolCall, answer: Record, path: &str) -> Result<(), String> {
        let diff = format!("--- a/{path}\n+++ b/{path}\n@@ -1,4 +1,9 @@\n{}", self.writer.text(self.result_bytes / 2));
        self.add_text(&diff);
        let proposal = Proposal {
            summary: format!("Edit {path} +6 −5"),
            diff: FileDiffs::read(&diff),
            paths: vec![PathBuf::from("/src/greeter").join(path)],
            bytes: 400,
            notes: Vec::new(),
            ..Proposal::default()
        };
        let approval = Approval {
            approval_id: ApprovalId::new(format!("approval_{}", self.steps)),
            tool_call_id: call.tool_call_id.clone(),
            tool_name: call.tool_name.clone(),
            title: "File change".to_owned(),
            description: None,
            action_summary: format!("Edit {path}"),
            risk_level: Risk::Low,
            critical: false,
            rule: "built-in".to_owned(),
            agent: None,
            is_uncovered: false,
            reason: "file changes need approval".to_owned(),
            details: crate::protocol::Details::default(),
            proposal: proposal.clone(),
            command: None,
            parts: Vec::new(),
            origins: Vec::new(),
            always: crate::protocol::GrantOptions::default(),
            preview: crate::protocol::PreviewOffer::default(),
            effects: None,
            opens: Vec::new(),
            opens_in_copy: false,
            plan: None,
            timeout_ms: None,
            amendable: Amendable::default(),
        };
        let approval_id = approval.approval_id.clone();
        let tool_call_id = call.tool_call_id.clone();
        let intent = self.intent(&call, path.to_owned(), Some(proposal));
        self.commit(vec![answer, intent, Record::ApprovalRequested { approval }])?;
        let decided = Record::Decided { approval_id, tool_call_id: tool_call_id.clone(), decision: Decision::Approved };
        self.commit(vec![
            decided,
            Record::Started { tool_call_id, rule: "approved by you".to_owned(), places: Vec::new(), told: None, edited: None },
        ])?;
        let text = format!("edited {path}: {}", self.writer.text(self.result_bytes));
        let records = self.finished(call, text);
        self.commit(records)
    }

    fn intent(&self, call: &ToolCall, path: String, proposal: Option<Proposal>) -> Record {
        let target =
            Target { real: PathBuf::from("/src/greeter").join(&path), given: path.clone(), place: Place::File { bytes: 4_000 } };
        let changes = proposal.is_some();
        let action = if changes { Action::Write { target } } else { Action::Read { target } };
        let summary = format!("{} {path}", if changes { "Edit" } else { "Read" });
        Record::Intent { step_id: self.step(), call: call.clone(), summary, actions: vec![action], proposal, changes }
    }

    /// Returns the records of a tool result, of the end of the step, and of the start of the next step.
    fn finished(&mut self, call: ToolCall, text: String) -> Vec<Record> {
        self.add_text(&text);
        let result = ToolResult::success(call.tool_call_id, call.tool_name, text);
        let message = self.message(Role::Tool, vec![Part::ToolResult(result.clone())]);
        let completed =
            Record::StepCompleted { task_id: self.task.clone(), step_id: self.step(), step_count: self.steps, message };
        vec![Record::Finished { result, latency_ms: 12 }, completed, self.step_started()]
    }

    /// Ends the task, unlocks the session and closes the store. Returns the conversation size in bytes.
    pub fn end(mut self) -> Result<usize, String> {
        let end = Record::TaskEnded { task_id: self.task.clone(), step_count: self.steps, end: crate::ports::TaskEnd::Completed };
        self.commit(vec![end])?;
        Ok(self.text_bytes)
    }
}
