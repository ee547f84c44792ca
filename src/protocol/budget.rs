//! Session and task budgets.

use super::group_digits;
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

impl BudgetScope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Task => "task",
        }
    }
}

/// Formats an amount in dollars, such as `$0.42`. Amounts below one cent get more digits, so they are not shown as
/// zero.
pub fn format_dollars(amount: f64) -> String {
    if amount > 0.0 && amount < 0.01 { format!("${amount:.4}") } else { format!("${amount:.2}") }
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

impl Budget {
    /// Returns the usage, such as `session: $4.10 of $5.00 used, 82 %`.
    pub fn usage_text(&self) -> String {
        let Self { scope, unit, limit, used, .. } = self;
        let percent = if *limit > 0.0 { used / limit * 100.0 } else { 100.0 };
        let used = match unit {
            BudgetUnit::CostUsd => format_dollars(*used),
            BudgetUnit::Tokens | BudgetUnit::Steps => whole_number(*used),
        };
        format!("{}: {used} of {} used, {percent:.0} %", scope.as_str(), unit.amount(*limit))
    }

    /// Returns where the limit was set, such as `set by policy.toml:12, at most $50.00`.
    pub fn origin_text(&self) -> String {
        let most = self.most.map(|most| format!(", at most {}", self.unit.amount(most))).unwrap_or_default();
        format!("set by {}{most}", self.set_by)
    }
}

impl BudgetUnit {
    /// Formats an amount in this unit, such as `2,000,000 tokens`.
    fn amount(self, amount: f64) -> String {
        match self {
            Self::CostUsd => format_dollars(amount),
            Self::Tokens => format!("{} tokens", whole_number(amount)),
            Self::Steps => format!("{} steps", whole_number(amount)),
        }
    }
}

fn whole_number(amount: f64) -> String {
    group_digits(amount.max(0.0).round() as u64)
}

/// New limit set by the user while the session is running. It replaces the current limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BudgetLimit {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    pub limit: f64,
}
