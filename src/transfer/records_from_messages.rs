//! Reconstructs records from a thread that has none. Tasks and steps are derived from the messages.

use super::checkpoint::MessageContent;
use crate::agent::MAX_STEPS;
use crate::ports::{Record, TaskEnd};
use crate::protocol::{Message, MessageId, Part, Role, StepId, StopReason, TaskId, ToolCall, Usage};
use crate::store::TimedRecord;
use crate::transfer::incoming::{IncomingCheckpoint, IncomingMessage, IncomingRole, IncomingTask};
use jiff::Timestamp;
use std::collections::HashSet;

/// Approximate number of characters per token, used when token counts are missing.
const LETTERS_A_TOKEN: u64 = 4;

/// Returns the records of a session that consists of these messages.
pub(crate) fn records(incoming: &mut IncomingCheckpoint<'_>, said: &mut Vec<String>) -> Vec<TimedRecord> {
    let task = incoming.task.take();
    let mut maker = RecordBuilder {
        max_steps: task.as_ref().and_then(|task| task.max_steps).filter(|steps| *steps > 0).unwrap_or(MAX_STEPS),
        records: Vec::new(),
        ids: HashSet::new(),
        messages: 0,
        tasks: 0,
        steps: 0,
        task: None,
        at: Timestamp::UNIX_EPOCH,
    };
    let mut instructions = 0;
    let asked = task.as_ref().and_then(|task| Some((task.task_id.clone(), task.prompt.clone()?)));
    if let (Some((task_id, prompt)), false) = (asked, incoming.thread.iter().any(|said| said.role == IncomingRole::User)) {
        // The task may have ended before its prompt was added to the thread.
        let content = MessageContent::Text(prompt);
        let (message_id, token_count, step_id, timestamp) = (None, None, None, None);
        maker.add_message(IncomingMessage {
            message_id,
            role: IncomingRole::User,
            content,
            token_count,
            task_id,
            step_id,
            timestamp,
        });
    }
    for message in std::mem::take(&mut incoming.thread) {
        if message.role == IncomingRole::System {
            instructions += 1;
        } else {
            maker.add_message(message);
        }
    }
    if instructions > 0 {
        said.push("ignored its system message; aye writes its own".to_owned());
    }
    maker.add_record(task.as_ref(), incoming);
    maker.end(task.as_ref());
    if incoming.session_tokens_used > 0 && !maker.records.is_empty() {
        // The checkpoint does not break down this usage, but it still counts towards the session limits.
        let usage = Usage { input_tokens: incoming.session_tokens_used, ..Usage::default() };
        maker.add(Record::Wasted { usage, cost_usd: None, estimated: true, model: None });
    }
    maker.records
}

struct RecordBuilder {
    max_steps: u32,
    records: Vec<TimedRecord>,
    ids: HashSet<String>,
    messages: u64,
    tasks: u64,
    steps: u64,
    task: Option<OpenTask>,
    at: Timestamp,
}

/// Task that has not ended.
struct OpenTask {
    id: TaskId,
    steps: u32,
    step: Option<StepId>,
    /// Calls that do not have a result yet.
    calls: Vec<ToolCall>,
    /// Results received since the last response, in order.
    results: Vec<Part>,
    /// Whether the last message is a text response.
    answered: bool,
}

impl RecordBuilder {
    fn add(&mut self, record: Record) {
        self.records.push(TimedRecord { time: self.at, record });
    }

    fn add_message(&mut self, message: IncomingMessage) {
        let IncomingMessage { message_id, role, content, token_count, task_id, step_id, timestamp } = message;
        let content: Vec<Part> = content.into();
        if content.is_empty() {
            return;
        }
        self.at = timestamp.unwrap_or(self.at);
        let other = |open: &OpenTask| task_id.as_ref().is_some_and(|id| id != open.id.as_str());
        let is_prompt = role == IncomingRole::User;
        if self.task.as_ref().is_some_and(|open| other(open) || (is_prompt && open.answered && open.calls.is_empty())) {
            self.end_task(TaskEnd::Completed);
        }
        let begins = self.task.is_none();
        if begins {
            self.tasks += 1;
            let id = task_id.unwrap_or_else(|| format!("task_{}", self.tasks));
            let id = TaskId::new(id);
            self.task =
                Some(OpenTask { id: id.clone(), steps: 0, step: None, calls: Vec::new(), results: Vec::new(), answered: false });
            if !is_prompt {
                // A thread must start with a user message.
                let prompt = self.new_message(id, Role::User, vec![text("[The start of this conversation is missing.]")]);
                let max_steps = self.max_steps;
                self.add(Record::TaskStarted { prompt, max_steps });
            }
        }
        let Some(task_id) = self.task.as_ref().map(|open| open.id.clone()) else { return };
        let counted = token_count.unwrap_or_else(|| estimate(&content));
        let message_id = self.id(message_id);
        let mut message = Message {
            message_id,
            role: Role::User,
            content,
            token_count: counted,
            task_id,
            step_id: step_id.map(StepId::new),
            timestamp: self.at,
        };
        match role {
            IncomingRole::User if begins => {
                let max_steps = self.max_steps;
                self.add(Record::TaskStarted { prompt: message, max_steps });
            }
            IncomingRole::User | IncomingRole::System => {
                self.close_step();
                self.add(Record::Steered { message });
            }
            IncomingRole::Assistant => {
                message.role = Role::Assistant;
                self.answer(message);
            }
            IncomingRole::Tool => {
                message.role = Role::Tool;
                self.assign_results(message);
            }
        }
    }

    fn answer(&mut self, mut message: Message) {
        self.close_step();
        self.steps += 1;
        let step_id = message.step_id.take().unwrap_or_else(|| StepId::new(format!("step_{}", self.steps)));
        message.content.retain(|part| !matches!(part, Part::ToolResult(_) | Part::Image(_)));
        let calls: Vec<ToolCall> = message.tool_calls().cloned().collect();
        let Some(open) = &mut self.task else { return };
        open.steps += 1;
        open.step = Some(step_id.clone());
        open.answered = calls.is_empty();
        let stop_reason = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        (open.calls, open.results) = (calls, Vec::new());
        let (task_id, step_count) = (open.id.clone(), open.steps);
        message.step_id = Some(step_id.clone());
        self.add(Record::StepStarted { task_id, step_id, step_count });
        self.add(Record::Answer {
            message,
            usage: Usage::default(),
            stop_reason,
            latency_ms: 0,
            model: String::new(),
            cost_usd: None,
            estimated: true,
        });
    }

    /// Assigns results to the calls that are waiting for them. Any other results become text.
    fn assign_results(&mut self, message: Message) {
        let Some(open) = &mut self.task else { return };
        let (mut results, mut others) = (Vec::new(), Vec::new());
        for part in message.content.iter().cloned() {
            match part {
                Part::ToolResult(result) if open.calls.iter().any(|call| call.tool_call_id == result.tool_call_id) => {
                    open.calls.retain(|call| call.tool_call_id != result.tool_call_id);
                    results.push(result);
                }
                Part::ToolResult(result) => others.push(format!("[Result of {}]\n{}", result.tool_name, result.output_text)),
                Part::Text { text } if !open.calls.is_empty() => {
                    let call = open.calls.remove(0);
                    results.push(crate::protocol::ToolResult::success(call.tool_call_id, call.tool_name, text));
                }
                Part::Text { text } => others.push(format!("[Tool result]\n{text}")),
                Part::Reasoning { .. } | Part::ToolCall(_) | Part::Image(_) => {}
            }
        }
        open.results.extend(results.iter().cloned().map(Part::ToolResult));
        let content = open.results.clone();
        let (task_id, step, count, done) = (open.id.clone(), open.step.clone(), open.steps, open.calls.is_empty());
        if !results.is_empty() {
            for result in &results {
                self.add(Record::Finished { result: result.clone(), latency_ms: 0 });
            }
            // If several messages contain results for a step, the last one ends the step.
            if let (true, Some(step_id)) = (done, step) {
                let message = Message { content, step_id: Some(step_id.clone()), ..message.clone() };
                self.add(Record::StepCompleted { task_id: task_id.clone(), step_id, step_count: count, message });
                if let Some(open) = &mut self.task {
                    open.step = None;
                }
            }
        }
        for text in others {
            self.close_step();
            let message = self.new_message(task_id.clone(), Role::User, vec![Part::Text { text }]);
            self.add(Record::Steered { message });
            if let Some(open) = &mut self.task {
                open.answered = false;
            }
        }
    }

    /// Closes a step. Calls that still have no result will never receive one, and the model is informed of this when
    /// the session is resumed.
    fn close_step(&mut self) {
        if let Some(open) = &mut self.task {
            open.calls.clear();
            open.step = None;
        }
    }

    fn end_task(&mut self, end: TaskEnd) {
        if let Some(open) = self.task.take() {
            self.add(Record::TaskEnded { task_id: open.id, step_count: open.steps, end });
        }
    }

    /// Adds a record with the checkpoint's data outside the thread. Its step count takes precedence over the one
    /// derived from the thread, which may be incomplete.
    fn add_record(&mut self, task: Option<&IncomingTask>, incoming: &mut IncomingCheckpoint<'_>) {
        let kept = |text: &mut Option<String>| text.take().filter(|text| !text.trim().is_empty());
        let (tenant_id, user_id) = (kept(&mut incoming.tenant_id), kept(&mut incoming.user_id));
        let policy_bundle_version = kept(&mut incoming.policy_bundle_version);
        let step_cursor = kept(&mut incoming.step_cursor).map(StepId::new);
        let said = task.and_then(|task| task.step_count);
        let knows = [&tenant_id, &user_id, &policy_bundle_version].into_iter().any(Option::is_some);
        if self.records.is_empty() || !(knows || step_cursor.is_some() || said.is_some()) {
            return;
        }
        let completed = |open: &OpenTask| open.steps - u32::from(open.step.is_some() && !open.answered && open.steps > 0);
        let counted = self.task.as_ref().map_or(0, completed);
        let step_count = said.unwrap_or(counted);
        if let (Some(open), Some(steps)) = (&mut self.task, said) {
            open.steps = steps;
        }
        self.add(Record::Imported { tenant_id, user_id, policy_bundle_version, step_count, step_cursor });
    }

    /// Ends the last task if the checkpoint's status says that it has ended, or if its last message is a text
    /// response.
    fn end(&mut self, task: Option<&IncomingTask>) {
        let Some(open) = &self.task else { return };
        let status = task.and_then(|task| task.status.as_deref()).unwrap_or_default().to_ascii_lowercase();
        let end = match status.trim_start_matches("task_") {
            "completed" => Some(TaskEnd::Completed),
            "cancelled" | "failed" => Some(TaskEnd::Cancelled),
            _ if open.answered => Some(TaskEnd::Completed),
            _ => None,
        };
        if let Some(end) = end {
            self.end_task(end);
        }
    }

    fn new_message(&mut self, task_id: TaskId, role: Role, content: Vec<Part>) -> Message {
        let token_count = estimate(&content);
        let message_id = self.id(None);
        Message { message_id, role, content, token_count, task_id, step_id: None, timestamp: self.at }
    }

    /// Returns the given ID, or a new one if the given ID is missing or already in use.
    fn id(&mut self, given: Option<String>) -> MessageId {
        let mut id = given.filter(|id| !id.is_empty());
        loop {
            self.messages += 1;
            let next = id.take().unwrap_or_else(|| format!("msg_{}", self.messages));
            if self.ids.insert(next.clone()) {
                return MessageId::new(next);
            }
        }
    }
}

fn text(words: &str) -> Part {
    Part::Text { text: words.to_owned() }
}

fn estimate(parts: &[Part]) -> u64 {
    let letters = parts.iter().map(|part| match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.len(),
        Part::ToolCall(call) => serde_json::to_string(&call.arguments).map_or(0, |text| text.len()),
        Part::ToolResult(result) => result.output_text.len(),
        Part::Image(_) => 0,
    });
    letters.sum::<usize>() as u64 / LETTERS_A_TOKEN + 4
}
