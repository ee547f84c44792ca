//! What changes when something happens: the model and a message in, effects out.

mod artifacts;
mod changes;
pub mod commands;
mod events;
mod greeting;
mod keys;
mod models;
mod panel;
mod policy;
pub mod queue;
pub mod retry;
mod search;
mod slash;
mod spending;
mod stats;
pub mod window;

#[cfg(test)]
mod tests;

pub use slash::{COMMANDS, candidates};

use super::approval::Panel;
use super::front::{Ended, ModelAccess, Start, ThemeChoice};
use super::guard::Stimulus;
use super::input::Input;
use super::model::{Activity, Effect, Model};
use super::transcript::{CardState, Kind, Tone};
use crate::protocol::{Command, Event};
use crate::text;
use ratatui::layout::Size;

/// The draft is saved this long after the last change.
const SAVE_DRAFT_MS: u64 = 300;
/// Rows a turn of the wheel moves.
const WHEEL_ROWS: usize = 3;

/// What happened.
#[derive(Debug)]
pub enum Msg {
    Input(Input),
    Event(Box<Event>),
    Start(Box<Start>),
    Resize(Size),
    Resumed,
    /// A deadline of the model has come.
    Time,
    /// The process is to end.
    Signal(i32),
    /// Loading failed; whoever loads says why.
    NoStart,
    /// No event will come any more.
    SessionGone,
}

/// Applies one message; times are milliseconds since the start.
pub fn update(model: &mut Model, msg: Msg, now: u64) -> Vec<Effect> {
    let mut effects = Vec::new();
    match msg {
        Msg::Input(input) => on_input(model, input, now, &mut effects),
        Msg::Event(event) => {
            model.dirty = true;
            events::apply(model, *event, now);
        }
        Msg::Start(start) => on_start(model, *start, now, &mut effects),
        Msg::Resize(size) => {
            model.size = size;
            model.dirty = true;
            // What cannot be read cannot be answered.
            if model.is_too_small() {
                model.panels.close();
            }
            unsettled(model, now, &mut effects);
        }
        Msg::Resumed => {
            model.dirty = true;
            unsettled(model, now, &mut effects);
        }
        Msg::Time => on_time(model, now, &mut effects),
        Msg::Signal(number) => {
            save_draft(model, &mut effects);
            effects.push(Effect::Send(Command::Quit));
            effects.push(Effect::Exit(Ended::Signal(number)));
        }
        Msg::NoStart => effects.push(Effect::Exit(Ended::Closed)),
        Msg::SessionGone => {
            model.dirty = true;
            let text = "the session has ended; what was said until now is saved. ctrl+d leaves".to_owned();
            model.transcript.push(Kind::Note { text, tone: Tone::Failure });
            model.set_activity(Activity::Idle, now);
        }
    }
    effects
}

fn on_input(model: &mut Model, input: Input, now: u64, effects: &mut Vec<Effect>) {
    match input {
        Input::Key(key) => {
            model.dirty = true;
            if model.panels.is_open() {
                panel::key(model, key, now, effects);
            } else if !models::key(model, key, now, effects) && !changes::key(model, key, now, effects) {
                keys::key(model, key, now, effects);
            }
        }
        Input::Paste(pasted) => {
            model.dirty = true;
            match &mut model.picker {
                Some(picker) if !model.panels.is_open() => picker.picker.insert(&text::clean(&pasted)),
                _ => panel::paste(model, &text::clean(&pasted), now),
            }
        }
        Input::Wheel { up } => {
            model.dirty = true;
            if let Some(panel) = model.panels.open_mut() {
                return panel.scroll_by(if up { -WHEEL_ROWS.cast_signed() } else { WHEEL_ROWS.cast_signed() });
            }
            if let Some(picker) = &mut model.picker {
                return picker.picker.scroll_by(if up { -1 } else { 1 });
            }
            if let Some(reading) = &mut model.reading {
                reading.top = if up { reading.top.saturating_sub(WHEEL_ROWS) } else { reading.top + WHEEL_ROWS };
                return;
            }
            if let Some(changes) = &mut model.changes {
                return changes.scroll_by(if up { -WHEEL_ROWS.cast_signed() } else { WHEEL_ROWS.cast_signed() });
            }
            let (transcript, look) = model.transcript_look(now);
            if up {
                transcript.scroll_up(WHEEL_ROWS, look);
            } else {
                transcript.scroll_down(WHEEL_ROWS, look);
            }
        }
        Input::FocusIn => unsettled(model, now, effects),
        Input::FocusOut => {}
        Input::Fence => {
            model.dirty = true;
            if model.panels.fence_answered() {
                panel::stimulus(model, Stimulus::Fence, now, effects);
            }
        }
        Input::Background(red, green, blue) => {
            model.ground = Some((red, green, blue));
            if model.options.theme == ThemeChoice::Auto {
                model.choose_theme();
            }
        }
        Input::KittyKeyboard => {
            if !std::mem::replace(&mut model.keys.kitty, true) {
                effects.push(Effect::PushKitty);
            }
        }
        Input::Closed => effects.push(Effect::Exit(Ended::Closed)),
    }
}

fn on_start(model: &mut Model, start: Start, now: u64, effects: &mut Vec<Effect>) {
    model.dirty = true;
    model.header = start.header;
    let resumed = !start.history.is_empty();
    model.transcript.push(Kind::Greeting(greeting::lines(model, &start.model_access, resumed)));
    for event in start.history {
        events::replay(model, event, now);
    }
    if resumed {
        after_replay(model);
    }
    if let ModelAccess::NoKey { message } = &start.model_access {
        let words = format!("{}\nthen start aye again; until then nothing is sent", text::clean(message).trim_end());
        model.transcript.push(Kind::Note { text: words, tone: Tone::Warning });
    }
    let ready = start.model_access == ModelAccess::Ready;
    model.access = Some(start.model_access);
    if ready {
        // What may still be spent stands in the status row.
        effects.push(Effect::Send(Command::ShowBudget));
    }
    if let Some(trust) = start.trust {
        let focus = model.may_take_focus(now);
        model.panels.add(Panel::trust(trust), focus, model.keys.last_text);
    }
    if let Some(prompt) = model.waiting_prompt.take() {
        if ready {
            queue::send(model, prompt, false, effects);
        } else if model.composer.is_empty() {
            model.composer.set(&prompt);
        }
    }
}

/// What a killed process left open is said, not taken up.
fn after_replay(model: &mut Model) {
    for card in model.transcript.cards_mut() {
        if card.is_running() {
            card.state = CardState::Unknown;
        }
    }
    if model.is_running() {
        model.set_activity(Activity::Idle, 0);
        model.task.paused = Some("aye ended in the middle of this task");
    }
    model.task.waiting.clear();
    model.task.goes_on = false;
    model.task.summing_up = None;
    events::end_streaming(model);
}

fn unsettled(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    if model.panels.is_open() {
        panel::stimulus(model, Stimulus::Unsettled, now, effects);
    }
}

fn on_time(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    model.dirty = true;
    if model.said.as_ref().is_some_and(|(_, until)| now >= *until) {
        model.said = None;
    }
    if model.panels.open().is_some_and(|panel| panel.words.is_none()) {
        panel::stimulus(model, Stimulus::Time, now, effects);
    }
    if model.panels.waits_for_idle() && model.may_take_focus(now) {
        model.panels.open_current(model.keys.last_text);
    }
    retry::due(model, now, effects);
    if model.save_draft_at.is_some_and(|at| now >= at) {
        save_draft(model, effects);
    }
}

fn draft_changed(model: &mut Model, now: u64) {
    if model.composer.is_empty() {
        model.task.taken_back.clear();
    }
    model.save_draft_at = Some(now + SAVE_DRAFT_MS);
}

fn save_draft(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.save_draft_at.take().is_some() {
        effects.push(Effect::Send(Command::SaveDraft { text: model.composer.text() }));
    }
}

fn quit(model: &mut Model, effects: &mut Vec<Effect>) {
    save_draft(model, effects);
    effects.push(Effect::Send(Command::Quit));
    effects.push(Effect::Exit(Ended::Quit));
}
