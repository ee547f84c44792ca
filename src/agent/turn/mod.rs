//! Turn machine: decides what happens next. No clock, no network, no disk.
//!
//! The host performs the effects in order and stops at a commit that fails, so no effect after a commit happens without it.

mod amend;
mod approval;
mod budget;
mod call_order;
mod call_runner;
mod cancel;
mod compact;
mod control;
mod grants;
mod guardrail;
mod io;
mod layer;
mod loop_guard;
mod mentions;
mod model;
mod outputs;
mod policy;
mod preview;
mod prompt_queue;
mod recovered_outcomes;
mod response;
mod restore;
mod resume;
mod rewind;
mod rule_preview;
mod sampling;
mod sandbox_escalation;
mod side_effects;
mod state;
mod task;
#[cfg(test)]
mod tests;
mod tool_calls;
mod usage;
mod user_command;

pub use budget::Allowance;
use budget::Budgets;
use grants::Grants;
pub use grants::{Grant, RuleFileResult};
pub use io::{Effect, Input, InputTime, Planned, Resource};
pub use policy::{PolicyChange, SandboxStatus};
pub use restore::Unfinished;
pub use sampling::Sampled;

use super::context::estimate;
use super::retry::Backoff;
use super::thread::Thread;
use crate::policy::{Enforcer, Question};
use crate::ports::{Durability, Edited, Known, Plan, Record, Tail};
use crate::protocol::{
    Action, Always, ApprovalId, Command, Effort, ErrorCode, EventKind, Message, MessageId, Mode, ModelFacts, Part, Proposal,
    Role, StepId, TaskId, ToolCall, ToolDefinition, ToolError, ToolResult,
};
use crate::session::{Parts, Totals};
use jiff::Timestamp;
use outputs::{Output, Outputs};
use prompt_queue::PromptQueue;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use usage::UsageLedger;

/// Authority that decides on approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approver {
    Person,
    /// Nobody: whatever requires approval is denied at once.
    Nobody,
    /// Everything that requires approval is approved; only for disposable environments.
    Everyone,
}

/// Options of a session.
pub struct Options {
    pub model: ModelFacts,
    pub effort: Option<Effort>,
    /// Maximum tokens of a response, if the model supports that many.
    pub max_output_tokens: u64,
    pub max_steps: u32,
    /// Budgets set before the session.
    pub limits: Vec<Allowance>,
    /// Last model of a resumed session.
    pub model_before: Option<String>,
    /// Whether the effort was set for this run, so that it overrides what the user chose in the session before.
    pub effort_for_this_run: bool,
    pub approver: Approver,
    pub backoff: Backoff,
    pub system: Arc<str>,
    pub tools: Arc<[ToolDefinition]>,
    /// Names of these tools, and of those that the model can load.
    pub tool_names: Vec<String>,
    /// Sandbox of commands, described for approvals.
    pub sandbox: String,
    /// Laxest mode that may be chosen while the session runs.
    pub laxest: Mode,
    /// Time after which an approval counts as denied; `None` to wait without limit.
    pub approval_timeout: Option<Duration>,
    /// Percentage of the context window at which older messages are summarized automatically; `None` for never.
    pub compact_at_percent: Option<u64>,
}

/// Turn machine of one session.
pub struct TurnMachine {
    policy: Enforcer,
    options: Options,
    thread: Thread,
    /// State of the context window.
    room: compact::ContextWindow,
    queue: PromptQueue,
    counters: Counters,
    usage: UsageLedger,
    budgets: Budgets,
    choice: model::Choice,
    /// Message of the provider's guardrail that ended the last task; told to the model with the next request.
    blocked: Option<String>,
    states: state::States,
    rewinds: rewind::Rewinds,
    task: Option<Task>,
    /// Prompt that becomes a task once the files it mentions are read.
    opening: Option<mentions::PendingPrompt>,
    /// Servers whose resources a prompt may mention.
    servers: Vec<String>,
    /// Last task that ended early; `Continue` resumes it.
    ended: Option<Task>,
    /// Paused task, while a command of the user takes its place.
    aside: Option<Task>,
    /// Output of the user's commands, for the model with the next message.
    own_said: Vec<String>,
    /// Recovery information, until the session is restored.
    known: Known,
    /// Whether the journal records the policy in force.
    policy_noted: bool,
    /// Whether the user ended the session: running calls finish, and nothing new begins.
    quitting: bool,
    grants: Grants,
    /// Records for the next commit.
    pending: Vec<Record>,
    out: Vec<Effect>,
}

#[derive(Debug, Default)]
struct Counters {
    tasks: u32,
    steps: u32,
    messages: u64,
    approvals: u32,
    tickets: u64,
    /// Whether the user was told that commands run in a layer first.
    told_of_layers: bool,
    /// Whether the user was told why they do not.
    told_of_no_layers: bool,
}

#[derive(Debug)]
struct Task {
    id: TaskId,
    step_id: Option<StepId>,
    /// Number of completed steps.
    step_count: u32,
    max_steps: u32,
    totals: Totals,
    phase: Phase,
    /// Response so far, if its model is asked to continue it.
    parts: Parts,
    /// Whether the task is being stopped; it ends at a point where nothing is lost.
    cancelling: bool,
    /// Count of identical calls in a row.
    guard: loop_guard::LoopGuard,
    /// Command of the user, if this is one rather than a task.
    own: Option<user_command::UserCommand>,
}

impl Task {
    /// Returns the task with this many more steps than it has completed.
    fn with_steps(self, more: u32) -> Self {
        Self { max_steps: self.step_count.saturating_add(more), ..self }
    }
}

#[derive(Debug)]
enum Phase {
    /// The response is streaming.
    Requesting(Stream),
    /// The request failed and is retried when the ticket fires.
    Retrying { attempt: u32, ticket: u64 },
    /// Older messages are being summarized; the request follows.
    Compacting,
    /// The calls of the response are planned, approved and run.
    Working(Vec<Call>),
    /// The user has to continue it.
    Paused,
}

#[derive(Debug)]
struct Stream {
    attempt: u32,
    since: Timestamp,
    /// Text that is not yet in the journal.
    unsaved: String,
    saved_at: Timestamp,
    /// Whether the user has seen any of the response.
    shown: bool,
    /// Content streamed so far, for the thread if the user interrupts the response.
    content: Vec<Part>,
}

/// One call of a response.
#[derive(Debug)]
struct Call {
    call: ToolCall,
    summary: String,
    /// Paths that the call touches, known once planned; `changes` says whether it changes them.
    touches: Vec<PathBuf>,
    changes: bool,
    /// Actions based on the arguments alone.
    scope: Vec<Action>,
    /// Comparison with earlier calls.
    order: call_order::Order,
    /// Effects that a rewind does not undo.
    ran: side_effects::SideEffects,
    /// Planned change, for the display of the result.
    proposal: Option<Proposal>,
    /// Call as proposed by the model, once it is announced and recorded.
    announced: Option<Edited>,
    /// Whether the call was already asked about; then approval is required even if a rule would allow it by now.
    asked: bool,
    /// Whether the call ran in a preview, whose changes are applied by running it.
    previewed: bool,
    /// Reason why a preview failed, once it was tried.
    no_preview: Option<String>,
    /// Whether the call ran or started in a layer before approval; that happens once.
    layered: bool,
    /// Reason why the layer was discarded; then approval is required before the command runs.
    no_layer: Option<String>,
    /// Result of a run that the sandbox blocked.
    held: Option<sandbox_escalation::BlockedRun>,
    row: loop_guard::RepeatCount,
    /// For a call interrupted by a crash: which of its paths are new and which old.
    partly: Option<String>,
    tail: Option<Tail>,
    /// Temporary files of an earlier run that failed.
    left: Vec<PathBuf>,
    amended: amend::Amended,
    /// Whether the call changes nothing and only checks whether something else has finished.
    polls: bool,
    state: CallState,
}

#[derive(Debug)]
enum CallState {
    /// Waits for an earlier call on the same path.
    Deferred,
    Planning,
    /// Waits for the user's decision.
    Asking(Box<Pending>),
    /// Runs in a preview; nothing is applied.
    Previewing(Box<preview::ActivePreview>),
    Running,
    /// A crash left no outcome; waits for the user.
    Unknown,
    Done(ToolResult),
}

/// Planned call and its approval.
#[derive(Debug)]
struct Pending {
    plan: Plan,
    question: Question,
    /// Offered rules.
    always: Always,
    approval_id: ApprovalId,
    since: Timestamp,
    /// Ticket of the timeout, if there is one.
    ticket: Option<u64>,
}

impl Call {
    fn new(call: ToolCall, state: CallState) -> Self {
        Self {
            summary: call.tool_name.clone(),
            call,
            touches: Vec::new(),
            changes: false,
            scope: Vec::new(),
            order: call_order::Order::default(),
            ran: side_effects::SideEffects::default(),
            proposal: None,
            announced: None,
            asked: false,
            previewed: false,
            no_preview: None,
            layered: false,
            no_layer: None,
            held: None,
            row: loop_guard::RepeatCount::default(),
            partly: None,
            tail: None,
            left: Vec::new(),
            amended: amend::Amended::default(),
            polls: false,
            state,
        }
    }

    fn runs(&mut self) {
        self.state = CallState::Running;
        if let Some(held) = &mut self.held {
            held.runs_again();
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.state, CallState::Done(_))
    }

    fn refuse(&mut self, code: ErrorCode, message: impl Into<String>) {
        let error = ToolError::new(code, message);
        let refused = ToolResult::refused(self.call.tool_call_id.clone(), self.call.tool_name.clone(), error);
        self.settle(refused);
    }

    /// Sets the result. An earlier result is kept if the new one contains nothing.
    fn settle(&mut self, result: ToolResult) {
        let mut result = ToolResult { tool_call_id: self.call.tool_call_id.clone(), ..result };
        if !self.left.is_empty() {
            let told = result.error.as_mut().map_or(&mut result.output_text, |error| &mut error.message);
            let words = format!(". An earlier run crashed before it changed anything{}", recovered_outcomes::beside(&self.left));
            told.push_str(&words);
            self.left.clear();
        }
        self.amended.tell(&mut result);
        self.state = CallState::Done(self.held.as_ref().map_or_else(|| result.clone(), |held| held.or(result.clone())));
    }
}

impl TurnMachine {
    pub fn new(policy: Enforcer, options: Options) -> Self {
        let mut machine = Self {
            policy,
            choice: model::Choice::new(&options),
            blocked: None,
            options,
            thread: Thread::default(),
            room: compact::ContextWindow::default(),
            queue: PromptQueue::default(),
            counters: Counters::default(),
            usage: UsageLedger::default(),
            budgets: Budgets::default(),
            states: state::States::default(),
            rewinds: rewind::Rewinds::default(),
            task: None,
            opening: None,
            servers: Vec::new(),
            ended: None,
            aside: None,
            own_said: Vec::new(),
            known: Known::default(),
            policy_noted: false,
            quitting: false,
            grants: Grants::default(),
            pending: Vec::new(),
            out: Vec::new(),
        };
        machine.fit_answer();
        machine.count_what_is_fixed();
        machine
    }

    pub fn handle(&mut self, input: Input, at: InputTime) -> Vec<Effect> {
        match input {
            input if self.quitting => self.wind_down(input, at),
            Input::Command(command) => self.command(command, at),
            Input::Delta(delta) if self.is_compacting() => self.summary_delta(delta, at),
            Input::Delta(delta) => self.delta(delta, at),
            Input::ModelFailed(error) if self.is_compacting() => self.summary_failed(error, at),
            Input::ModelFailed(error) => self.model_failed(error, at),
            Input::Planned(plans) => self.planned(plans, at),
            Input::Previewed { index, ticket, outcome } => self.previewed(index, ticket, outcome, at),
            Input::ToolOutput { index, text } => self.tool_output(index, text),
            Input::ToolFinished { index, result, latency_ms } => self.tool_finished(index, result, latency_ms, at),
            Input::Outdated { approval_id, outdated } => self.outdated(approval_id, outdated),
            Input::PolicyChanged(change) => self.policy_changed(*change, at),
            Input::RuleFiles(RuleFileResult::Recent { approval_id, offer, commands }) => {
                self.reach(approval_id, offer, commands, at);
            }
            Input::RuleFiles(kept) => self.rules_changed(kept),
            Input::Woken { ticket } => {
                self.woken(ticket, at);
                self.unanswered(ticket, at);
            }
            Input::ModelOpened(opened) => self.model_opened(opened, at),
            Input::MentionsPlanned { ticket, plans } => self.mentions_planned(ticket, plans, at),
            Input::MentionsRead { ticket, results } => self.mentions_read(ticket, results, at),
            Input::Sampled(sampled) => self.sampled(sampled),
            Input::FilesRewound { number, outcome } => self.files_rewound(number, outcome, at),
        }
        self.effects()
    }

    /// Returns the number of tasks, the tokens used, and the cost in US dollars if all prices are known.
    pub fn totals(&self) -> (u32, u64, Option<f64>) {
        (self.counters.tasks, self.usage.totals().tokens(), self.session_cost())
    }

    fn command(&mut self, command: Command, at: InputTime) {
        match command {
            Command::Prompt { text } => self.prompt(text, at),
            Command::Steer { text } => self.steer(text, at),
            Command::EditWaiting { id, text } => {
                let outputs = self.queue.edit(id, text);
                self.perform(outputs);
            }
            Command::Decide { approval_id, decision } => self.decided(&approval_id, decision, at),
            Command::Resolve { tool_call_id, resolution } => self.resolved(&tool_call_id, resolution, at),
            Command::Shell { line, shared } => self.run_own(&line, shared),
            Command::Preview { approval_id } => self.preview(&approval_id, at),
            Command::ShowProposed { approval_id, file } => self.show_proposed(&approval_id, file),
            Command::Background { tool_call_id } => self.out.push(Effect::Background { tool_call_id }),
            Command::Stop { id } => self.out.push(Effect::StopCommand { id }),
            Command::AskRule { approval_id, asked } => self.rule_asked(approval_id, asked, at),
            Command::UndoGrant => self.with_outputs(|machine, out| machine.grants.undo(&mut machine.policy, out)),
            Command::ListGrants => self.out.push(Effect::ListGrants),
            // The host handles these; the turn does not depend on them.
            Command::AnswerElicitation { .. } | Command::ReconnectServer { .. } | Command::GoOnUnsaved | Command::Resume => {}
            Command::ListRewindPoints => self.out.push(self.rewinds.list_points()),
            Command::PlanRewind { target, scope } => self.plan_rewind(&target, scope),
            Command::Rewind { target, scope, overwrite } => self.rewind(&target, scope, overwrite, at),
            Command::Cancel => self.interrupt(at),
            Command::Kill => self.kill(at),
            Command::Finish => self.cancel(at),
            Command::Continue => self.go_on(at),
            Command::RetryNow => self.retry_now(at),
            Command::Compact { focus } => self.compact(focus, at),
            Command::UndoCompaction => self.undo_compaction(),
            Command::ShowContext => self.show_context(),
            Command::ShowBudget => self.show_budget(),
            Command::SetBudget { limit } => self.set_budget(limit, at),
            Command::SetModel { name } => self.set_model(name, None),
            Command::AddKey { name, key } => self.set_model(name, Some(key)),
            Command::SetEffort { effort } => self.set_effort(effort),
            Command::ListModels { ask } => self.out.push(Effect::ListModels { ask }),
            Command::SetMode { mode } => self.set_mode(mode, at),
            Command::ReloadPolicy => self.out.push(Effect::ReloadPolicy),
            Command::SaveDraft { text } => self.out.push(Effect::SaveDraft(text)),
            Command::Quit => self.quit(at),
        }
    }

    fn rules_changed(&mut self, outcome: RuleFileResult) {
        self.with_outputs(|machine, out| machine.grants.on_outcome(outcome, &mut machine.policy, out));
    }

    /// Calls a sub-machine, then performs its outputs.
    fn with_outputs(&mut self, act: impl FnOnce(&mut Self, &mut Outputs)) {
        let mut outputs = Outputs::default();
        act(self, &mut outputs);
        self.perform(outputs);
    }

    /// Performs the outputs of a sub-machine.
    fn perform(&mut self, outputs: Outputs) {
        for output in outputs {
            match output {
                Output::Record(record) => self.note(record),
                Output::Commit(durability) => self.commit(durability),
                Output::Event(kind) => self.emit(kind),
                Output::Effect(effect) => self.out.push(effect),
            }
        }
    }

    fn emit(&mut self, kind: EventKind) {
        // Commands of the user belong to no task.
        let task = self.task.as_ref().filter(|task| task.own.is_none());
        self.out.push(Effect::Emit {
            task_id: task.map(|task| task.id.clone()),
            step_id: task.and_then(|task| task.step_id.clone()),
            kind,
        });
    }

    fn notice(&mut self, message: impl Into<String>) {
        self.emit(EventKind::Notice { message: message.into() });
    }

    /// Records a choice of the user. A session without messages is not saved, so there the record waits for the first prompt.
    fn keep(&mut self, record: Record) {
        if self.counters.tasks == 0 {
            self.choice.unsaid.push(record);
        } else {
            self.note(record);
            self.commit(Durability::Process);
        }
    }

    fn note(&mut self, record: Record) {
        self.pending.push(record);
    }

    fn commit(&mut self, durability: Durability) {
        if !self.pending.is_empty() {
            let records = std::mem::take(&mut self.pending);
            self.out.push(Effect::Commit(records, durability));
        }
    }

    fn message(&mut self, role: Role, content: Vec<Part>, at: InputTime) -> Option<Message> {
        self.counters.messages += 1;
        let task = self.task.as_ref()?;
        Some(Message {
            message_id: MessageId::new(format!("msg_{:05}", self.counters.messages)),
            role,
            token_count: estimate(&content),
            content,
            task_id: task.id.clone(),
            step_id: task.step_id.clone(),
            timestamp: at.now,
        })
    }
}
