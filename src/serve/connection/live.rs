//! The session of this process, reconstructed from its events.

use super::answers::Recipient;
use super::{ConnectionAction, OpenedSession, value};
use crate::protocol::{
    AgentEvent, Approval, Command, Elicitation, EventKind, Failure, FailureKind, GoalState, HostCommand, PlannedStep,
    PolicyLayer, SessionId, SessionStatus, TaskState, TaskStatus,
};
use crate::serve::fault::{FaultCode, RpcError};
use crate::serve::methods::{Interrupted, SessionReady, SessionResumed};
use serde_json::{Value, json};

/// The session of this process.
#[derive(Debug)]
pub(super) struct LiveSession {
    pub opened: OpenedSession,
    pub status: SessionStatus,
    pub task: Option<TaskState>,
    /// The reason for the last pause.
    pub paused_for: Option<FailureKind>,
    pub approvals: Vec<Approval>,
    /// Open questions from the model.
    pub questions: Vec<Elicitation>,
    pub planned_steps: Vec<PlannedStep>,
    /// Sessions of the agents that are working.
    pub agents: Vec<SessionId>,
    /// The active goal.
    pub goal: Option<GoalState>,
    pub interrupted: Vec<Interrupted>,
    /// The step limit of the current task.
    pub steps: u32,
    /// The pending response to `CreateSession` or `ResumeSession`, sent at the next mark.
    pub ready: Option<Recipient>,
    /// The number of pending marks. A mark is a query whose response shows that all earlier events
    /// have arrived.
    pub marks: u32,
    /// True if a client asked to continue an open task.
    pub went_on: bool,
    /// The reason why the session would fail if it ended now: the cause of the pause, or a failure to save.
    pub failed_by: Option<String>,
    /// True if a task was cancelled because the session ends.
    pub cancelled: bool,
    /// True while the task is being cancelled and therefore cannot be resumed.
    pub cancels_task: bool,
    /// True if a client asked to end the session.
    pub quits: bool,
}

impl LiveSession {
    pub(super) fn is_running(&self) -> bool {
        let over = [TaskStatus::Idle, TaskStatus::TaskCompleted, TaskStatus::TaskFailed, TaskStatus::TaskCancelled];
        self.task.as_ref().is_some_and(|task| !over.contains(&task.status))
    }

    /// Updates the state from an event before the client sees the event.
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
            // A client that resumes the session receives the policy in effect.
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

    /// Sets the status of the task; a later event announces the change.
    pub(super) fn is_now(&mut self, status: TaskStatus) {
        if let Some(task) = &mut self.task {
            task.status = status;
        }
    }

    /// Returns true if an open task is about to continue automatically, because the session was opened to resume it.
    pub(super) fn continues_soon(&self) -> bool {
        self.ready.is_some() && self.opened.resumed && !self.went_on
    }

    /// Returns true if the session has a task with this ID. Tasks are numbered from 1.
    pub(super) fn knows_task(&self, id: &str) -> bool {
        let number = |id: &str| id.strip_prefix("task_").and_then(|digits| digits.parse::<u64>().ok());
        let last = self.task.as_ref().and_then(|task| number(task.task_id.as_str()));
        number(id).zip(last).is_some_and(|(asked, last)| (1..=last).contains(&asked))
    }

    /// Returns the error for a task that cannot start because the session is paused.
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

    /// Returns the error for a task that did not start because the session was paused. Its prompt is preserved.
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

    /// Sends a query whose response arrives after all events so far.
    pub(super) fn mark(&mut self, acts: &mut Vec<ConnectionAction>) {
        self.marks += 1;
        acts.push(ConnectionAction::Do(Command::ShowBudget));
    }

    /// Asks the session to end. A second call has no effect, because it would not wait for running tools.
    pub(super) fn quit(&mut self, acts: &mut Vec<ConnectionAction>) {
        if !std::mem::replace(&mut self.quits, true) {
            acts.push(ConnectionAction::Do(Command::Quit));
        }
    }

    /// Resumes a paused session under the current policy.
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
