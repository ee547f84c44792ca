//! File rewinds. The tools plan them and restore the files, and the result is reported as an event or an input.

use super::call_context::CallContext;
use super::event_sender::EventSender;
use crate::agent::turn::Input;
use crate::ports::{FileRewind, FileRewindPlan, RewindStart};
use crate::protocol::{EventKind, RewindPlan, RewindPoint};

/// Reports the rewind points from a background task, because collecting them may have to wait for a disk.
pub(super) fn report_points(context: &CallContext, sender: EventSender, mut points: Vec<RewindPoint>, can_redo: bool) {
    let router = context.router();
    tokio::spawn(async move {
        for changes in router.task_changes().await {
            if let Some(point) = points.iter_mut().find(|point| point.task_id == changes.task_id) {
                (point.files, point.added, point.removed) = (changes.files, changes.added, changes.removed);
            }
        }
        sender.send(None, None, EventKind::RewindPointsListed { points, can_redo });
    });
}

/// Adds the effects on files to a rewind plan and reports the plan.
pub(super) fn report_plan(context: &CallContext, sender: EventSender, mut plan: RewindPlan, since: Option<RewindStart>) {
    let router = context.router();
    tokio::spawn(async move {
        if let Some(since) = since {
            match router.plan_rewind(since).await {
                Ok(FileRewindPlan { files, diff, cannot }) => {
                    (plan.files, plan.diff) = (files, diff);
                    plan.cannot.extend(cannot);
                }
                Err(error) => {
                    let message = format!("cannot read the files to restore: {error}");
                    return sender.send(None, None, EventKind::notice(message));
                }
            }
        }
        sender.send(None, None, EventKind::RewindPlanned(plan));
    });
}

/// Restores files. Once the restoration has started, it always runs to completion.
pub(super) fn restore_files(context: &CallContext, rewind: FileRewind) {
    let (router, inputs, number) = (context.router(), context.inputs(), rewind.number);
    tokio::spawn(async move {
        let outcome = tokio::spawn(async move { router.rewind(rewind).await }).await;
        let outcome = match outcome {
            Ok(outcome) => outcome.map_err(|error| error.message),
            Err(error) => Err(error.to_string()),
        };
        let _ = inputs.send(Input::FilesRewound { number, outcome }).await;
    });
}
