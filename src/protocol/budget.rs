//! Budgets of a session and a task.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    Session,
    Task,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetUnit {
    /// Input and output tokens, including cached ones.
    Tokens,
    Steps,
    CostUsd,
}

/// Returns the configuration key of a limit.
pub fn budget_key(scope: BudgetScope, unit: BudgetUnit) -> &'static str {
    match (scope, unit) {
        (BudgetScope::Session, BudgetUnit::Tokens) => "budget.session_tokens",
        (BudgetScope::Session, BudgetUnit::Steps) => "budget.session_steps",
        (BudgetScope::Session, BudgetUnit::CostUsd) => "budget.session_cost_usd",
        (BudgetScope::Task, BudgetUnit::Tokens) => "budget.task_tokens",
        (BudgetScope::Task, BudgetUnit::Steps) => "budget.task_steps",
        (BudgetScope::Task, BudgetUnit::CostUsd) => "budget.task_cost_usd",
    }
}

/// One limit and its usage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    pub limit: f64,
    pub used: f64,
    /// Source of the limit: `policy.toml:12`, `--set budget.session_cost_usd`, `you`.
    pub set_by: String,
    /// Highest limit that the policy allows, if it sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}

/// Limit that the user sets while the session runs. It replaces the current total.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BudgetLimit {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    pub limit: f64,
}
