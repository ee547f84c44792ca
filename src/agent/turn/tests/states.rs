//! Tests that every state transition in the tables occurs in some case.

use super::super::state::{SESSION, SESSION_TOO, TASK, TASK_TOO};
use super::*;
use crate::protocol::{SessionStatus, TaskState, TaskStatus};
use std::collections::HashSet;

/// States in which no task is running.
const OVER: [TaskStatus; 4] = [TaskStatus::Idle, TaskStatus::TaskCompleted, TaskStatus::TaskFailed, TaskStatus::TaskCancelled];

/// Transitions reported by successive processes.
#[derive(Debug)]
pub(super) struct Changes {
    session: SessionStatus,
    task: TaskStatus,
    sessions: HashSet<(SessionStatus, SessionStatus)>,
    tasks: HashSet<(TaskStatus, TaskStatus)>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { session: SessionStatus::Created, task: TaskStatus::Idle, sessions: HashSet::new(), tasks: HashSet::new() }
    }
}

impl Changes {
    /// Starts the next process of the session.
    pub(super) fn begin_anew(&mut self) {
        (self.session, self.task) = (SessionStatus::Created, TaskStatus::Idle);
    }

    /// Checks that the state announced by an event is in effect.
    pub(super) fn is_in_force(&self, announced: &EventKind, person: bool) {
        let (session, task) = (self.session, self.task);
        let is_in_force = match announced {
            EventKind::SessionPaused { .. } | EventKind::PolicyExpired { .. } => session == SessionStatus::Paused,
            EventKind::TaskStarted { .. } | EventKind::StepStarted { .. } => !OVER.contains(&task),
            EventKind::TaskCompleted { .. } => task == TaskStatus::TaskCompleted,
            EventKind::TaskFailed { .. } => task == TaskStatus::TaskFailed,
            EventKind::TaskCancelled { .. } => task == TaskStatus::TaskCancelled,
            EventKind::ApprovalRequested(_) => !person || task == TaskStatus::WaitingForApproval,
            // Between tasks, any request is a summary request.
            EventKind::LlmRequestStarted { .. } => task == TaskStatus::WaitingForLlm || OVER.contains(&task),
            _ => true,
        };
        assert!(is_in_force, "`{}` came while the session was {session:?} and its task {task:?}", show(announced));
    }

    pub(super) fn note(&mut self, session: SessionStatus, task: Option<&TaskState>) {
        let task = task.map_or(TaskStatus::Idle, |task| task.status);
        let session_changed = self.session != session;
        assert!(session_changed != (self.task != task), "{session:?} {task:?}: one of them changed, and only one");
        if session_changed {
            self.sessions.insert((std::mem::replace(&mut self.session, session), session));
        } else {
            self.tasks.insert((std::mem::replace(&mut self.task, task), task));
        }
    }
}

#[test]
fn every_transition_in_the_tables_occurs_in_a_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/turn");
    let (mut sessions, mut tasks) = (HashSet::new(), HashSet::new());
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut sim = sim_of(&text);
        for input in text.lines().filter_map(|line| line.strip_prefix("> ")) {
            let effects = sim.play(input);
            sim.perform(effects);
        }
        sessions.extend(sim.changes.sessions);
        tasks.extend(sim.changes.tasks);
    }
    for (from, to, when) in SESSION.iter().chain(SESSION_TOO) {
        assert!(sessions.remove(&(*from, *to)), "no case has {from:?} → {to:?}: {when}");
    }
    for (from, to, when) in TASK.iter().chain(TASK_TOO) {
        assert!(tasks.remove(&(*from, *to)), "no case has {from:?} → {to:?}: {when}");
    }
    assert!(sessions.is_empty() && tasks.is_empty(), "no table has {sessions:?} {tasks:?}");
}
