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
    /// Input and output, cached ones included.
    Tokens,
    Steps,
    CostUsd,
}

/// One limit, and how much of it is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    pub limit: f64,
    pub used: f64,
    /// Who set it: `policy.toml:12`, `--set budget.session_cost_usd`, `you`.
    pub set_by: String,
    /// The most that the policy lets a person set, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}

/// What a person sets while the session runs: from now on so much in all, and not a step more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BudgetLimit {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    pub limit: f64,
}
