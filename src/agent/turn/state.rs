//! States of the session and its task: the permitted transitions, and the only code that changes states.

use crate::protocol::SessionStatus::{self, Completed, Created, Failed, Paused, Running};
use crate::protocol::TaskStatus::{
    self, CheckingPolicy, ExecutingTools, Idle, ProcessingResponse, TaskCancelled, TaskCompleted, TaskFailed, TaskRunning,
    WaitingForApproval, WaitingForLlm,
};
use crate::protocol::{Failure, FailureKind};

/// Transition: the old state, the new state, and the reason.
pub(super) type Change<S> = (S, S, &'static str);

/// Session transitions.
pub(super) const SESSION: &[Change<SessionStatus>] = &[
    (Created, Running, "the policy is valid and the model is ready"),
    (
        Running,
        Paused,
        "the network is down, the policy has expired, a budget is used up, nothing can be saved, or a task was left unfinished",
    ),
    (Paused, Running, "the session is resumed, or its task is cancelled"),
    (Running, Completed, "the session ends, and no task runs"),
    (Running, Failed, "the end of the session cannot be saved"),
];

/// Additional session transitions that the agent loop needs.
pub(super) const SESSION_TOO: &[Change<SessionStatus>] =
    &[(Paused, Failed, "nothing can be saved, and the user quits before that is fixed")];

/// Task transitions while the session is running.
pub(super) const TASK: &[Change<TaskStatus>] = &[
    (Idle, TaskRunning, "a new prompt, or an ended task is continued"),
    (TaskRunning, WaitingForLlm, "the request is sent"),
    (WaitingForLlm, ProcessingResponse, "the response is complete"),
    (WaitingForLlm, TaskFailed, "the provider refuses the request"),
    (ProcessingResponse, TaskCompleted, "a response without tool calls"),
    (ProcessingResponse, CheckingPolicy, "a response with tool calls"),
    (CheckingPolicy, WaitingForApproval, "a call requires approval"),
    (CheckingPolicy, ExecutingTools, "no call requires approval; denied calls already have their results"),
    (WaitingForApproval, ExecutingTools, "the last approval is decided"),
    (ExecutingTools, TaskRunning, "all calls have their results"),
    (TaskRunning, TaskFailed, "no step is left, or the policy forbids the next one"),
    (TaskRunning, TaskCancelled, "the user stopped it, and running calls have ended"),
    (TaskCompleted, Idle, "the end is saved and reported"),
    (TaskFailed, Idle, "the end is saved and reported"),
    (TaskCancelled, Idle, "the end is saved and reported"),
];

/// Additional task transitions that the agent loop needs.
pub(super) const TASK_TOO: &[Change<TaskStatus>] = &[
    (WaitingForLlm, TaskCancelled, "a stop waits neither for the model nor for a retry"),
    (WaitingForLlm, TaskRunning, "after a permanent failure, the request waits until the user restarts the step"),
    (ProcessingResponse, TaskRunning, "the response reached the output limit: the next step requests the rest"),
    (ProcessingResponse, TaskFailed, "the provider withdrew its response, or the response was empty"),
    (
        ProcessingResponse,
        WaitingForLlm,
        "the provider reports that the conversation is too long: aye shortens it and sends it once more",
    ),
    (TaskRunning, CheckingPolicy, "a resumed session has open calls from its last response"),
    (ExecutingTools, CheckingPolicy, "a call that waited for an earlier one is checked now, or checked again after that one ran"),
    (ExecutingTools, WaitingForApproval, "a command ran in a preview, and its effects require approval"),
    (WaitingForApproval, CheckingPolicy, "an approved call is checked once more before it runs"),
    (TaskRunning, TaskCompleted, "a command run by the user has ended"),
];

fn allows<S: PartialEq>(tables: [&[Change<S>]; 2], from: &S, to: &S) -> bool {
    tables.into_iter().flatten().any(|(before, after, _)| before == from && after == to)
}

/// Current session and task states.
#[derive(Debug)]
pub(super) struct States {
    session: SessionStatus,
    status: TaskStatus,
    /// Whether records cannot be saved, in which case the session is paused whatever its task is doing.
    stalled: bool,
    /// Number of rejected transitions. Each one is a bug.
    #[cfg(test)]
    pub refused: u32,
    /// Description of the most recently rejected transition.
    #[cfg(test)]
    pub refusal: String,
}

impl Default for States {
    fn default() -> Self {
        Self {
            session: Created,
            status: Idle,
            stalled: false,
            #[cfg(test)]
            refused: 0,
            #[cfg(test)]
            refusal: String::new(),
        }
    }
}

impl States {
    pub(crate) fn session(&self) -> SessionStatus {
        self.session
    }

    pub(crate) fn task(&self) -> TaskStatus {
        self.status
    }

    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled
    }

    pub(crate) fn set_stalled(&mut self, stalled: bool) {
        self.stalled = stalled;
    }

    /// Changes the session state. Returns whether it changed. Invalid transitions are rejected.
    pub(crate) fn set_session(&mut self, to: SessionStatus) -> bool {
        let from = self.session;
        if from == to {
            return false;
        }
        if !allows([SESSION, SESSION_TOO], &from, &to) {
            self.refuse(from.as_str(), to.as_str());
            return false;
        }
        self.session = to;
        true
    }

    pub(crate) fn set_task(&mut self, to: TaskStatus) -> bool {
        let from = self.status;
        if from == to {
            return false;
        }
        if !allows([TASK, TASK_TOO], &from, &to) {
            self.refuse(from.as_str(), to.as_str());
            return false;
        }
        self.status = to;
        true
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests count rejected transitions")]
    fn refuse(&mut self, from: &str, to: &str) {
        tracing::error!(from, to, "refused an invalid state change");
    }

    #[cfg(test)]
    fn refuse(&mut self, from: &str, to: &str) {
        self.refused += 1;
        self.refusal = format!("{from} to {to}");
    }
}

/// Returns the reason for the pause of a session whose process exited normally.
pub(super) fn left_behind_failure() -> Failure {
    Failure::new(
        FailureKind::Internal,
        "the session ended while its task was running; the task was saved in its last state",
        "resume the session to continue the task",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{SessionSnapshot, TaskState};

    /// Calls `look` with every pair of different states, and whether the transition between them is allowed.
    fn each_pair<S: Copy + PartialEq>(all: &[S], tables: [&[Change<S>]; 2], mut look: impl FnMut(S, S, bool)) {
        for from in all {
            for to in all.iter().filter(|to| *to != from) {
                look(*from, *to, allows(tables, from, to));
            }
        }
    }

    #[test]
    fn session_transitions_missing_from_the_tables_are_rejected_without_a_state_change() {
        let mut count = 0;
        each_pair(&SessionStatus::ALL, [SESSION, SESSION_TOO], |from, to, may| {
            let mut states = States { session: from, ..States::default() };
            assert_eq!(states.set_session(to), may, "{from:?} → {to:?}");
            assert_eq!((states.session == to, states.refused), (may, u32::from(!may)), "{from:?} → {to:?}");
            count += u32::from(may);
        });
        assert_eq!(count as usize, SESSION.len() + SESSION_TOO.len(), "a change stands in the tables twice");
    }

    #[test]
    fn task_transitions_missing_from_the_tables_are_rejected_without_a_state_change() {
        let mut count = 0;
        each_pair(&TaskStatus::ALL, [TASK, TASK_TOO], |from, to, may| {
            let mut states = States { status: from, ..States::default() };
            assert_eq!(states.set_task(to), may, "{from:?} → {to:?}");
            assert_eq!((states.status == to, states.refused), (may, u32::from(!may)), "{from:?} → {to:?}");
            count += u32::from(may);
        });
        assert_eq!(count as usize, TASK.len() + TASK_TOO.len(), "a change stands in the tables twice");
    }

    #[test]
    fn the_session_state_serializes_to_the_documented_names() {
        let state = SessionSnapshot {
            session_status: Running,
            task: Some(TaskState {
                task_id: crate::protocol::TaskId::new("task_001"),
                status: ExecutingTools,
                step_count: 3,
                max_steps: 40,
            }),
        };
        let told = serde_json::json!({"sessionStatus": "SESSION_RUNNING",
            "task": {"taskId": "task_001", "status": "EXECUTING_TOOLS", "stepCount": 3, "maxSteps": 40}});
        assert_eq!(serde_json::to_value(state).unwrap(), told);
        let names = SessionStatus::ALL.map(|status| (serde_json::to_value(status).unwrap(), status.as_str()));
        assert!(names.iter().all(|(name, word)| name == word));
        let names = TaskStatus::ALL.map(|status| (serde_json::to_value(status).unwrap(), status.as_str()));
        assert!(names.iter().all(|(name, word)| name == word));
    }
}
