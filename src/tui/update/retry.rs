//! Status of a failed request that will be retried, and the key that retries it immediately.

use crate::protocol::{Command, FailedRequest, FailureKind};
use crate::text;
use crate::tui::format;
use crate::tui::model::{Activity, Retry, UiEffect, UiModel};
use crate::tui::typeahead_guard::{ALONE_MS, ARMING_MS};

/// Delay, in milliseconds, above which the time of the retry is shown as well.
const LONG_MS: u64 = 60_000;
/// Screen width, in cells, below which the status uses its short form.
const WIDE: u16 = 70;
/// Minimum screen width, in cells, at which the delay requested by the provider is shown.
const ROOMY: u16 = 92;
/// Screen width, in cells, below which the time of the retry is omitted.
const NARROW: u16 = 50;

/// Number of cells reserved for the gutter and for the shortest key hint after the text.
const KEYS: usize = 12;

pub(crate) fn on_retry(model: &mut UiModel, failed: FailedRequest, now: u64) {
    let FailedRequest { attempt, max_attempts, delay_ms, asked_ms, kind, message, usage, cost_usd, estimated, request_id } =
        failed;
    let clock = model.info.policy.clock.filter(|_| delay_ms > LONG_MS).and_then(|(time, _)| {
        let after = jiff::SignedDuration::from_millis(i64::try_from(delay_ms).ok()?);
        Some(time.checked_add(after).ok()?.strftime("%H:%M UTC").to_string())
    });
    let wasted = match (cost_usd, usage) {
        (Some(cost), _) => Some(format!("cost {}", format::format_estimate(cost, estimated))),
        (None, Some(usage)) => Some(format!("used {}", format::format_usage(&usage))),
        (None, None) => None,
    };
    if let Some(usage) = usage {
        model.task.usage += usage;
        model.info.tally.usage += usage;
    }
    if let Some(cost) = cost_usd {
        *model.task.cost_usd.get_or_insert(0.0) += cost;
    }
    model.info.tally.spend(cost_usd);
    if model.task.activity == Activity::Stopping {
        return;
    }
    let message = text::clean_line(&message);
    let request_id = request_id.map(|id| text::clean_line(&id));
    let at = now + delay_ms;
    let retry = Retry { at, attempt, max_attempts, kind, message, asked_ms, wasted, request_id, shows_id: false, clock };
    model.set_activity(Activity::Retrying(Box::new(retry)), now);
}

/// Returns the retry status with the number of seconds left. Narrow screens get a short form, so there is always room
/// for the countdown.
pub(crate) fn status_text(retry: &Retry, width: u16, now: u64) -> String {
    let Retry { attempt, max_attempts, .. } = retry;
    let (long, short) = describe_failure(retry.kind);
    let left = retry.seconds_left(now);
    let count = match retry.kind {
        FailureKind::RateLimited => format!("{}:{:02}", left / 60, left % 60),
        _ => format::seconds(left),
    };
    let at = retry.clock.as_ref().filter(|_| width >= NARROW).map(|clock| format!(", at {clock}")).unwrap_or_default();
    let few = match left {
        0 => format!("{short}: retrying, {attempt} of {max_attempts}"),
        _ => format!("{short}: in {count}, {attempt} of {max_attempts}{at}"),
    };
    let many = match left {
        0 => format!("{long}: retrying, attempt {attempt} of {max_attempts}"),
        _ if retry.kind == FailureKind::RateLimited => {
            let asked = retry
                .asked_ms
                .filter(|_| width >= ROOMY && at.is_empty())
                .map(|asked| format!(" (requested: {} s)", asked.div_ceil(1000)));
            let asked = asked.unwrap_or_default();
            format!("{long}: continues in {count}{at}{asked}, attempt {attempt} of {max_attempts}")
        }
        _ => format!("{long}: retry in {count}{at}, attempt {attempt} of {max_attempts}"),
    };
    let some = match left {
        0 => format!("{short}: retrying, attempt {attempt} of {max_attempts}"),
        _ => format!("{short}: retry in {count}{at}, attempt {attempt} of {max_attempts}"),
    };
    // The hint needs space too, but no sentence is truncated for it.
    let fits = |words: &String| text::width(words) + KEYS <= usize::from(width);
    let many = Some(many).filter(|_| width >= WIDE);
    many.into_iter().chain([some]).find(fits).unwrap_or(few)
}

/// Returns the available details: the provider's message, the cost or usage of the failed attempt, and the request ID.
/// Returns `None` if there are none.
pub(crate) fn details(retry: &Retry, dot: &str) -> Option<String> {
    // A message that only repeats the status or the mark at the interrupted response is omitted.
    let said = retry.kind == FailureKind::CutStream
        || describe_failure(retry.kind).0.to_lowercase().contains(&retry.message.to_lowercase());
    let message = (!said).then(|| retry.message.clone());
    let id = retry.request_id.as_ref();
    let id = id.map(|id| if retry.shows_id { format!("request {id}") } else { "x show request ID".to_owned() });
    // While the request ID is shown, the message needs the space.
    let wasted = retry.wasted.clone().filter(|_| !retry.shows_id);
    let (first, last) = if retry.shows_id { (id, None) } else { (None, id) };
    let parts: Vec<String> = first.into_iter().chain(wasted).chain(message).chain(last).collect();
    (!parts.is_empty()).then(|| parts.join(&format!(" {dot} ")))
}

/// Returns whether a failure is temporary and does not depend on the request itself.
pub(crate) fn is_passing(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::RateLimited | FailureKind::Overloaded | FailureKind::Network | FailureKind::Timeout)
}

/// Returns a long and a short description of a kind of failure.
fn describe_failure(kind: FailureKind) -> (&'static str, &'static str) {
    match kind {
        FailureKind::RateLimited => ("Rate limited by the provider", "Rate limited"),
        FailureKind::Overloaded => ("The provider is overloaded", "Overloaded"),
        FailureKind::Network => ("The provider cannot be reached", "Unreachable"),
        FailureKind::Timeout => ("No response in time", "No response"),
        FailureKind::CutStream => ("The response was cut off", "Cut off"),
        FailureKind::Protocol => ("The response was malformed", "Malformed"),
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
        | FailureKind::NotSaved
        | FailureKind::NotHeld
        | FailureKind::Internal => ("The request failed", "Failed"),
    }
}

/// Handles `r` or `x` in an empty draft. As in a dialog, the key takes effect only if no other typing follows within a
/// short time.
pub(crate) fn on_char(model: &mut UiModel, letter: char, last_text: Option<u64>, now: u64) {
    let shown = |since: u64| now.saturating_sub(since) >= ARMING_MS;
    let waits =
        matches!(&model.task.activity, Activity::Retrying(retry) if retry.seconds_left(now) > 0) && shown(model.task.since);
    let alone = last_text.is_none_or(|at| now.saturating_sub(at) >= ALONE_MS);
    let has_id = matches!(&model.task.activity, Activity::Retrying(retry) if retry.request_id.is_some());
    if (letter == 'r' || (letter == 'x' && has_id))
        && waits
        && alone
        && model.composer.is_empty()
        && model.dialogs.open().is_none()
    {
        model.keys.retry_at = Some(now + ALONE_MS);
    }
}

/// Carries out the action of `r` or `x` once it is due, provided nothing was typed after it.
pub(crate) fn perform_due_key(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if model.keys.retry_at.is_none_or(|at| now < at) {
        return;
    }
    model.keys.retry_at = None;
    let typed = model.composer.text();
    let Activity::Retrying(retry) = &mut model.task.activity else { return };
    if typed == "x" {
        retry.shows_id = !retry.shows_id;
    } else if typed != "r" {
        return;
    }
    model.composer.set("");
    super::draft::on_draft_changed(model, now);
    if typed == "x" {
        return;
    }
    effects.push(UiEffect::Send(Command::RetryNow));
    model.show_toast("retrying now", now);
}
