//! The session of this process, as its events tell of it.

use super::answers::Slot;
use super::{Act, Opened, value};
use crate::protocol::{Approval, Command, FailureKind, SessionStatus, TaskState, TaskStatus};
use crate::serve::fault::{Fault, FaultCode};
use crate::serve::methods::{Interrupted, SessionReady, SessionResumed};
use serde_json::{Value, json};

/// The session of this process.
#[derive(Debug)]
pub(super) struct Live {
    pub opened: Opened,
    pub status: SessionStatus,
    pub task: Option<TaskState>,
    /// Why it was paused last.
    pub paused_for: Option<FailureKind>,
    pub approvals: Vec<Approval>,
    pub interrupted: Vec<Interrupted>,
    /// Steps that a task has now.
    pub steps: u32,
    /// Who created or resumed it is answered at the next mark.
    pub ready: Option<Slot>,
    /// The question that marks the end of what was said before it.
    pub marks: u32,
    /// A task that was open was told to go on.
    pub went_on: bool,
    /// Why the session would fail if it ended now: what paused it, or kept it from being saved.
    pub failed_by: Option<String>,
    /// A task was cancelled because the session ends.
    pub cancelled: bool,
    /// The task is being cancelled: nothing resumes it.
    pub cancels_task: bool,
    /// It was told to end.
    pub quits: bool,
}

impl Live {
    pub(super) fn works(&self) -> bool {
        let over = [TaskStatus::Idle, TaskStatus::TaskCompleted, TaskStatus::TaskFailed, TaskStatus::TaskCancelled];
        self.task.as_ref().is_some_and(|task| !over.contains(&task.status))
    }

    /// An event said so; the change of state is told after it.
    pub(super) fn is_now(&mut self, status: TaskStatus) {
        if let Some(task) = &mut self.task {
            task.status = status;
        }
    }

    /// A task whose status is final is cancelled no more.
    pub(super) fn note_end_of_task(&mut self) {
        self.cancels_task &= self.works();
    }

    /// Tasks are counted from 1 in a session.
    pub(super) fn knows_task(&self, id: &str) -> bool {
        let number = |id: &str| id.strip_prefix("task_").and_then(|digits| digits.parse::<u64>().ok());
        let last = self.task.as_ref().and_then(|task| number(task.task_id.as_str()));
        number(id).zip(last).is_some_and(|(asked, last)| (1..=last).contains(&asked))
    }

    /// Why no task can begin: a paused session is left by resuming it.
    pub(super) fn is_paused(&self) -> Fault {
        let expired = self.paused_for == Some(FailureKind::PolicyExpired);
        let (code, why) = if expired {
            (FaultCode::PolicyInvalid, "the session is paused because its policy has expired; renew the policy, then call")
        } else {
            (FaultCode::TaskRunning, "the session is paused; call")
        };
        let message = match self.task.as_ref().filter(|_| self.works()) {
            Some(task) => format!(
                "{why} `ResumeSession` to continue the task `{}`, or `CancelTask` to end it before you start another one",
                task.task_id
            ),
            None => format!("{why} `ResumeSession` first"),
        };
        Fault::new(code, message).with(json!({"reason": if expired { "expired" } else { "paused" }}))
    }

    /// Asks something whose answer stands behind all that happened until now.
    pub(super) fn mark(&mut self, acts: &mut Vec<Act>) {
        self.marks += 1;
        acts.push(Act::Do(Command::ShowBudget));
    }

    /// Once: who says it twice does not wait for what runs.
    pub(super) fn quit(&mut self, acts: &mut Vec<Act>) {
        if !std::mem::replace(&mut self.quits, true) {
            acts.push(Act::Do(Command::Quit));
        }
    }

    /// Resumes a paused session under the policy as it is now.
    pub(super) fn go_on(&mut self, slot: Slot, acts: &mut Vec<Act>) {
        acts.push(Act::Do(Command::Resume));
        (self.ready, self.opened.resumed, self.went_on) = (Some(slot), true, true);
        self.mark(acts);
    }

    pub(super) fn told(&mut self) -> Value {
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
