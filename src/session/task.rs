//! Last task of a session: its prompt, steps and progress.

use crate::ports::TaskEnd;
use crate::protocol::{Message, StepId, StopReason, TaskId};

/// Last task of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskProgress {
    pub task_id: TaskId,
    pub prompt: String,
    pub stage: TaskStage,
    /// Number of completed steps.
    pub step_count: u32,
    pub max_steps: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskStage {
    Running,
    /// An approval is pending.
    Waiting,
    Paused,
    Completed,
    Failed,
    Cancelled,
}

impl TaskStage {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns whether the task has ended.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Returns whether the task is neither ended nor paused.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }
}

impl From<&TaskEnd> for TaskStage {
    fn from(end: &TaskEnd) -> Self {
        match end {
            TaskEnd::Completed => Self::Completed,
            TaskEnd::Failed { .. } => Self::Failed,
            TaskEnd::Cancelled => Self::Cancelled,
        }
    }
}

/// Returns whether this response completes its step, which means that the next record only confirms the end of the
/// step.
pub(crate) fn ends_step(message: &Message, stop_reason: StopReason) -> bool {
    !message.content.is_empty() && message.tool_calls().next().is_none() && stop_reason != StopReason::Cancelled
}

/// Latest task and step in a session.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub task: Option<TaskProgress>,
    /// Last step whose end has been recorded.
    cursor: Option<StepId>,
    /// Running step, with its number in the task.
    current: Option<(StepId, u32)>,
    /// Whether the running step has received a response that completes it but has not been recorded as completed.
    is_answered: bool,
    /// Number of steps by which each run raises the task's step limit.
    steps_per_run: u32,
}

impl Steps {
    pub(crate) fn start_task(&mut self, prompt: &Message, max_steps: u32) {
        (self.current, self.is_answered) = (None, false);
        self.steps_per_run = max_steps;
        self.task = Some(TaskProgress {
            task_id: prompt.task_id.clone(),
            prompt: prompt.text(),
            stage: TaskStage::Running,
            step_count: 0,
            max_steps,
        });
    }

    pub(crate) fn start_step(&mut self, step_id: &StepId, step_count: u32) {
        // A step is complete once a later step follows it, but not if the same step starts again.
        if let Some((before, _)) = self.current.take().filter(|(_, count)| *count < step_count) {
            self.cursor = Some(before);
        }
        self.current = Some((step_id.clone(), step_count));
        self.is_answered = false;
        self.complete(step_count.saturating_sub(1));
        // A step beyond the limit shows that the task was continued by another run.
        if self.task.as_ref().is_some_and(|task| step_count > task.max_steps) {
            self.add_steps();
        }
    }

    /// Records a response to the running step.
    pub(crate) fn answer(&mut self, message: &Message, stop_reason: StopReason) {
        if let Some((_, count)) = self.current.as_ref().filter(|_| ends_step(message, stop_reason)) {
            self.complete(*count);
            self.is_answered = true;
        }
    }

    pub(crate) fn complete_step(&mut self, step_id: &StepId, step_count: u32) {
        self.cursor = Some(step_id.clone());
        (self.current, self.is_answered) = (None, false);
        self.complete(step_count);
    }

    pub(crate) fn end_task(&mut self, end: &TaskEnd, step_count: u32) {
        self.complete(step_count);
        self.set_stage(end.into());
        self.is_answered = false;
        // The last response of a completed task is a step without calls.
        if let Some((step, _)) = self.current.take().filter(|(_, count)| *count <= step_count) {
            self.cursor = Some(step);
        }
    }

    /// Continues the task. If the task had ended, it is granted the same number of additional steps.
    pub(crate) fn continue_task(&mut self) {
        if self.task.as_ref().is_some_and(|task| matches!(task.stage, TaskStage::Failed | TaskStage::Cancelled)) {
            self.add_steps();
        }
        self.set_stage(TaskStage::Running);
    }

    pub(crate) fn import(&mut self, step_count: u32, cursor: Option<&StepId>) {
        if let Some(cursor) = cursor {
            self.cursor = Some(cursor.clone());
        }
        self.complete(step_count);
    }

    pub(crate) fn set_stage(&mut self, stage: TaskStage) {
        if let Some(task) = &mut self.task {
            task.stage = stage;
        }
    }

    /// Removes the task if `is_gone` returns `true` for its ID.
    pub(crate) fn drop_task(&mut self, mut is_gone: impl FnMut(&TaskId) -> bool) {
        if self.task.as_ref().is_some_and(|task| is_gone(&task.task_id)) {
            self.task = None;
        }
    }

    /// Returns the ID of the last completed step.
    pub(crate) fn last_step(&self) -> Option<&StepId> {
        let answered = self.current.as_ref().filter(|_| self.is_answered).map(|(step, _)| step);
        answered.or(self.cursor.as_ref())
    }

    fn add_steps(&mut self) {
        if let Some(task) = &mut self.task {
            task.max_steps = task.step_count.saturating_add(self.steps_per_run);
        }
    }

    fn complete(&mut self, steps: u32) {
        if let Some(task) = &mut self.task {
            task.step_count = steps;
        }
    }
}
