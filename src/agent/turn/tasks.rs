//! The session's tasks and their reported states: the current task, the last task that ended early, and a task that
//! was set aside.

use super::call::Call;
use super::call_batch::CallBatch;
use super::io::Effect;
use super::loop_guard::{LoopGuard, RepeatCount};
use super::outputs::Outputs;
use super::response::{ResponseStream, StreamInput, StreamOutput};
use super::state::States;
use super::turn_context::TurnContext;
use super::usage::TaskUsage;
use super::user_command::UserCommand;
use crate::ports::{Durability, Record, TaskEnd};
use crate::protocol::SessionStatus::{self, Paused, Running};
use crate::protocol::{
    EventKind, Message, Part, SessionSnapshot, StepId, StopReason, TaskId, TaskState, TaskStatus, ToolCall, ToolResult,
};
use crate::session::{Expense, ResponseParts, Totals};

/// Task, from its prompt to its end.
#[derive(Debug)]
pub(super) struct Task {
    id: TaskId,
    step_id: Option<StepId>,
    /// Number of completed steps.
    step_count: u32,
    max_steps: u32,
    totals: Totals,
    phase: Phase,
    /// Response so far, while aye asks the model to continue it.
    parts: ResponseParts,
    /// Whether the task is being stopped. It ends as soon as it can do so without losing data.
    cancelling: bool,
    /// Detects consecutive identical calls.
    guard: LoopGuard,
    /// The user command, if this is a command rather than a task.
    user_command: Option<UserCommand>,
}

/// Current activity of a task.
#[derive(Debug)]
pub(super) enum Phase {
    /// The response is being streamed.
    Requesting(ResponseStream),
    /// The request failed and will be retried when the timer with this ticket fires.
    Retrying { attempt: u32, ticket: u64 },
    /// Older messages are being summarized before the request is sent.
    Compacting,
    /// The calls in the response are being planned, approved and run.
    Working(CallBatch),
    /// The task waits for the user to continue it.
    Paused,
}

/// Calls in the current step, with the parts of the task's state that affect them.
pub(super) struct CurrentCalls<'a> {
    pub batch: &'a mut CallBatch,
    pub guard: &'a mut LoopGuard,
    pub step_id: Option<StepId>,
    /// Whether the running command was typed by the user.
    pub typed: bool,
    /// Whether the running command is the goal's check.
    pub check: bool,
    pub cancelling: bool,
}

impl Task {
    fn new(id: TaskId, max_steps: u32) -> Self {
        Self {
            id,
            step_id: None,
            step_count: 0,
            max_steps,
            totals: Totals::default(),
            phase: Phase::Paused,
            parts: ResponseParts::default(),
            cancelling: false,
            guard: LoopGuard::default(),
            user_command: None,
        }
    }

    /// Returns the task with its limit set to `more` steps beyond those already completed.
    fn with_steps(self, more: u32) -> Self {
        Self { max_steps: self.step_count.saturating_add(more), ..self }
    }

    /// Counts a completed step.
    fn complete_step(&mut self) -> TaskOutput {
        self.step_count += 1;
        TaskOutput::StepCompleted { step_count: self.step_count, max_steps: self.max_steps }
    }

    pub(crate) fn id(&self) -> &TaskId {
        &self.id
    }

    pub(crate) fn step_id(&self) -> Option<&StepId> {
        self.step_id.as_ref()
    }

    pub(crate) fn step_count(&self) -> u32 {
        self.step_count
    }

    pub(crate) fn max_steps(&self) -> u32 {
        self.max_steps
    }

    pub(crate) fn is_cancelling(&self) -> bool {
        self.cancelling
    }

    pub(crate) fn user_command(&self) -> Option<&UserCommand> {
        self.user_command.as_ref()
    }
}

/// Input to the tasks.
#[derive(Debug)]
pub(super) enum TaskInput<'a> {
    SessionStatus(SessionStatus),
    Status(TaskStatus),
    /// Decisions can no longer be saved, or can be saved again.
    Stalled(bool),
    /// One or more calls changed state.
    CallsChanged,
    /// A task begins. Any task that ended early is dropped.
    Begun {
        id: TaskId,
        max_steps: u32,
    },
    /// The current task is about to end.
    EndDue(&'a TaskEnd),
    /// The end of the current task was committed. `answer` is the model's last response.
    EndCommitted {
        end: &'a TaskEnd,
        answer: &'a str,
    },
    /// The current task has ended. If it is incomplete, it can be continued.
    Ended(&'a TaskEnd),
    /// A task of the previous process has ended. If it is incomplete, it can be continued.
    EndRestored(&'a TaskEnd),
    /// The current task must be dropped.
    Dropped,
    /// The task that ended early must be dropped.
    EndedForgotten,
    /// The user continued the task that ended early, with this many additional steps.
    EndedContinued {
        max_steps: u32,
    },
    /// A user command starts in place of a task. A paused task is set aside.
    UserCommandBegun(UserCommand),
    /// A user command has ended. The task that was set aside stays paused.
    UserCommandEnded,
    /// A user command of the previous process has ended. This is not reported, because listeners wait only for
    /// commands of this process.
    UserCommandSettled,
    /// The journal contains the start of a user command.
    UserCommandRestored {
        id: TaskId,
        step_id: StepId,
        call: ToolCall,
        command: UserCommand,
    },
    /// The journal contains the end of a user command.
    UserCommandEndRestored,
    Phase(Phase),
    StepBegun,
    StepCompleted,
    /// The journal contains the start of a step.
    StepRestored(Option<StepId>),
    /// The journal contains the number of completed steps.
    StepCountRestored(u32),
    /// The step limit of tasks changed.
    StepLimit(u32),
    /// This run's step limit must be applied to the restored task. If nobody can raise the limit (`adds`), or if the
    /// task has already reached it, the limit is added to the number of completed steps.
    RunLimit {
        max_steps: u32,
        adds: bool,
    },
    /// The task is being stopped. It ends as soon as it can do so without losing data.
    Cancelled,
    /// The task is no longer being stopped.
    CancelWithdrawn,
    /// This usage is charged to the task.
    Spent(Expense),
    /// Input to the streaming response.
    Stream(StreamInput<'a>),
    /// A response is complete. The model may be asked to continue its text.
    Responded {
        message: &'a Message,
        stop_reason: StopReason,
    },
    /// A response contains these calls.
    CallsRequested(&'a [ToolCall]),
    /// The journal contains the start of a call with this repetition count.
    CallStartRestored(RepeatCount),
    /// The results of a step are complete.
    Results(&'a Message),
}

/// Output of the tasks.
#[derive(Debug)]
pub(super) enum TaskOutput {
    /// The session's state changed because saving started to fail or works again.
    StateChanged(SessionSnapshot),
    /// A task of the previous process has ended after this many steps.
    RestoredEnded { task_id: TaskId, step_count: u32 },
    /// The task that ended early continues.
    Continued,
    /// A user command has ended. `report` contains the command and its output, if they are shared with the model.
    UserCommandEnded { report: Option<String> },
    /// A step was completed. `step_count` is the number of completed steps.
    StepCompleted { step_count: u32, max_steps: u32 },
    /// The task is being stopped. `first` is set if it was not already being stopped.
    Cancelling { first: bool },
    /// Output of the streaming response.
    Stream(StreamOutput),
    /// Repetition count of each call in the response.
    Repeated(Vec<RepeatCount>),
}

/// A session's tasks and states.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    current: Option<Task>,
    /// Last task that ended early, which `Continue` resumes.
    ended: Option<Task>,
    /// Paused task that was set aside while a user command runs.
    aside: Option<Task>,
    states: States,
    /// Most recently reported state of the current or last task.
    reported: Option<TaskState>,
}

/// Queries.
impl Tasks {
    pub(crate) fn current(&self) -> Option<&Task> {
        self.current.as_ref()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(crate) fn has_task_set_aside(&self) -> bool {
        self.aside.is_some()
    }

    /// Returns the ID of the task that is running or can be continued, including a task that ended early.
    pub(crate) fn continuable_id(&self) -> Option<TaskId> {
        self.current.as_ref().or(self.ended.as_ref()).map(|task| task.id.clone())
    }

    /// Returns the task and step that the next message belongs to.
    pub(crate) fn message_scope(&self) -> Option<(TaskId, Option<StepId>)> {
        self.current.as_ref().map(|task| (task.id.clone(), task.step_id.clone()))
    }

    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.phase(), Some(Phase::Paused))
    }

    pub(crate) fn is_cancelling(&self) -> bool {
        self.current.as_ref().is_some_and(|task| task.cancelling)
    }

    /// Returns whether a user command is running instead of a task.
    pub(crate) fn is_user_command(&self) -> bool {
        self.current.as_ref().is_some_and(|task| task.user_command.is_some())
    }

    /// Returns whether the goal's check is running.
    pub(crate) fn is_check(&self) -> bool {
        self.current.as_ref().and_then(Task::user_command).is_some_and(UserCommand::is_check)
    }

    pub(crate) fn phase(&self) -> Option<&Phase> {
        self.current.as_ref().map(|task| &task.phase)
    }

    pub(crate) fn stream(&self) -> Option<&ResponseStream> {
        match self.phase() {
            Some(Phase::Requesting(stream)) => Some(stream),
            Some(Phase::Retrying { .. } | Phase::Compacting | Phase::Working(_) | Phase::Paused) | None => None,
        }
    }

    pub(crate) fn calls(&self) -> Option<&CallBatch> {
        match self.phase() {
            Some(Phase::Working(batch)) => Some(batch),
            Some(Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Compacting | Phase::Paused) | None => None,
        }
    }

    pub(crate) fn calls_mut(&mut self) -> Option<CurrentCalls<'_>> {
        let task = self.current.as_mut()?;
        let Phase::Working(batch) = &mut task.phase else { return None };
        Some(CurrentCalls {
            batch,
            guard: &mut task.guard,
            step_id: task.step_id.clone(),
            typed: task.user_command.as_ref().is_some_and(UserCommand::is_typed),
            check: task.user_command.as_ref().is_some_and(UserCommand::is_check),
            cancelling: task.cancelling,
        })
    }

    /// Returns the usage of the current task, or of the last task that ended early.
    pub(crate) fn usage(&self) -> Option<TaskUsage> {
        let task = self.current.as_ref().or(self.ended.as_ref())?;
        Some(TaskUsage { totals: task.totals, step_count: task.step_count, max_steps: task.max_steps })
    }

    fn state(&self) -> SessionSnapshot {
        let now = self.current.as_ref().map(|task| TaskState {
            task_id: task.id.clone(),
            status: self.states.task(),
            step_count: task.step_count,
            max_steps: task.max_steps,
        });
        let last = || self.reported.clone().map(|task| TaskState { status: self.states.task(), ..task });
        SessionSnapshot { session_status: self.states.session(), task: now.or_else(last) }
    }

    pub(crate) fn session_status(&self) -> SessionStatus {
        self.states.session()
    }

    pub(crate) fn task_status(&self) -> TaskStatus {
        self.states.task()
    }

    #[cfg(test)]
    pub(crate) fn last_ended(&self) -> Option<&Task> {
        self.ended.as_ref()
    }

    #[cfg(test)]
    pub(crate) fn states(&self) -> &States {
        &self.states
    }
}

/// Input handling.
impl Tasks {
    /// Handles an input.
    pub(crate) fn handle(&mut self, input: TaskInput<'_>, cx: &mut TurnContext) -> Option<TaskOutput> {
        let out = &mut cx.out;
        match input {
            TaskInput::SessionStatus(to) => self.set_session_status(to, out),
            TaskInput::Status(to) => self.set_task_status(to, out),
            TaskInput::Stalled(stalled) => return self.set_stalled(stalled).map(TaskOutput::StateChanged),
            TaskInput::CallsChanged => self.set_status_for_calls(out),
            TaskInput::Begun { id, max_steps } => self.begin(id, max_steps, out),
            TaskInput::EndDue(end) => {
                let Task { id, step_count, .. } = self.current.as_ref()?;
                out.record(Record::TaskEnded { task_id: id.clone(), step_count: *step_count, end: end.clone() });
            }
            TaskInput::EndCommitted { end, answer } => self.report_end(end, answer, out),
            TaskInput::Ended(end) => self.end(end, out),
            TaskInput::EndRestored(end) => return self.end_restored_task(end, out),
            TaskInput::Dropped => self.set_current(None, out),
            TaskInput::EndedForgotten => self.ended = None,
            TaskInput::EndedContinued { max_steps } => return self.continue_ended_task(max_steps, out),
            TaskInput::UserCommandBegun(command) => self.begin_user_command(command, cx),
            TaskInput::UserCommandEnded => return self.end_user_command(true, cx),
            TaskInput::UserCommandSettled => return self.end_user_command(false, cx),
            TaskInput::UserCommandRestored { id, step_id, call, command } => {
                self.replace_with_command((id, step_id), call, command, out);
            }
            TaskInput::UserCommandEndRestored => self.return_to_task(out),
            TaskInput::StepBegun => self.begin_step(cx),
            TaskInput::StepRestored(step_id) => self.set_step(step_id, out),
            TaskInput::StepCompleted => return self.current.as_mut().map(Task::complete_step),
            TaskInput::StepCountRestored(step_count) => self.current.as_mut()?.step_count = step_count,
            TaskInput::StepLimit(max_steps) => self.set_max_steps(max_steps),
            TaskInput::RunLimit { max_steps, adds } => self.limit_restored_task(max_steps, adds),
            TaskInput::Phase(phase) => self.current.as_mut()?.phase = phase,
            TaskInput::Cancelled => {
                let first = !std::mem::replace(&mut self.current.as_mut()?.cancelling, true);
                return Some(TaskOutput::Cancelling { first });
            }
            TaskInput::CancelWithdrawn => self.current.as_mut()?.cancelling = false,
            TaskInput::Spent(spent) => self.current.as_mut()?.totals.add(spent),
            TaskInput::Stream(input) => {
                let (stream, step_id) = self.stream_mut()?;
                return stream.handle(input, step_id, out).map(TaskOutput::Stream);
            }
            TaskInput::Responded { message, stop_reason } => self.current.as_mut()?.parts.note(message, stop_reason),
            TaskInput::CallsRequested(calls) => {
                return Some(TaskOutput::Repeated(self.current.as_mut()?.guard.count(calls)));
            }
            TaskInput::CallStartRestored(row) => self.current.as_mut()?.guard.allow(row),
            TaskInput::Results(message) => self.current.as_mut()?.guard.on_results(tool_results(message)),
        }
        None
    }
}

/// State changes.
impl Tasks {
    fn set_session_status(&mut self, to: SessionStatus, out: &mut Outputs) {
        // Whatever else changes, the session stays paused while nothing can be saved.
        if to == Running && self.states.is_stalled() {
            return;
        }
        if self.states.set_session(to) {
            out.event(self.state_event());
        }
    }

    fn set_task_status(&mut self, to: TaskStatus, out: &mut Outputs) {
        if self.states.set_task(to) {
            self.reported = self.state().task;
            out.event(self.state_event());
        }
    }

    /// Sets whether saving is currently impossible. While decisions cannot be saved, the session is paused. Returns
    /// the new state if it changed.
    fn set_stalled(&mut self, stalled: bool) -> Option<SessionSnapshot> {
        self.states.set_stalled(stalled);
        let waits = stalled || self.is_paused();
        self.states.set_session(if waits { Paused } else { Running }).then(|| self.state())
    }

    fn state_event(&self) -> EventKind {
        let SessionSnapshot { session_status, task } = self.state();
        EventKind::StateChanged { session_status, task }
    }

    /// Sets the task status that describes the calls.
    fn set_status_for_calls(&mut self, out: &mut Outputs) {
        if let Some(status) = self.calls().map(CallBatch::status) {
            self.set_task_status(status, out);
        }
    }
}

/// Starts and ends of tasks.
impl Tasks {
    /// Starts a task. Any task that ended early is dropped.
    fn begin(&mut self, id: TaskId, max_steps: u32, out: &mut Outputs) {
        self.ended = None;
        self.set_current(Some(Task::new(id, max_steps)), out);
    }

    /// Ends the current task. If it is incomplete, it can be continued.
    fn end(&mut self, end: &TaskEnd, out: &mut Outputs) {
        let task = self.current.take();
        match end {
            TaskEnd::Completed => {}
            TaskEnd::Failed { .. } | TaskEnd::Cancelled => self.ended = task,
        }
        self.set_scope(out);
    }

    /// Ends a task of the previous process.
    fn end_restored_task(&mut self, end: &TaskEnd, out: &mut Outputs) -> Option<TaskOutput> {
        let task = self.current.take()?;
        let ended = TaskOutput::RestoredEnded { task_id: task.id.clone(), step_count: task.step_count };
        self.ended = Some(task).filter(|_| *end != TaskEnd::Completed);
        self.set_scope(out);
        Some(ended)
    }

    /// Continues the task that ended early, with this many additional steps.
    fn continue_ended_task(&mut self, max_steps: u32, out: &mut Outputs) -> Option<TaskOutput> {
        let task = self.ended.take()?;
        self.set_current(Some(task.with_steps(max_steps)), out);
        Some(TaskOutput::Continued)
    }

    /// Reports the end of the current task. `answer` is the model's last response.
    fn report_end(&mut self, end: &TaskEnd, answer: &str, out: &mut Outputs) {
        let Some(Task { step_count, totals, parts, .. }) = &self.current else { return };
        let step_count = *step_count;
        let (event, status) = match end.clone() {
            TaskEnd::Completed => {
                let (text, usage, cost_usd) = (parts.full_text(answer), totals.usage, totals.whole_cost_usd());
                (EventKind::TaskCompleted { text, usage, cost_usd, step_count }, TaskStatus::TaskCompleted)
            }
            TaskEnd::Failed { failure } => (EventKind::TaskFailed { failure, step_count }, TaskStatus::TaskFailed),
            TaskEnd::Cancelled => (EventKind::TaskCancelled { step_count }, TaskStatus::TaskCancelled),
        };
        out.event(event);
        self.set_task_status(status, out);
    }

    fn set_current(&mut self, task: Option<Task>, out: &mut Outputs) {
        self.current = task;
        self.set_scope(out);
    }

    /// Sets the task and step of subsequent events. User commands do not belong to a task.
    fn set_scope(&self, out: &mut Outputs) {
        let task = self.current.as_ref().filter(|task| task.user_command.is_none());
        out.set_scope(task.map(|task| task.id.clone()), task.and_then(|task| task.step_id.clone()));
    }
}

/// User commands.
impl Tasks {
    /// Starts a user command or the goal's check.
    fn begin_user_command(&mut self, command: UserCommand, cx: &mut TurnContext) {
        let (task_id, step_id) = (cx.numbers.next_task(), cx.numbers.next_step());
        let (line, shared, check) = (command.line().to_owned(), command.is_shared(), command.is_check());
        let call = command.call(cx.numbers.tasks());
        self.replace_with_command((task_id.clone(), step_id.clone()), call.clone(), command, &mut cx.out);
        cx.record_policy();
        cx.record_choices();
        cx.out.record(Record::OwnStarted { task_id, step_id, call: call.clone(), shared, check });
        cx.out.commit(Durability::Process);
        self.set_session_status(Running, &mut cx.out);
        let tool_call_id = call.tool_call_id.clone();
        cx.out.event(EventKind::OwnCommandStarted { tool_call_id, line, shared, check });
        self.set_task_status(TaskStatus::TaskRunning, &mut cx.out);
        self.set_status_for_calls(&mut cx.out);
        cx.out.effect(Effect::Plan(vec![(0, call)]));
    }

    /// Records the end of the command and returns to the task that was set aside. `reports` says whether listeners
    /// are waiting for the command.
    fn end_user_command(&mut self, reports: bool, cx: &mut TurnContext) -> Option<TaskOutput> {
        let task = self.current.as_ref()?;
        let first = self.calls().and_then(|batch| batch.calls().first());
        let tool_call_id = first.map(|call| call.call.tool_call_id.clone());
        let result = first.and_then(Call::result);
        let report = task.user_command().and_then(|command| command.report(result, cx.options.result_bytes(1)));
        let task_id = task.id.clone();
        if reports {
            self.set_task_status(TaskStatus::TaskRunning, &mut cx.out);
        }
        cx.out.record(Record::OwnEnded { task_id, said: report.clone(), waits: self.has_task_set_aside() });
        cx.out.commit(Durability::Process);
        if reports {
            if let Some(tool_call_id) = tool_call_id {
                cx.out.event(EventKind::OwnCommandEnded { tool_call_id, shared: report.is_some() });
            }
            self.set_task_status(TaskStatus::TaskCompleted, &mut cx.out);
            self.set_current(None, &mut cx.out);
            self.set_task_status(TaskStatus::Idle, &mut cx.out);
        }
        self.return_to_task(&mut cx.out);
        Some(TaskOutput::UserCommandEnded { report })
    }

    /// Returns to the task that was set aside, if there is one.
    fn return_to_task(&mut self, out: &mut Outputs) {
        let aside = self.aside.take();
        self.set_current(aside, out);
    }

    /// Replaces the current task with a user command and sets the task aside.
    fn replace_with_command(&mut self, (id, step_id): (TaskId, StepId), call: ToolCall, command: UserCommand, out: &mut Outputs) {
        let command = Task {
            step_id: Some(step_id),
            phase: Phase::Working(CallBatch::from_user_command(call)),
            user_command: Some(command),
            ..Task::new(id, 0)
        };
        self.aside = self.current.replace(command).or(self.aside.take());
        self.set_scope(out);
    }
}

/// Steps of the current task.
impl Tasks {
    /// Starts the next step. Its record is committed before its request is sent.
    fn begin_step(&mut self, cx: &mut TurnContext) {
        let step_id = cx.numbers.next_step();
        self.set_step(Some(step_id.clone()), &mut cx.out);
        if let Some(task) = &self.current {
            let (task_id, step_count) = (task.id.clone(), task.step_count + 1);
            cx.out.record(Record::StepStarted { task_id, step_id, step_count });
            cx.out.commit(Durability::Power);
            cx.out.event(EventKind::StepStarted { step_count });
        }
    }

    fn set_step(&mut self, step_id: Option<StepId>, out: &mut Outputs) {
        if let Some(task) = &mut self.current {
            task.step_id = step_id;
        }
        self.set_scope(out);
    }

    /// Sets the step limit of the current task and of the last task that ended early.
    fn set_max_steps(&mut self, max_steps: u32) {
        for task in [&mut self.current, &mut self.ended].into_iter().flatten() {
            task.max_steps = max_steps;
        }
    }

    /// Applies this run's step limit to the restored task.
    fn limit_restored_task(&mut self, max_steps: u32, adds: bool) {
        self.current = self.current.take().map(|task| {
            if adds || task.step_count >= max_steps { task.with_steps(max_steps) } else { Task { max_steps, ..task } }
        });
    }

    /// Returns the streaming response and the step that it belongs to.
    fn stream_mut(&mut self) -> Option<(&mut ResponseStream, Option<StepId>)> {
        let task = self.current.as_mut()?;
        match &mut task.phase {
            Phase::Requesting(stream) => Some((stream, task.step_id.clone())),
            Phase::Retrying { .. } | Phase::Compacting | Phase::Working(_) | Phase::Paused => None,
        }
    }
}

/// Returns the tool results contained in a message.
fn tool_results(message: &Message) -> impl Iterator<Item = &ToolResult> {
    message.content.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    })
}
