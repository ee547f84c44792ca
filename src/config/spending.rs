//! Spending settings: session and task budgets, and the reasoning effort.

use super::file::{ConfigEntry, ConfigValue, MILLIONTHS, ValueOrigin, Values};
use crate::protocol::{AssumedPrice, BudgetLimit, BudgetScope, BudgetUnit, Effort};

/// Budget limit, with the location where it is set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SetLimit {
    pub limit: BudgetLimit,
    /// Where the limit is set: `~/.config/aye/config.toml:12` or `--set budget.task_tokens`.
    pub set_by: String,
    /// Whether the limit was set with an option and therefore applies only to this run.
    pub by_flag: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SetEffort {
    pub effort: Effort,
    pub by_flag: bool,
}

const KEYS: [(&str, BudgetScope, BudgetUnit); 6] = [
    ("session_cost_usd", BudgetScope::Session, BudgetUnit::CostUsd),
    ("session_tokens", BudgetScope::Session, BudgetUnit::Tokens),
    ("session_steps", BudgetScope::Session, BudgetUnit::Steps),
    ("task_cost_usd", BudgetScope::Task, BudgetUnit::CostUsd),
    ("task_tokens", BudgetScope::Task, BudgetUnit::Tokens),
    ("task_steps", BudgetScope::Task, BudgetUnit::Steps),
];

pub(super) fn limits(values: &Values) -> Vec<SetLimit> {
    let set = KEYS.into_iter().filter_map(|(key, scope, unit)| {
        let ConfigEntry { value, origin } = values.get(["budget".to_owned(), key.to_owned()].as_slice())?;
        let limit = match value {
            ConfigValue::Number(number) => *number as f64,
            ConfigValue::Dollars(millionths) => *millionths as f64 / MILLIONTHS,
            ConfigValue::Text(_) | ConfigValue::Flag(_) | ConfigValue::List(_) | ConfigValue::Table(_) => return None,
        };
        let (set_by, by_flag) = match origin {
            ValueOrigin::File { path, line } => (format!("{}:{line}", path.display()), false),
            ValueOrigin::Profile { name, path, line } => (format!("profile {name}, {}:{line}", path.display()), true),
            ValueOrigin::Flag => (format!("--set budget.{key}"), true),
        };
        Some(SetLimit { limit: BudgetLimit { scope, unit, limit }, set_by, by_flag })
    });
    set.collect()
}

/// Price to assume for models whose price is unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SetPrice {
    pub price: AssumedPrice,
    pub by_flag: bool,
}

pub(super) fn assumed_price(values: &Values) -> Option<SetPrice> {
    let ConfigEntry { value, origin } = values.get(["budget".to_owned(), "assumed_price".to_owned()].as_slice())?;
    let ConfigValue::Text(text) = value else { return None };
    Some(SetPrice { price: AssumedPrice::parse(text)?, by_flag: !matches!(origin, ValueOrigin::File { .. }) })
}

pub(super) fn effort(values: &Values) -> Option<SetEffort> {
    let ConfigEntry { value, origin } = values.get(["model".to_owned(), "effort".to_owned()].as_slice())?;
    let ConfigValue::Text(name) = value else { return None };
    Some(SetEffort { effort: Effort::from_name(name)?, by_flag: !matches!(origin, ValueOrigin::File { .. }) })
}
