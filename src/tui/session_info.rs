//! Facts about the session: its model, policy, cost, commands and saved state.

use super::interface::{ModelAccess, SessionHeader};
use super::rewind::Rewind;
use super::save_state::SaveState;
use super::task::RunningUserCommand;
use super::worktree::WorktreeState;
use crate::protocol::{
    Artifact, Budget, BudgetScope, BudgetUnit, Mode, ModelFacts, PolicyLayer, RunningCommand, SessionId, ToolUses, Usage,
};

/// Earlier part of a resumed session that is not shown yet.
#[derive(Debug, Default)]
pub(crate) struct HistoryCursor {
    /// Journal position at which the shown part ends; `None` if the whole session is shown.
    pub before: Option<i64>,
    /// Whether the part was requested and has not arrived yet.
    pub is_asked: bool,
}

/// Figures of the session for the status row.
#[derive(Debug, Default)]
pub(crate) struct SessionTotals {
    pub context_tokens: u64,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Whether a provider did not report part of the usage.
    pub is_estimated: bool,
    pub budgets: Vec<Budget>,
    /// The user's request that has not been answered yet.
    pub budget_request: Option<BudgetRequest>,
}

/// Request about the budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetRequest {
    /// Request to list the budgets.
    Show,
    /// Request to change a limit.
    Set,
}

impl SessionTotals {
    pub(crate) fn spend(&mut self, cost_usd: Option<f64>) {
        if let Some(cost) = cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }

    /// Returns the remaining budget of the session and its total, in US dollars.
    pub(crate) fn remaining_budget(&self) -> Option<(f64, f64)> {
        let of_session = |budget: &&Budget| budget.scope == BudgetScope::Session && budget.unit == BudgetUnit::CostUsd;
        let budget = self.budgets.iter().find(of_session)?;
        let used = self.cost_usd.unwrap_or(0.0).max(budget.used);
        Some(((budget.limit - used).max(0.0), budget.limit))
    }
}

/// Policy in effect.
#[derive(Debug, Default)]
pub(crate) struct PolicyInfo {
    pub layers: Vec<PolicyLayer>,
    /// Reason why a changed policy file is not applied, until it is fixed.
    pub broken: Option<String>,
    /// Timestamp of the last event, and the time of its arrival.
    pub clock: Option<(jiff::Timestamp, u64)>,
    /// Whether the user was informed about the expiry.
    pub over: bool,
}

/// Time before the expiry from which it is shown, in milliseconds.
const ENDS_NEAR_MS: i64 = 60 * 60 * 1000;

/// Time before the expiry from which it is a warning, in milliseconds.
const ENDS_SOON_MS: i64 = 10 * 60 * 1000;

impl PolicyInfo {
    /// Returns the expiry, if it is near or past.
    pub(crate) fn upcoming_expiry(&self, now: u64) -> Option<(jiff::Timestamp, ExpiryStage)> {
        let (end, left, came) = self.time_left()?;
        let passed = i64::try_from(now.saturating_sub(came)).unwrap_or(i64::MAX);
        let left = left.saturating_sub(passed);
        let all = [(0, ExpiryStage::Over), (ENDS_SOON_MS, ExpiryStage::Soon), (ENDS_NEAR_MS, ExpiryStage::Near)];
        all.into_iter().find(|(most, _)| left <= *most).map(|(_, ending)| (end, ending))
    }

    /// Returns the expiry, the remaining milliseconds at the last event, and the time of that event.
    fn time_left(&self) -> Option<(jiff::Timestamp, i64, u64)> {
        let (time, came) = self.clock?;
        let end = self.layers.iter().filter_map(|layer| layer.expires_at).min()?;
        Some((end, end.as_millisecond().saturating_sub(time.as_millisecond()), came))
    }

    /// Returns the time at which the stage of the expiry changes next.
    pub(crate) fn next_change(&self, now: u64) -> Option<u64> {
        let (_, left, came) = self.time_left()?;
        let at = |before: i64| Some(came.saturating_add(u64::try_from(left.saturating_sub(before)).ok()?));
        [ENDS_NEAR_MS, ENDS_SOON_MS, 0].into_iter().filter_map(at).find(|at| *at > now)
    }
}

/// Stage of a policy's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpiryStage {
    Near,
    Soon,
    Over,
}

/// Facts about the session.
#[derive(Debug, Default)]
pub(crate) struct SessionInfo {
    /// Mode in which shift+tab last offered a more permissive one.
    pub offered_mode_in: Option<Mode>,
    /// Rewind that was requested.
    pub rewind: Rewind,
    /// Whether the list of changed files was requested.
    pub awaits_changes: bool,
    /// The session, once it can be resumed.
    pub session: Option<SessionId>,
    pub header: SessionHeader,
    /// Access to the model, once loading is complete.
    pub model_access: Option<ModelAccess>,
    /// Limits, prices and capabilities of the model.
    pub facts: Option<ModelFacts>,
    pub policy: PolicyInfo,
    pub tally: SessionTotals,
    /// Tool usage so far.
    pub tool_uses: ToolUses,
    /// Older parts of the session that are not shown yet.
    pub older: HistoryCursor,
    /// Background sessions and commands.
    pub commands: Vec<RunningCommand>,
    /// Artifacts of the session, as last listed.
    pub artifacts: Vec<Artifact>,
    /// Last response of this process, which is printed to the main screen at exit.
    pub last_answer: Option<String>,
    pub saving: SaveState,
    pub worktree: WorktreeState,
    /// Command that checks the result of this session's task, if it is a task in a copy of the workspace.
    pub task_check: Option<String>,
    /// The user's running command.
    pub user_command: Option<RunningUserCommand>,
}
