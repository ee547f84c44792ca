//! Activity of the running task.

use crate::protocol::CallId;
use crate::tui::model::{Activity, UiModel};

/// Sets the activity of the task, unless the task is being stopped. An unchanged activity keeps its timer.
pub(crate) fn set_activity(model: &mut UiModel, activity: Activity, now: u64) {
    model.task.paused = None;
    if model.task.activity == Activity::Stopping {
        return;
    }
    // The summary request is not an activity of the task.
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

/// Adds a running call to the activity.
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

/// Updates the activity when a call ends. After the last call, the model continues.
pub(crate) fn remove_running_call(model: &mut UiModel, id: &CallId, now: u64) {
    if let Activity::Running { calls } = &mut model.task.activity {
        calls.retain(|(running, _)| running != id);
        if calls.is_empty() {
            model.set_activity(Activity::Thinking, now);
        }
    }
}
