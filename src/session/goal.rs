//! Session goal: its rounds, and the action to take next.

use crate::ports::GoalChange;
use crate::protocol::{Goal, GoalReason, GoalState, GoalStatus, TaskId};

/// Most recently set goal, and its progress.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GoalProgress {
    pub goal: Goal,
    /// Session cost in US dollars when the goal was set.
    pub cost_before: Option<f64>,
    /// First task that worked towards the goal. Files are compared with their state before this task.
    pub first_task: Option<TaskId>,
    pub stage: GoalStage,
    /// Reason why the goal is waiting for the user; `None` if it is not paused.
    pub paused: Option<GoalReason>,
    pub ended: Option<GoalReason>,
    /// Number of failed checks so far.
    pub failures: u32,
    /// Number of consecutive checks that failed in the same way without any file changing in between.
    pub same_failures: u32,
    /// Most recent failed check.
    pub last: Option<FailedCheck>,
    /// Changed files that may affect the check's result.
    pub changed_check_files: Vec<String>,
    /// Elapsed time as of the last record, excluding pauses, in milliseconds.
    pub elapsed_ms: u64,
}

/// Next stage of a goal's round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoalStage {
    /// The next task has to be started.
    Prompt,
    /// The model is working.
    Task,
    /// The check is running.
    Check,
}

/// Check that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedCheck {
    /// Exit status, such as `exit 101`.
    pub ended: String,
    /// End of the check's output.
    pub output: String,
    digest: String,
    files_digest: String,
}

impl GoalProgress {
    pub(crate) fn new(goal: Goal, cost_before: Option<f64>) -> Self {
        Self {
            goal,
            cost_before,
            first_task: None,
            stage: GoalStage::Prompt,
            paused: None,
            ended: None,
            failures: 0,
            same_failures: 0,
            last: None,
            changed_check_files: Vec::new(),
            elapsed_ms: 0,
        }
    }

    /// Returns whether the goal has not ended yet.
    pub(crate) fn is_active(&self) -> bool {
        self.ended.is_none()
    }

    /// Returns whether the goal proceeds without the user.
    pub(crate) fn is_running(&self) -> bool {
        self.ended.is_none() && self.paused.is_none()
    }

    /// Applies a change to the goal. Setting a goal replaces any previous one.
    pub(crate) fn apply(goal: &mut Option<Self>, change: &GoalChange) {
        if let GoalChange::Set { goal: set, cost_before } = change {
            *goal = Some(Self::new(set.clone(), *cost_before));
        } else if let Some(goal) = goal {
            goal.change(change);
        }
    }

    fn change(&mut self, change: &GoalChange) {
        match change {
            GoalChange::Set { .. } => {}
            GoalChange::CheckReplaced { check } => {
                self.goal.check.clone_from(check);
                (self.stage, self.same_failures, self.last) = (GoalStage::Check, 0, None);
            }
            GoalChange::CheckFailed { ended, output, digest, files_digest, changed_check_files, elapsed_ms } => {
                let is_same = self.last.as_ref().is_some_and(|last| last.digest == *digest && last.files_digest == *files_digest);
                self.same_failures = if is_same { self.same_failures + 1 } else { 1 };
                self.failures += 1;
                self.stage = GoalStage::Prompt;
                self.elapsed_ms = *elapsed_ms;
                self.changed_check_files.clone_from(changed_check_files);
                self.last = Some(FailedCheck {
                    ended: ended.clone(),
                    output: output.clone(),
                    digest: digest.clone(),
                    files_digest: files_digest.clone(),
                });
            }
            GoalChange::Paused { reason, elapsed_ms, .. } => {
                (self.paused, self.elapsed_ms) = (Some(*reason), *elapsed_ms);
            }
            GoalChange::Continued => (self.paused, self.same_failures) = (None, 0),
            GoalChange::Ended { reason, elapsed_ms, changed_check_files, .. } => {
                (self.ended, self.paused, self.elapsed_ms) = (Some(*reason), None, *elapsed_ms);
                self.changed_check_files.clone_from(changed_check_files);
            }
        }
    }

    /// Records that a task started.
    pub(crate) fn on_task_start(&mut self, task: &TaskId) {
        if self.is_active() {
            self.first_task.get_or_insert_with(|| task.clone());
            self.stage = GoalStage::Task;
        }
    }

    /// Records that a task ended. The check runs next, once the goal continues.
    pub(crate) fn on_task_end(&mut self) {
        self.stage = GoalStage::Check;
    }

    /// Records that the last task was continued.
    pub(crate) fn on_task_continued(&mut self) {
        self.stage = GoalStage::Task;
    }

    /// Returns the goal's state for front ends.
    pub(crate) fn state(&self, cost_usd: Option<f64>, elapsed_ms: u64, message: Option<String>) -> GoalState {
        let status = match (self.ended, self.paused, self.stage) {
            (Some(GoalReason::CheckPassed), ..) => GoalStatus::Reached,
            (Some(_), ..) => GoalStatus::Ended,
            (None, Some(_), _) => GoalStatus::Paused,
            (None, None, GoalStage::Check) => GoalStatus::Checking,
            (None, None, GoalStage::Prompt | GoalStage::Task) => GoalStatus::Working,
        };
        GoalState {
            goal: self.goal.clone(),
            status,
            reason: self.ended.or(self.paused),
            round: (self.failures + 1).min(self.goal.max_rounds),
            cost_usd: cost_usd.map(|cost| (cost - self.cost_before.unwrap_or_default()).max(0.0)),
            elapsed_ms,
            changed_check_files: self.changed_check_files.clone(),
            message,
        }
    }
}
