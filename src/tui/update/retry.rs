//! A request that failed and is sent again: what is said of it, and the key that does not wait.

use super::queue::line;
use crate::protocol::{Command, FailureKind, Usage};
use crate::tui::figures;
use crate::tui::guard::{ALONE_MS, ARMING_MS};
use crate::tui::model::{Activity, Effect, Model, Retry};

/// Longer than this the time of day is said too.
const LONG_MS: u64 = 60_000;
/// Below this width few words are made.
const WIDE: u16 = 70;
/// Below this there is no room for the time of day.
const NARROW: u16 = 50;

/// What the session said of it.
pub struct Failed {
    pub attempt: u32,
    pub max_attempts: u32,
    pub delay_ms: u64,
    pub kind: FailureKind,
    pub message: String,
    pub usage: Option<Usage>,
    pub cost_usd: Option<f64>,
    pub estimated: bool,
}

pub fn begins(model: &mut Model, failed: Failed, now: u64) {
    let Failed { attempt, max_attempts, delay_ms, kind, message, usage, cost_usd, estimated } = failed;
    let clock = model.policy.clock.filter(|_| delay_ms > LONG_MS).and_then(|(time, _)| {
        let after = jiff::SignedDuration::from_millis(i64::try_from(delay_ms).ok()?);
        Some(time.checked_add(after).ok()?.strftime("%H:%M UTC").to_string())
    });
    let wasted = match (cost_usd, usage) {
        (Some(cost), _) => Some(format!("it cost {}", figures::about(cost, estimated))),
        (None, Some(usage)) => Some(format!("it used {}", figures::used(&usage))),
        (None, None) => None,
    };
    if let Some(usage) = usage {
        model.task.usage += usage;
        model.tally.usage += usage;
    }
    if let Some(cost) = cost_usd {
        *model.task.cost_usd.get_or_insert(0.0) += cost;
    }
    model.tally.spend(cost_usd);
    if model.task.activity == Activity::Stopping {
        return;
    }
    let message = line(&message);
    let retry = Retry { at: now + delay_ms, attempt, max_attempts, kind, message, wasted, clock };
    model.set_activity(Activity::Retrying(Box::new(retry)), now);
}

/// What goes on, with the seconds that are left; on a narrow screen in few words, for the count is what matters.
pub fn words(retry: &Retry, width: u16, now: u64) -> String {
    let Retry { attempt, max_attempts, .. } = retry;
    let (long, short) = what(retry.kind);
    let left = retry.left(now);
    let count = match retry.kind {
        FailureKind::RateLimited => format!("{}:{:02}", left / 60, left % 60),
        _ => figures::seconds(left),
    };
    let at = retry.clock.as_ref().filter(|_| width >= NARROW).map(|clock| format!(", at {clock}")).unwrap_or_default();
    match (left, width < WIDE) {
        (0, true) => format!("{short}: asking again, {attempt} of {max_attempts}"),
        (0, false) => format!("{long}: asking again, attempt {attempt} of {max_attempts}"),
        (_, true) => format!("{short}: in {count}, {attempt} of {max_attempts}{at}"),
        (_, false) if retry.kind == FailureKind::RateLimited => {
            format!("{long}: continues in {count}{at}, attempt {attempt} of {max_attempts}")
        }
        (_, false) => format!("{long}: asks again in {count}{at}, attempt {attempt} of {max_attempts}"),
    }
}

/// The provider's own sentence, and what the attempt cost.
pub fn details(retry: &Retry, dot: &str) -> Option<String> {
    // Where it says no more than the row itself, or the mark at the answer that was cut off, it is not said twice.
    let said = retry.kind == FailureKind::CutStream || what(retry.kind).0.to_lowercase().contains(&retry.message.to_lowercase());
    let message = (!said).then(|| retry.message.clone());
    let parts: Vec<String> = retry.wasted.iter().cloned().chain(message).collect();
    (!parts.is_empty()).then(|| parts.join(&format!(" {dot} ")))
}

/// What happened, in a sentence and in a word or two.
fn what(kind: FailureKind) -> (&'static str, &'static str) {
    match kind {
        FailureKind::RateLimited => ("Rate limited by the provider", "Rate limited"),
        FailureKind::Overloaded => ("The provider is overloaded", "Overloaded"),
        FailureKind::Network => ("The provider cannot be reached", "Not reached"),
        FailureKind::Timeout => ("No answer in time", "No answer"),
        FailureKind::CutStream => ("The answer was cut off", "Cut off"),
        FailureKind::Protocol => ("The answer was garbled", "Garbled"),
        FailureKind::Authentication
        | FailureKind::Billing
        | FailureKind::Permission
        | FailureKind::NotFound
        | FailureKind::ContextTooLong
        | FailureKind::GuardrailBlocked
        | FailureKind::InvalidRequest
        | FailureKind::BudgetExceeded
        | FailureKind::MaxStepsExceeded
        | FailureKind::PolicyExpired
        | FailureKind::Internal => ("The request failed", "Failed"),
    }
}

/// An `r` in the empty draft: it counts once it has stood there alone, as a letter in a question does.
pub fn letter(model: &mut Model, letter: char, last_text: Option<u64>, now: u64) {
    let shown = |since: u64| now.saturating_sub(since) >= ARMING_MS;
    let waits = matches!(&model.task.activity, Activity::Retrying(retry) if retry.left(now) > 0) && shown(model.task.since);
    let alone = last_text.is_none_or(|at| now.saturating_sub(at) >= ALONE_MS);
    if letter == 'r' && waits && alone && model.composer.is_empty() && model.panels.open().is_none() {
        model.keys.retry_at = Some(now + ALONE_MS);
    }
}

/// Nothing more was typed: it was no word that begins with it.
pub fn due(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    if model.keys.retry_at.is_none_or(|at| now < at) {
        return;
    }
    model.keys.retry_at = None;
    if !matches!(model.task.activity, Activity::Retrying(_)) || model.composer.text() != "r" {
        return;
    }
    model.composer.set("");
    super::draft_changed(model, now);
    effects.push(Effect::Send(Command::RetryNow));
    model.say("asking again now", now);
}
