//! Effects of session events on the UI model.

use super::draft::on_draft_changed;
use super::notes::{note, note_event, note_problem};
use super::{
    agents, amend, artifacts, call_events, changes, commands, compaction, goal, models, overview, policy, response_events,
    rewind, save_errors, servers, spending, task_events,
};
use crate::protocol::{Artifact, Budget, Event, EventKind, NoticeKind};
use crate::text;
use crate::tui::layers::{TextViewer, Topic};
use crate::tui::model::UiModel;
use crate::tui::session_info::{BudgetRequest, PolicyInfo};
use crate::tui::transcript::{NoteTone, tag_new_entries};

/// Tags the transcript entries that an event adds with the event's task and step.
pub(crate) fn apply_tagged(model: &mut UiModel, event: Event) -> Event {
    tag_new_entries(&mut model.transcript, event.task_id.as_ref(), event.step_id.as_ref());
    event
}

/// Applies an event that has the same effect whether it is live or replayed. The event kinds in the last match arm are
/// applied elsewhere if they are live, and have no effect if they are replayed.
pub(crate) fn apply_shared(model: &mut UiModel, kind: EventKind, now: u64) {
    match kind {
        EventKind::SessionStarted { .. }
        | EventKind::ModeChanged { .. }
        | EventKind::PolicyInForce { .. }
        | EventKind::PolicyRejected { .. }
        | EventKind::PolicyExpired { .. }
        | EventKind::SandboxInForce { .. }
        | EventKind::SavingChanged { .. }
        | EventKind::Notice { .. } => on_session_changed(model, kind, now),
        EventKind::TaskStarted { .. }
        | EventKind::QueueChanged { .. }
        | EventKind::Steered { .. }
        | EventKind::StateChanged { .. }
        | EventKind::StepStarted { .. }
        | EventKind::StepLimitApproaching { .. }
        | EventKind::PlannedStepsChanged { .. }
        | EventKind::TaskCompleted { .. }
        | EventKind::TaskFailed { .. }
        | EventKind::PromptBlocked { .. }
        | EventKind::TaskCancelled { .. }
        | EventKind::SessionPaused { .. } => task_events::apply(model, kind, now),
        EventKind::LlmRequestStarted { .. }
        | EventKind::TextChunk { .. }
        | EventKind::ReasoningChunk { .. }
        | EventKind::ToolCallProgress { .. }
        | EventKind::LlmRequestCompleted { .. }
        | EventKind::ReviewSpent { .. }
        | EventKind::LlmRetry { .. }
        | EventKind::AnswerDiscarded { .. } => response_events::apply(model, kind, now),
        EventKind::ToolRequested { .. }
        | EventKind::OwnCommandStarted { .. }
        | EventKind::OwnCommandEnded { .. }
        | EventKind::ApprovalResolved { .. }
        | EventKind::ApprovalTimeout { .. }
        | EventKind::PreviewStarted { .. }
        | EventKind::ToolStarted { .. }
        | EventKind::ToolOutputChunk { .. }
        | EventKind::EffectsProgress { .. }
        | EventKind::ToolCompleted { .. } => call_events::apply(model, kind, now),
        EventKind::Agent(event) => agents::apply(model, event),
        EventKind::GoalChanged(state) => goal::on_changed(model, state, now),
        EventKind::CompactionStarted { trigger, messages, tokens } => compaction::on_start(model, trigger, messages, tokens, now),
        EventKind::ContextCompacted(compaction) => compaction::on_done(model, &compaction, now),
        EventKind::CompactionUndone { tokens } => compaction::on_undone(model, tokens, now),
        EventKind::ContextTruncated { removed } => compaction::on_truncated(model, removed),
        EventKind::ContextShown(_) | EventKind::ListShown(_) | EventKind::ChangedFiles(_) => on_requested(model, kind, now),
        EventKind::ApprovalOutdated { approval_id, outdated, .. } => model.dialogs.set_outdated(&approval_id, outdated),
        EventKind::RuleTold { approval_id, told } => model.dialogs.apply_rule_reply(&approval_id, told, model.keys.last_text),
        EventKind::ProposedShown { approval_id, file, text } => amend::on_proposed_text(model, &approval_id, file, &text, now),
        EventKind::ModelChanged { facts, effort, message } => models::on_changed(model, facts, effort, &message),
        EventKind::ModelsListed { models, notices } => models::on_listed(model, models, &notices),
        EventKind::BudgetShown { budgets } => on_budgets(model, budgets),
        EventKind::BudgetApproaching { budget } => spending::on_approaching(model, budget),
        EventKind::CommandsRunning { commands } => commands::on_changed(model, commands),
        EventKind::ServersChanged { servers } => servers::on_changed(model, servers),
        EventKind::ArtifactsListed { .. } | EventKind::ArtifactRead { .. } => on_artifacts_answered(model, kind, now),
        EventKind::Rewound(_) | EventKind::RewindPointsListed { .. } | EventKind::RewindPlanned(_) => rewound(model, kind, now),
        EventKind::ApprovalRequested(_)
        | EventKind::ToolInterrupted { .. }
        | EventKind::DraftRestored { .. }
        | EventKind::StepCompleted { .. }
        | EventKind::HistoryLoaded { .. }
        | EventKind::LookedUp(_)
        | EventKind::ElicitationRequested(_)
        | EventKind::ElicitationEnded { .. }
        | EventKind::HistorySummed(_)
        | EventKind::SessionCompleted { .. } => {}
    }
}

fn on_requested(model: &mut UiModel, kind: EventKind, now: u64) {
    match kind {
        EventKind::ContextShown(filled) => overview::open_context(model, filled),
        EventKind::ListShown(list) => overview::open_list(model, list, now),
        EventKind::ChangedFiles(changed) => changes::show(model, changed),
        _ => {}
    }
}

fn on_artifacts_answered(model: &mut UiModel, kind: EventKind, now: u64) {
    match kind {
        EventKind::ArtifactsListed { artifacts } => on_artifacts(model, artifacts, now),
        EventKind::ArtifactRead { artifact, text } => model.layers.push(TextViewer::new(&artifact, &text)),
        _ => {}
    }
}

fn rewound(model: &mut UiModel, kind: EventKind, now: u64) {
    match kind {
        EventKind::Rewound(done) => rewind::on_done(model, done, false, now),
        EventKind::RewindPointsListed { points, can_redo } => rewind::on_listed(model, points, can_redo, now),
        EventKind::RewindPlanned(plan) => rewind::on_planned(model, plan),
        _ => {}
    }
}

fn on_artifacts(model: &mut UiModel, artifacts: Vec<Artifact>, now: u64) {
    if artifacts::on_listed(model, artifacts, now) {
        overview::open(model, Topic::Artifacts);
    }
}

/// Stores the budgets, and shows them if the user has requested them.
fn on_budgets(model: &mut UiModel, budgets: Vec<Budget>) {
    match spending::set_budgets(model, budgets) {
        Some(BudgetRequest::Show) => overview::open(model, Topic::Cost),
        Some(BudgetRequest::Set) => spending::note_budgets(model),
        None => {}
    }
}

/// Applies an event about the session as a whole, such as a change to its mode, policy, sandbox or save state.
fn on_session_changed(model: &mut UiModel, kind: EventKind, now: u64) {
    match kind {
        EventKind::SessionStarted { model: name, mode, facts, .. } => {
            model.info.header.model = name;
            model.info.header.mode = mode;
            if let Some(facts) = facts {
                models::on_facts(model, facts);
            }
        }
        EventKind::PolicyInForce { mut layers, name, message, .. } => {
            model.options.shorten(layers.iter_mut().filter_map(|layer| layer.file.as_mut()));
            model.info.policy = PolicyInfo { layers, broken: None, ..model.info.policy };
            model.info.header.policy = name;
            let is_quiet = std::mem::take(&mut model.startup.reloads_policy);
            if let Some(message) = message.filter(|_| !is_quiet) {
                note(model, &message, NoteTone::Plain);
            }
            policy::report_expiry(model, now);
        }
        EventKind::PolicyRejected { message } => {
            model.startup.reloads_policy = false;
            note(model, &message, NoteTone::Warning);
            model.info.policy.broken = Some(message);
        }
        EventKind::PolicyExpired { message } => note_problem(model, &message.into(), NoteTone::Failure),
        EventKind::ModeChanged { mode } => {
            model.info.header.mode = mode;
            note_event(model, &EventKind::ModeChanged { mode }, "");
        }
        EventKind::SandboxInForce { words, missing, .. } => {
            model.info.header.sandbox = words;
            if let Some(missing) = missing {
                note(model, &missing, NoteTone::Warning);
            }
        }
        EventKind::SavingChanged { saved, message } => {
            save_errors::on_changed(model, saved);
            note(model, &message, if saved { NoteTone::Plain } else { NoteTone::Warning });
        }
        EventKind::Notice { message, kind } => {
            compaction::on_notice(model, kind, now);
            rewind::on_notice(model);
            note(model, &with_commands(message, kind), NoteTone::Plain);
        }
        _ => {}
    }
}

/// Appends the command that undoes or stops the reported action to a notice about a saved rule or a compaction.
fn with_commands(message: String, kind: Option<NoticeKind>) -> String {
    match kind {
        Some(NoticeKind::RuleSaved | NoticeKind::RuleUntilQuit) => format!("{message} — /policy undo removes it"),
        Some(NoticeKind::CompactionRunning) => format!("{message} (esc to stop)"),
        Some(NoticeKind::NotCompacted) | None => message,
    }
}

/// Restores a saved draft, or queued messages that were not sent, by appending the text to the current draft.
pub(crate) fn on_draft_restored(model: &mut UiModel, text: &str, now: u64) {
    model.task.waiting.clear();
    let before = model.composer.text();
    let restored = text::clean(text);
    if before.trim().is_empty() {
        model.composer.set(&restored);
    } else {
        model.composer.set(&format!("{}\n\n{restored}", before.trim_end()));
    }
    on_draft_changed(model, now);
}
