//! What may be used up: tokens, steps and money, of the session and of a task. Looked at before every request, also before one
//! that is repeated or asks for a summary; a step that passes a limit is finished, and the next request is not sent.

use super::super::limits::{BUDGET_FACTOR, BUDGET_WARNING_PERCENT};
use super::{Approver, Machine, Moment, Phase};
use crate::policy::Most;
use crate::ports::Record;
use crate::protocol::{Budget, BudgetLimit, BudgetScope, BudgetUnit, EventKind, Failure, FailureKind, Usage};
use BudgetScope::{Session, Task};
use BudgetUnit::{CostUsd, Steps, Tokens};

/// A limit that was set before the session, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowance {
    pub limit: BudgetLimit,
    /// `config.toml:12`, `--max-steps`.
    pub set_by: String,
    /// Said for this run: what the person said in the session before does not count.
    pub for_this_run: bool,
}

/// What the person set themselves.
const BY_PERSON: &str = "you";

/// All that can be limited, in the order in which it is looked at. Steps of a task end it in another way.
const KINDS: [(BudgetScope, BudgetUnit); 5] =
    [(Session, CostUsd), (Session, Tokens), (Session, Steps), (Task, CostUsd), (Task, Tokens)];

/// A limit in force.
struct InForce {
    scope: BudgetScope,
    unit: BudgetUnit,
    limit: f64,
    set_by: String,
    most: Option<Most>,
}

impl Machine {
    pub(super) fn show_budget(&mut self) {
        let mut budgets = self.budgets();
        let max_steps = self.last_task().map_or(self.options.max_steps, |task| task.max_steps);
        budgets.push(Budget {
            scope: Task,
            unit: Steps,
            limit: f64::from(max_steps),
            used: self.used(Task, Steps),
            set_by: self.set_by(Task, Steps).map_or_else(|| "default".to_owned(), |(_, place)| place),
            most: None,
        });
        self.emit(EventKind::BudgetShown { budgets });
    }

    /// What of the session is limited, for who comes to it.
    pub fn budgets(&self) -> Vec<Budget> {
        self.limits().map(|limit| self.shown(&limit)).collect()
    }

    /// Allows more, or less, from now on. A task that waits for more goes on.
    pub(super) fn set_budget(&mut self, limit: BudgetLimit, at: Moment) {
        let BudgetLimit { scope, unit, limit: amount } = limit;
        if !amount.is_finite() || amount < 0.0 || (unit != CostUsd && amount < 1.0) {
            return self.notice("no budget was set: expected a number, of steps and tokens at least 1");
        }
        if let Some(most) = self.most(scope, unit).filter(|most| amount > most.limit) {
            let (asked, most, key, place) = (worth(unit, amount), worth(unit, most.limit), most.key, most.place);
            return self.notice(format!(
                "a budget of {asked} is refused: the policy allows at most {most} a session; to have more, change `{key}` in {place}"
            ));
        }
        self.take_limit(limit);
        self.keep(Record::BudgetSet { limit });
        self.show_budget();
        let waits = self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Paused));
        if waits && self.spending.paused {
            match self.over_budget(at) {
                None => self.go_on(at),
                Some(failure) => self.notice(format!("it is still not enough: {}", failure.message)),
            }
        }
    }

    /// What the person set in the session, as the journal has it.
    pub(super) fn fold_budget(&mut self, limit: BudgetLimit) {
        let same = |one: &&Allowance| one.limit.scope == limit.scope && one.limit.unit == limit.unit;
        if !self.options.limits.iter().find(same).is_some_and(|one| one.for_this_run) {
            self.take_limit(limit);
        }
    }

    fn take_limit(&mut self, limit: BudgetLimit) {
        self.spending.said.retain(|one| (one.scope, one.unit) != (limit.scope, limit.unit));
        self.spending.said.push(limit);
        self.spending.warned.retain(|one| *one != (limit.scope, limit.unit));
        if (limit.scope, limit.unit) == (Task, Steps) {
            // It was checked to be at least 1; more steps than fit are as good as all of them.
            self.options.max_steps = limit.limit.min(f64::from(u32::MAX)) as u32;
            for task in [&mut self.task, &mut self.ended].into_iter().flatten() {
                task.max_steps = self.options.max_steps;
            }
        }
    }

    /// Why the next request may not be sent: it would pass a limit, as far as that can be foretold.
    pub(super) fn over_budget(&self, at: Moment) -> Option<Failure> {
        self.beyond_budget(&self.next_request(at))
    }

    /// The same of any request that may use so much.
    pub(super) fn beyond_budget(&self, next: &Usage) -> Option<Failure> {
        let tokens = (next.input_tokens + next.output_tokens) as f64;
        let cost = self.options.model.cost_usd(next);
        for limit in self.limits() {
            let used = self.used(limit.scope, limit.unit);
            let more = match limit.unit {
                Tokens => tokens,
                CostUsd => match cost {
                    Some(cost) => cost,
                    None => return Some(self.unpriced(&limit)),
                },
                // A step that was begun is counted.
                Steps => continue,
            };
            // What costs nothing is never too much.
            if more > 0.0 && used + more > limit.limit * (1.0 + f64::EPSILON) {
                return Some(self.exceeded(&limit, used, more));
            }
        }
        None
    }

    /// Why no step may begin any more.
    pub(super) fn out_of_steps(&self) -> Option<Failure> {
        let limit = self.limits().find(|limit| limit.unit == Steps)?;
        let used = self.used(limit.scope, limit.unit);
        (used + 1.0 > limit.limit).then(|| self.exceeded(&limit, used, 1.0))
    }

    /// Warns once of each limit that is nearly reached.
    pub(super) fn warn_of_budgets(&mut self) {
        for budget in self.nearly_used() {
            self.emit(EventKind::BudgetApproaching { budget });
        }
    }

    /// The person was warned of these in the process before.
    pub(super) fn know_warnings(&mut self) {
        self.nearly_used();
    }

    fn nearly_used(&mut self) -> Vec<Budget> {
        let near = |budget: &Budget| budget.limit > 0.0 && budget.used * 100.0 >= budget.limit * BUDGET_WARNING_PERCENT;
        let mut budgets = self.budgets();
        budgets.retain(|budget| near(budget) && !self.spending.warned.contains(&(budget.scope, budget.unit)));
        self.spending.warned.extend(budgets.iter().map(|budget| (budget.scope, budget.unit)));
        budgets
    }

    fn limits(&self) -> impl Iterator<Item = InForce> {
        KINDS.into_iter().filter_map(|(scope, unit)| {
            let most = self.most(scope, unit);
            let own = self.set_by(scope, unit);
            let of_policy = |most: &Most| (most.limit, most.place.clone());
            let (limit, set_by) = match (own, &most) {
                (Some(own), Some(most)) if own.0 > most.limit => of_policy(most),
                (Some(own), _) => own,
                (None, Some(most)) => of_policy(most),
                (None, None) => return None,
            };
            Some(InForce { scope, unit, limit, set_by, most })
        })
    }

    /// What was set last in the session, or before it.
    fn set_by(&self, scope: BudgetScope, unit: BudgetUnit) -> Option<(f64, String)> {
        let same = |limit: &BudgetLimit| limit.scope == scope && limit.unit == unit;
        let said = self.spending.said.iter().find(|limit| same(limit)).map(|limit| (limit.limit, BY_PERSON.to_owned()));
        let before = || self.options.limits.iter().find(|allowance| same(&allowance.limit));
        said.or_else(|| before().map(|allowance| (allowance.limit.limit, allowance.set_by.clone())))
    }

    fn most(&self, scope: BudgetScope, unit: BudgetUnit) -> Option<Most> {
        match (scope, unit) {
            (Session, Tokens) => self.policy.most_session_tokens(),
            (Session, CostUsd) => self.policy.most_session_cost(),
            (Session, Steps) | (Task, Tokens | Steps | CostUsd) => None,
        }
    }

    fn used(&self, scope: BudgetScope, unit: BudgetUnit) -> f64 {
        let task = self.last_task();
        match (scope, unit) {
            (Session, Tokens) => self.totals.tokens() as f64,
            (Session, CostUsd) => self.totals.cost_usd.unwrap_or(0.0),
            (Session, Steps) => f64::from(self.counters.steps),
            (Task, Tokens) => task.map_or(0.0, |task| task.totals.tokens() as f64),
            (Task, CostUsd) => task.and_then(|task| task.totals.cost_usd).unwrap_or(0.0),
            (Task, Steps) => task.map_or(0.0, |task| f64::from(task.step_count)),
        }
    }

    fn shown(&self, limit: &InForce) -> Budget {
        Budget {
            scope: limit.scope,
            unit: limit.unit,
            limit: limit.limit,
            used: self.used(limit.scope, limit.unit),
            set_by: limit.set_by.clone(),
            most: limit.most.as_ref().map(|most| most.limit),
        }
    }

    fn exceeded(&self, limit: &InForce, used: f64, more: f64) -> Failure {
        let whose = whose(limit.scope);
        let InForce { unit, limit: amount, .. } = limit;
        let (used_words, amount_words) = (worth(*unit, used), worth(*unit, *amount));
        let next = match unit {
            CostUsd => format!(", and the next request may cost {}", worth(CostUsd, more)),
            Tokens => format!(", and the next request may use {}", worth(Tokens, more)),
            Steps => String::new(),
        };
        let message = format!("LLM_BUDGET_EXCEEDED: {whose} used {used_words} of its budget of {amount_words}{next}");
        Failure::new(FailureKind::BudgetExceeded, message, self.raise(limit, used + more))
    }

    /// How to go on: more, where the policy allows it, or something else.
    fn raise(&self, limit: &InForce, least: f64) -> String {
        let most = limit.most.as_ref();
        if let Some(most) = most.filter(|most| limit.limit >= most.limit || least > most.limit) {
            let (key, place, amount) = (most.key, &most.place, worth(limit.unit, most.limit));
            return format!(
                "the policy allows no more than {amount} a session: change `{key}` in {place} and continue, or start a new session"
            );
        }
        let wanted = rounded_up(limit.unit, (limit.limit * BUDGET_FACTOR).max(least));
        let wanted = most.map_or(wanted, |most| wanted.min(most.limit));
        let allows =
            most.map_or_else(String::new, |most| format!(" (the policy allows up to {})", worth(limit.unit, most.limit)));
        if self.options.approver == Approver::Person {
            let words = match (limit.scope, limit.unit) {
                (Session, CostUsd) => format!("{wanted}"),
                (Session, Tokens) => format!("tokens {wanted}"),
                (Session, Steps) => format!("steps {wanted}"),
                (Task, CostUsd) => format!("task {wanted}"),
                (Task, Tokens) => format!("task tokens {wanted}"),
                (Task, Steps) => format!("task steps {wanted}"),
            };
            return format!("raise the budget to `{words}` to continue{allows}; another prompt leaves this task as it is");
        }
        match (limit.scope, limit.unit) {
            (Session, CostUsd) => format!("`aye exec -c --max-budget-usd {wanted}` continues{allows}"),
            (scope, unit) => format!("`aye exec -c --set {}={wanted}` continues{allows}", key(scope, unit)),
        }
    }

    /// A limit in dollars cannot be kept where nobody knows the price.
    fn unpriced(&self, limit: &InForce) -> Failure {
        let (model, amount, place) = (&self.options.model.name, worth(CostUsd, limit.limit), &limit.set_by);
        let whose = whose(limit.scope);
        let message = format!(
            "LLM_BUDGET_EXCEEDED: {whose} has a budget of {amount} (set by {place}), and the price of `{model}` is not known, so nothing \
             was sent"
        );
        let hint = "say its `price` in models.toml (zeros where it costs nothing), choose a model whose price is known, or take the \
                    budget away; then continue";
        Failure::new(FailureKind::BudgetExceeded, message, hint)
    }
}

fn whose(scope: BudgetScope) -> &'static str {
    match scope {
        Session => "the session",
        Task => "the task",
    }
}

/// The key of the configuration that sets it.
fn key(scope: BudgetScope, unit: BudgetUnit) -> &'static str {
    match (scope, unit) {
        (Session, Tokens) => "budget.session_tokens",
        (Session, Steps) => "budget.session_steps",
        (Session, CostUsd) => "budget.session_cost_usd",
        (Task, Tokens) => "budget.task_tokens",
        (Task, Steps) => "budget.task_steps",
        (Task, CostUsd) => "budget.task_cost_usd",
    }
}

/// `$4.87`, `$0.0026`, `1,300,000 tokens`.
fn worth(unit: BudgetUnit, amount: f64) -> String {
    match unit {
        CostUsd if amount > 0.0 && amount < 0.0001 => "less than $0.0001".to_owned(),
        CostUsd if amount == 0.0 || amount >= 1.0 => format!("${amount:.2}"),
        CostUsd => {
            let text = format!("{amount:.4}");
            let (cents, rest) = text.split_at(text.len() - 2);
            format!("${cents}{}", rest.trim_end_matches('0'))
        }
        Tokens => format!("{} tokens", grouped(amount)),
        Steps => format!("{} steps", grouped(amount)),
    }
}

fn grouped(amount: f64) -> String {
    let digits = format!("{amount:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number that is quick to type: one or two digits that count.
fn rounded_up(unit: BudgetUnit, amount: f64) -> f64 {
    let least = if unit == CostUsd { 0.01 } else { 1.0 };
    let unit_of = 10f64.powf(amount.max(least).log10().floor() - 1.0).max(least);
    // Through text, so that 0.30000000000000004 is 0.3.
    let rounded = (amount / unit_of).ceil() * unit_of;
    format!("{rounded:.2}").parse().unwrap_or(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_said_as_people_say_them() {
        for (amount, words) in
            [(0.0, "$0.00"), (5.0, "$5.00"), (0.5, "$0.50"), (0.0026, "$0.0026"), (0.00001, "less than $0.0001")]
        {
            assert_eq!(worth(CostUsd, amount), words);
        }
        assert_eq!(worth(Tokens, 1_300_000.0), "1,300,000 tokens");
        assert_eq!(worth(Steps, 999.0), "999 steps");
    }

    #[test]
    fn a_number_to_raise_to_is_quick_to_type_and_never_less() {
        for (unit, amount, rounded) in [
            (CostUsd, 10.0, 10.0),
            (CostUsd, 0.3, 0.3),
            (CostUsd, 0.001, 0.01),
            (CostUsd, 12.34, 13.0),
            (Tokens, 123_456.0, 130_000.0),
        ] {
            assert!((rounded_up(unit, amount) - rounded).abs() < 1e-9, "{amount}");
        }
    }
}
