//! Keys while a question has the keyboard.

use super::{asking, draft_changed, hunks, inbox, onboarding, rewind};
use crate::protocol::{Approval, ApprovalId, Command, Decision, RuleAsked};
use crate::tui::approval::{Act, Answer, Panel, Question, REASONS};
use crate::tui::composer::Field;
use crate::tui::front::{Shown, TrustAnswer};
use crate::tui::guard::{MACHINE_MS, Outcome, Stimulus};
use crate::tui::model::{Effect, Model};
use crate::tui::transcript::{Kind, Tone};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The character of a key that is text.
pub fn is_text(key: &KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(c) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => Some(c),
        _ => None,
    }
}

/// A question about a call; made anew it stands where the one before stood.
pub fn asked(model: &mut Model, approval: Approval, focus: bool) {
    let last_text = model.keys.last_text;
    if !model.panels.put_awaited(&approval, last_text) {
        model.panels.forget_approval(&approval.approval_id, last_text);
        model.panels.add(Panel::asked(approval), focus, last_text);
    }
}

/// It is answered, here or elsewhere.
pub fn resolved(model: &mut Model, approval_id: &ApprovalId, decision: &Decision) {
    let last_text = model.keys.last_text;
    match decision {
        Decision::Renewed => model.panels.awaits_new(approval_id, last_text),
        _ => model.panels.forget_approval(approval_id, last_text),
    }
}

pub fn key(model: &mut Model, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) {
    if onboarding::key(model, key, now, effects) || asking::key(model, key, now, effects) {
        return;
    }
    if model.panels.open().is_some_and(|panel| panel.words.is_some()) {
        return words_key(model, key, now, effects);
    }
    if hunks::field_key(model, key, now, effects) {
        return;
    }
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    if let Some(letter) = is_text(&key) {
        if rewind::marks(model, letter, now) || hunks::marks(model, letter, now) || marks_part(model, letter, now) {
            return;
        }
        let repeats = key.kind == KeyEventKind::Repeat;
        return stimulus(model, if repeats { Stimulus::Repeat(letter) } else { Stimulus::Letter(letter) }, now, effects);
    }
    let navigation = match key.code {
        // A key that is held confirms nothing.
        KeyCode::Enter if key.kind == KeyEventKind::Repeat => return,
        KeyCode::Enter if key.modifiers.is_empty() => Stimulus::Enter,
        KeyCode::Up => Stimulus::Up,
        KeyCode::Down => Stimulus::Down,
        _ => Stimulus::Other,
    };
    if navigation == Stimulus::Enter && opens_rule(model, now) {
        return;
    }
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
        KeyCode::Esc if rewind::leaves(model, now) => {}
        KeyCode::Char('c') if ctrl && rewind::leaves(model, now) => {}
        KeyCode::Esc => model.panels.put_off(),
        KeyCode::Char('c') if ctrl => model.panels.put_off(),
        KeyCode::Char('z') if ctrl => effects.push(Effect::Suspend),
        KeyCode::Char('o') if ctrl => model.transcript.fold_all(),
        KeyCode::Char('q') if ctrl => inbox::open(model, now),
        KeyCode::Char('s') if ctrl => super::mouse::hand_over(model, now, effects),
        _ => {}
    }
}

/// Whether the letter went to another part of a command. It decides nothing; in a sentence it is a letter.
fn marks_part(model: &mut Model, letter: char, now: u64) -> bool {
    let forward = match letter {
        ']' => true,
        '[' => false,
        _ => return false,
    };
    let Some(panel) = model.panels.open_mut() else { return false };
    panel.has_parts() && panel.guard.mark(letter, now) && panel.mark_part(forward)
}

/// Whether Enter opened the rule of the part that is marked: only where no choice waits for it.
fn opens_rule(model: &mut Model, now: u64) -> bool {
    let Some(panel) = model.panels.open_mut() else { return false };
    if panel.guard.is_held() || !panel.guard.is_armed(now) || panel.marked_part().is_none() {
        return false;
    }
    // What was typed were marks.
    panel.guard.step(Stimulus::Other, now);
    model.panels.open_rule(Some(now))
}

/// Feeds the guard and does what it says.
pub fn stimulus(model: &mut Model, stimulus: Stimulus, now: u64, effects: &mut Vec<Effect>) {
    if model.panels.inbox().is_some() {
        return inbox::stimulus(model, stimulus, now, effects);
    }
    let Some(panel) = model.panels.open_mut() else { return };
    match panel.step(stimulus, now) {
        Outcome::Nothing => {}
        Outcome::Draft(text) => to_draft(model, &text, now),
        Outcome::Decided(choice) => decided(model, choice, now, effects),
    }
}

pub fn paste(model: &mut Model, text: &str, now: u64) {
    if onboarding::pasted(model, text, now) || asking::pasted(model, text) {
        return;
    }
    if let Some(field) = model.panels.open_mut().and_then(|panel| panel.words.as_mut()) {
        return field.insert(text);
    }
    if hunks::pasted(model, text) {
        return;
    }
    model.search = None;
    model.said = None;
    hunks::take_back(model, now);
    model.panels.close();
    let held = model.panels.settle(now);
    to_draft(model, &(held + text), now);
}

/// It was meant for the draft: the panel gives the keyboard back.
pub fn to_draft(model: &mut Model, text: &str, now: u64) {
    hunks::take_back(model, now);
    model.panels.close();
    if super::sessions::typed(model, text) {
        return;
    }
    // What is typed is to be seen.
    model.rewind.list = None;
    super::browse::leave(model);
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
            return ask_reach(model, effects);
        }
        Act::Look => return model.panels.look(Some(now)),
        Act::Back => {
            model.panels.close_always(Some(now));
            return;
        }
        Act::OpenFile => {
            let file = match &panel.question {
                Question::Reading(reading) => reading.file().map(str::to_owned),
                _ => None,
            };
            return effects.extend(file.map(|file| Effect::Show(Shown::File(file))));
        }
        Act::ShowNew => return show_new(model, now, effects),
        Act::Write => return model.panels.write_rule(),
        Act::Widen | Act::End | Act::Diff | Act::Reach => {
            model.panels.turn_always(act, Some(now));
            return ask_reach(model, effects);
        }
        Act::Setup(pick) => return onboarding::picked(model, pick, now, effects),
        Act::Asking(pick) => return asking::picked(model, pick, now, effects),
        Act::Edit | Act::EditWhole | Act::View | Act::Wrap => {
            hunks::decided(model, act, now, effects);
            return;
        }
        Act::Approve
        | Act::First
        | Act::Offline
        | Act::Preview
        | Act::Keep(_)
        | Act::Deny
        | Act::Resolve(_)
        | Act::Trust(_)
        | Act::Mode(_)
        | Act::Held(_)
        | Act::Rewind(_)
        | Act::Fork
        | Act::Forget(_) => {}
    }
    answer(model, act, None, now, effects);
}

/// What cannot be done as it was shown is shown as it would be now.
pub fn show_new(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    if let Some(approval_id) = model.panels.show_new(Some(now)) {
        model.person_had_the_turn(now);
        effects.push(Effect::Send(Command::Decide { approval_id, decision: Decision::Renewed }));
    }
}

/// Of a wider rule it is said what it would have let through.
fn ask_reach(model: &Model, effects: &mut Vec<Effect>) {
    if let Some((approval_id, offer)) = model.panels.wants_reach() {
        effects.push(Effect::Send(Command::AskRule { approval_id, asked: RuleAsked::Reach { offer } }));
    }
}

pub fn answer(model: &mut Model, act: Act, reason: Option<String>, now: u64, effects: &mut Vec<Effect>) {
    let Some(answer) = model.panels.open_mut().and_then(|panel| panel.answer(act, reason)) else { return };
    model.said = None;
    model.panels.done(Some(now));
    model.person_had_the_turn(now);
    effects.push(match answer {
        Answer::Decide(approval_id, decision) => Effect::Send(Command::Decide { approval_id, decision }),
        Answer::Preview(approval_id) => Effect::Send(Command::Preview { approval_id }),
        Answer::Resolve(tool_call_id, resolution) => Effect::Send(Command::Resolve { tool_call_id, resolution }),
        Answer::Rewind { target, scope, overwrite } => {
            rewind::begins(model, now);
            Effect::Send(Command::Rewind { target, scope, overwrite })
        }
        Answer::Mode(mode) => Effect::Send(Command::SetMode { mode }),
        Answer::ModeStays | Answer::ForgetNot => return,
        Answer::Fork { before } => {
            model.rewind.list = None;
            return super::sessions::fork_before(model, before, now, effects);
        }
        Answer::Forget(id) => return super::sessions::forget(id, effects),
        Answer::Trust(_, TrustAnswer::Quit) => return super::quit(model, effects),
        Answer::Held(held, answer) => return super::held::answered(model, held, answer, effects),
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
    let keeps = match &panel.question {
        Question::Keep(keeping) => Some(keeping.about()),
        _ => None,
    };
    let Some(field) = &mut panel.words else { return };
    match key.code {
        // A line end within what is pasted, or typed just before the screen changed, sends nothing.
        KeyCode::Enter if key.kind == KeyEventKind::Repeat || !panel.guard.is_settled(now) => {}
        KeyCode::Enter if model.keys.last_text.is_some_and(|at| now.saturating_sub(at) < MACHINE_MS) => field.insert(" "),
        KeyCode::Enter if keeps.is_some() => {
            let rule = field.text().trim().to_owned();
            let asked = keeps.map(|approval_id| Command::AskRule { approval_id, asked: RuleAsked::Written { rule } });
            effects.extend(asked.map(Effect::Send));
        }
        KeyCode::Esc if keeps.is_some() => model.panels.turn_always(Act::Write, Some(now)),
        KeyCode::Enter => {
            let reason = field.text().trim().to_owned();
            answer(model, Act::DenyWithWords, Some(reason).filter(|reason| !reason.is_empty()), now, effects);
        }
        KeyCode::Esc => {
            model.panels.open_current(Some(now));
        }
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => model.panels.put_off(),
        KeyCode::Char(digit @ '1'..='9') if keeps.is_none() && field.text().is_empty() => {
            let nth = digit as usize - '1' as usize;
            field.insert(REASONS.get(nth).map_or(digit.encode_utf8(&mut [0; 4]), |words| words));
        }
        _ => field.key(key),
    }
}
