//! Input and events for the first-run setup.

use super::notes::note_problem;
use crate::protocol::{Command, Mode, Query, SetupEvent, SetupInfo, SetupRequest};
use crate::text;
use crate::tui::approval::refresh_setup;
use crate::tui::input::is_text;
use crate::tui::interface::{ExitReason, ModelAccess, ThemeChoice};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::onboarding::{Onboarding, SetupAction, SetupChoice, SetupInput};
use crate::tui::theme::{self, Theme};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};
use crate::tui::typeahead_guard::MACHINE_MS;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

const AUTO: &str = "auto";

/// Requests the data for the setup dialog, which opens once the data arrives.
pub(crate) fn request_setup(effects: &mut Vec<UiEffect>) {
    effects.push(UiEffect::Ask(Query::Setup(SetupRequest::Look)));
}

/// Handles `/setup` by focusing the setup dialog. If it is not open, requests its data.
pub(crate) fn on_setup_command(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if state(model).is_some() {
        model.dialogs.focus_setup(Some(now));
        return;
    }
    model.startup.wants_setup = true;
    model.show_toast("looking for API keys and local model servers", now);
    request_setup(effects);
}

pub(crate) fn apply_answer(model: &mut UiModel, told: SetupEvent, now: u64, effects: &mut Vec<UiEffect>) {
    model.screen.dirty = true;
    match told {
        SetupEvent::Found(found) if state(model).is_none() => open(model, found, now),
        told if state(model).is_some() => feed(model, SetupInput::Told(told), now, effects),
        // The setup dialog is closed. Only the written files or the errors are reported.
        SetupEvent::Ended { lines, .. } | SetupEvent::Taken { lines, .. } => note(model, &lines, NoteTone::Plain),
        SetupEvent::Failed { problem } => note_problem(model, &problem, NoteTone::Failure),
        SetupEvent::Found(_) | SetupEvent::Tested { .. } => {}
    }
}

fn open(model: &mut UiModel, mut found: SetupInfo, now: u64) {
    let own = theme::list(model.options.themes.as_deref());
    let themes = [AUTO.to_owned()].into_iter().chain(Theme::names().map(str::to_owned)).chain(own).collect();
    let theme = match &model.options.theme {
        ThemeChoice::Auto => AUTO,
        ThemeChoice::Named(name) => name,
    };
    let asked = std::mem::take(&mut model.startup.wants_setup);
    if !asked && model.info.model_access == Some(ModelAccess::Ready) {
        // The session already has a model, for example from `-m`.
        found.model_now = Some(model.info.header.model.clone());
    }
    let setup = Onboarding::new(found, themes, theme);
    let panel = Box::new(setup).panel();
    if asked {
        model.toast = None;
    }
    let focus = model.may_take_focus(now) || asked && model.composer.is_empty();
    model.dialogs.add(panel, focus, model.keys.last_text);
}

fn state(model: &mut UiModel) -> Option<&mut Onboarding> {
    model.dialogs.setup()?.kind.find_mut()
}

/// Returns the setup state if the setup dialog has keyboard focus.
fn open_state(model: &mut UiModel) -> Option<&mut Onboarding> {
    model.dialogs.open_mut()?.kind.find_mut()
}

pub(crate) fn on_picked(model: &mut UiModel, pick: SetupChoice, now: u64, effects: &mut Vec<UiEffect>) {
    feed(model, SetupInput::Pick(pick), now, effects);
}

fn feed(model: &mut UiModel, input: SetupInput<'_>, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(setup) = state(model) else { return };
    for out in setup.step(input) {
        match out {
            SetupAction::Ask(asked) => effects.push(UiEffect::Ask(Query::Setup(asked))),
            SetupAction::Show => model.dialogs.show_setup(Some(now)),
            SetupAction::Words => {
                if let Some(panel) = model.dialogs.setup() {
                    refresh_setup(panel);
                }
            }
            SetupAction::Use { model: name, lines } => {
                note(model, &lines, NoteTone::Plain);
                uses(model, name, effects);
            }
            SetupAction::Theme(name) => {
                model.options.theme = if name == AUTO { ThemeChoice::Auto } else { ThemeChoice::Named(name) };
                model.choose_theme();
            }
            SetupAction::Notice(words) => model.show_toast(words, now),
            SetupAction::End { mode, lines } => end(model, mode, &lines, now, effects),
        }
    }
    model.screen.dirty = true;
}

/// Switches the session to the given model, unless it already uses that model or does not accept a change.
fn uses(model: &UiModel, name: String, effects: &mut Vec<UiEffect>) {
    let is_asked = model.info.model_access == Some(ModelAccess::Ready) && model.info.header.model == name;
    let only_read = matches!(model.info.model_access, Some(ModelAccess::ReadOnly { .. }));
    if !(is_asked || only_read || model.options.sets_up) {
        effects.push(UiEffect::Send(Command::SetModel { name }));
    }
}

fn end(model: &mut UiModel, mode: Option<Mode>, lines: &[String], now: u64, effects: &mut Vec<UiEffect>) {
    model.dialogs.forget(|panel| panel.kind.is::<Onboarding>(), Some(now));
    note(model, lines, NoteTone::Plain);
    if lines.is_empty() {
        model.show_toast("run /setup to see these settings again", now);
    }
    if model.options.sets_up {
        effects.push(UiEffect::Exit(ExitReason::Quit));
    } else if let Some(mode) = mode {
        model.startup.reloads_policy = true;
        effects.push(UiEffect::Send(Command::ReloadPolicy));
        if mode != model.info.header.mode {
            effects.push(UiEffect::Send(Command::SetMode { mode }));
        }
    }
}

fn note(model: &mut UiModel, lines: &[String], tone: NoteTone) {
    let text = text::clean(&lines.join("\n")).trim_end().to_owned();
    if !text.is_empty() {
        model.transcript.push(TranscriptEntryKind::Note { text, tone });
    }
}

/// Handles a key in the setup dialog, either as text for its line field or as a command. Returns whether the key was
/// handled.
pub(crate) fn key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let Some(setup) = open_state(model) else { return false };
    let (types, has_typed) = (setup.types(), setup.has_typed());
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let Some(panel) = model.dialogs.open() else { return false };
    let (is_settled, is_armed) = (panel.guard.is_settled(now), panel.guard.is_armed(now));
    let is_free = is_armed && !panel.guard.is_choice_pending();
    let repeats = key.kind == KeyEventKind::Repeat;
    let input = match key.code {
        // A page cannot be skipped before it is on the screen.
        KeyCode::Char('c') if ctrl && !is_armed => return true,
        KeyCode::Esc if !types && !is_armed => return true,
        KeyCode::Char('c') if ctrl => SetupInput::Leave,
        KeyCode::Char('z') if ctrl && types => {
            effects.push(UiEffect::Suspend);
            return true;
        }
        KeyCode::Esc => SetupInput::Escape,
        KeyCode::Left if types || is_free => SetupInput::Turn(-1),
        KeyCode::Right if types || is_free => SetupInput::Turn(1),
        // A line break that is part of pasted text, or typed just before the page changed, submits nothing.
        KeyCode::Enter if types => {
            let from_machine = model.keys.last_text.is_some_and(|at| now.saturating_sub(at) < MACHINE_MS);
            if repeats || from_machine || !is_settled || !(is_armed || has_typed) {
                return true;
            }
            SetupInput::Enter
        }
        KeyCode::Up if is_free && !types => SetupInput::Move(-1),
        KeyCode::Down if is_free && !types => SetupInput::Move(1),
        KeyCode::Up | KeyCode::Down if !types => return true,
        KeyCode::Backspace if types => SetupInput::Backspace,
        KeyCode::Char('u') if ctrl && types => SetupInput::Clear,
        _ if types => match is_text(&key) {
            Some(letter) => SetupInput::Letter(letter),
            None => return true,
        },
        _ => return false,
    };
    feed(model, input, now, effects);
    true
}

/// Handles pasted text. Returns whether the setup dialog accepted it.
pub(crate) fn on_paste(model: &mut UiModel, words: &str, now: u64) -> bool {
    if !open_state(model).is_some_and(|setup| setup.accepts_paste(words)) {
        return false;
    }
    feed(model, SetupInput::Pasted(words), now, &mut Vec::new());
    true
}
