//! Facts about the session, such as its model, policy, cost, commands and save state.

use super::interface::{ModelAccess, SessionHeader};
use super::rewind::Rewind;
use super::save_state::SaveState;
use super::task::RunningUserCommand;
use super::worktree::WorktreeState;
use crate::protocol::{
    Artifact, Budget, BudgetScope, BudgetUnit, Mode, ModelFacts, PolicyLayer, RunningCommand, SessionId, ToolUses, Usage,
};

/// Position of the earlier part of a resumed session that has not been loaded yet.
#[derive(Debug, Default)]
pub(crate) struct HistoryCursor {
    /// Position in the journal at which the loaded part starts, or `None` if the whole session has been loaded.
    pub before: Option<i64>,
    /// Whether the next earlier part has been requested but has not arrived yet.
    pub is_asked: bool,
}

/// Session totals shown in the status row.
#[derive(Debug, Default)]
pub(crate) struct SessionTotals {
    pub context_tokens: u64,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Whether part of the usage is estimated because a provider did not report it.
    pub is_estimated: bool,
    pub budgets: Vec<Budget>,
    /// Request about the budgets to which the session has not responded yet.
    pub budget_request: Option<BudgetRequest>,
}

/// Request by the user about the budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetRequest {
    /// Lists the budgets.
    Show,
    /// Changes a limit.
    Set,
}

impl SessionTotals {
    pub(crate) fn spend(&mut self, cost_usd: Option<f64>) {
        if let Some(cost) = cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }

    /// Returns the remaining amount and the limit of the session budget in US dollars, if there is one.
    pub(crate) fn remaining_budget(&self) -> Option<(f64, f64)> {
        let of_session = |budget: &&Budget| budget.scope == BudgetScope::Session && budget.unit == BudgetUnit::CostUsd;
        let budget = self.budgets.iter().find(of_session)?;
        let used = self.cost_usd.unwrap_or(0.0).max(budget.used);
        Some(((budget.limit - used).max(0.0), budget.limit))
    }
}

/// Policy that is in effect.
#[derive(Debug, Default)]
pub(crate) struct PolicyInfo {
    pub layers: Vec<PolicyLayer>,
    /// Reason why a policy file was not applied after a change, until the file is fixed.
    pub broken: Option<String>,
    /// Timestamp of the last event, and the time in milliseconds at which the event arrived.
    pub clock: Option<(jiff::Timestamp, u64)>,
    /// Whether the user has been told that the policy has expired.
    pub over: bool,
}

/// Remaining time, in milliseconds, from which the expiry is shown.
const ENDS_NEAR_MS: i64 = 60 * 60 * 1000;

/// Remaining time, in milliseconds, from which the expiry is shown as a warning.
const ENDS_SOON_MS: i64 = 10 * 60 * 1000;

impl PolicyInfo {
    /// Returns the earliest expiry of a policy layer and its stage. Returns `None` if the expiry is still far away.
    pub(crate) fn upcoming_expiry(&self, now: u64) -> Option<(jiff::Timestamp, ExpiryStage)> {
        let (end, left, came) = self.time_left()?;
        let passed = i64::try_from(now.saturating_sub(came)).unwrap_or(i64::MAX);
        let left = left.saturating_sub(passed);
        let all = [(0, ExpiryStage::Over), (ENDS_SOON_MS, ExpiryStage::Soon), (ENDS_NEAR_MS, ExpiryStage::Near)];
        all.into_iter().find(|(most, _)| left <= *most).map(|(_, ending)| (end, ending))
    }

    /// Returns the earliest expiry, the time in milliseconds that was left when the last event occurred, and the
    /// arrival time of that event.
    fn time_left(&self) -> Option<(jiff::Timestamp, i64, u64)> {
        let (time, came) = self.clock?;
        let end = self.layers.iter().filter_map(|layer| layer.expires_at).min()?;
        Some((end, end.as_millisecond().saturating_sub(time.as_millisecond()), came))
    }

    /// Returns the time, in milliseconds, at which the stage of the expiry changes next, if it does.
    pub(crate) fn next_change(&self, now: u64) -> Option<u64> {
        let (_, left, came) = self.time_left()?;
        let at = |before: i64| Some(came.saturating_add(u64::try_from(left.saturating_sub(before)).ok()?));
        [ENDS_NEAR_MS, ENDS_SOON_MS, 0].into_iter().filter_map(at).find(|at| *at > now)
    }
}

/// Stage of the policy's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpiryStage {
    Near,
    Soon,
    Over,
}

#[derive(Debug, Default)]
pub(crate) struct SessionInfo {
    /// Mode that was in effect when shift+tab last offered a more permissive mode.
    pub offered_mode_in: Option<Mode>,
    /// State of a rewind that the user requested.
    pub rewind: Rewind,
    /// Whether the list of changed files has been requested and not yet shown.
    pub awaits_changes: bool,
    /// ID of the session, once there is something to resume.
    pub session: Option<SessionId>,
    pub header: SessionHeader,
    /// Access to the model, once loading is complete.
    pub model_access: Option<ModelAccess>,
    /// Limits, prices and capabilities of the model.
    pub facts: Option<ModelFacts>,
    pub policy: PolicyInfo,
    pub tally: SessionTotals,
    /// Usage statistics for each tool.
    pub tool_uses: ToolUses,
    /// Position of the earlier parts of the session that have not been loaded yet.
    pub older: HistoryCursor,
    /// Commands that were started in the background.
    pub commands: Vec<RunningCommand>,
    /// The session's artifacts, as most recently listed.
    pub artifacts: Vec<Artifact>,
    /// Last response of this process, which is printed to the main screen at exit.
    pub last_answer: Option<String>,
    pub saving: SaveState,
    pub worktree: WorktreeState,
    /// Command that checks the result of this session's task, if it is a task in a copy of the workspace.
    pub task_check: Option<String>,
    /// Shell command of the user that is currently running, if any.
    pub user_command: Option<RunningUserCommand>,
}
