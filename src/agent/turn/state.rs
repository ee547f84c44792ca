//! States of the session and its task: the allowed transitions, and the only place where states change.

use super::{Call, CallState, Effect, Phase, TurnMachine};
use crate::ports::{Durability, Record};
use crate::protocol::SessionStatus::{self, Completed, Created, Failed, Paused, Running};
use crate::protocol::TaskStatus::{
    self, CheckingPolicy, ExecutingTools, Idle, ProcessingResponse, TaskCancelled, TaskCompleted, TaskFailed, TaskRunning,
    WaitingForApproval, WaitingForLlm,
};
use crate::protocol::{EventKind, Failure, FailureKind, SessionState, TaskState};

/// Transition: from, to, and reason.
pub(super) type Change<S> = (S, S, &'static str);

/// Transitions of a session.
pub(super) const SESSION: &[Change<SessionStatus>] = &[
    (Created, Running, "the policy is valid and the model is ready"),
    (
        Running,
        Paused,
        "the network is down, the policy has expired, a budget is used up, nothing can be saved, or a task was left unfinished",
    ),
    (Paused, Running, "the session is resumed, or its task is cancelled"),
    (Running, Completed, "the session ends, and no task runs"),
    (Running, Failed, "its end cannot be saved"),
];

/// Further transitions that the loop needs.
pub(super) const SESSION_TOO: &[Change<SessionStatus>] =
    &[(Paused, Failed, "nothing can be saved, and the user quits before that is fixed")];

/// Transitions of a task in a running session.
pub(super) const TASK: &[Change<TaskStatus>] = &[
    (Idle, TaskRunning, "a new prompt, or an ended task is continued"),
    (TaskRunning, WaitingForLlm, "the request is sent"),
    (WaitingForLlm, ProcessingResponse, "the response is complete"),
    (WaitingForLlm, TaskFailed, "the provider refuses the request"),
    (ProcessingResponse, TaskCompleted, "a response without tool calls"),
    (ProcessingResponse, CheckingPolicy, "a response with tool calls"),
    (CheckingPolicy, WaitingForApproval, "a call requires approval"),
    (CheckingPolicy, ExecutingTools, "no call requires approval; denied calls are done"),
    (WaitingForApproval, ExecutingTools, "the last approval is decided"),
    (ExecutingTools, TaskRunning, "all calls have their results"),
    (TaskRunning, TaskFailed, "no step is left, or the policy forbids the next one"),
    (TaskRunning, TaskCancelled, "the user stopped it, and running calls have ended"),
    (TaskCompleted, Idle, "the end is saved and reported"),
    (TaskFailed, Idle, "the end is saved and reported"),
    (TaskCancelled, Idle, "the end is saved and reported"),
];

/// Further transitions that the loop needs.
pub(super) const TASK_TOO: &[Change<TaskStatus>] = &[
    (WaitingForLlm, TaskCancelled, "a stop waits neither for the model nor for a retry"),
    (WaitingForLlm, TaskRunning, "a request that failed for good waits until the user starts the step again"),
    (ProcessingResponse, TaskRunning, "the response reached the output limit: the next step requests the rest"),
    (ProcessingResponse, TaskFailed, "the provider withdrew its response, or the response was empty"),
    (
        ProcessingResponse,
        WaitingForLlm,
        "the provider reports that the conversation is too long: it is shortened and sent once more",
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

/// Current states.
#[derive(Debug)]
pub(super) struct States {
    session: SessionStatus,
    status: TaskStatus,
    /// State of the current or last task, as last reported.
    task: Option<TaskState>,
    /// Whether nothing can be saved; then the session is paused, whatever its task does.
    stalled: bool,
    /// Number of rejected transitions; each is a bug.
    #[cfg(test)]
    pub refused: u32,
    /// Description of the last one.
    #[cfg(test)]
    pub refusal: String,
}

impl Default for States {
    fn default() -> Self {
        Self {
            session: Created,
            status: Idle,
            task: None,
            stalled: false,
            #[cfg(test)]
            refused: 0,
            #[cfg(test)]
            refusal: String::new(),
        }
    }
}

impl States {
    /// Changes the session state. Returns whether it changed; an invalid transition is rejected.
    fn session_to(&mut self, to: SessionStatus) -> bool {
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

    fn task_to(&mut self, to: TaskStatus) -> bool {
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

impl TurnMachine {
    /// Returns the effects of an input. A state change comes before the events that announce it, so that a reader of these events finds the
    /// new state.
    pub(super) fn effects(&mut self) -> Vec<Effect> {
        let effects = std::mem::take(&mut self.out);
        let mut ordered: Vec<Effect> = Vec::with_capacity(effects.len());
        let mut since_change = 0;
        for effect in effects {
            if matches!(&effect, Effect::Emit { kind: EventKind::StateChanged { .. }, .. }) {
                let first = ordered[since_change..].iter().position(announces);
                ordered.insert(first.map_or(ordered.len(), |first| since_change + first), effect);
                since_change = ordered.len();
            } else {
                ordered.push(effect);
            }
        }
        ordered
    }

    /// Starts the session; call this once, before any input.
    pub fn begin_session(&mut self) -> Vec<Effect> {
        self.enter_session(Running);
        self.effects()
    }

    /// Ends the session; `saved`: everything was saved. A session with an unfinished task is paused: the task continues when the session is
    /// resumed.
    pub fn end_session(&mut self, saved: bool) -> Vec<Effect> {
        match (saved, self.task.as_ref().map(|task| task.own.is_some())) {
            (false, _) => self.enter_session(Failed),
            (true, None | Some(true)) if self.aside.is_none() => self.enter_session(Completed),
            (true, _) if self.states.session == Paused => {}
            (true, _) => {
                let failure = left_behind();
                // A session with a pending approval is listed as waiting for the user.
                if !self.waits_for_approval() {
                    self.note(Record::Paused { failure: failure.clone() });
                    self.commit(Durability::Power);
                }
                self.emit(EventKind::SessionPaused { failure });
                self.enter_session(Paused);
            }
        }
        self.effects()
    }

    /// Returns whether the session ended, or is paused, with an open task.
    pub fn is_paused(&self) -> bool {
        self.states.session == Paused
    }

    fn waits_for_approval(&self) -> bool {
        let Some(Phase::Working(calls)) = self.task.as_ref().map(|task| &task.phase) else { return false };
        calls.iter().any(|call| matches!(call.state, CallState::Asking(_)))
    }

    /// Sets whether decisions can be saved; until they can, the session is paused.
    pub fn set_stalled(&mut self, stalled: bool) -> Option<EventKind> {
        self.states.stalled = stalled;
        let waits = stalled || self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Paused));
        self.states.session_to(if waits { Paused } else { Running }).then(|| self.state_changed())
    }

    pub fn state(&self) -> SessionState {
        let now = self.task.as_ref().map(|task| TaskState {
            task_id: task.id.clone(),
            status: self.states.status,
            step_count: task.step_count,
            max_steps: task.max_steps,
        });
        let last = || self.states.task.clone().map(|task| TaskState { status: self.states.status, ..task });
        SessionState { session_status: self.states.session, task: now.or_else(last) }
    }

    fn state_changed(&self) -> EventKind {
        let SessionState { session_status, task } = self.state();
        EventKind::StateChanged { session_status, task }
    }

    /// Pauses the task until the user continues it. Everything is saved.
    pub(super) fn pause(&mut self, failure: Failure) {
        if let Some(task) = &mut self.task {
            task.phase = Phase::Paused;
        }
        self.leave_response();
        self.budgets.paused = failure.kind == FailureKind::BudgetExceeded;
        self.note(Record::Paused { failure: failure.clone() });
        self.commit(Durability::Power);
        self.emit(EventKind::SessionPaused { failure });
        self.enter_session(Paused);
    }

    /// Leaves a response that reported an overlong conversation, if no budget is left to shorten it.
    pub(super) fn leave_response(&mut self) {
        if self.states.status == ProcessingResponse {
            self.enter(TaskRunning);
        }
    }

    pub(super) fn enter_session(&mut self, to: SessionStatus) {
        // The session is paused for the disk, whatever happens behind that.
        if to == Running && self.states.stalled {
            return;
        }
        if self.states.session_to(to) {
            let told = self.state_changed();
            self.emit(told);
        }
    }

    pub(super) fn enter(&mut self, to: TaskStatus) {
        if self.states.task_to(to) {
            self.states.task = self.state().task;
            let told = self.state_changed();
            self.emit(told);
        }
    }

    /// Sets the task status that describes its calls best for the user: a pending approval comes first.
    pub(super) fn enter_for_calls(&mut self) {
        let Some(task) = &self.task else { return };
        let Phase::Working(calls) = &task.phase else { return };
        let any = |is: fn(&Call) -> bool| calls.iter().any(is);
        let to = if any(|call| matches!(call.state, CallState::Asking(_) | CallState::Unknown)) {
            WaitingForApproval
        } else if any(|call| matches!(call.state, CallState::Planning)) && !any(works) {
            CheckingPolicy
        } else {
            ExecutingTools
        };
        self.enter(to);
    }
}

/// Returns whether an event announces the state change that is reported after it.
fn announces(effect: &Effect) -> bool {
    let Effect::Emit { kind, .. } = effect else { return false };
    matches!(
        kind,
        EventKind::SessionPaused { .. }
            | EventKind::PolicyExpired { .. }
            | EventKind::TaskStarted { .. }
            | EventKind::TaskCompleted { .. }
            | EventKind::TaskFailed { .. }
            | EventKind::TaskCancelled { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved { .. }
            | EventKind::ApprovalTimeout { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::PreviewStarted { .. }
    )
}

/// Returns the reason of the pause of a session whose process exited normally.
pub(super) fn left_behind() -> Failure {
    Failure::new(
        FailureKind::Internal,
        "the session ended while its task was running; the task is saved as it was",
        "resume the session to continue the task",
    )
}

fn works(call: &Call) -> bool {
    matches!(call.state, CallState::Running | CallState::Previewing(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visits all pairs of states with whether the transition is allowed; a state does not change to itself.
    fn each_pair<S: Copy + PartialEq>(all: &[S], tables: [&[Change<S>]; 2], mut look: impl FnMut(S, S, bool)) {
        for from in all {
            for to in all.iter().filter(|to| *to != from) {
                look(*from, *to, allows(tables, from, to));
            }
        }
    }

    #[test]
    fn a_change_of_the_session_that_no_table_has_is_refused_and_the_old_state_stays() {
        let mut count = 0;
        each_pair(&SessionStatus::ALL, [SESSION, SESSION_TOO], |from, to, may| {
            let mut states = States { session: from, ..States::default() };
            assert_eq!(states.session_to(to), may, "{from:?} → {to:?}");
            assert_eq!((states.session == to, states.refused), (may, u32::from(!may)), "{from:?} → {to:?}");
            count += u32::from(may);
        });
        assert_eq!(count as usize, SESSION.len() + SESSION_TOO.len(), "a change stands in the tables twice");
    }

    #[test]
    fn a_change_of_the_task_that_no_table_has_is_refused_and_the_old_state_stays() {
        let mut count = 0;
        each_pair(&TaskStatus::ALL, [TASK, TASK_TOO], |from, to, may| {
            let mut states = States { status: from, ..States::default() };
            assert_eq!(states.task_to(to), may, "{from:?} → {to:?}");
            assert_eq!((states.status == to, states.refused), (may, u32::from(!may)), "{from:?} → {to:?}");
            count += u32::from(may);
        });
        assert_eq!(count as usize, TASK.len() + TASK_TOO.len(), "a change stands in the tables twice");
    }

    #[test]
    fn a_session_says_where_it_stands_in_the_words_of_its_clients() {
        let state = SessionState {
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
