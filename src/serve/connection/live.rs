//! The session that this process is running, as reconstructed from its events.

use super::answers::Recipient;
use super::{ConnectionAction, OpenedSession, value};
use crate::protocol::{
    AgentEvent, Approval, Command, Elicitation, EventKind, Failure, FailureKind, GoalState, HostCommand, PlannedStep,
    PolicyLayer, SessionId, SessionStatus, TaskState, TaskStatus,
};
use crate::serve::fault::{FaultCode, RpcError};
use crate::serve::methods::{Interrupted, SessionReady, SessionResumed};
use serde_json::{Value, json};

/// State of the session that this process is running.
#[derive(Debug)]
pub(super) struct LiveSession {
    pub opened: OpenedSession,
    pub status: SessionStatus,
    pub task: Option<TaskState>,
    /// Reason why the session was last paused.
    pub paused_for: Option<FailureKind>,
    pub approvals: Vec<Approval>,
    /// Questions from the model that have not been answered yet.
    pub questions: Vec<Elicitation>,
    pub planned_steps: Vec<PlannedStep>,
    /// Sessions of agents that are currently working.
    pub agents: Vec<SessionId>,
    /// Goal that is currently active, if any.
    pub goal: Option<GoalState>,
    pub interrupted: Vec<Interrupted>,
    /// Step limit that applies to the current task.
    pub steps: u32,
    /// Recipient of the response to `CreateSession` or `ResumeSession`, which is sent once the next mark is reached.
    pub ready: Option<Recipient>,
    /// Number of marks that have not been reached yet. A mark is a query whose response shows that all earlier events
    /// have arrived.
    pub marks: u32,
    /// Whether an unfinished task has already been told to continue.
    pub went_on: bool,
    /// Reason why the session would be considered failed if it ended now, which is either why it is paused or why
    /// saving failed.
    pub failed_by: Option<String>,
    /// Whether a task was cancelled because the session is ending.
    pub cancelled: bool,
    /// Whether the task is being cancelled, in which case it cannot be resumed.
    pub cancels_task: bool,
    /// Whether the session has been asked to end.
    pub quits: bool,
}

impl LiveSession {
    pub(super) fn is_running(&self) -> bool {
        let over = [TaskStatus::Idle, TaskStatus::TaskCompleted, TaskStatus::TaskFailed, TaskStatus::TaskCancelled];
        self.task.as_ref().is_some_and(|task| !over.contains(&task.status))
    }

    /// Updates the state from an event. This is done before the client receives the event.
    pub(super) fn learn(&mut self, kind: &EventKind) {
        match kind {
            EventKind::StateChanged { session_status, task } => {
                self.status = *session_status;
                if task.is_some() {
                    self.task.clone_from(task);
                }
                // A task with a final status is no longer being cancelled.
                self.cancels_task &= self.is_running();
            }
            EventKind::ApprovalRequested(approval) => {
                self.approvals.push(approval.clone());
                // The task continues while an agent waits for approval.
                if approval.agent.is_none() {
                    self.is_now(TaskStatus::WaitingForApproval);
                }
            }
            EventKind::SessionPaused { failure } => {
                self.paused_for = Some(failure.kind);
                self.failed_by = Some(failure.message.clone());
            }
            // A client that resumes the session receives the policy that is in effect.
            EventKind::PolicyInForce { layers, name, tools, .. } => {
                self.opened.policy_bundle_version = PolicyLayer::combined_version(layers).unwrap_or_else(|| name.clone());
                self.opened.available_tools.clone_from(tools);
            }
            EventKind::StepCompleted { step_count } => {
                if let Some(task) = &mut self.task {
                    task.step_count = *step_count;
                }
            }
            EventKind::TaskCompleted { .. } => self.is_now(TaskStatus::TaskCompleted),
            EventKind::TaskFailed { .. } => self.is_now(TaskStatus::TaskFailed),
            EventKind::TaskCancelled { .. } => self.is_now(TaskStatus::TaskCancelled),
            EventKind::ApprovalTimeout { approval_id, .. } | EventKind::ApprovalResolved { approval_id, .. } => {
                self.approvals.retain(|approval| approval.approval_id != *approval_id);
            }
            EventKind::ToolInterrupted { tool_call_id, tool_name, summary, known, .. } => {
                self.interrupted.push(Interrupted {
                    tool_call_id: tool_call_id.clone(),
                    tool_name: tool_name.clone(),
                    summary: summary.clone(),
                    known: known.clone(),
                });
            }
            // A completed call no longer needs approval, even if the task was stopped.
            EventKind::ToolCompleted { tool_call_id, .. } => {
                self.approvals.retain(|approval| approval.tool_call_id != *tool_call_id);
            }
            EventKind::ElicitationRequested(asked) if asked.is_question() => self.questions.push(asked.clone()),
            EventKind::ElicitationEnded { elicitation_id, .. } => {
                self.questions.retain(|question| question.elicitation_id != *elicitation_id);
            }
            EventKind::Agent(AgentEvent::Started { agent_session_id, .. }) => self.agents.push(agent_session_id.clone()),
            EventKind::Agent(AgentEvent::Ended { agent_session_id, .. }) => self.agents.retain(|agent| agent != agent_session_id),
            EventKind::PlannedStepsChanged { steps } => self.planned_steps.clone_from(steps),
            EventKind::GoalChanged(goal) => self.goal = Some(goal.clone()).filter(GoalState::is_active),
            EventKind::SavingChanged { saved, message } => self.failed_by = (!saved).then(|| message.clone()),
            _ => {}
        }
    }

    /// Sets the status of the current task. The session announces the change with a later event.
    pub(super) fn is_now(&mut self, status: TaskStatus) {
        if let Some(task) = &mut self.task {
            task.status = status;
        }
    }

    /// Returns whether an unfinished task is about to be continued automatically, because the session was opened to
    /// resume it.
    pub(super) fn continues_soon(&self) -> bool {
        self.ready.is_some() && self.opened.resumed && !self.went_on
    }

    /// Returns whether the session has a task with this ID. Tasks are numbered, starting at 1.
    pub(super) fn knows_task(&self, id: &str) -> bool {
        let number = |id: &str| id.strip_prefix("task_").and_then(|digits| digits.parse::<u64>().ok());
        let last = self.task.as_ref().and_then(|task| number(task.task_id.as_str()));
        number(id).zip(last).is_some_and(|(asked, last)| (1..=last).contains(&asked))
    }

    /// Creates the error for a task that cannot be started because the session is paused.
    pub(super) fn is_paused(&self) -> RpcError {
        let why = match self.paused_for {
            Some(FailureKind::PolicyExpired) => {
                "the session is paused because its policy has expired; renew the policy, then call"
            }
            _ => "the session is paused; call",
        };
        self.pause_fault(match self.task.as_ref().filter(|_| self.is_running()) {
            Some(task) => format!(
                "{why} `ResumeSession` to continue the task `{}`, or `CancelTask` to end it before you start another one",
                task.task_id
            ),
            None => format!("{why} `ResumeSession` first"),
        })
    }

    /// Creates the error for a task that was not started because the session was paused first. The prompt is kept.
    pub(super) fn pause_before_start_fault(&self, failure: &Failure) -> RpcError {
        let reason = &failure.message;
        self.pause_fault(format!("the session was paused before the task started: {reason} Call `ResumeSession` to start it."))
    }

    fn pause_fault(&self, message: String) -> RpcError {
        let (code, reason) = match self.paused_for {
            Some(FailureKind::PolicyExpired) => (FaultCode::PolicyInvalid, "expired"),
            _ => (FaultCode::TaskRunning, "paused"),
        };
        RpcError::new(code, message).with_data(json!({"reason": reason}))
    }

    /// Sends a query whose response arrives only after all events up to now.
    pub(super) fn mark(&mut self, acts: &mut Vec<ConnectionAction>) {
        self.marks += 1;
        acts.push(ConnectionAction::Do(Command::ShowBudget));
    }

    /// Asks the session to end. Only the first call has an effect, because a repeated request would not wait for
    /// running tools.
    pub(super) fn quit(&mut self, acts: &mut Vec<ConnectionAction>) {
        if !std::mem::replace(&mut self.quits, true) {
            acts.push(ConnectionAction::Do(Command::Quit));
        }
    }

    /// Resumes a paused session under the policy that is then in effect.
    pub(super) fn resume(&mut self, slot: Recipient, acts: &mut Vec<ConnectionAction>) {
        acts.push(ConnectionAction::DoInHost(HostCommand::Resume));
        (self.ready, self.opened.resumed, self.went_on) = (Some(slot), true, true);
        self.mark(acts);
    }

    pub(super) fn ready_message(&mut self) -> Value {
        let opened = &self.opened;
        let ready = SessionReady {
            session_id: opened.session_id.clone(),
            workspace_id: opened.workspace_id.clone(),
            session_status: self.status,
            policy_bundle_version: opened.policy_bundle_version.clone(),
            available_tools: opened.available_tools.clone(),
        };
        if !opened.resumed {
            return value(&ready);
        }
        let interrupted = std::mem::take(&mut self.interrupted);
        value(&SessionResumed { ready, task: self.task.clone(), step_cursor: opened.step_cursor.clone(), interrupted })
    }
}
