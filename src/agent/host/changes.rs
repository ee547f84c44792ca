//! Tracks file changes in a session: attributes them to tasks and steps, and lists them at the end.

use super::call_context::CallContext;
use crate::agent::turn::Input;
use crate::ports::ToolRouter;
use crate::protocol::{ChangedFiles, StepId, TaskId};
use std::time::Duration;

/// Maximum time that the end of a session or of a goal's check waits for the list of changed files.
const LIST_TIMEOUT: Duration = Duration::from_secs(6);

/// Task to which the tools currently attribute changes.
#[derive(Default)]
pub(super) struct ChangeTracker {
    task: Option<TaskId>,
}

impl ChangeTracker {
    pub(crate) fn task(&self) -> Option<TaskId> {
        self.task.clone()
    }

    /// Notifies the tools when a different task or step begins.
    pub(crate) fn note(&mut self, router: &dyn ToolRouter, task: &TaskId, step: Option<&StepId>) {
        if self.task.as_ref() != Some(task) {
            self.task = Some(task.clone());
            router.task_started(task);
        }
        if let Some(step) = step {
            router.step_started(step.number());
        }
    }
}

/// Lists the files changed since the given task started, for the session's goal, and reads the scripts that its check
/// mentions. The result is sent as an input.
pub(super) fn list(context: &CallContext, ticket: u64, since: Option<TaskId>, check: String) {
    let (router, inputs) = (context.router(), context.inputs());
    tokio::spawn(async move {
        let work = async { (router.changed_files(since).await, router.check_scripts(check).await) };
        let listed = tokio::time::timeout(LIST_TIMEOUT, work).await;
        if listed.is_err() {
            tracing::warn!("the list of changed files for the goal took too long");
        }
        let (changes, scripts) = listed.ok().unzip();
        let _ = inputs.send(Input::ChangesListed { ticket, changes, scripts: scripts.unwrap_or_default() }).await;
    });
}

/// Returns the files changed during the session, or `None` if there are none or listing them times out.
pub(super) async fn all_changes(router: &dyn ToolRouter) -> Option<ChangedFiles> {
    let Ok(changed) = tokio::time::timeout(LIST_TIMEOUT, router.changed_files(None)).await else {
        tracing::warn!("the check for changed files took too long");
        return None;
    };
    (changed != ChangedFiles { notes: changed.notes.clone(), ..ChangedFiles::default() }).then_some(changed)
}
