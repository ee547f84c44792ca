//! Usage and budgets: `/cost` and `/budget`.

use super::draft::take_draft;
use super::notes::show_requested;
use super::readiness::is_ready;
use crate::protocol::{AssumedPrice, Budget, BudgetLimit, BudgetScope, BudgetUnit, Command, Usage};
use crate::text;
use crate::tui::format::{amount, dollars, format_estimate, tokens};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::picker::Row;
use crate::tui::session_info::BudgetRequest;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

const FORMS: &str = "`/budget 10` dollars, `/budget 2M tokens`, `/budget task 1.50`, `/budget steps 200`";

/// Adds the usage and cost of a completed request to the totals. If the session reported its total cost, uses that
/// instead.
pub(crate) fn on_usage(model: &mut UiModel, usage: Usage, cost_usd: Option<f64>, session_cost_usd: Option<f64>) {
    model.task.usage += usage;
    model.info.tally.usage += usage;
    if let Some(cost) = cost_usd {
        *model.task.cost_usd.get_or_insert(0.0) += cost;
    }
    match session_cost_usd {
        Some(cost) => model.info.tally.cost_usd = Some(cost),
        None => model.info.tally.spend(cost_usd),
    }
}

/// Marks the totals as estimated if any part of a request's usage was.
pub(crate) fn doubt(model: &mut UiModel, estimated: bool) {
    model.task.is_estimated |= estimated;
    model.info.tally.is_estimated |= estimated;
}

/// Returns the list rows for `/cost`: the usage and cost of the session and of the current or last task, followed by
/// the budgets.
pub(crate) fn rows(model: &UiModel) -> Vec<Row> {
    let tally = &model.info.tally;
    let which = if model.task.goes_on { "this task" } else { "last task" };
    let all = [
        ("session", tally.usage, money(model, tally.cost_usd, tally.is_estimated)),
        (which, model.task.usage, money(model, model.task.cost_usd, model.task.is_estimated)),
    ];
    let used = all.map(|(name, usage, cost)| row(name, usage, cost)).into_iter();
    used.chain(tally.budgets.iter().filter(|budget| is_set(budget)).map(budget_row)).collect()
}

fn budget_row(budget: &Budget) -> Row {
    let name = format!("{} budget", budget.scope.as_str());
    let none = String::new;
    let figures = format!("{} of {}", used_text(budget), amount(budget.unit, budget.limit));
    let unit = budget.unit;
    Row {
        key: format!("{name} {unit:?}"),
        cells: vec![name, none(), none(), none(), figures],
        mark: "",
        lacks: None,
        detail: budget_line(budget),
    }
}

fn used_text(budget: &Budget) -> String {
    match budget.unit {
        BudgetUnit::CostUsd => dollars(budget.used),
        BudgetUnit::Tokens => tokens(budget.used.max(0.0) as u64),
        BudgetUnit::Steps => format!("{:.0}", budget.used),
    }
}

fn row(name: &str, usage: Usage, cost: String) -> Row {
    let Usage { input_tokens, output_tokens, cache_read_tokens, .. } = usage;
    let percent = (cache_read_tokens * 100).checked_div(input_tokens).unwrap_or(0);
    Row {
        key: name.to_owned(),
        cells: vec![name.to_owned(), tokens(input_tokens), tokens(cache_read_tokens), tokens(output_tokens), cost],
        mark: "",
        lacks: None,
        detail: format!("{input_tokens} tokens sent, {percent} % of them from the cache\n{output_tokens} tokens received"),
    }
}

/// Returns notices about estimated usage, and about how to set a budget if none is set.
pub(crate) fn notices(model: &UiModel) -> Vec<String> {
    let mut words = Vec::new();
    if model.info.tally.is_estimated {
        words.push("~ estimated by length, because a provider did not report all usage".to_owned());
    }
    if !model.info.tally.budgets.iter().any(is_set) {
        words.push("no budget is set; set one with /budget 10".to_owned());
    }
    words
}

/// Returns usage and budgets as text for line mode.
pub(crate) fn to_text(model: &UiModel) -> String {
    let rows = rows(model).into_iter().map(|row| match &row.cells[..] {
        [_, sent, ..] if sent.is_empty() => row.detail,
        [name, sent, cached, got, cost] => format!("{name}: {cost}, {sent} tokens in, {cached} cached, {got} out"),
        cells => cells.join(" "),
    });
    rows.chain(notices(model)).collect::<Vec<_>>().join("\n")
}

/// Returns whether a budget was set explicitly rather than being a default limit.
fn is_set(budget: &Budget) -> bool {
    budget.set_by != "default"
}

fn money(model: &UiModel, cost: Option<f64>, is_estimated: bool) -> String {
    let free = model.info.facts.as_ref().and_then(|facts| facts.price).map(|_| "$0.00");
    cost.map_or_else(|| free.unwrap_or("$?").to_owned(), |cost| format_estimate(cost, is_estimated))
}

/// Handles `/budget`, which shows the budgets, sets a limit, or sets an assumed price for the model.
pub(crate) fn budget(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if words.is_empty() {
        if is_ready(model, now) {
            take_draft(model, now, effects);
            model.info.tally.budget_request = Some(BudgetRequest::Show);
            effects.push(UiEffect::Send(Command::ShowBudget));
        }
        return;
    }
    if let Some(price) = words.strip_prefix("price").filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
        return assume_price(model, price, now, effects);
    }
    match parse(words) {
        Ok(limit) if is_ready(model, now) => {
            take_draft(model, now, effects);
            model.info.tally.budget_request = Some(BudgetRequest::Set);
            effects.push(UiEffect::Send(Command::SetBudget { limit }));
        }
        Ok(_) => {}
        Err(what) => model.show_toast(format!("{what}: {FORMS}"), now),
    }
}

/// Handles `/budget price INPUT,OUTPUT`, which sets an assumed price for the current model, such as `3,15`.
fn assume_price(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    match AssumedPrice::parse(words) {
        Some(price) if is_ready(model, now) => {
            take_draft(model, now, effects);
            effects.push(UiEffect::Send(Command::AssumePrice { price }));
        }
        Some(_) => {}
        None => {
            let form = "`/budget price 3,15`: dollars per million tokens, input and output, if the price is unknown";
            model.show_toast(form.to_owned(), now);
        }
    }
}

/// Stores the budgets. Returns the user's pending request for them, if any.
pub(crate) fn set_budgets(model: &mut UiModel, budgets: Vec<Budget>) -> Option<BudgetRequest> {
    model.info.tally.budgets = budgets;
    model.info.tally.budget_request.take()
}

/// Adds a note that lists the explicitly set budgets. An overview would cover the task, which continues once a budget
/// is raised.
pub(crate) fn note_budgets(model: &mut UiModel) {
    let lines: Vec<String> = model.info.tally.budgets.iter().filter(|budget| is_set(budget)).map(budget_line).collect();
    if !lines.is_empty() {
        show_requested(model, TranscriptEntryKind::Note { text: lines.join("\n"), tone: NoteTone::Plain });
    }
}

pub(crate) fn on_approaching(model: &mut UiModel, budget: Budget) {
    let raise = match budget.scope {
        BudgetScope::Session => "/budget",
        BudgetScope::Task => "/budget task",
    };
    let words = format!("{}; raise it with {raise}", budget_line(&budget));
    let same = |one: &&mut Budget| (one.scope, one.unit) == (budget.scope, budget.unit);
    match model.info.tally.budgets.iter_mut().find(same) {
        Some(known) => *known = budget,
        None => model.info.tally.budgets.push(budget),
    }
    model.transcript.push(TranscriptEntryKind::Note { text: words, tone: NoteTone::Warning });
}

/// Formats a budget, such as `session: $4.10 of $5.00 used, 82 %, set by policy.toml:12, at most $50.00`.
pub(crate) fn budget_line(budget: &Budget) -> String {
    format!("{}, {}", budget.usage_text(), text::clean_line(&budget.origin_text()))
}

/// Parses a budget limit, whose words may be in any order: `task 1.50`, `2M tokens`, `steps 200`.
fn parse(words: &str) -> Result<BudgetLimit, String> {
    let (mut scope, mut unit, mut implied, mut limit) = (None, None, None, None);
    for word in words.split_whitespace() {
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "task" if scope.is_none() => scope = Some(BudgetScope::Task),
            "session" if scope.is_none() => scope = Some(BudgetScope::Session),
            "token" | "tokens" if unit.is_none() => unit = Some(BudgetUnit::Tokens),
            "step" | "steps" if unit.is_none() => unit = Some(BudgetUnit::Steps),
            "$" | "usd" | "dollar" | "dollars" if unit.is_none() => unit = Some(BudgetUnit::CostUsd),
            number if limit.is_none() => {
                let (value, counts) = quantity(number).ok_or_else(|| unknown_budget(word))?;
                (limit, implied) = (Some(value), counts);
            }
            _ => return Err(unknown_budget(word)),
        }
    }
    let limit = limit.ok_or("missing amount")?;
    let unit = unit.or(implied).unwrap_or(BudgetUnit::CostUsd);
    if unit != BudgetUnit::CostUsd && limit.fract() != 0.0 {
        return Err("tokens and steps must be whole numbers".to_owned());
    }
    Ok(BudgetLimit { scope: scope.unwrap_or(BudgetScope::Session), unit, limit })
}

fn unknown_budget(word: &str) -> String {
    format!("`{}` is not an amount", text::truncate(word, 16))
}

/// Parses an amount such as `10`, `$1.50`, `500k`, `2M` or `1_000_000`. Also returns the unit that its format implies,
/// if any.
fn quantity(word: &str) -> Option<(f64, Option<BudgetUnit>)> {
    let (digits, mut unit) = match word.strip_prefix('$') {
        Some(digits) => (digits, Some(BudgetUnit::CostUsd)),
        None => (word, None),
    };
    let (digits, factor) = match digits.chars().last()? {
        'k' => (&digits[..digits.len() - 1], 1e3),
        'm' => (&digits[..digits.len() - 1], 1e6),
        _ => (digits, 1.0),
    };
    if factor > 1.0 {
        unit = unit.or(Some(BudgetUnit::Tokens));
    }
    let digits = digits.replace(['_', ','], "");
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') || digits.contains(['e', 'n', 'i']) {
        return None;
    }
    let value = digits.parse::<f64>().ok()? * factor;
    (value.is_finite() && value >= 0.0).then_some((value, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_limits_are_parsed_in_common_notations() {
        let limit = |scope, unit, limit| BudgetLimit { scope, unit, limit };
        let (session, task) = (BudgetScope::Session, BudgetScope::Task);
        for (words, expected) in [
            ("10", limit(session, BudgetUnit::CostUsd, 10.0)),
            ("$10.50", limit(session, BudgetUnit::CostUsd, 10.5)),
            ("2M tokens", limit(session, BudgetUnit::Tokens, 2e6)),
            ("500k", limit(session, BudgetUnit::Tokens, 5e5)),
            ("1,000,000 tokens", limit(session, BudgetUnit::Tokens, 1e6)),
            ("task 1.50", limit(task, BudgetUnit::CostUsd, 1.5)),
            ("1.50 usd task", limit(task, BudgetUnit::CostUsd, 1.5)),
            ("steps 200", limit(session, BudgetUnit::Steps, 200.0)),
            ("task 20 steps", limit(task, BudgetUnit::Steps, 20.0)),
        ] {
            assert_eq!(parse(words), Ok(expected), "{words}");
        }
        for words in ["much", "-1", "1e9", "inf", "nan", "10 20", "task task 1", "1.5 steps", "tokens", "0x10", "$"] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
