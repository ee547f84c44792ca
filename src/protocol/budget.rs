//! Session and task budgets.

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
    /// Input and output tokens, including cached tokens.
    Tokens,
    Steps,
    CostUsd,
}

/// Returns the configuration key for a limit.
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

/// Budget limit and its current usage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    pub limit: f64,
    pub used: f64,
    /// Where the limit was set: `policy.toml:12`, `--set budget.session_cost_usd`, or `you`.
    pub set_by: String,
    /// Highest limit that the policy permits, if it sets a maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}

/// New limit set by the user while the session is running. It replaces the current limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BudgetLimit {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    pub limit: f64,
}
