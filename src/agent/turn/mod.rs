//! The turn machine: what happens next, given what happened. No clock, no network, no disk.
//!
//! The host performs the effects in the order they are given and stops at a commit that fails, so an effect
//! that stands after a commit never happens without it.

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

/// Who answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approver {
    Person,
    /// Nobody: what would ask is denied at once.
    Nobody,
    /// Everything that would ask is approved; only for a place where nothing can be lost.
    Everyone,
}

/// What a session is run with.
pub struct Options {
    pub model: ModelFacts,
    pub effort: Option<Effort>,
    /// Tokens of an answer, where the model can give as many.
    pub max_output_tokens: u64,
    pub max_steps: u32,
    /// What may be used up, as far as it was set before the session.
    pub limits: Vec<Allowance>,
    /// The model that a session that goes on asked last.
    pub model_before: Option<String>,
    /// The effort was said for this run: what the person said in the session before does not count.
    pub effort_for_this_run: bool,
    pub approver: Approver,
    pub backoff: Backoff,
    pub system: Arc<str>,
    pub tools: Arc<[ToolDefinition]>,
    /// The names of these tools and of the ones that the model can load.
    pub tool_names: Vec<String>,
    /// What holds a command, in words, for the approval.
    pub sandbox: String,
    /// The laxest mode that may be chosen while the session runs.
    pub laxest: Mode,
    /// After so long without an answer a question counts as denied; without one it waits as long as the session does.
    pub approval_timeout: Option<Duration>,
    /// The share of the window at which older messages are summed up without a question, in percent; none where never.
    pub compact_at_percent: Option<u64>,
}

/// One session.
pub struct TurnMachine {
    policy: Enforcer,
    options: Options,
    thread: Thread,
    /// What is known of the window that the thread has to fit.
    room: compact::ContextWindow,
    queue: PromptQueue,
    counters: Counters,
    usage: UsageLedger,
    budgets: Budgets,
    choice: model::Choice,
    /// Why the last task ended, where a provider's guardrail ended it: the model is told with what comes next.
    blocked: Option<String>,
    states: state::States,
    rewinds: rewind::Rewinds,
    task: Option<Task>,
    /// A prompt that becomes a task once the files it names are read.
    opening: Option<mentions::PendingPrompt>,
    /// Whose resources a prompt may name.
    servers: Vec<String>,
    /// The last task that ended before it was done; `Continue` takes it up again.
    ended: Option<Task>,
    /// A paused task, while a command of the person's own has its place.
    aside: Option<Task>,
    /// What the person ran and the model is told with what is said next.
    own_said: Vec<String>,
    /// What is known beside the journal, until it is restored.
    known: Known,
    /// Whether the journal says which policy is in force.
    policy_noted: bool,
    /// The person ended the session: what runs is waited for, nothing new begins.
    quitting: bool,
    grants: Grants,
    /// Records that wait for the next commit.
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
    /// The user was told that commands run in a layer first.
    told_of_layers: bool,
    /// The user was told why they do not.
    told_of_no_layers: bool,
}

#[derive(Debug)]
struct Task {
    id: TaskId,
    step_id: Option<StepId>,
    /// Completed steps.
    step_count: u32,
    max_steps: u32,
    totals: Totals,
    phase: Phase,
    /// The response so far, where its model is asked for the rest of it.
    parts: Parts,
    /// The person wants it to stop; it ends where nothing is lost.
    cancelling: bool,
    /// How often it made the same call in a row.
    guard: loop_guard::LoopGuard,
    /// It is a command of the person's own, and no task.
    own: Option<user_command::UserCommand>,
}

impl Task {
    /// The task with this many steps in addition to those it completed.
    fn with_steps(self, more: u32) -> Self {
        Self { max_steps: self.step_count.saturating_add(more), ..self }
    }
}

#[derive(Debug)]
enum Phase {
    /// The answer streams.
    Requesting(Stream),
    /// The request failed and is sent again when the ticket comes.
    Retrying { attempt: u32, ticket: u64 },
    /// Older messages are summed up; the request follows.
    Compacting,
    /// The answer's calls are planned, asked for, run.
    Working(Vec<Call>),
    /// The user has to resume it.
    Paused,
}

#[derive(Debug)]
struct Stream {
    attempt: u32,
    since: Timestamp,
    /// Text not yet in the journal.
    unsaved: String,
    saved_at: Timestamp,
    /// Whether the person saw any of it.
    shown: bool,
}

/// One call of the answer.
#[derive(Debug)]
struct Call {
    call: ToolCall,
    summary: String,
    /// Paths it touches, and whether it changes them; known once planned.
    touches: Vec<PathBuf>,
    changes: bool,
    /// What it touches by its arguments alone.
    scope: Vec<Action>,
    /// How it compares with the calls before it.
    order: call_order::Order,
    /// Where it is a command, or does something elsewhere.
    ran: side_effects::SideEffects,
    /// What it would change, for the card that shows what was done.
    proposal: Option<Proposal>,
    /// As the model proposed it, once the front end and the journal know of it.
    announced: Option<Edited>,
    /// A question about it was put: what a rule would let pass by now is asked about all the same.
    asked: bool,
    /// It ran in a view, and what it did there is kept by running it.
    previewed: bool,
    /// Why it cannot be previewed, once that was tried.
    no_preview: Option<String>,
    /// It ran in a layer before anybody was asked, or began to; that is done once.
    layered: bool,
    /// Why nothing of that is kept, so that it is asked about before it runs for good.
    no_layer: Option<String>,
    /// What it came to when it ran and was kept from something.
    held: Option<sandbox_escalation::BlockedRun>,
    row: loop_guard::RepeatCount,
    /// Of a call that a crash left in the middle: which of its places is new and which old, and what it printed last.
    partly: Option<String>,
    tail: Option<Tail>,
    /// What a run that came to nothing left beside its places.
    left: Vec<PathBuf>,
    amended: amend::Amended,
    /// It acts on nothing and changes nothing: it looks whether something else is done.
    polls: bool,
    state: CallState,
}

#[derive(Debug)]
enum CallState {
    /// Waits for an earlier call on the same path.
    Deferred,
    Planning,
    /// Waits for the person.
    Asking(Box<Pending>),
    /// Runs in a view of its own; nothing of it happens.
    Previewing(Box<preview::ActivePreview>),
    Running,
    /// A crash left no outcome; waits for the person.
    Unknown,
    Done(ToolResult),
}

/// A planned call and the question about it.
#[derive(Debug)]
struct Pending {
    plan: Plan,
    question: Question,
    /// What was offered to be kept.
    always: Always,
    approval_id: ApprovalId,
    since: Timestamp,
    /// Of the wait for the answer, where that has an end.
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

    /// It is done; what it came to before is not lost where this says nothing.
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

    /// Tasks begun, tokens used, dollars spent where all prices were known.
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
            // The host has done these: nothing of the turn depends on them.
            Command::AnswerElicitation { .. } | Command::ReconnectServer { .. } | Command::GoOnUnsaved | Command::Resume => {}
            Command::ListRewindPoints => self.out.push(self.rewinds.list_points()),
            Command::PlanRewind { target, scope } => self.plan_rewind(&target, scope),
            Command::Rewind { target, scope, overwrite } => self.rewind(&target, scope, overwrite, at),
            Command::Cancel => self.stop(at),
            Command::Kill => self.kill(at),
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

    /// Lets a sub-machine act, then does what it wants done.
    fn with_outputs(&mut self, act: impl FnOnce(&mut Self, &mut Outputs)) {
        let mut outputs = Outputs::default();
        act(self, &mut outputs);
        self.perform(outputs);
    }

    /// Does what a sub-machine wants done.
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
        // What the person runs belongs to no task.
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

    /// Records what the person chose. A session in which nothing was said is not kept, so there it waits for the first prompt.
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
