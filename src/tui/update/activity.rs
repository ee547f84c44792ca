//! Changes to the displayed activity of the task.

use crate::protocol::CallId;
use crate::tui::model::{Activity, UiModel};

/// Sets the task's activity, unless the task is being stopped. If the activity has not changed, its start time is kept.
pub(crate) fn set_activity(model: &mut UiModel, activity: Activity, now: u64) {
    model.task.paused = None;
    if model.task.activity == Activity::Stopping {
        return;
    }
    // Compaction takes precedence over the activity of the task.
    let activity = if let Some(messages) = model.task.summarized_messages {
        Activity::Compacting { messages }
    } else {
        model.task.goes_on = true;
        activity
    };
    let same = std::mem::discriminant(&model.task.activity) == std::mem::discriminant(&activity);
    let since = if same { model.task.since } else { now };
    model.set_activity(activity, since);
}

/// Adds a call to the running calls, making them the task's activity.
pub(crate) fn add_running_call(model: &mut UiModel, call: (CallId, String), now: u64) {
    model.task.goes_on = true;
    match &mut model.task.activity {
        Activity::Stopping => {}
        Activity::Running { calls } if calls.iter().any(|(id, _)| *id == call.0) => {}
        Activity::Running { calls } => calls.push(call),
        Activity::Idle
        | Activity::Thinking
        | Activity::Answering
        | Activity::Calling { .. }
        | Activity::Retrying(_)
        | Activity::Compacting { .. } => {
            model.set_activity(Activity::Running { calls: vec![call] }, now);
        }
    }
}

/// Removes a call that has ended from the running calls. Once none is left, the task shows that the model is thinking.
pub(crate) fn remove_running_call(model: &mut UiModel, id: &CallId, now: u64) {
    if let Activity::Running { calls } = &mut model.task.activity {
        calls.retain(|(running, _)| running != id);
        if calls.is_empty() {
            model.set_activity(Activity::Thinking, now);
        }
    }
}
