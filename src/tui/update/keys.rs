//! Key handling while the composer has keyboard focus.

use super::draft::{on_draft_changed, take_draft};
use super::quit::{ask_to_quit, leave};
use super::readiness::{is_ready, refuse, wait_for_session};
use super::{browse, editor, history_page, inbox, menu_keys, models, palette, queue, retry, save_errors, search, slash};
use crate::protocol::Command;
use crate::tui::input::is_text;
use crate::tui::interface::ModelAccess;
use crate::tui::keymap::Focus;
use crate::tui::model::{Activity, UiEffect, UiModel};
use crate::tui::slash::typed_command;
use crate::tui::task::KILL_MS;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Window, in milliseconds, within which a second Enter opens the input for the missing API key.
const NO_KEY_MS: u64 = 6000;

pub(crate) fn key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) {
    let before = model.keys.last_key.replace(now);
    let escaped = std::mem::replace(&mut model.keys.escaped, key.code == KeyCode::Esc && model.composer.is_empty());
    // The notice was about the previous key.
    model.toast = None;
    model.keys.retry_at = None;
    model.keys.saving_at = None;
    if let Some(letter) = is_text(&key) {
        retry::on_char(model, letter, model.keys.last_text, now);
        save_errors::on_char(model, letter, model.keys.last_text, now);
        model.keys.last_text = Some(now);
    }
    if search::key(model, key, now) {
        return;
    }
    if menu_keys::key(model, key, now, effects) {
        return;
    }
    if super::dialog::consume_echo(model, is_text(&key), now) {
        return;
    }
    if super::dialog::handle_return_key(model, &key, now, effects) {
        return;
    }
    if let Some(edited) = model.composer.vim_key(key) {
        if edited {
            on_draft_changed(model, now);
        }
        return;
    }
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let new_line = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
    match key.code {
        KeyCode::Enter if new_line => new_line_in_draft(model, now),
        KeyCode::Char('j') if ctrl => new_line_in_draft(model, now),
        KeyCode::Enter => on_enter(model, ctrl, now, effects),
        KeyCode::Esc if !model.is_running() && model.reviews.running.is_some() => {
            super::review::stop(model, effects);
        }
        KeyCode::Esc if !model.is_running() => super::rewind::escape(model, before, now, effects),
        KeyCode::Esc => escape(model, now, effects),
        KeyCode::BackTab => super::policy::cycle_mode(model, now, effects),
        KeyCode::Tab => review(model),
        KeyCode::Char('c') if ctrl => interrupt(model, now, effects),
        KeyCode::Char('d') if ctrl && model.composer.is_empty() && model.transcript.is_following() => leave(model, now, effects),
        KeyCode::Char('r') if ctrl => search::start(model),
        KeyCode::Char('z') if ctrl => effects.push(UiEffect::Suspend),
        KeyCode::Char('v') if ctrl => super::attachments::request_clipboard(model, now, effects),
        KeyCode::Char('b') if ctrl && super::commands::background(model, now, effects) => {}
        KeyCode::Char('t') if ctrl => browse::enter(model, now),
        KeyCode::Char('s') if ctrl => super::pointer::toggle_mouse_capture(model, now, effects),
        KeyCode::Up if escaped && model.composer.is_empty() && key.modifiers.is_empty() => browse::enter(model, now),
        KeyCode::Char('o') if ctrl => model.transcript.fold_all(),
        KeyCode::Char('l') if ctrl => models::open(model, now, effects),
        KeyCode::Char('q') if ctrl => inbox::open(model, now),
        KeyCode::Char('p') if ctrl => palette::open(model),
        KeyCode::Char('g') if ctrl => editor::open(model, effects),
        KeyCode::Up if key.modifiers.contains(KeyModifiers::ALT) => queue::take_back(model, None, now, effects),
        KeyCode::Char('?') if model.composer.is_empty() => super::help::open(model, "", now, effects),
        KeyCode::PageUp | KeyCode::PageDown | KeyCode::Home | KeyCode::End => scroll(model, key, now, effects),
        KeyCode::Char('u' | 'd') if ctrl && model.composer.is_empty() => scroll(model, key, now, effects),
        KeyCode::Char('u') if ctrl => {
            model.composer.delete_to_line_start();
            on_draft_changed(model, now);
        }
        KeyCode::Up if key.modifiers.is_empty() => edit_draft(model, now, |composer| composer.up()),
        KeyCode::Down if key.modifiers.is_empty() => edit_draft(model, now, |composer| composer.down()),
        _ => edit_with_key(model, key, now),
    }
}

fn edit_draft(model: &mut UiModel, now: u64, edit: impl FnOnce(&mut crate::tui::composer::Composer) -> bool) {
    if edit(&mut model.composer) {
        on_draft_changed(model, now);
    }
}

/// Passes a key to the draft. At the end of a draft, reports why the key that deletes the next character does not quit.
fn edit_with_key(model: &mut UiModel, key: KeyEvent, now: u64) {
    if model.composer.key(key) {
        return on_draft_changed(model, now);
    }
    if key.code != KeyCode::Char('d') || !key.modifiers.contains(KeyModifiers::CONTROL) {
        return;
    }
    let words =
        model.keymap.translate_keys(Focus::Composer, "the draft is not empty: press ctrl+c to clear it, then ctrl+d to quit");
    let words = words.into_owned();
    model.show_toast(words, now);
}

fn new_line_in_draft(model: &mut UiModel, now: u64) {
    model.composer.new_line();
    on_draft_changed(model, now);
}

/// Opens the current dialog, if any dialog is pending.
fn review(model: &mut UiModel) {
    if !model.dialogs.is_empty() && !model.is_too_small() {
        model.dialogs.open_current(model.keys.last_text);
    }
}

/// Handles Enter. If `steer` is set, the message is sent with the running task's next step instead of after the task.
pub(crate) fn on_enter(model: &mut UiModel, steer: bool, now: u64, effects: &mut Vec<UiEffect>) {
    if model.composer.take_backslash() {
        return new_line_in_draft(model, now);
    }
    let draft = model.composer.text();
    if draft.trim().is_empty() && models::replaces_key(model, now, effects) {
        return;
    }
    if draft.trim().is_empty() || model.servers.are_fresh(now) {
        return;
    }
    // A command runs only if its beginning is on the screen, not hidden in a paste.
    let shown = model.composer.shown_text();
    if let Some(typed) = typed_command(&draft).filter(|_| typed_command(&shown).is_some()) {
        return slash::run(model, typed, now, effects);
    }
    let command = super::user_shell::parse_command(&draft);
    if let Some((line, shared)) = command.filter(|_| super::user_shell::parse_command(&shown).is_some()) {
        let line = line.to_owned();
        return super::user_shell::run(model, line, shared, now, effects);
    }
    match &model.info.model_access {
        None if model.options.sets_up => {
            model.show_toast("no session here: tab to continue setup, `aye` to start a session", now);
        }
        None => {
            let text = take_draft(model, now, effects);
            wait_for_session(model, &text, now);
        }
        Some(ModelAccess::ReadOnly { .. }) => {
            is_ready(model, now);
        }
        Some(ModelAccess::NoKey { model: wanted, .. }) => {
            let again = model.keys.no_key_shown.is_some_and(|at| now.saturating_sub(at) <= NO_KEY_MS);
            if again {
                model.keys.no_key_shown = None;
                match wanted.clone() {
                    Some(name) => models::open_for_key(model, &name, now, effects),
                    None => models::open(model, now, effects),
                }
            } else {
                refuse(model, now);
            }
        }
        Some(ModelAccess::Ready) => {
            if super::attachments::withholds_draft(model, &draft, now) {
                return;
            }
            let steer = steer || queue::is_steering_draft(model);
            let text = take_draft(model, now, effects);
            queue::send(model, text, steer, effects);
        }
    }
}

/// Interrupts the task, whose command and calls then end within a short time. Pressing Escape again later kills those
/// that are still running.
fn escape(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if model.task.activity == Activity::Stopping {
        if now.saturating_sub(model.task.since) >= KILL_MS {
            effects.push(UiEffect::Send(Command::Kill));
        }
        return;
    }
    model.set_activity(Activity::Stopping, now);
    effects.push(UiEffect::Send(Command::Cancel));
}

fn interrupt(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if !model.composer.is_empty() {
        let _ = take_draft(model, now, effects);
        // The user probably types another message.
        model.keys.sent = None;
        return model.show_toast("draft cleared · up to restore", now);
    }
    if model.is_running() && model.task.activity != Activity::Stopping {
        return escape(model, now, effects);
    }
    if super::review::stop(model, effects) {
        return;
    }
    ask_to_quit(model, "ctrl+c", now, effects);
}

/// Scrolls the transcript. Home and End move the cursor within the draft instead, unless the draft is empty.
fn scroll(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) {
    if matches!(key.code, KeyCode::Home | KeyCode::End) && !model.composer.is_empty() {
        return edit_draft(model, now, |composer| composer.key(key));
    }
    let (transcript, look) = model.transcript_look(now);
    let page = transcript.page();
    match key.code {
        KeyCode::PageUp => transcript.scroll_up(page, look),
        KeyCode::PageDown => transcript.scroll_down(page, look),
        KeyCode::Char('u') => transcript.scroll_up(page / 2, look),
        KeyCode::Char('d') => transcript.scroll_down(page / 2, look),
        KeyCode::Home => transcript.scroll_to_start(),
        _ => transcript.follow_end(),
    }
    history_page::request_older(model, effects);
}
