//! Messages that explain why the task or the session failed, and how to continue.

use super::notes::note_problem;
use super::{retry, save_errors, streaming};
use crate::protocol::{BudgetScope, BudgetUnit, Failure, FailureKind, Problem, Remedy};
use crate::text;
use crate::tui::model::UiModel;
use crate::tui::task::PauseNotice;
use crate::tui::transcript::{AnswerState, NoteTone, TranscriptEntryKind};

pub(crate) fn on_failed(model: &mut UiModel, failure: &Failure) {
    let problem = problem(model, failure);
    model.task.paused = is_of_provider(failure.kind).then(|| match failure.kind {
        FailureKind::Authentication => rejected_key_pause(model),
        _ => PauseNotice::new("failed; nothing is lost"),
    });
    note_problem(model, &problem, NoteTone::Failure);
}

pub(crate) fn on_paused(model: &mut UiModel, failure: &Failure, now: u64) {
    if failure.kind == FailureKind::NotSaved {
        // The row above the composer shows how to continue, as long as this is possible.
        model.task.paused = None;
        if save_errors::on_stopped(model, failure, now) {
            note_problem(model, &Problem::new(failure.text()), NoteTone::Failure);
        }
        return;
    }
    if failure.kind == FailureKind::NotHeld {
        save_errors::on_lost(model);
    }
    model.task.paused = Some(match failure.kind {
        FailureKind::BudgetExceeded => over_budget(failure.remedy),
        // The failure may last long, so the row remains visible.
        kind if retry::is_passing(kind) => {
            PauseNotice::new(format!("{} {} /continue when it is back", pause_location(model), model.screen.glyphs.dot))
        }
        _ => PauseNotice::new(pause_location(model)),
    });
    note_problem(model, &problem(model, failure), NoteTone::Warning);
}

/// Returns the notice for a rejected API key. Pressing Enter in an empty draft then replaces the key.
fn rejected_key_pause(model: &UiModel) -> PauseNotice {
    let dot = model.screen.glyphs.dot;
    let ways = vec![
        format!("the API key was rejected; nothing is lost {dot} enter to replace it {dot} /continue to resume"),
        format!("API key rejected {dot} enter to replace it {dot} /continue"),
        format!("API key rejected {dot} enter to replace it"),
    ];
    PauseNotice { ways, wants_key: true, wants_price: false }
}

/// Returns the notice for a reached budget. It includes the command that raises the budget, if the user is allowed to
/// raise it.
fn over_budget(remedy: Option<Remedy>) -> PauseNotice {
    let ways = match remedy {
        Some(Remedy::RaiseBudget { scope, unit, limit }) => {
            let raise = budget_command(scope, unit, limit);
            vec![format!("paused: budget reached, {raise} to continue"), format!("budget reached, {raise}"), raise]
        }
        Some(Remedy::AssumePrice) => {
            let ask = format!("assume one with {ASSUME_PRICE} 3,15");
            vec![format!("paused: price unknown, {ask}"), format!("price unknown, {ask}"), format!("{ASSUME_PRICE} 3,15")]
        }
        Some(Remedy::ChangePolicy) => {
            vec!["paused: budget reached, and the policy does not allow more".into(), "the policy does not allow more".into()]
        }
        Some(Remedy::Continue | Remedy::SaveKey) | None => {
            vec!["paused: budget reached, /budget to raise it".into(), "budget reached, /budget".into()]
        }
    };
    PauseNotice { ways, wants_key: false, wants_price: remedy == Some(Remedy::AssumePrice) }
}

/// Command that sets an assumed price for the model.
const ASSUME_PRICE: &str = "/budget price";

/// Returns the command that sets a budget's limit, such as `/budget task steps 40`.
fn budget_command(scope: BudgetScope, unit: BudgetUnit, limit: f64) -> String {
    let scope = match scope {
        BudgetScope::Session => "",
        BudgetScope::Task => "task ",
    };
    let unit = match unit {
        BudgetUnit::CostUsd => "",
        BudgetUnit::Tokens => "tokens ",
        BudgetUnit::Steps => "steps ",
    };
    format!("/budget {scope}{unit}{limit}")
}

pub(crate) fn pause_location(model: &UiModel) -> String {
    match model.task.step {
        0 => "paused".to_owned(),
        step => format!("paused at step {step}"),
    }
}

/// Returns whether a failure was caused by the provider or the connection to it. In that case, the task can continue
/// once the API key, the connection or the provider's state has changed.
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

/// Returns the failure as an error with hints about the commands that resolve it.
fn problem(model: &UiModel, failure: &Failure) -> Problem {
    let provider = model.info.header.model.split_once('/').map(|(provider, _)| provider);
    // The messages about keys and accounts do not name the provider.
    let of_account = matches!(failure.kind, FailureKind::Authentication | FailureKind::Billing | FailureKind::Permission);
    let mut problem = match provider {
        Some(provider) if failure.status.is_none() && of_account => failure.problem().with_location(format!("{provider} says")),
        Some(provider) => failure.to_provider_problem(provider),
        None => failure.problem(),
    };
    if failure.kind == FailureKind::Authentication && failure.remedy != Some(Remedy::SaveKey) {
        problem = problem.hint("run `aye auth login` to save another key");
    }
    match failure.kind {
        FailureKind::Authentication | FailureKind::NotFound | FailureKind::Billing | FailureKind::RateLimited => {
            problem = problem.hint("use /model to choose another model");
        }
        // Here, the user can only reload the policy.
        FailureKind::PolicyExpired => problem = problem.hint("use /policy reload after you renew the policy"),
        _ => {}
    }
    if let Some(Remedy::RaiseBudget { scope, unit, limit }) = failure.remedy {
        problem =
            problem.hint(format!("use {} to continue; a new prompt abandons this task", budget_command(scope, unit, limit)));
    }
    if failure.remedy == Some(Remedy::AssumePrice) {
        let what = "$3 per million input tokens and $15 per million output tokens";
        problem = problem.hint(format!("use {ASSUME_PRICE} 3,15 to assume {what} in this session, and to continue"));
    }
    problem.excerpt.extend(failure.request_id.iter().map(|id| format!("request {id}")));
    problem
}

/// Marks the response that was being streamed as discarded. Its text stays visible.
pub(crate) fn on_discarded(model: &mut UiModel, reason: &str) {
    streaming::complete_response(model);
    model.info.last_answer = None;
    let Some(entry) = model.transcript.last_answer_mut() else { return };
    if let TranscriptEntryKind::Answer { state, .. } = &mut entry.kind {
        *state = AnswerState::Discarded(text::clean(reason).into_owned());
    }
    entry.forget_layout();
}
