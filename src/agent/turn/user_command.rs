//! Commands of the user, typed after `!`: planned, judged, recorded, sandboxed and stopped like those of the model.
//!
//! Such a command takes the place of a task, with one call and no request. Typing it and pressing Enter counts as approval at low and
//! medium risk; higher risk still asks. `shared`: the model sees the result with the next message.

use super::guardrail::after_the_words;
use super::{Call, CallState, Effect, InputTime, Phase, Task, TurnMachine, Unfinished};
use crate::ports::{Durability, Record};
use crate::protocol::{
    Arguments, CallId, ErrorCode, EventKind, Message, Part, Role, SessionStatus, StepId, TaskId, TaskStatus, ToolCall,
    ToolResult, ToolStatus,
};
use crate::session::Totals;

/// Tool that runs it.
const TOOL: &str = "RunCommand";

/// Data of a user command.
#[derive(Debug)]
pub(super) struct UserCommand {
    line: String,
    shared: bool,
    /// Whether the command was typed in this process, so that Enter counts as approval.
    pub typed: bool,
}

impl TurnMachine {
    pub(super) fn is_own(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.own.is_some())
    }

    /// Runs a command if nothing else is running. A paused task waits until it is done.
    pub(super) fn run_own(&mut self, line: &str, shared: bool) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        let paused = self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Paused));
        if self.is_busy() && !paused {
            self.notice("a task is running: your command is in the draft, send it again when the task is done");
            return self.give_back(format!("{}{line}", if shared { "!" } else { "!!" }));
        }
        let number = self.counters.tasks + 1;
        let call = ToolCall {
            tool_call_id: CallId::new(format!("own_{number:03}")),
            tool_name: TOOL.to_owned(),
            arguments: Arguments::parse(&serde_json::json!({ "command": line }).to_string()),
        };
        let own = UserCommand { line: line.to_owned(), shared, typed: true };
        let (task_id, step_id) =
            (TaskId::new(format!("task_{number:03}")), StepId::new(format!("step_{:04}", self.counters.steps + 1)));
        self.put_own(task_id.clone(), step_id.clone(), call.clone(), own);
        self.note_policy();
        self.note_choices();
        self.note(Record::OwnStarted { task_id, step_id, call: call.clone(), shared });
        self.commit(Durability::Process);
        self.enter_session(SessionStatus::Running);
        self.emit(EventKind::OwnCommandStarted { tool_call_id: call.tool_call_id.clone(), line: line.to_owned(), shared });
        self.enter(TaskStatus::TaskRunning);
        self.enter_for_calls();
        self.out.push(Effect::Plan(vec![(0, call)]));
    }

    /// Puts the command in place of a task; a paused task is set aside.
    fn put_own(&mut self, id: TaskId, step_id: StepId, call: ToolCall, own: UserCommand) {
        self.counters.tasks += 1;
        self.counters.steps += 1;
        let aside = self.task.replace(Task {
            id,
            step_id: Some(step_id),
            step_count: 0,
            max_steps: 0,
            totals: Totals::default(),
            phase: Phase::Working(vec![Call::new(call, CallState::Planning)]),
            parts: super::Parts::default(),
            cancelling: false,
            guard: super::loop_guard::LoopGuard::default(),
            own: Some(own),
        });
        self.aside = aside.or(self.aside.take());
    }

    /// Ends the command: its result is kept for the next message, and waiting work continues to wait, or starts.
    pub(super) fn own_done(&mut self, at: InputTime) {
        let said = self.told_of_it();
        let Some(task_id) = self.task.as_ref().map(|task| task.id.clone()) else { return };
        let tool_call_id = self.calls_mut().first().map(|call| call.call.tool_call_id.clone());
        self.enter(TaskStatus::TaskRunning);
        self.note(Record::OwnEnded { task_id, said: said.clone(), waits: self.aside.is_some() });
        self.commit(Durability::Process);
        if let Some(tool_call_id) = tool_call_id {
            self.emit(EventKind::OwnCommandEnded { tool_call_id, shared: said.is_some() });
        }
        self.enter(TaskStatus::TaskCompleted);
        self.task = None;
        self.enter(TaskStatus::Idle);
        self.own_said.extend(said);
        self.task = self.aside.take();
        if self.task.is_none() {
            return self.start_next(at);
        }
        if self.queue.is_empty() {
            return self.enter_session(SessionStatus::Paused);
        }
        // A message sent in the meantime ends the paused task, like a prompt.
        self.end(crate::ports::TaskEnd::Cancelled);
        self.start_next(at);
    }

    /// Returns the command and its output for the thread, if it is shared and ran.
    fn told_of_it(&mut self) -> Option<String> {
        let most_bytes = self.options.result_bytes(1);
        let own = self.task.as_ref()?.own.as_ref().filter(|own| own.shared)?;
        let line = own.line.clone();
        let result = self.calls_mut().first().and_then(super::tool_calls::done).filter(ran)?;
        Some(format!("[The user ran this command:]\n$ {line}\n{}", result.fitted(most_bytes).text_for_model()))
    }

    /// Settles a command after a crash. If it ran without an outcome, the user is asked; otherwise it ends.
    pub(super) fn settle_own(&mut self, unfinished: Unfinished, at: InputTime) {
        if !self.is_own() {
            return;
        }
        let stopped = self.task.as_ref().is_some_and(|task| task.cancelling);
        let unknown = self.calls_mut().iter().any(|call| call.changes && matches!(call.state, CallState::Running));
        if unknown && !stopped && unfinished == Unfinished::Wait {
            return;
        }
        self.close_calls(at);
        self.end_own_unsaid();
    }

    /// Ends a command of the previous process without an event.
    fn end_own_unsaid(&mut self) {
        let said = self.told_of_it();
        let Some(task) = self.task.take() else { return };
        self.note(Record::OwnEnded { task_id: task.id, said: said.clone(), waits: self.aside.is_some() });
        self.commit(Durability::Process);
        self.own_said.extend(said);
        self.task = self.aside.take();
    }

    pub(super) fn fold_own(&mut self, (task_id, step_id): (TaskId, StepId), call: ToolCall, line: &str, shared: bool) {
        self.put_own(task_id, step_id, call, UserCommand { line: line.to_owned(), shared, typed: false });
    }

    pub(super) fn fold_own_ended(&mut self, said: Option<String>) {
        self.own_said.extend(said);
        self.task = self.aside.take();
    }

    /// Drops a command whose end cannot be read. It is not in the thread, so nothing is missing there.
    pub(super) fn drop_own(&mut self) -> bool {
        let is_own = self.is_own();
        if is_own {
            self.task = self.aside.take();
        }
        is_own
    }

    /// Adds the results of earlier user commands to the prompt, for the thread.
    pub(super) fn told_of_own(&mut self, mut prompt: Message) -> Message {
        for said in std::mem::take(&mut self.own_said).iter().rev() {
            after_the_words(&mut prompt, said);
            prompt.token_count = super::estimate(&prompt.content);
        }
        prompt
    }

    /// Adds the results of user commands to the last message when the same task continues, unless it is the model's.
    pub(super) fn tell_of_own(&mut self) {
        if self.thread.last().is_none_or(|last| last.role == Role::Assistant) {
            return;
        }
        for said in std::mem::take(&mut self.own_said) {
            self.thread.amend_last(|message| match message.content.last_mut() {
                Some(Part::ToolResult(result)) => result.output_text = format!("{}\n\n{said}", result.output_text),
                _ => message.content.push(Part::Text { text: format!("\n\n{said}") }),
            });
        }
    }
}

/// Returns whether the command ran.
fn ran(result: &ToolResult) -> bool {
    let not_run = |code| {
        matches!(
            code,
            ErrorCode::PolicyDenied
                | ErrorCode::UserDenied
                | ErrorCode::ApprovalTimeout
                | ErrorCode::NoApprover
                | ErrorCode::ToolNotFound
                | ErrorCode::InvalidRequest
        )
    };
    // A command stopped before it started has no output.
    let stopped = |code| code == ErrorCode::Cancelled && result.output_text.is_empty();
    let not_run = |code| not_run(code) || stopped(code);
    result.status != ToolStatus::Denied && !result.error.as_ref().is_some_and(|error| not_run(error.code))
}
