//! Events about tool calls, their approvals, and commands run by the user.

use super::activity::{add_running_call, remove_running_call};
use super::notes::note;
use super::task_events::on_ended;
use super::{dialog, streaming, user_shell};
use crate::protocol::{Approval, ApprovalId, CallArguments, CallId, ErrorCode, EventKind, ToolStatus};
use crate::text;
use crate::tui::model::UiModel;
use crate::tui::transcript::{Card, CardState, NoteTone, ReadKind, TranscriptEntryKind, join_reads};

/// Applies a call event.
pub(crate) fn apply(model: &mut UiModel, kind: EventKind, now: u64) {
    match kind {
        EventKind::ToolRequested { tool_call_id, tool_name, arguments, summary, .. } => {
            streaming::complete_response(model);
            let reads = ReadKind::for_tool(&tool_name);
            let name = if summary.is_empty() { tool_name } else { summary };
            let mut card = Card::new(tool_call_id, &name);
            card.path = path_argument(&arguments);
            card.reads = reads;
            card.by_person = user_shell::mark(model, &card.id);
            model.transcript.push(TranscriptEntryKind::Card(card));
        }
        EventKind::ToolStarted { tool_call_id, rule, summary, effects, note } => {
            on_started(model, &tool_call_id, &rule, summary.as_deref(), now);
            if let Some(card) = model.transcript.card_mut(&tool_call_id) {
                card.add_unasked_changes(effects.as_deref(), note.as_deref());
            }
        }
        EventKind::PreviewStarted { approval_id, tool_call_id } => {
            let is_layer = approval_id.is_none();
            if let Some(asked) = approval_id {
                model.dialogs.forget_approval(&asked, model.keys.last_text);
            }
            on_preview_started(model, &tool_call_id, is_layer, now);
        }
        EventKind::ToolOutputChunk { tool_call_id, text } => {
            if let Some(card) = model.transcript.card_mut(&tool_call_id) {
                card.push_output(&text);
            }
        }
        EventKind::EffectsProgress { tool_call_id, progress } => {
            if let Some(card) = model.transcript.card_mut(&tool_call_id) {
                card.progress = Some(progress.summary());
            }
        }
        EventKind::ToolCompleted { .. } => on_completed(model, kind, now),
        EventKind::ApprovalResolved { approval_id, tool_call_id, decision, .. } => {
            dialog::on_approval_resolved(model, &approval_id, &decision);
            set_card(model, &tool_call_id, CardState::Requested);
            model.restart_activity_timer(now);
        }
        EventKind::ApprovalTimeout { approval_id, tool_call_id } => on_approval_timeout(model, &approval_id, &tool_call_id, now),
        EventKind::OwnCommandStarted { tool_call_id, line, shared, check } => {
            user_shell::on_started(model, tool_call_id, &line, (shared, check), now);
        }
        EventKind::OwnCommandEnded { shared, .. } => {
            on_ended(model, now);
            user_shell::on_ended(model, shared);
        }
        _ => {}
    }
}

fn on_completed(model: &mut UiModel, kind: EventKind, now: u64) {
    let EventKind::ToolCompleted {
        tool_call_id,
        tool_name,
        status,
        latency_ms,
        output_text,
        error,
        proposal,
        redactions,
        artifact_uris,
        ended,
        ..
    } = kind
    else {
        return;
    };
    model.info.tool_uses.note(&tool_name, status, latency_ms);
    model.dialogs.forget_call(&tool_call_id, model.keys.last_text);
    remove_running_call(model, &tool_call_id, now);
    let stopped = error.as_ref().is_some_and(|error| matches!(error.code, ErrorCode::Cancelled));
    let message = error.map(|error| text::clean(&error.message).into_owned()).unwrap_or_default();
    let state = match status {
        ToolStatus::Succeeded => CardState::Done { latency_ms },
        ToolStatus::Failed if stopped => CardState::Stopped { message },
        ToolStatus::Failed => CardState::Failed { latency_ms, message },
        // The message is written for the model.
        ToolStatus::Denied => {
            CardState::Denied { message: message.replacen("the user denied this call", "you denied this call", 1) }
        }
    };
    if let Some(card) = model.transcript.card_mut(&tool_call_id) {
        card.ended = ended;
        card.on_ended(state, &output_text, proposal.as_ref());
        card.add_redactions(&redactions);
        card.keeps_whole = !artifact_uris.is_empty();
    }
    join_reads(&mut model.transcript, &tool_call_id);
}

/// Shows that a crash interrupted a call and that its outcome is therefore unknown.
pub(crate) fn on_interrupted(model: &mut UiModel, id: &CallId, summary: &str) {
    if model.transcript.card_mut(id).is_none() {
        model.transcript.push(TranscriptEntryKind::Card(Card::new(id.clone(), summary)));
    }
    set_card(model, id, CardState::Unknown);
}

/// Marks a call as waiting for approval. If the user edited its command line, shows the edited one.
pub(crate) fn on_approval_requested(model: &mut UiModel, approval: &Approval) {
    set_card(model, &approval.tool_call_id, CardState::Waiting);
    if let Some(card) = model.transcript.card_mut(&approval.tool_call_id)
        && card.is_command()
    {
        card.set_edited(Some(approval.action_summary.as_str()).filter(|_| approval.amendable.edited));
        card.is_unsandboxed = approval.proposal.unsandboxed;
    }
}

fn on_started(model: &mut UiModel, id: &CallId, rule: &str, summary: Option<&str>, now: u64) {
    model.task.paused = None;
    let held = text::clean(&model.info.header.sandbox).into_owned();
    let Some(card) = model.transcript.card_mut(id) else { return };
    card.on_started(rule, now);
    if summary.is_some() {
        card.set_edited(summary);
    }
    card.held = held;
    let call = (id.clone(), card.summary().to_owned());
    add_running_call(model, call, now);
}

/// Shows that a command is running in a preview. A preview cannot move to the background, but a command for which
/// `is_layer` is set can be restarted there.
fn on_preview_started(model: &mut UiModel, id: &CallId, is_layer: bool, now: u64) {
    model.task.paused = None;
    let Some(card) = model.transcript.card_mut(id) else { return };
    let rule =
        if is_layer { "runs in a copy of the workspace" } else { "preview in a copy; nothing is applied until you approve" };
    card.on_started(rule, now);
    (card.is_preview, card.is_layer) = (true, is_layer);
    let summary = card.summary();
    let words =
        if is_layer { summary.to_owned() } else { format!("Previewing {}", summary.strip_prefix("$ ").unwrap_or(summary)) };
    add_running_call(model, (id.clone(), words), now);
}

/// Removes the prompt for an approval that timed out, and notes that the call was denied.
fn on_approval_timeout(model: &mut UiModel, approval: &ApprovalId, call: &CallId, now: u64) {
    model.dialogs.forget_approval(approval, model.keys.last_text);
    let what = model.transcript.card_mut(call).map_or_else(|| "an approval".to_owned(), |card| card.summary().to_owned());
    set_card(model, call, CardState::Requested);
    model.restart_activity_timer(now);
    note(model, &format!("denied because nobody answered in time: {what}"), NoteTone::Warning);
}

/// Returns the path among a call's arguments, if there is one.
fn path_argument(arguments: &CallArguments) -> Option<String> {
    let CallArguments::Object(fields) = arguments else { return None };
    let named = ["path", "file_path"].into_iter().find_map(|name| fields.get(name)?.as_str());
    named.map(|path| text::clean(path).into_owned())
}

fn set_card(model: &mut UiModel, id: &CallId, state: CardState) {
    if let Some(card) = model.transcript.card_mut(id) {
        card.state = state;
    }
}
