//! Input for the topmost layer, and requests made by layers.

use super::{
    changes, findings, memory, models, overview, palette, queue, rewind, servers, sessions, slash, tasks, theme_command, tree,
};
use crate::protocol::{HostRequest, RewindTarget};
use crate::tui::interface::ExitReason;
use crate::tui::layers::{LayerRequest, Reaction, TextViewer};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::picker::ClickResult;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Outcome of passing a key to the topmost layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerOutcome {
    /// No layer is open.
    NoLayer,
    Handled,
    /// The topmost layer has closed, so the view below it must handle the key.
    Closed,
}

/// Passes a key to the topmost layer.
pub(super) fn key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) -> LayerOutcome {
    let around = model.surroundings();
    let waits = around.has_questions && !model.is_too_small();
    let Some(layer) = model.layers.top_mut() else { return LayerOutcome::NoLayer };
    let covers_questions = layer.covers_questions();
    model.keys.last_key = Some(now);
    model.toast = None;
    // Tab opens a pending dialog before the layer can use the key.
    if key.code == KeyCode::Tab && waits && !covers_questions {
        model.dialogs.open_current(model.keys.last_text);
        return LayerOutcome::Handled;
    }
    match layer.key(key, around) {
        Reaction::ClosePass => {
            close_top(model);
            return LayerOutcome::Closed;
        }
        Reaction::Pass if key.code == KeyCode::Char('z') && key.modifiers.contains(KeyModifiers::CONTROL) => {
            effects.push(UiEffect::Suspend);
        }
        reaction => perform(model, reaction, now, effects),
    }
    on_highlight_moved(model, now, effects);
    LayerOutcome::Handled
}

/// Passes pasted text to the topmost layer. Returns whether a layer accepted it.
pub(super) fn paste(model: &mut UiModel, text: &str, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let Some(layer) = model.layers.top_mut() else { return false };
    match layer.paste(text) {
        Reaction::Pass => return false,
        reaction => perform(model, reaction, now, effects),
    }
    true
}

/// Scrolls the topmost layer by `rows` rows. Returns `false` if no layer is open.
pub(super) fn wheel(model: &mut UiModel, rows: isize, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let Some(layer) = model.layers.top_mut() else { return false };
    layer.wheel(rows);
    on_highlight_moved(model, now, effects);
    true
}

/// Highlights the clicked row in the topmost layer. Returns `None` if there is no layer or its rows cannot be clicked.
pub(super) fn click(model: &mut UiModel, row: u16, now: u64, effects: &mut Vec<UiEffect>) -> Option<ClickResult> {
    let result = model.layers.top_mut()?.click(row)?;
    if result == ClickResult::Marked {
        on_highlight_moved(model, now, effects);
    }
    Some(result)
}

/// Closes the topmost layer. If it covered a dialog, rearms the dialog.
fn close_top(model: &mut UiModel) {
    if model.layers.covers_questions() {
        model.dialogs.arm_again(model.keys.last_text);
    }
    model.layers.close_top();
    model.screen.dirty = true;
}

/// Requests the data that the topmost layer needs for a newly highlighted row, if any.
pub(super) fn on_highlight_moved(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if let Some(request) = model.layers.top_mut().and_then(|layer| layer.on_highlight_moved()) {
        serve(model, request, now, effects);
    }
}

fn perform(model: &mut UiModel, reaction: Reaction, now: u64, effects: &mut Vec<UiEffect>) {
    match reaction {
        Reaction::Done | Reaction::Pass => {}
        Reaction::Close | Reaction::ClosePass => close_top(model),
        Reaction::Request(request) => serve(model, request, now, effects),
        Reaction::CloseWith(request) => {
            close_top(model);
            serve(model, request, now, effects);
        }
    }
}

/// Carries out a request made by a layer.
fn serve(model: &mut UiModel, request: LayerRequest, now: u64, effects: &mut Vec<UiEffect>) {
    match request {
        LayerRequest::ShowToast(words) => model.show_toast(words, now),
        LayerRequest::OpenText { title, text } => model.layers.push(TextViewer::with_title(&title, &text)),
        LayerRequest::ChooseCommand(name) => palette::run(model, &name, now, effects),
        LayerRequest::RunCommand(command) => run_command(model, &command, now, effects),
        LayerRequest::EditQueued(id) => queue::take_back(model, Some(id), now, effects),
        LayerRequest::OpenFinding(at) => findings::open(model, at),
        LayerRequest::DraftFix(at) => findings::draft_fix(model, at, now),
        LayerRequest::ReloadChanges => changes::request(model, now, effects),
        LayerRequest::UseModel { name, effort } => models::choose(model, name, effort, effects),
        LayerRequest::SaveKey { name, key } => models::save_key(model, name, key, now, effects),
        LayerRequest::OpenBranch(branch) => tree::open_branch(model, branch, now, effects),
        LayerRequest::ShowTheme(choice) => theme_command::show(model, choice),
        LayerRequest::RestoreTheme(choice) => theme_command::restore(model, choice),
        LayerRequest::UseTheme(name) => theme_command::choose(model, &name, now, effects),
        LayerRequest::ShowServer(name) => servers::show_details(model, &name),
        LayerRequest::ReconnectServer(name) => servers::reconnect(model, name, now, effects),
        LayerRequest::PlanRewind(task_id) => {
            rewind::plan(model, RewindTarget::Before { task_id, step_id: None }, now, effects);
        }
        LayerRequest::ForgetRewind => model.info.rewind.awaits = None,
        LayerRequest::RunTaskProgram(id, program) => tasks::run(model, &id, program, now, effects),
        LayerRequest::ResumeTask(id) => tasks::resume(model, id, now, effects),
        LayerRequest::StopTask(id) => tasks::stop(model, id, now, effects),
        LayerRequest::ShowProposal(id) => memory::show(model, &id),
        LayerRequest::ApplyProposal(id) => memory::apply_listed(model, &id, now, effects),
        LayerRequest::EditProposal(id) => memory::edit_listed(model, &id, effects),
        LayerRequest::MoveProposal(id) => memory::move_listed(model, &id, effects),
        LayerRequest::DropProposal(id) => memory::drop_listed(id, effects),
        LayerRequest::Quit => effects.push(UiEffect::Exit(ExitReason::Quit)),
        request => serve_session_list(model, request, now, effects),
    }
}

/// Runs a command on behalf of a row in the overview, preserving the draft.
fn run_command(model: &mut UiModel, command: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let draft = model.composer.text();
    model.composer.set(command);
    slash::run(model, command.trim_start_matches('/'), now, effects);
    model.composer.set(&draft);
    overview::refresh(model);
}

/// Carries out a request made by the session list.
fn serve_session_list(model: &mut UiModel, request: LayerRequest, now: u64, effects: &mut Vec<UiEffect>) {
    match request {
        LayerRequest::ListSessions => sessions::request_list(model, effects),
        // Line mode shows no preview.
        LayerRequest::PreviewSession(session_id) if !model.screen.in_lines => {
            sessions::query(effects, HostRequest::Session { session_id });
        }
        LayerRequest::OpenSession(id) => sessions::open_chosen(model, id, now, effects),
        LayerRequest::ForkSession(id) => sessions::fork_chosen(model, id, now, effects),
        LayerRequest::ShowConversation(session_id) => {
            model.show_toast("loading the conversation", now);
            sessions::query(effects, HostRequest::Transcript { session_id });
        }
        LayerRequest::ArchiveSession(session_id, archived) => {
            sessions::query(effects, HostRequest::Archive { session_id, archived });
        }
        LayerRequest::RenameSession(session_id, title) => {
            sessions::query(effects, HostRequest::Rename { session_id, title });
        }
        LayerRequest::AskToDelete(id, title) => sessions::ask_to_delete(model, id, &title),
        _ => {}
    }
}
