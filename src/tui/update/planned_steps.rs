//! Steps planned by the model: the row above the composer, and the full list on request.

use crate::protocol::{PlannedStep, StepStatus};
use crate::text;
use crate::tui::model::UiModel;
use crate::tui::picker::Row;

/// Replaces the list of planned steps.
pub(crate) fn changed(model: &mut UiModel, steps: Vec<PlannedStep>) {
    let clean = |step: PlannedStep| PlannedStep { text: text::reveal_line(&step.text), ..step };
    model.task.planned_steps = steps.into_iter().map(clean).collect();
}

/// Returns the text of the row above the composer. Returns `None` if there are no steps, or if all of them are done and
/// no task is running.
pub(crate) fn status_row(model: &UiModel) -> Option<String> {
    let steps = &model.task.planned_steps;
    let shows = model.is_running() || PlannedStep::current(steps).is_some();
    (!steps.is_empty() && shows).then(|| PlannedStep::progress(steps))
}

/// Returns one list row per planned step.
pub(crate) fn rows(model: &UiModel) -> Vec<Row> {
    let row = |(at, step): (usize, &PlannedStep)| Row {
        key: at.to_string(),
        cells: vec![(at + 1).to_string(), step.status.as_str().to_owned(), step.text.clone()],
        mark: if step.status == StepStatus::InProgress { model.screen.glyphs.state.running } else { "" },
        lacks: None,
        detail: step.text.clone(),
    };
    model.task.planned_steps.iter().enumerate().map(row).collect()
}

/// Returns the planned steps as text for line mode.
pub(crate) fn printed(model: &UiModel) -> String {
    let steps = &model.task.planned_steps;
    let lines = steps.iter().enumerate().map(|(at, step)| format!("{:>3}  {}: {}", at + 1, step.status.as_str(), step.text));
    let head = format!("{} of {} steps done", PlannedStep::count_done(steps), steps.len());
    [head].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}
