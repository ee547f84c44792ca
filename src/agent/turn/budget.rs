//! Budgets for the session and its tasks, in tokens, steps and money. They are checked before every request,
//! including retries and summary requests. A step that exceeds a limit is completed, but the next request is not
//! sent.

use super::super::limits::{BUDGET_FACTOR, BUDGET_WARNING_PERCENT};
use super::turn_context::TurnContext;
use super::usage::TaskUsage;
use crate::policy::LowestLimit;
use crate::protocol::{
    Budget, BudgetLimit, BudgetScope, BudgetUnit, Failure, FailureKind, ModelFacts, Remedy, Usage, group_digits,
};
use crate::session::Totals;
use BudgetScope::{Session, Task};
use BudgetUnit::{CostUsd, Steps, Tokens};

/// Source shown for limits that the user sets during the session.
const SET_BY_USER: &str = "you";

/// Limits to check, in this order. A task's step limit is handled separately.
const KINDS: [(BudgetScope, BudgetUnit); 5] =
    [(Session, CostUsd), (Session, Tokens), (Session, Steps), (Task, CostUsd), (Task, Tokens)];

/// Limit that is currently in effect.
struct ActiveLimit {
    scope: BudgetScope,
    unit: BudgetUnit,
    limit: f64,
    set_by: String,
    most: Option<LowestLimit>,
}

/// Budgets set by the user during the session, and the warnings issued about them.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    /// Most recent limit of each kind.
    set: Vec<BudgetLimit>,
    /// Limits that the user has already been warned about.
    warned: Vec<(BudgetScope, BudgetUnit)>,
    /// Whether the task is paused because a budget is exhausted.
    is_paused: bool,
}

impl Budgets {
    pub(crate) fn set_paused(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(crate) fn set(&mut self, limit: BudgetLimit) {
        self.set.retain(|one| (one.scope, one.unit) != (limit.scope, limit.unit));
        self.set.push(limit);
        self.warned.retain(|one| *one != (limit.scope, limit.unit));
    }

    /// Resets the warnings about task budgets when a task begins.
    pub(crate) fn begin_task(&mut self) {
        self.warned.retain(|(scope, _)| *scope != Task);
    }

    pub(crate) fn mark_warned(&mut self, budgets: &[Budget]) {
        self.warned.extend(budgets.iter().map(|budget| (budget.scope, budget.unit)));
    }
}

/// Checks budgets against actual usage.
pub(super) struct BudgetCheck<'a> {
    pub budgets: &'a Budgets,
    pub cx: &'a TurnContext,
    /// Usage of the whole session.
    pub session: Totals,
    /// Usage of the current or most recent task.
    pub task: Option<TaskUsage>,
}

impl BudgetCheck<'_> {
    /// Returns the limits in effect, with their usage.
    pub(crate) fn list(&self) -> Vec<Budget> {
        self.limits().map(|limit| self.to_budget(&limit)).collect()
    }

    /// Returns the limits in effect, with their usage, including a task's step limit.
    pub(crate) fn list_with_steps(&self) -> Vec<Budget> {
        let mut budgets = self.list();
        let max_steps = self.task.map_or(self.cx.options.max_steps, |task| task.max_steps);
        budgets.push(Budget {
            scope: Task,
            unit: Steps,
            limit: f64::from(max_steps),
            used: self.usage(Task, Steps),
            set_by: self.set_by(Task, Steps).map_or_else(|| "default".to_owned(), |(_, place)| place),
            most: None,
        });
        budgets
    }

    /// Checks whether a limit may be set. Returns an error with the reason if it is rejected.
    pub(crate) fn validate(&self, limit: BudgetLimit) -> Result<(), String> {
        let BudgetLimit { scope, unit, limit: amount } = limit;
        if !amount.is_finite() || amount < 0.0 || (unit != CostUsd && amount < 1.0) {
            return Err("no budget was set: expected a number, at least 1 for steps and tokens".to_owned());
        }
        match self.lowest_limit(scope, unit).filter(|most| amount > most.limit) {
            None => Ok(()),
            Some(most) => {
                let (asked, most, key, place) = (worth(unit, amount), worth(unit, most.limit), most.key, most.place);
                Err(format!(
                    "cannot set a budget of {asked}: the policy allows at most {most} per session; to raise that, change `{key}` in {place}"
                ))
            }
        }
    }

    /// Returns budgets that are nearly exhausted and that the user has not been warned about yet.
    pub(crate) fn nearly_exhausted(&self) -> Vec<Budget> {
        let near = |budget: &Budget| budget.limit > 0.0 && budget.used * 100.0 >= budget.limit * BUDGET_WARNING_PERCENT;
        let mut budgets = self.list();
        budgets.retain(|budget| near(budget) && !self.budgets.warned.contains(&(budget.scope, budget.unit)));
        budgets
    }

    /// Returns the reason why a request with this estimated usage may not be sent to the model, or `None` if it may.
    pub(crate) fn request_failure(&self, next: &Usage, model: &ModelFacts) -> Option<Failure> {
        let tokens = (next.input_tokens + next.output_tokens) as f64;
        let cost = model.cost_usd(next);
        for limit in self.limits() {
            let used = self.usage(limit.scope, limit.unit);
            let more = match limit.unit {
                Tokens => tokens,
                CostUsd => match cost {
                    Some(cost) => cost,
                    None => return Some(unpriced_failure(&limit, &model.name)),
                },
                // The step that has started is already counted.
                Steps => continue,
            };
            // A free request is always allowed.
            if more > 0.0 && used + more > limit.limit * (1.0 + f64::EPSILON) {
                return Some(exceeded_failure(&limit, used, more));
            }
        }
        None
    }

    /// Returns the reason why no further step may start, or `None` if one may.
    pub(crate) fn step_failure(&self) -> Option<Failure> {
        let limit = self.limits().find(|limit| limit.unit == Steps)?;
        let used = self.usage(limit.scope, limit.unit);
        (used + 1.0 > limit.limit).then(|| exceeded_failure(&limit, used, 1.0))
    }

    fn limits(&self) -> impl Iterator<Item = ActiveLimit> {
        KINDS.into_iter().filter_map(|(scope, unit)| {
            let most = self.lowest_limit(scope, unit);
            let own = self.set_by(scope, unit);
            let of_policy = |most: &LowestLimit| (most.limit, most.place.clone());
            let (limit, set_by) = match (own, &most) {
                (Some(own), Some(most)) if own.0 > most.limit => of_policy(most),
                (Some(own), _) => own,
                (None, Some(most)) => of_policy(most),
                (None, None) => return None,
            };
            Some(ActiveLimit { scope, unit, limit, set_by, most })
        })
    }

    /// Returns the limit that was set most recently, before or during the session, with its source.
    fn set_by(&self, scope: BudgetScope, unit: BudgetUnit) -> Option<(f64, String)> {
        let same = |limit: &BudgetLimit| limit.scope == scope && limit.unit == unit;
        let said = self.budgets.set.iter().find(|limit| same(limit)).map(|limit| (limit.limit, SET_BY_USER.to_owned()));
        let before = || self.cx.options.limits.iter().find(|allowance| same(&allowance.limit));
        said.or_else(|| before().map(|allowance| (allowance.limit.limit, allowance.set_by.clone())))
    }

    fn lowest_limit(&self, scope: BudgetScope, unit: BudgetUnit) -> Option<LowestLimit> {
        match (scope, unit) {
            (Session, Tokens) => self.cx.policy.most_session_tokens(),
            (Session, CostUsd) => self.cx.policy.most_session_cost(),
            (Session, Steps) | (Task, Tokens | Steps | CostUsd) => None,
        }
    }

    fn usage(&self, scope: BudgetScope, unit: BudgetUnit) -> f64 {
        let task = self.task;
        match (scope, unit) {
            (Session, Tokens) => self.session.tokens() as f64,
            (Session, CostUsd) => self.session.cost_usd.unwrap_or(0.0),
            (Session, Steps) => f64::from(self.cx.numbers.steps()),
            (Task, Tokens) => task.map_or(0.0, |task| task.totals.tokens() as f64),
            (Task, CostUsd) => task.and_then(|task| task.totals.cost_usd).unwrap_or(0.0),
            (Task, Steps) => task.map_or(0.0, |task| f64::from(task.step_count)),
        }
    }

    fn to_budget(&self, limit: &ActiveLimit) -> Budget {
        Budget {
            scope: limit.scope,
            unit: limit.unit,
            limit: limit.limit,
            used: self.usage(limit.scope, limit.unit),
            set_by: limit.set_by.clone(),
            most: limit.most.as_ref().map(|most| most.limit),
        }
    }
}

/// Returns the failure for a dollar limit that cannot be enforced because the model's price is unknown.
fn unpriced_failure(limit: &ActiveLimit, model: &str) -> Failure {
    let (amount, place) = (worth(CostUsd, limit.limit), &limit.set_by);
    let whose = scope_name(limit.scope);
    let message = format!(
        "LLM_BUDGET_EXCEEDED: {whose} has a budget of {amount} (set by {place}), but the price of `{model}` is unknown, so nothing \
         was sent"
    );
    let hint = "assume a price for this budget, set its `price` in models.toml (zeros if it is free), choose a model with a \
        known price, or remove the budget";
    Failure::new(FailureKind::BudgetExceeded, message, hint).with_remedy(Remedy::AssumePrice)
}

fn exceeded_failure(limit: &ActiveLimit, used: f64, more: f64) -> Failure {
    let whose = scope_name(limit.scope);
    let ActiveLimit { unit, limit: amount, .. } = limit;
    let (used_words, amount_words) = (worth(*unit, used), worth(*unit, *amount));
    let next = match unit {
        CostUsd => format!(", and the next request may cost {}", worth(CostUsd, more)),
        Tokens => format!(", and the next request may use {}", worth(Tokens, more)),
        Steps => String::new(),
    };
    let message = format!("LLM_BUDGET_EXCEEDED: {whose} used {used_words} of its budget of {amount_words}{next}");
    let (hint, remedy) = continuation_hint(limit, used + more);
    Failure::new(FailureKind::BudgetExceeded, message, hint).with_remedy(remedy)
}

/// Returns the hint and the remedy: to raise the budget if the policy permits it, and otherwise to change the policy.
fn continuation_hint(limit: &ActiveLimit, least: f64) -> (String, Remedy) {
    let most = limit.most.as_ref();
    if let Some(most) = most.filter(|most| limit.limit >= most.limit || least > most.limit) {
        let (key, place, amount) = (most.key, &most.place, worth(limit.unit, most.limit));
        let hint = format!(
            "the policy allows at most {amount} per session; change `{key}` in {place} and continue, or start a new session"
        );
        return (hint, Remedy::ChangePolicy);
    }
    let wanted = round_up(limit.unit, (limit.limit * BUDGET_FACTOR).max(least));
    let wanted = most.map_or(wanted, |most| wanted.min(most.limit));
    let allows = most.map_or_else(String::new, |most| format!(" (the policy allows up to {})", worth(limit.unit, most.limit)));
    let (scope, unit) = (limit.scope, limit.unit);
    let hint = format!("raise the budget of {} to {}{allows}", scope_name(scope), worth(unit, wanted));
    (hint, Remedy::RaiseBudget { scope, unit, limit: wanted })
}

fn scope_name(scope: BudgetScope) -> &'static str {
    match scope {
        Session => "the session",
        Task => "the task",
    }
}

/// Formats an amount, such as `$4.87`, `$0.0026` or `1,300,000 tokens`.
fn worth(unit: BudgetUnit, amount: f64) -> String {
    match unit {
        CostUsd if amount > 0.0 && amount < 0.0001 => "less than $0.0001".to_owned(),
        CostUsd if amount == 0.0 || amount >= 1.0 => format!("${amount:.2}"),
        CostUsd => {
            let text = format!("{amount:.4}");
            let (cents, rest) = text.split_at(text.len() - 2);
            format!("${cents}{}", rest.trim_end_matches('0'))
        }
        Tokens => format!("{} tokens", group_digits(amount.round_ties_even() as u64)),
        Steps => format!("{} steps", group_digits(amount.round_ties_even() as u64)),
    }
}

/// Rounds an amount up to two significant digits, which makes it quick to type.
fn round_up(unit: BudgetUnit, amount: f64) -> f64 {
    let least = if unit == CostUsd { 0.01 } else { 1.0 };
    let unit_of = 10f64.powf(amount.max(least).log10().floor() - 1.0).max(least);
    // Formatting avoids values such as 0.30000000000000004.
    let rounded = (amount / unit_of).ceil() * unit_of;
    format!("{rounded:.2}").parse().unwrap_or(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_formatted_for_reading() {
        for (amount, words) in
            [(0.0, "$0.00"), (5.0, "$5.00"), (0.5, "$0.50"), (0.0026, "$0.0026"), (0.00001, "less than $0.0001")]
        {
            assert_eq!(worth(CostUsd, amount), words);
        }
        assert_eq!(worth(Tokens, 1_300_000.0), "1,300,000 tokens");
        assert_eq!(worth(Steps, 999.0), "999 steps");
    }

    #[test]
    fn suggested_limits_are_round_numbers_and_never_lower_than_needed() {
        for (unit, amount, rounded) in [
            (CostUsd, 10.0, 10.0),
            (CostUsd, 0.3, 0.3),
            (CostUsd, 0.001, 0.01),
            (CostUsd, 12.34, 13.0),
            (Tokens, 123_456.0, 130_000.0),
        ] {
            assert!((round_up(unit, amount) - rounded).abs() < 1e-9, "{amount}");
        }
    }
}
