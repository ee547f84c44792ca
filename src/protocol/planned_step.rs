//! Planned steps, which the model uses to track its progress on a task.

use super::{ToolResult, ToolStatus};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Name of the tool that replaces the entire list of planned steps.
pub const UPDATE_STEPS: &str = "UpdateSteps";

/// Planned step, as written by the model. aye displays it but does not act on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStep {
    /// Step description, on one line.
    pub text: String,
    pub status: StepStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Pending,
    InProgress,
    Done,
}

impl StepStatus {
    const ALL: [Self; 3] = [Self::Pending, Self::InProgress, Self::Done];

    /// Returns the symbol displayed before the step's text.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[>]",
            Self::Done => "[x]",
        }
    }

    /// Returns the status name shown to the user.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in progress",
            Self::Done => "done",
        }
    }
}

impl PlannedStep {
    /// Returns the steps set by a tool call, or `None` if the call set none. The call's result lists all steps, one per
    /// line, so the journal does not need to record them separately.
    pub fn list_in(result: &ToolResult) -> Option<Vec<Self>> {
        let sets = result.tool_name == UPDATE_STEPS && result.status == ToolStatus::Succeeded;
        sets.then(|| result.output_text.lines().filter_map(Self::from_line).collect())
    }

    fn from_line(line: &str) -> Option<Self> {
        let step = |status: StepStatus| {
            let text = line.strip_prefix(status.mark())?.strip_prefix(' ')?;
            Some(Self { text: text.to_owned(), status })
        };
        StepStatus::ALL.into_iter().find_map(step)
    }

    /// Returns the number of completed steps.
    pub fn count_done(steps: &[Self]) -> usize {
        steps.iter().filter(|step| step.status == StepStatus::Done).count()
    }

    /// Returns the step in progress, or otherwise the first pending step. Returns `None` if all steps are done.
    pub fn current(steps: &[Self]) -> Option<&Self> {
        let with = |status| steps.iter().find(|step| step.status == status);
        with(StepStatus::InProgress).or_else(|| with(StepStatus::Pending))
    }

    /// Formats the progress as one line: `2 of 5 steps done: Run the tests`.
    pub fn progress(steps: &[Self]) -> String {
        let (done, count) = (Self::count_done(steps), steps.len());
        let noun = if count == 1 { "step" } else { "steps" };
        let counts = format!("{done} of {count} {noun} done");
        Self::current(steps).map_or_else(|| counts.clone(), |step| format!("{counts}: {}", step.text))
    }
}

impl fmt::Display for PlannedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status.mark(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CallId, ErrorCode, ToolError};

    fn step(text: &str, status: StepStatus) -> PlannedStep {
        PlannedStep { text: text.to_owned(), status }
    }

    #[test]
    fn a_step_list_is_parsed_back_from_the_result_that_shows_it() {
        let steps = [
            step("[x] looks done", StepStatus::Pending),
            step("Run the tests", StepStatus::InProgress),
            step("é", StepStatus::Done),
        ];
        let text: Vec<String> = steps.iter().map(ToString::to_string).collect();
        let result = ToolResult::success(CallId::new("c1"), UPDATE_STEPS, text.join("\n"));
        assert_eq!(PlannedStep::list_in(&result).as_deref(), Some(&steps[..]));
        let other = ToolResult { tool_name: "ReadFile".to_owned(), ..result };
        assert_eq!(PlannedStep::list_in(&other), None, "the output of another tool is no list");
        let error = ToolError::new(ErrorCode::InvalidRequest, "[x] done");
        assert_eq!(PlannedStep::list_in(&ToolResult::from_error(CallId::new("c2"), UPDATE_STEPS, error)), None);
        let empty = ToolResult::success(CallId::new("c3"), UPDATE_STEPS, "[the list is empty]");
        assert_eq!(PlannedStep::list_in(&empty), Some(Vec::new()), "an empty list clears the steps");
    }

    #[test]
    fn progress_names_the_current_step_or_only_the_count_once_all_steps_are_done() {
        let steps = [step("Read", StepStatus::Done), step("Write", StepStatus::Pending), step("Test", StepStatus::InProgress)];
        assert_eq!(PlannedStep::progress(&steps), "1 of 3 steps done: Test");
        assert_eq!(PlannedStep::progress(&steps[..2]), "1 of 2 steps done: Write");
        assert_eq!(PlannedStep::progress(&steps[..1]), "1 of 1 step done");
    }
}
