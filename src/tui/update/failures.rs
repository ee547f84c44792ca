//! Texts for failures of a task or the session, and how to continue.

use super::notes::note;
use super::{retry, save_errors, streaming};
use crate::protocol::{Failure, FailureKind};
use crate::text;
use crate::tui::model::Model;
use crate::tui::task::Paused;
use crate::tui::transcript::{AnswerState, Kind, Tone};

/// Beginning of the hint if the policy sets the budget.
const NO_MORE: &str = "the policy allows no more";

pub(crate) fn failed(model: &mut Model, failure: &Failure) {
    let words = failure_words(model, failure);
    model.task.paused = (is_of_provider(failure.kind) && !words.contains("/continue")).then(|| match failure.kind {
        FailureKind::Authentication => refused(model),
        _ => Paused::new("failed; nothing is lost"),
    });
    note(model, &words, Tone::Failure);
}

pub(crate) fn paused(model: &mut Model, failure: &Failure, now: u64) {
    if failure.kind == FailureKind::NotSaved {
        // How to continue is shown above the composer as long as it applies.
        model.task.paused = None;
        if save_errors::stopped(model, failure, now) {
            note(model, &failure.message, Tone::Failure);
        }
        return;
    }
    if failure.kind == FailureKind::NotHeld {
        save_errors::lost(model);
    }
    let said = failure.hint.contains("/continue") || failure.message.contains("/continue");
    model.task.paused = match failure.kind {
        FailureKind::BudgetExceeded => Some(over_budget(&failure.hint)),
        // It may take long until then, so this row stays visible.
        kind if retry::is_passing(kind) => {
            Some(Paused::new(format!("{} {} /continue when it is back", where_it_paused(model), model.screen.glyphs.dot)))
        }
        _ => (!said).then(|| Paused::new(where_it_paused(model))),
    };
    let words = match failure.kind {
        // The expiry of the policy was reported before.
        FailureKind::PolicyExpired => {
            format!("paused: {} {} /policy reload to read it again", failure.hint, model.screen.glyphs.dot)
        }
        _ => format!("paused: {}", failure_words(model, failure)),
    };
    note(model, &words, Tone::Warning);
}

/// Returns the pause after a rejected API key; Enter in the empty draft replaces the key.
fn refused(model: &Model) -> Paused {
    let dot = model.screen.glyphs.dot;
    let ways = vec![
        format!("the API key was rejected; nothing is lost {dot} enter to replace it {dot} /continue to resume"),
        format!("API key rejected {dot} enter to replace it {dot} /continue"),
        format!("API key rejected {dot} enter to replace it"),
    ];
    Paused { ways, wants_key: true }
}

/// Returns the pause after a reached budget, with the command that raises it if the user can raise it.
fn over_budget(hint: &str) -> Paused {
    let amount = hint.strip_prefix("raise the budget to `").and_then(|rest| Some(rest.split_once('`')?.0));
    let said = hint.split_once(" continues").map_or("/budget", |(raise, _)| raise);
    let raise = amount.map_or_else(|| said.to_owned(), |amount| format!("/budget {amount}"));
    let ways = if raise.starts_with("/budget ") {
        vec![format!("paused: budget reached, {raise} to continue"), format!("budget reached, {raise}"), raise]
    } else if hint.starts_with(NO_MORE) {
        vec!["paused: budget reached, and the policy allows no more".into(), "the policy allows no more".into()]
    } else {
        vec!["paused: budget reached, /budget to raise it".into(), "budget reached, /budget".into()]
    };
    Paused { ways, wants_key: false }
}

pub(crate) fn where_it_paused(model: &Model) -> String {
    match model.task.step {
        0 => "paused".to_owned(),
        step => format!("paused at step {step}"),
    }
}

/// Returns whether another key, a better connection or waiting lets the same task continue.
fn is_of_provider(kind: FailureKind) -> bool {
    match kind {
        FailureKind::Authentication
        | FailureKind::Billing
        | FailureKind::Permission
        | FailureKind::NotFound
        | FailureKind::RateLimited
        | FailureKind::Overloaded
        | FailureKind::Network
        | FailureKind::Timeout
        | FailureKind::CutStream
        | FailureKind::Protocol => true,
        FailureKind::ContextTooLong
        | FailureKind::GuardrailBlocked
        | FailureKind::InvalidRequest
        | FailureKind::BudgetExceeded
        | FailureKind::MaxStepsExceeded
        | FailureKind::PolicyExpired
        | FailureKind::NotSaved
        | FailureKind::NotHeld
        | FailureKind::Internal => false,
    }
}

/// Returns the failure and its hint. The code before some messages is for programs.
fn failure_words(model: &Model, failure: &Failure) -> String {
    let message = failure
        .message
        .strip_prefix("LLM_BUDGET_EXCEEDED")
        .map_or(failure.message.as_str(), |rest| rest.trim_start_matches([':', ' ']));
    let message = if message.is_empty() { "the budget is used up" } else { message };
    // Key and account failures do not name the provider themselves.
    let of_account = matches!(failure.kind, FailureKind::Authentication | FailureKind::Billing | FailureKind::Permission);
    let provider = model.info.header.model.split_once('/').map(|(provider, _)| provider);
    let message = match provider {
        Some(provider) if failure.status.is_some() => failure.with_provider(provider),
        Some(provider) if of_account => format!("{provider} says: {message}"),
        _ => message.to_owned(),
    };
    let login = failure.kind == FailureKind::Authentication && !failure.hint.contains("aye auth");
    let login = if login { "\n`aye auth login` stores another key · /model selects another model" } else { "" };
    let other = matches!(failure.kind, FailureKind::NotFound | FailureKind::Billing | FailureKind::RateLimited);
    let other = if other { "\n/model selects another model" } else { "" };
    let request = failure.request_id.as_ref().map(|id| format!("\nrequest {id}")).unwrap_or_default();
    format!("{message}\n{}{login}{other}{request}", failure.hint)
}

/// Marks the streamed response as discarded; it stays visible.
pub(crate) fn discarded(model: &mut Model, reason: &str) {
    streaming::end(model);
    model.info.last_answer = None;
    let Some(entry) = model.transcript.last_answer_mut() else { return };
    if let Kind::Answer { state, .. } = &mut entry.kind {
        *state = AnswerState::Discarded(text::clean(reason).into_owned());
    }
    entry.forget_layout();
}
