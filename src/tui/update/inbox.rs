//! Keys in the list of pending dialogs.

use super::dialog_text::to_draft;
use crate::protocol::Command;
use crate::tui::approval::{ChoiceAction, DialogAnswer, YES, describe_decision};
use crate::tui::input::is_text;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::typeahead_guard::{GuardInput, GuardResult};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

pub(crate) fn open(model: &mut UiModel, now: u64) {
    if model.dialogs.is_empty() {
        return model.show_toast("nothing is waiting for you", now);
    }
    if !model.is_too_small() {
        model.dialogs.open_inbox(model.keys.last_text);
    }
}

/// Handles a key while the list is open.
pub(crate) fn key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) {
    let Some((inbox, panels)) = model.dialogs.inbox_mut() else { return };
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    if let Some(letter) = is_text(&key) {
        let moves = letter.to_digit(10).filter(|digit| *digit > 0);
        if (letter == ' ' || moves.is_some()) && inbox.guard.mark(letter, now) {
            match moves {
                Some(digit) => inbox.point(digit as usize - 1, panels),
                None => inbox.turn_mark(panels),
            }
            return;
        }
        let repeats = key.kind == KeyEventKind::Repeat;
        return stimulus(model, if repeats { GuardInput::Repeat(letter) } else { GuardInput::Letter(letter) }, now, effects);
    }
    if key.code == KeyCode::Enter && key.modifiers.is_empty() {
        if key.kind != KeyEventKind::Repeat {
            on_enter(model, now, effects);
        }
        return;
    }
    inbox.guard.step(GuardInput::Other, now);
    let page = inbox.page();
    match key.code {
        KeyCode::Up => inbox.move_by(-1, panels),
        KeyCode::Down => inbox.move_by(1, panels),
        KeyCode::PageUp => inbox.move_by(-page, panels),
        KeyCode::PageDown => inbox.move_by(page, panels),
        KeyCode::Home => inbox.move_by(isize::MIN, panels),
        KeyCode::End => inbox.move_by(isize::MAX, panels),
        KeyCode::Esc => model.dialogs.dismiss(),
        KeyCode::Char('c' | 'q') if ctrl => model.dialogs.dismiss(),
        KeyCode::Char('z') if ctrl => effects.push(UiEffect::Suspend),
        KeyCode::Tab | KeyCode::BackTab => model.dialogs.open_current(model.keys.last_text),
        _ => {}
    }
}

/// Passes an input to the list's guard and carries out the result.
pub(crate) fn stimulus(model: &mut UiModel, stimulus: GuardInput, now: u64, effects: &mut Vec<UiEffect>) {
    let Some((inbox, _)) = model.dialogs.inbox_mut() else { return };
    match inbox.guard.step(stimulus, now) {
        GuardResult::Nothing | GuardResult::NoChoice(_) => {}
        GuardResult::Draft(text) => to_draft(model, &text, now),
        GuardResult::Decided(choice) => decide(model, choice == YES, now, effects),
    }
}

/// Confirms the highlighted choice or, if none is highlighted, opens the current dialog.
fn on_enter(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    let Some((inbox, _)) = model.dialogs.inbox_mut() else { return };
    if inbox.guard.is_choice_pending() {
        return stimulus(model, GuardInput::Enter, now, effects);
    }
    if !inbox.guard.is_armed(now) {
        return;
    }
    let shown = inbox.shown_dialog();
    if let Some(at) = shown.and_then(|number| model.dialogs.position(number)) {
        model.dialogs.focus(at, model.keys.last_text);
    }
}

/// Answers all selected dialogs and rearms the list for the remaining ones.
fn decide(model: &mut UiModel, yes: bool, now: u64, effects: &mut Vec<UiEffect>) {
    let Some((inbox, panels)) = model.dialogs.inbox_mut() else { return };
    let marked = inbox.selected_dialogs(panels);
    let act = if yes { ChoiceAction::Approve } else { ChoiceAction::Deny };
    let mut count = 0;
    for number in marked {
        if let Some(DialogAnswer::Decide(approval_id, decision)) = model.dialogs.answer(number, act) {
            effects.push(UiEffect::Send(Command::Decide { approval_id, decision }));
            count += 1;
        }
    }
    if count > 0 {
        model.keys.on_answer(now);
        model.dialogs.arm_inbox(None);
        model.restart_activity_timer(now);
        model.show_toast(describe_decision(count, yes), now);
    }
}
