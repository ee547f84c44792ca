//! Keys and choices in dialogs for MCP server input requests and for questions from the model.

use super::notes::note;
use crate::protocol::{Elicitation, ElicitationAnswer, ElicitationOutcome, HostCommand, QUESTION_ANSWER};
use crate::text;
use crate::tui::approval::{Dialog, refresh_form};
use crate::tui::clipboard::Clip;
use crate::tui::composer::TextField;
use crate::tui::elicitation::{ElicitationForm, EnterResult, FormAction, FormEntry};
use crate::tui::input::is_text;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::NoteTone;
use crate::tui::typeahead_guard::MACHINE_MS;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

pub(crate) fn on_requested(model: &mut UiModel, elicitation: Elicitation, now: u64) {
    let focus = model.may_take_focus(now);
    model.dialogs.add(Box::new(ElicitationForm::new(elicitation)).panel(), focus, model.keys.last_text);
}

/// Removes the dialog of a request that was answered, here or elsewhere, or was withdrawn. If it was withdrawn, adds a
/// note.
pub(crate) fn on_ended(model: &mut UiModel, id: &str, outcome: ElicitationOutcome) {
    let is_it = |panel: &Dialog| panel.kind.find::<ElicitationForm>().is_some_and(|form| form.id == id);
    let form = model.dialogs.iter().find_map(|panel| panel.kind.find::<ElicitationForm>().filter(|form| form.id == id));
    let Some(who) = form.map(ElicitationForm::asker) else { return };
    model.dialogs.forget(is_it, model.keys.last_text);
    if outcome == ElicitationOutcome::Withdrawn {
        note(model, &format!("{who} no longer needs an answer: the call has ended"), NoteTone::Plain);
    }
}

/// Returns the request whose dialog has keyboard focus, if any.
fn open(model: &mut UiModel) -> Option<&mut ElicitationForm> {
    model.dialogs.open_mut()?.kind.find_mut()
}

pub(crate) fn on_picked(model: &mut UiModel, pick: FormAction, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(asking) = open(model) else { return };
    match pick {
        FormAction::Send => {
            let answer = asking.answer();
            if let Some(answer) = answer {
                send(model, answer, now, effects);
            }
        }
        FormAction::Pick(at) => {
            if let Some(answer) = asking.option_answer(at) {
                send(model, answer, now, effects);
            }
        }
        FormAction::Decline => send(model, ElicitationAnswer::Decline, now, effects),
        FormAction::Dismiss => send(model, ElicitationAnswer::Cancel, now, effects),
        FormAction::Copy => {
            // A line break in the URL would act as Enter where the URL is pasted.
            let plain = |url: &str| url.chars().filter(|one| !one.is_control() && !one.is_whitespace()).collect();
            let clip = |url| Clip { text: plain(url), what: "the URL".to_owned() };
            effects.extend(asking.address().map(clip).map(UiEffect::Copy));
        }
        FormAction::Fill => {
            asking.fill();
            show(model);
        }
    }
}

fn send(model: &mut UiModel, answer: ElicitationAnswer, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(asking) = open(model) else { return };
    let (elicitation_id, who) = (asking.id.clone(), asking.asker());
    let words = match &answer {
        ElicitationAnswer::Accept { content } if asking.is_of_model() => {
            let answer = content.get(QUESTION_ANSWER).and_then(|answer| answer.as_str()).unwrap_or_default();
            format!("answered: {}", text::reveal_line(answer))
        }
        ElicitationAnswer::Accept { .. } => format!("answer sent to {who}"),
        ElicitationAnswer::Decline if asking.is_of_model() => "declined to answer".to_owned(),
        ElicitationAnswer::Decline => format!("declined the request from {who}"),
        ElicitationAnswer::Cancel => format!("dismissed the request from {who}"),
    };
    if let Some(panel) = model.dialogs.open_mut() {
        panel.words = None;
    }
    model.dialogs.finish_current(None);
    model.keys.on_answer(now);
    note(model, &words, NoteTone::Plain);
    effects.push(UiEffect::SendToHost(HostCommand::AnswerElicitation { elicitation_id, answer }));
}

/// Handles Escape by declining the model's question. Returns `false` if no such question has focus, or if it has not
/// been on the screen long enough to be read.
pub(crate) fn escapes(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let is_read = model.dialogs.open().is_some_and(|panel| panel.guard.is_armed(now));
    if !is_read || !open(model).is_some_and(|asking| asking.is_of_model()) {
        return false;
    }
    send(model, ElicitationAnswer::Decline, now, effects);
    true
}

/// Opens the line field for the current form field.
fn show(model: &mut UiModel) {
    let Some(panel) = model.dialogs.open_mut() else { return };
    if let Some(asking) = panel.kind.find::<ElicitationForm>() {
        panel.words = asking.field();
    }
    refresh_form(panel);
}

/// Handles a key while the user is filling in a form. Returns `false` if no form is being filled in.
pub(crate) fn key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    if !open(model).is_some_and(|asking| asking.is_filling()) {
        return false;
    }
    let Some(panel) = model.dialogs.open_mut() else { return false };
    let is_settled = panel.guard.is_settled(now);
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let page = panel.view.shown.max(1).cast_signed();
    let Some(asking) = panel.kind.find_mut::<ElicitationForm>() else { return false };
    let is_typed = asking.entry().is_some_and(|(_, entry)| entry.is_typed());
    match key.code {
        // A line break that is part of pasted text, or typed just before the screen changed, submits nothing.
        KeyCode::Enter if key.kind == KeyEventKind::Repeat || !is_settled => return true,
        KeyCode::Enter if model.keys.last_text.is_some_and(|at| now.saturating_sub(at) < MACHINE_MS) => return true,
        KeyCode::Enter => {
            if let EnterResult::Whole(answer) = asking.on_enter() {
                send(model, answer, now, effects);
                return true;
            }
        }
        KeyCode::Esc => {
            asking.leave();
            panel.words = None;
            refresh_form(panel);
            // The choices take effect once they are on the screen again.
            model.dialogs.arm_again(Some(now));
            return true;
        }
        KeyCode::Char('c') if ctrl => {
            model.dialogs.dismiss();
            return true;
        }
        KeyCode::Char('z') if ctrl => {
            effects.push(UiEffect::Suspend);
            return true;
        }
        KeyCode::Tab | KeyCode::Down => asking.turn(true),
        KeyCode::BackTab | KeyCode::Up => asking.turn(false),
        KeyCode::PageUp => {
            panel.scroll_by(-page);
            return true;
        }
        KeyCode::PageDown => {
            panel.scroll_by(page);
            return true;
        }
        _ if is_typed => {
            let Some(field) = &mut panel.words else { return true };
            edit(field, asking.entry_mut(), key);
            refresh_form(panel);
            return true;
        }
        code => {
            let Some(entry) = asking.entry_mut() else { return true };
            match (code, is_text(&key)) {
                (KeyCode::Left, _) => entry.step(false),
                (KeyCode::Right, _) => entry.step(true),
                (_, Some(' ')) => entry.flip(),
                _ => {}
            }
        }
    }
    show(model);
    true
}

/// Handles a key in the line field and updates the form field's value.
fn edit(field: &mut TextField, entry: Option<&mut FormEntry>, key: KeyEvent) {
    if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('u') {
        *field = TextField::new();
    } else {
        field.key(key);
    }
    if let Some(entry) = entry {
        entry.set_text(&field.text());
    }
}

/// Handles pasted text. Returns `false` if no form is being filled in.
pub(crate) fn on_paste(model: &mut UiModel, words: &str) -> bool {
    if !open(model).is_some_and(|asking| asking.is_filling()) {
        return false;
    }
    let Some(panel) = model.dialogs.open_mut() else { return false };
    let Some(asking) = panel.kind.find_mut::<ElicitationForm>() else { return false };
    if let (Some(entry), Some(field)) = (asking.entry_mut().filter(|entry| entry.is_typed()), &mut panel.words) {
        field.insert(words);
        entry.set_text(&field.text());
    }
    refresh_form(panel);
    true
}

/// Returns whether a form is being filled in.
pub(crate) fn is_filling(model: &UiModel) -> bool {
    let form = model.dialogs.open().and_then(|panel| panel.kind.find::<ElicitationForm>());
    form.is_some_and(ElicitationForm::is_filling)
}

/// Sets the current form field from a line of text, or returns to the choices if `line` is `None`. Fails with a message
/// if the line is not a valid value for the field.
pub(crate) fn fill_line(model: &mut UiModel, line: Option<&str>) -> Result<(), String> {
    let Some(panel) = model.dialogs.open_mut() else { return Ok(()) };
    let Some(asking) = panel.kind.find_mut::<ElicitationForm>() else { return Ok(()) };
    match line {
        Some(line) => asking.take_line(line)?,
        None => asking.leave(),
    }
    panel.words = asking.field();
    refresh_form(panel);
    Ok(())
}
