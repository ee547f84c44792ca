//! Dialog that asks for a model's price when a dollar budget requires it.

use super::dialog_text::to_draft;
use crate::protocol::{BudgetUnit, Command};
use crate::tui::approval::{Dialog, PriceForm, refresh_price};
use crate::tui::composer::TextField;
use crate::tui::format::amount;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::typeahead_guard::{MACHINE_MS, may_take_focus};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Opens the dialog that asks for the current model's price. In line mode, the failure message names the command to use
/// instead.
pub(crate) fn ask(model: &mut UiModel, now: u64) {
    forget(model);
    if model.screen.in_lines {
        return;
    }
    let budgets = model.info.tally.budgets.iter();
    let budget =
        budgets.filter(|budget| budget.unit == BudgetUnit::CostUsd).map(|budget| amount(budget.unit, budget.limit)).next();
    let panel = PriceForm::new(&model.info.header.model, model.info.facts.as_ref(), budget).panel();
    // The form accepts any text, so it gets focus only after a pause in typing, even after an answer or a sent prompt.
    let is_idle = may_take_focus(model.composer.is_empty(), model.keys.last_key, now);
    let focus = model.has_room_for_question() && is_idle;
    model.dialogs.add(panel, focus, model.keys.last_text);
}

/// Removes the dialog unless a paused task is waiting for the price of the current model.
pub(crate) fn refresh(model: &mut UiModel) {
    let waits = model.task.paused.as_ref().is_some_and(|paused| paused.wants_price);
    let name = &model.info.header.model;
    let is_current = |panel: &Dialog| panel.kind.find::<PriceForm>().is_some_and(|form| form.model == *name);
    let is_open = model.dialogs.iter().any(|panel| panel.kind.is::<PriceForm>());
    if is_open && !(waits && model.dialogs.iter().any(is_current)) {
        forget(model);
    }
}

pub(crate) fn forget(model: &mut UiModel) {
    model.dialogs.forget(|panel| panel.kind.is::<PriceForm>(), model.keys.last_text);
}

/// Returns the price form and its line field if the dialog has keyboard focus.
fn open(model: &mut UiModel) -> Option<(&mut PriceForm, &mut Option<TextField>)> {
    let panel = model.dialogs.open_mut()?;
    Some((panel.kind.find_mut()?, &mut panel.words))
}

/// Handles a key in the dialog. Returns `false` if the dialog does not have keyboard focus.
pub(crate) fn key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    if open(model).is_none() {
        return false;
    }
    let is_settled = model.dialogs.open().is_some_and(|panel| panel.guard.is_settled(now));
    let from_machine = model.keys.last_text.is_some_and(|at| now.saturating_sub(at) < MACHINE_MS);
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        // A line break that is part of pasted text, or typed just before the screen changed, submits nothing.
        KeyCode::Enter if key.kind == KeyEventKind::Repeat || !is_settled || from_machine => {}
        KeyCode::Enter => on_enter(model, now, effects),
        KeyCode::Esc => leave(model, now),
        KeyCode::Char('c') if ctrl => model.dialogs.dismiss(),
        KeyCode::Char('z') if ctrl => effects.push(UiEffect::Suspend),
        KeyCode::PageUp | KeyCode::PageDown => {
            if let Some(panel) = model.dialogs.open_mut() {
                let page = panel.view.shown.max(1).cast_signed();
                panel.scroll_by(if key.code == KeyCode::PageDown { page } else { -page });
            }
        }
        KeyCode::Tab => model.dialogs.cycle(true, model.keys.last_text),
        KeyCode::BackTab => model.dialogs.cycle(false, model.keys.last_text),
        code => {
            let Some((_, Some(field))) = open(model) else { return true };
            if ctrl && code == KeyCode::Char('u') {
                *field = TextField::new();
            } else {
                field.key(key);
            }
        }
    }
    true
}

/// Closes the dialog. Input that contains letters was not meant as a price, so it is moved to the draft.
fn leave(model: &mut UiModel, now: u64) {
    let input = open(model).and_then(|(_, field)| field.as_ref().map(TextField::text)).unwrap_or_default();
    model.dialogs.dismiss();
    if input.contains(char::is_alphabetic) {
        to_draft(model, &input, now);
    }
}

fn on_enter(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    let Some((form, field)) = open(model) else { return };
    let input = field.as_ref().map(TextField::text).unwrap_or_default();
    if let Some(price) = form.read(&input) {
        model.dialogs.finish_current(None);
        model.keys.on_answer(now);
        return effects.push(UiEffect::Send(Command::AssumePrice { price }));
    }
    if let Some(panel) = model.dialogs.open_mut() {
        refresh_price(panel);
        panel.scroll_by(isize::MIN);
    }
}

/// Handles pasted text. Returns `false` if the dialog does not have keyboard focus.
pub(crate) fn on_paste(model: &mut UiModel, words: &str) -> bool {
    let Some((_, field)) = open(model) else { return false };
    if let Some(field) = field {
        field.insert(words);
    }
    true
}
