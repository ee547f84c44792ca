//! Keys while a question has the keyboard.

use super::draft_changed;
use crate::protocol::Command;
use crate::tui::approval::{Act, Answer, REASONS};
use crate::tui::composer::Field;
use crate::tui::front::TrustAnswer;
use crate::tui::guard::{Outcome, Stimulus};
use crate::tui::input::Input;
use crate::tui::model::{Effect, Model};
use crate::tui::transcript::{Kind, Tone};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The character of a key that is text.
pub fn is_text(key: &KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => Some(c),
        _ => None,
    }
}

pub fn key(model: &mut Model, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) {
    if model.panels.open().is_some_and(|panel| panel.words.is_some()) {
        return words_key(model, key, now, effects);
    }
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    if let Some(letter) = is_text(&key) {
        return stimulus(model, Stimulus::Letter(letter), now, effects);
    }
    let navigation = match key.code {
        KeyCode::Enter if key.modifiers.is_empty() => Stimulus::Enter,
        KeyCode::Up => Stimulus::Up,
        KeyCode::Down => Stimulus::Down,
        _ => Stimulus::Other,
    };
    stimulus(model, navigation, now, effects);
    let Some(panel) = model.panels.open_mut() else { return };
    let page = panel.shown.max(1) as isize;
    match key.code {
        KeyCode::PageUp => panel.scroll_by(-page),
        KeyCode::PageDown => panel.scroll_by(page),
        KeyCode::Char('u') if ctrl => panel.scroll_by(-page / 2),
        KeyCode::Char('d') if ctrl => panel.scroll_by(page / 2),
        KeyCode::Char('f') if ctrl => panel.turn_height(),
        KeyCode::Home => panel.scroll_by(isize::MIN),
        KeyCode::End => panel.scroll_by(isize::MAX),
        KeyCode::Tab => model.panels.turn(true, model.keys.last_text),
        KeyCode::BackTab => model.panels.turn(false, model.keys.last_text),
        KeyCode::Esc if model.panels.close_always(Some(now)) => {}
        KeyCode::Esc => model.panels.put_off(),
        KeyCode::Char('c') if ctrl => model.panels.put_off(),
        KeyCode::Char('z') if ctrl => effects.push(Effect::Suspend),
        KeyCode::Char('o') if ctrl => model.transcript.fold_all(),
        _ => {}
    }
}

/// Feeds the guard and does what it says.
pub fn stimulus(model: &mut Model, stimulus: Stimulus, now: u64, effects: &mut Vec<Effect>) {
    let Some(panel) = model.panels.open_mut() else { return };
    match panel.step(stimulus, now) {
        Outcome::Nothing => {}
        Outcome::Draft(text) => to_draft(model, &text, now),
        Outcome::Decided(choice) => {
            decided(model, choice, now, effects);
            // A letter that came when time had already decided goes where the keyboard is now.
            if let Stimulus::Letter(letter) = stimulus {
                let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
                super::on_input(model, Input::Key(key), now, effects);
            }
        }
    }
}

pub fn paste(model: &mut Model, text: &str, now: u64) {
    if let Some(field) = model.panels.open_mut().and_then(|panel| panel.words.as_mut()) {
        return field.insert(text);
    }
    model.search = None;
    model.said = None;
    let held = model.panels.open_mut().map(|panel| panel.guard.give_back()).unwrap_or_default();
    to_draft(model, &(held + text), now);
}

/// It was meant for the draft: the panel gives the keyboard back.
fn to_draft(model: &mut Model, text: &str, now: u64) {
    model.panels.close();
    model.composer.insert(text);
    model.keys.last_key = Some(now);
    model.keys.last_text = Some(now);
    draft_changed(model, now);
}

fn decided(model: &mut Model, choice: usize, now: u64, effects: &mut Vec<Effect>) {
    let Some(panel) = model.panels.open_mut() else { return };
    let Some(act) = panel.choices.get(choice).filter(|choice| choice.enabled).map(|choice| choice.act) else { return };
    if panel.only_shows(act) {
        return panel.show_unseen();
    }
    match act {
        Act::DenyWithWords => return panel.words = Some(Field::new()),
        Act::Always => {
            model.panels.open_always(Some(now));
            return;
        }
        Act::Look => return model.panels.look(Some(now)),
        Act::Back => {
            model.panels.close_always(Some(now));
            return;
        }
        Act::Widen | Act::End | Act::Diff => return model.panels.turn_always(act, Some(now)),
        Act::Approve | Act::Preview | Act::Keep(_) | Act::Deny | Act::Resolve(_) | Act::Trust(_) | Act::Mode(_) => {}
    }
    answer(model, act, None, now, effects);
}

fn answer(model: &mut Model, act: Act, reason: Option<String>, now: u64, effects: &mut Vec<Effect>) {
    let Some(answer) = model.panels.open_mut().and_then(|panel| panel.answer(act, reason)) else { return };
    model.said = None;
    model.panels.done(Some(now));
    model.person_had_the_turn(now);
    effects.push(match answer {
        Answer::Decide(approval_id, decision) => Effect::Send(Command::Decide { approval_id, decision }),
        Answer::Preview(approval_id) => Effect::Send(Command::Preview { approval_id }),
        Answer::Resolve(tool_call_id, resolution) => Effect::Send(Command::Resolve { tool_call_id, resolution }),
        Answer::Mode(mode) => Effect::Send(Command::SetMode { mode }),
        Answer::ModeStays => return,
        Answer::Trust(_, TrustAnswer::Quit) => return super::quit(model, effects),
        Answer::Trust(trust, answer) => {
            let words = match answer {
                TrustAnswer::Yes => "this project is trusted: what it brings takes effect",
                TrustAnswer::ReadOnly | TrustAnswer::Quit => {
                    "read-only: what the project brings is ignored and nothing is changed; /mode ask lets changes be asked"
                }
            };
            model.transcript.push(Kind::Note { text: words.to_owned(), tone: Tone::Plain });
            Effect::Trust(trust, answer)
        }
    });
}

fn words_key(model: &mut Model, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) {
    let Some(panel) = model.panels.open_mut() else { return };
    let Some(field) = &mut panel.words else { return };
    match key.code {
        KeyCode::Enter => {
            let reason = field.text().trim().to_owned();
            answer(model, Act::DenyWithWords, Some(reason).filter(|reason| !reason.is_empty()), now, effects);
        }
        KeyCode::Esc => {
            model.panels.open_current(Some(now));
        }
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => model.panels.put_off(),
        KeyCode::Char(digit @ '1'..='9') if field.text().is_empty() => {
            let nth = digit as usize - '1' as usize;
            field.insert(REASONS.get(nth).map_or(digit.encode_utf8(&mut [0; 4]), |words| words));
        }
        _ => field.key(key),
    }
}
