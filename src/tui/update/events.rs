//! Effects of session events on the screen.

use super::activity::{busy, runs, tool_ended};
use super::draft::draft_changed;
use super::notes::note;
use super::quit::repeat_how_to_quit;
use super::retry::{self, FailedRequest};
use super::{
    artifacts, compaction, dialog, failures, models, policy, queue, rewind, save_errors, servers, spending, streaming, user_shell,
};
use crate::protocol::{Approval, ApprovalId, Arguments, CallId, ErrorCode, Event, EventKind, SessionStatus, ToolStatus, Usage};
use crate::text;
use crate::tui::model::{Activity, Model, TOAST_MS};
use crate::tui::session_info::Policy;
use crate::tui::text_viewer::TextViewer;
use crate::tui::transcript::{Card, CardState, Kind, Tone, tag_new_entries};

/// Minimum time a notice stays readable before an event may remove it, in milliseconds.
const READ_MS: u64 = 2000;

/// Tags the entry of an event with its task and step.
pub fn of_its_task(model: &mut Model, event: Event) -> Event {
    tag_new_entries(&mut model.transcript, event.task_id.as_ref(), event.step_id.as_ref());
    event
}

pub fn interrupted(model: &mut Model, id: &CallId, summary: &str) {
    if model.transcript.card_mut(id).is_none() {
        model.transcript.push(Kind::Card(Card::new(id.clone(), summary)));
    }
    set_card(model, id, CardState::Unknown);
}

pub fn shared(model: &mut Model, kind: EventKind, now: u64) {
    match kind {
        EventKind::SessionStarted { model: name, mode, facts, .. } => {
            model.info.header.model = name;
            model.info.header.mode = mode;
            if let Some(facts) = facts {
                models::known(model, facts);
            }
        }
        EventKind::PolicyInForce { mut layers, name, message, .. } => {
            model.options.shorten(layers.iter_mut().filter_map(|layer| layer.file.as_mut()));
            model.info.policy = Policy { layers, broken: None, ..model.info.policy };
            model.info.header.policy = name;
            if let Some(message) = message {
                note(model, &message, Tone::Plain);
            }
            policy::look_at_end(model, now);
        }
        EventKind::PolicyRejected { message } => {
            note(model, &message, Tone::Warning);
            model.info.policy.broken = Some(message);
        }
        EventKind::ModeChanged { mode } => {
            model.info.header.mode = mode;
            note(model, &format!("mode {}", mode.as_str()), Tone::Plain);
        }
        EventKind::TaskStarted { prompt, .. } => task_started(model, &prompt, now),
        EventKind::QueueChanged { waiting } => queue::on_queue_changed(model, waiting, now),
        EventKind::Steered { text } => {
            queue::on_delivered(model, &text, now);
            streaming::end(model);
            model.transcript.push(Kind::User(text::clean(&text).into_owned()));
        }
        // Other events report what the session does; only the end of all activity may be reported by this one alone.
        EventKind::StateChanged { session_status, .. } => {
            if session_status != SessionStatus::Running {
                compaction::ends(model, now);
            }
            save_errors::stands(model, session_status);
        }
        EventKind::ApprovalOutdated { approval_id, outdated, .. } => model.dialogs.outdated(&approval_id, outdated),
        EventKind::ApprovalTimeout { approval_id, tool_call_id } => timed_out(model, &approval_id, &tool_call_id, now),
        EventKind::ModelChanged { facts, effort, message } => models::changed(model, facts, effort, &message),
        EventKind::ModelsListed { models, notices } => models::listed(model, models, &notices),
        EventKind::CompactionStarted { trigger, messages, tokens } => compaction::begins(model, trigger, messages, tokens, now),
        EventKind::ContextCompacted(compaction) => compaction::done(model, &compaction, now),
        EventKind::CompactionUndone { tokens } => compaction::undone(model, tokens, now),
        EventKind::ContextTruncated { removed } => compaction::truncated(model, removed),
        EventKind::ContextShown(filled) => compaction::shown(model, filled),
        EventKind::RuleTold { approval_id, told } => model.dialogs.rule_told(&approval_id, told, model.keys.last_text),
        EventKind::BudgetShown { budgets } => spending::told(model, budgets),
        EventKind::BudgetApproaching { budget } => spending::approaching(model, budget),
        EventKind::StepStarted { step_count } => {
            model.task.step = step_count;
            model.task.goes_on = true;
            compaction::ends(model, now);
            busy(model, Activity::Thinking, now);
        }
        EventKind::LlmRequestStarted { estimated_input_tokens, .. } => {
            model.info.tally.context_tokens = model.info.tally.context_tokens.max(estimated_input_tokens);
            busy(model, Activity::Thinking, now);
        }
        EventKind::TextChunk { text } => streaming::text_chunk(model, &text, now),
        EventKind::ReasoningChunk { text } => streaming::reasoning_chunk(model, &text, now),
        EventKind::ToolCallProgress { tool_name, bytes } => {
            busy(model, Activity::Calling { tool: text::clean(&tool_name).into_owned(), bytes }, now);
        }
        EventKind::LlmRequestCompleted { usage, cost_usd, session_cost_usd, estimated, .. } => {
            streaming::end(model);
            model.info.tally.context_tokens = usage.input_tokens + usage.output_tokens;
            spending::spent(model, usage, cost_usd, session_cost_usd);
            spending::doubt(model, estimated);
        }
        EventKind::LlmRetry {
            attempt,
            max_attempts,
            delay_ms,
            asked_ms,
            kind,
            message,
            usage,
            cost_usd,
            estimated,
            request_id,
        } => {
            streaming::end(model);
            spending::doubt(model, estimated);
            retry::begins(
                model,
                FailedRequest {
                    attempt,
                    max_attempts,
                    delay_ms,
                    asked_ms,
                    kind,
                    message,
                    usage,
                    cost_usd,
                    estimated,
                    request_id,
                },
                now,
            );
        }
        EventKind::AnswerDiscarded { reason } => failures::discarded(model, &reason),
        EventKind::ToolRequested { tool_call_id, tool_name, arguments, summary, .. } => {
            streaming::end(model);
            let name = if summary.is_empty() { tool_name } else { summary };
            let mut card = Card::new(tool_call_id, &name);
            card.path = path_in(&arguments);
            card.by_person = user_shell::mark(model, &card.id);
            model.transcript.push(Kind::Card(card));
        }
        EventKind::OwnCommandStarted { tool_call_id, line, shared } => {
            user_shell::started(model, tool_call_id, &line, shared, now);
        }
        EventKind::OwnCommandEnded { shared, .. } => {
            ended(model, now);
            user_shell::ended(model, shared);
        }
        EventKind::ApprovalResolved { approval_id, tool_call_id, decision, .. } => {
            dialog::resolved(model, &approval_id, &decision);
            set_card(model, &tool_call_id, CardState::Requested);
            model.restart_activity_timer(now);
        }
        EventKind::ToolStarted { tool_call_id, rule, summary } => {
            tool_started(model, &tool_call_id, &rule, summary.as_deref(), now);
        }
        EventKind::ToolOutputChunk { tool_call_id, text } => {
            if let Some(card) = model.transcript.card_mut(&tool_call_id) {
                card.printed(&text);
            }
        }
        EventKind::ToolCompleted {
            tool_call_id,
            tool_name,
            status,
            latency_ms,
            output_text,
            error,
            proposal,
            redactions,
            artifact_uris,
            ..
        } => {
            model.info.tool_uses.note(&tool_name, status, latency_ms);
            model.dialogs.forget_call(&tool_call_id, model.keys.last_text);
            tool_ended(model, &tool_call_id, now);
            let stopped = error.as_ref().is_some_and(|error| matches!(error.code, ErrorCode::Cancelled));
            let message = error.map(|error| text::clean(&error.message).into_owned()).unwrap_or_default();
            let state = match status {
                ToolStatus::Succeeded => CardState::Done { latency_ms },
                ToolStatus::Failed if stopped => CardState::Stopped { message },
                ToolStatus::Failed => CardState::Failed { latency_ms, message },
                ToolStatus::Denied => CardState::Denied { message },
            };
            if let Some(card) = model.transcript.card_mut(&tool_call_id) {
                card.ended(state, &output_text, proposal.as_ref());
                card.hid(&redactions);
                card.keeps_whole = !artifact_uris.is_empty();
            }
        }
        EventKind::StepLimitApproaching { step_count, max_steps } => {
            note(model, &format!("step {step_count} of at most {max_steps}"), Tone::Warning);
        }
        EventKind::SandboxInForce { words, missing, .. } => {
            model.info.header.sandbox = words;
            if let Some(missing) = missing {
                note(model, &missing, Tone::Warning);
            }
        }
        EventKind::PreviewStarted { approval_id, tool_call_id } => {
            if let Some(asked) = approval_id {
                model.dialogs.forget_approval(&asked, model.keys.last_text);
            }
            preview_started(model, &tool_call_id, now);
        }
        EventKind::CommandsRunning { commands } => super::commands::changed(model, commands),
        EventKind::ServersChanged { servers } => servers::changed(model, servers),
        EventKind::ArtifactsListed { artifacts } => artifacts::listed(model, artifacts),
        EventKind::ProposedShown { approval_id, file, text } => super::amend::proposed(model, &approval_id, file, &text, now),
        EventKind::ArtifactRead { artifact, text } => model.overlays.reading = Some(TextViewer::new(&artifact, &text)),
        EventKind::Rewound(done) => rewind::done(model, done, false, now),
        EventKind::RewindPointsListed { points, can_redo } => rewind::listed(model, points, can_redo, now),
        EventKind::RewindPlanned(plan) => rewind::planned(model, plan),
        EventKind::ChangedFiles(changed) => super::changes::told(model, changed),
        EventKind::PolicyExpired { message } => note(model, &message, Tone::Failure),
        EventKind::TaskCompleted { cost_usd, text, .. } => {
            ended(model, now);
            if !text.is_empty() {
                model.info.last_answer = Some(text);
            }
            // Some requests did not report it.
            if model.task.cost_usd.is_none() {
                model.info.tally.spend(cost_usd);
                model.task.cost_usd = cost_usd;
            }
        }
        EventKind::TaskFailed { failure, .. } => {
            ended(model, now);
            failures::failed(model, &failure);
        }
        EventKind::TaskCancelled { .. } => {
            ended(model, now);
            note(model, "interrupted", Tone::Plain);
        }
        EventKind::SessionPaused { failure } => {
            ended(model, now);
            failures::paused(model, &failure, now);
        }
        EventKind::SavingChanged { saved, message } => {
            save_errors::changed(model, saved);
            note(model, &message, if saved { Tone::Plain } else { Tone::Warning });
        }
        EventKind::Notice { message } => {
            compaction::noticed(model, &message, now);
            rewind::noticed(model);
            note(model, &with_commands(message), Tone::Plain);
        }
        // Live ones are shown by `apply`; in a replay they add nothing.
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

fn task_started(model: &mut Model, prompt: &str, now: u64) {
    model.toast = None;
    queue::on_delivered(model, prompt, now);
    model.task.paused = None;
    model.transcript.push(Kind::User(text::clean(prompt).into_owned()));
    model.task.usage = Usage::default();
    model.task.cost_usd = None;
    model.task.is_estimated = false;
    model.task.step = 0;
    model.task.goes_on = true;
    model.set_activity(Activity::Thinking, now);
    repeat_how_to_quit(model, now);
}

/// Adds the command that undoes or stops it to notices about saved rules and summaries.
fn with_commands(message: String) -> String {
    if message.starts_with("rule saved: ") || message.starts_with("allowed until aye quits: ") {
        format!("{message} — /policy undo removes it")
    } else if message.starts_with("compaction is ") {
        format!("{message} (esc to stop)")
    } else {
        message
    }
}

/// Removes an approval that nobody answered; it counts as denied.
fn timed_out(model: &mut Model, approval: &ApprovalId, call: &CallId, now: u64) {
    model.dialogs.forget_approval(approval, model.keys.last_text);
    let what = model.transcript.card_mut(call).map_or_else(|| "an approval".to_owned(), |card| card.summary().to_owned());
    set_card(model, call, CardState::Requested);
    model.restart_activity_timer(now);
    note(model, &format!("denied because nobody answered in time: {what}"), Tone::Warning);
}

/// Restores text from before, or queued messages that were not sent, below the current draft.
pub fn draft_restored(model: &mut Model, text: &str, now: u64) {
    model.task.waiting.clear();
    let before = model.composer.text();
    let restored = text::clean(text);
    if before.trim().is_empty() {
        model.composer.set(&restored);
    } else {
        model.composer.set(&format!("{}\n\n{restored}", before.trim_end()));
    }
    draft_changed(model, now);
}

/// Returns the file that a call is about.
fn path_in(arguments: &Arguments) -> Option<String> {
    let Arguments::Object(fields) = arguments else { return None };
    let named = ["path", "file_path"].into_iter().find_map(|name| fields.get(name)?.as_str());
    named.map(|path| text::clean(path).into_owned())
}

fn set_card(model: &mut Model, id: &CallId, state: CardState) {
    if let Some(card) = model.transcript.card_mut(id) {
        card.state = state;
    }
}

/// Marks the call as waiting, with the user's changes so far.
pub fn asked(model: &mut Model, approval: &Approval) {
    set_card(model, &approval.tool_call_id, CardState::Waiting);
    if let Some(card) = model.transcript.card_mut(&approval.tool_call_id)
        && card.is_command()
    {
        card.edited(Some(approval.action_summary.as_str()).filter(|_| approval.amendable.edited));
    }
}

fn tool_started(model: &mut Model, id: &CallId, rule: &str, summary: Option<&str>, now: u64) {
    model.task.paused = None;
    let held = text::clean(&model.info.header.sandbox).into_owned();
    let Some(card) = model.transcript.card_mut(id) else { return };
    card.started(rule, now);
    if summary.is_some() {
        card.edited(summary);
    }
    card.held = held;
    let call = (id.clone(), card.summary().to_owned());
    runs(model, call, now);
}

/// Shows that the command runs in a preview, which cannot move to the background.
fn preview_started(model: &mut Model, id: &CallId, now: u64) {
    model.task.paused = None;
    let Some(card) = model.transcript.card_mut(id) else { return };
    card.started("preview in a copy; nothing is applied until you approve", now);
    card.is_preview = true;
    let summary = card.summary();
    let words = format!("Previewing {}", summary.strip_prefix("$ ").unwrap_or(summary));
    runs(model, (id.clone(), words), now);
}

fn ended(model: &mut Model, now: u64) {
    streaming::end(model);
    model.task.goes_on = false;
    model.task.summing_up = None;
    model.set_activity(Activity::Idle, now);
    outdate_said(model, now);
    repeat_how_to_quit(model, now);
}

/// Removes a notice about a task that has ended. A notice that has just appeared, such as the response to a key, stays
/// until it can be read.
fn outdate_said(model: &mut Model, now: u64) {
    if let Some((_, until)) = &mut model.toast {
        *until = (*until).min((*until + READ_MS).saturating_sub(TOAST_MS));
    }
    model.toast.take_if(|(_, until)| *until <= now);
}
