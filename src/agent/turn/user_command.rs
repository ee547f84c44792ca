//! User commands typed after `!`. They are planned, judged, recorded, sandboxed and stopped like the model's
//! commands.
//!
//! A user command takes the place of a task and consists of a single call without a request. Typing it and pressing
//! Enter counts as approval at low and medium risk, but higher risk still requires approval. If the command is
//! `shared`, the model sees the result with the next message.

use super::guardrail::insert_after_prompt;
use crate::agent::context::estimate;
use crate::agent::limits::CHECK_SECONDS;
use crate::agent::thread::Thread;
use crate::protocol::{CallArguments, CallId, ErrorCode, Message, Part, Role, ToolCall, ToolResult, ToolStatus};

/// Tool that runs the command.
const TOOL: &str = "RunCommand";

/// Command typed by the user.
#[derive(Debug)]
pub(super) struct UserCommand {
    line: String,
    shared: bool,
    /// Whether the command was typed in this process, in which case pressing Enter counts as approval.
    typed: bool,
    /// Whether the command is a goal's check.
    is_check: bool,
}

impl UserCommand {
    pub(crate) fn from_line(line: &str, shared: bool) -> Self {
        Self { line: line.to_owned(), shared, typed: true, is_check: false }
    }

    pub(crate) fn from_journal(line: &str, shared: bool, is_check: bool) -> Self {
        Self { line: line.to_owned(), shared, typed: false, is_check }
    }

    /// Returns the command for a goal's check. `typed` is set if the user set the check in this process.
    pub(crate) fn from_check(line: &str, typed: bool) -> Self {
        Self { line: line.to_owned(), shared: false, typed, is_check: true }
    }

    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    pub(crate) fn is_check(&self) -> bool {
        self.is_check
    }

    pub(crate) fn is_typed(&self) -> bool {
        self.typed
    }

    /// Returns the call that runs the command.
    pub(crate) fn call(&self, number: u32) -> ToolCall {
        let (kind, arguments) = if self.is_check {
            ("check", serde_json::json!({ "command": self.line, "timeout": CHECK_SECONDS }))
        } else {
            ("own", serde_json::json!({ "command": self.line }))
        };
        ToolCall {
            tool_call_id: CallId::new(format!("{kind}_{number:03}")),
            tool_name: TOOL.to_owned(),
            arguments: CallArguments::parse(&arguments.to_string()),
        }
    }

    /// Returns the command and its output for the thread, if the command is shared and has run.
    pub(crate) fn report(&self, result: Option<ToolResult>, max_bytes: usize) -> Option<String> {
        let result = result.filter(|result| self.shared && has_run(result))?;
        Some(format!("[The user ran this command:]\n$ {}\n{}", self.line, result.truncate_to(max_bytes).text_for_model()))
    }
}

/// Outputs of user commands, sent to the model with the next message.
#[derive(Debug, Default)]
pub(super) struct UserCommandOutputs(Vec<String>);

impl UserCommandOutputs {
    pub(crate) fn add(&mut self, output: Option<String>) {
        self.0.extend(output);
    }

    /// Adds the outputs to a prompt as stored in the thread.
    pub(crate) fn add_to_prompt(&mut self, mut prompt: Message) -> Message {
        for output in std::mem::take(&mut self.0).iter().rev() {
            insert_after_prompt(&mut prompt, output);
            prompt.token_count = estimate(&prompt.content);
        }
        prompt
    }

    /// Adds the outputs to the last message when the same task continues, unless the model wrote that message.
    pub(crate) fn add_to_thread(&mut self, thread: &mut Thread) {
        if thread.last().is_none_or(|last| last.role == Role::Assistant) {
            return;
        }
        for output in std::mem::take(&mut self.0) {
            thread.amend_last(|message| match message.content.last_mut() {
                Some(Part::ToolResult(result)) => result.output_text = format!("{}\n\n{output}", result.output_text),
                _ => message.content.push(Part::Text { text: format!("\n\n{output}") }),
            });
        }
    }
}

/// Returns whether the command actually ran.
fn has_run(result: &ToolResult) -> bool {
    let not_run = |code: ErrorCode| code.is_denial() || matches!(code, ErrorCode::ToolNotFound | ErrorCode::InvalidRequest);
    // A command that was stopped before it started has no output.
    let stopped = |code| code == ErrorCode::Cancelled && result.output_text.is_empty();
    let not_run = |code| not_run(code) || stopped(code);
    result.status != ToolStatus::Denied && !result.error.as_ref().is_some_and(|error| not_run(error.code))
}
