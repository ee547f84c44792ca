//! Effects behind a failed commit: kept in order, retried, and cancelled if no longer wanted.

use super::{Host, moment};
use crate::agent::turn::{Effect, Input, RuleFileResult, TurnMachine};
use crate::ports::{Durability, Plan, Record};
use crate::protocol::{ErrorCode, EventKind, ToolError, ToolResult};
use std::collections::VecDeque;

/// Notice for input that arrives while nothing can be saved.
pub(super) const KEPT: &str = "queued until the session can be saved";

pub(super) fn stopped() -> ToolError {
    ToolError::new(ErrorCode::Cancelled, "stopped before it ran")
}

impl Host {
    pub(super) async fn retry(&mut self) {
        // The calls were allowed, but another policy or a later time may deny them now.
        let at = moment();
        self.call_off_runs(|machine, plan| {
            let denial = machine.denied_by_now(plan, at)?;
            Some(ToolError::new(ErrorCode::PolicyDenied, format!("{} (rule: {})", denial.reason, denial.rule)))
        });
        let effects = std::mem::take(&mut self.stalled);
        self.perform(effects).await;
        if self.stalled.is_empty() {
            self.tell_stalled(false);
        }
    }

    /// Reports the session state when saving fails or works again. A user who quits is not told to wait.
    pub(super) fn tell_stalled(&mut self, stalled: bool) {
        if self.deadline.is_some() && stalled {
            return;
        }
        if let Some(told) = self.machine.set_stalled(stalled) {
            self.emit(self.task.clone(), None, told);
        }
    }

    /// Queues effects behind the failed commit, but stops calls at once.
    pub(super) fn keep(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match &effect {
                Effect::StopModel => self.model.stop(),
                Effect::InterruptTools => self.interrupt_tools(),
                Effect::KillTools => self.kill_tools(),
                Effect::End => self.ending = true,
                Effect::StopPreview { ticket } => {
                    let begins = |kept: &Effect| matches!(kept, Effect::Preview { ticket: begun, .. } if begun == ticket);
                    self.stalled.retain(|kept| !begins(kept));
                    self.previews.stop(*ticket);
                }
                // These change nothing that is saved.
                Effect::Background { tool_call_id } => {
                    self.background(tool_call_id.as_ref());
                    continue;
                }
                Effect::StopCommand { id } => {
                    self.router.stop_command(id);
                    continue;
                }
                Effect::Commit(..)
                | Effect::TellRewindPoints { .. }
                | Effect::PlanRewind { .. }
                | Effect::Rewind(_)
                | Effect::Emit { .. }
                | Effect::Request(_)
                | Effect::Plan(_)
                | Effect::PlanOpened { .. }
                | Effect::Amend { .. }
                | Effect::Preview { .. }
                | Effect::Run { .. }
                | Effect::Remember { .. }
                | Effect::Forget(_)
                | Effect::ListGrants
                | Effect::Recent { .. }
                | Effect::Wake { .. }
                | Effect::ReloadPolicy
                | Effect::OpenModel { .. }
                | Effect::UseModel { .. }
                | Effect::PlanMentions { .. }
                | Effect::ReadMentions { .. }
                | Effect::ListModels { .. }
                | Effect::SaveDraft(_) => {}
            }
            self.stalled.push_back(effect);
        }
    }

    /// Cancels calls that wait to be saved and are no longer wanted, with the error that `why` returns. They never run.
    pub(super) fn call_off_runs(&mut self, why: impl Fn(&TurnMachine, &Plan) -> Option<ToolError>) {
        let mut kept = VecDeque::new();
        let mut called_off = Vec::new();
        for effect in std::mem::take(&mut self.stalled) {
            match effect {
                Effect::Run { index, plan, permit, most_bytes } => match why(&self.machine, &plan) {
                    Some(error) => {
                        called_off.push((index, ToolResult::refused(plan.call.tool_call_id, plan.tool_name, error)));
                    }
                    None => kept.push_back(Effect::Run { index, plan, permit, most_bytes }),
                },
                other => kept.push_back(other),
            }
        }
        self.stalled = kept;
        for (index, result) in called_off {
            let effects = self.machine.handle(Input::ToolFinished { index, result, latency_ms: 0 }, moment());
            self.keep(effects);
        }
    }

    /// Cancels rules to be saved whose approval cannot be saved before the end.
    pub(super) fn call_off_rules(&mut self) {
        let (rules, others): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.stalled)
            .into_iter()
            .partition(|effect| matches!(effect, Effect::Remember { .. } | Effect::Forget(_)));
        self.stalled = others;
        let why = || Err("aye exited before this session could be saved".to_owned());
        for effect in rules {
            let kept = match effect {
                Effect::Remember { grant, .. } => RuleFileResult::Saved(grant, why()),
                Effect::Forget(grant) => RuleFileResult::Removed(grant, why()),
                _ => continue,
            };
            let effects = self.machine.handle(Input::RuleFiles(kept), moment());
            self.keep(effects);
        }
    }

    /// Retries all unsaved records at the end. If that fails, the session has failed.
    pub(super) async fn save_what_is_stalled(&mut self) {
        let commits = std::mem::take(&mut self.stalled).into_iter().filter_map(|effect| match effect {
            Effect::Commit(records, _) => Some(records),
            Effect::Emit { .. }
            | Effect::Request(_)
            | Effect::StopModel
            | Effect::Plan(_)
            | Effect::PlanOpened { .. }
            | Effect::Amend { .. }
            | Effect::Preview { .. }
            | Effect::StopPreview { .. }
            | Effect::Run { .. }
            | Effect::InterruptTools
            | Effect::KillTools
            | Effect::Background { .. }
            | Effect::StopCommand { .. }
            | Effect::Remember { .. }
            | Effect::Forget(_)
            | Effect::ListGrants
            | Effect::Recent { .. }
            | Effect::Wake { .. }
            | Effect::SaveDraft(_)
            | Effect::PlanMentions { .. }
            | Effect::ReadMentions { .. }
            | Effect::OpenModel { .. }
            | Effect::UseModel { .. }
            | Effect::ListModels { .. }
            | Effect::ReloadPolicy
            | Effect::TellRewindPoints { .. }
            | Effect::PlanRewind { .. }
            | Effect::Rewind(_)
            | Effect::End => None,
        });
        let waiting = self.journal.take_unsaved();
        let records: Vec<Record> = waiting.into_iter().chain(commits.flatten()).collect();
        let saved = self.journal.commit(&records, Durability::Power).await;
        if let Err(failure) = &saved {
            self.emit(None, None, EventKind::Notice { message: failure.message.clone() });
        } else {
            self.tell_stalled(false);
        }
        let effects = self.machine.end_session(saved.is_ok());
        self.perform(effects.into()).await;
    }
}
