//! Ordered queue of the effects that follow a failed commit. Effects that are no longer needed are cancelled.

use crate::agent::turn::{Effect, RuleFileResult};
use crate::ports::{Plan, Record};
use crate::protocol::{ErrorCode, ToolError, ToolResult};
use std::collections::VecDeque;

/// Effects deferred because a commit failed. Empty while all records are saved.
#[derive(Default)]
pub(super) struct DeferredEffects(VecDeque<Effect>);

impl DeferredEffects {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, effect: Effect) {
        self.0.push_back(effect);
    }

    pub(crate) fn set(&mut self, effects: VecDeque<Effect>) {
        self.0 = effects;
    }

    pub(crate) fn take(&mut self) -> VecDeque<Effect> {
        std::mem::take(&mut self.0)
    }

    /// Cancels a preview that has not started yet.
    pub(crate) fn cancel_preview(&mut self, ticket: u64) {
        self.0.retain(|effect| !matches!(effect, Effect::Preview { ticket: begun, .. } if *begun == ticket));
    }

    /// Cancels the calls for which `why` returns an error, and returns their results by call index. These calls are
    /// never run.
    pub(crate) fn cancel_runs(&mut self, why: impl Fn(&Plan) -> Option<ToolError>) -> Vec<(usize, ToolResult)> {
        let mut cancelled = Vec::new();
        for effect in self.take() {
            match effect {
                Effect::Run { index, plan, permit, max_bytes } => match why(&plan) {
                    Some(error) => {
                        cancelled.push((index, ToolResult::from_error(plan.call.tool_call_id, plan.tool_name, error)));
                    }
                    None => self.push(Effect::Run { index, plan, permit, max_bytes }),
                },
                other => self.push(other),
            }
        }
        cancelled
    }

    /// Cancels pending rule changes whose approval cannot be saved before the session ends, and returns their
    /// results.
    pub(crate) fn cancel_rules(&mut self) -> Vec<RuleFileResult> {
        let why = || Err("aye exited before this session could be saved".to_owned());
        let mut cancelled = Vec::new();
        for effect in self.take() {
            match effect {
                Effect::Remember { grant, .. } => cancelled.push(RuleFileResult::Saved(grant, why())),
                Effect::Forget(grant) => cancelled.push(RuleFileResult::Removed(grant, why())),
                other => self.push(other),
            }
        }
        cancelled
    }

    /// Removes all effects and returns the unsaved records.
    pub(crate) fn take_records(&mut self) -> Vec<Record> {
        let commits = self.take().into_iter().filter_map(|effect| match effect {
            Effect::Commit(records, _) => Some(records),
            _ => None,
        });
        commits.flatten().collect()
    }
}

/// Returns the error for a call that the user stopped before it ran, while records could not be saved.
pub(super) fn stopped_error() -> ToolError {
    ToolError::new(ErrorCode::Cancelled, "stopped before it ran")
}
