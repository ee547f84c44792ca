//! Key handling while a dialog has keyboard focus.

use super::dialog_text::{paste_to_draft, to_draft};
use super::draft::on_draft_changed;
use super::{amend, elicitation, goal, inbox, onboarding, price, rewind};
use crate::protocol::{Approval, ApprovalId, Command, Decision, RuleQuery};
use crate::text;
use crate::tui::approval::{ChoiceAction, DialogAnswer, Pager, REASONS, RuleChoice, approval_dialog, mark_part};
use crate::tui::composer::TextField;
use crate::tui::input::is_text;
use crate::tui::interface::{EditorTarget, TrustAnswer};
use crate::tui::layers::RewindList;
use crate::tui::metrics::GUTTER;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};
use crate::tui::typeahead_guard::{ALONE_MS, GuardInput, GuardResult, MACHINE_MS};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Time, in milliseconds after a prompt loses focus, during which Escape returns to the prompt instead of stopping the
/// task.
const RETURN_MS: u64 = 3000;
/// Number of wide characters from which a text without spaces counts as more than one word.
const WIDE_WORDS: usize = 4;

/// Adds an approval prompt. If a prompt is waiting for this updated approval, replaces that prompt.
pub(crate) fn on_approval_requested(model: &mut UiModel, approval: Approval, focus: bool) {
    let last_text = model.keys.last_text;
    if !model.dialogs.replace_pending(&approval, last_text) {
        model.dialogs.forget_approval(&approval.approval_id, last_text);
        model.dialogs.add(approval_dialog(approval), focus, last_text);
    }
}

/// Removes the prompt for an approval that was decided. If an updated approval was requested, marks the prompt as
/// waiting for it instead.
pub(crate) fn on_approval_resolved(model: &mut UiModel, approval_id: &ApprovalId, decision: &Decision) {
    let last_text = model.keys.last_text;
    match decision {
        Decision::Renewed => model.dialogs.expect_replacement(approval_id, last_text),
        _ => model.dialogs.forget_approval(approval_id, last_text),
    }
}

pub(crate) fn key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) {
    let is_of_form = onboarding::key(model, key, now, effects)
        || elicitation::key(model, key, now, effects)
        || price::key(model, key, now, effects);
    if is_of_form {
        return;
    }
    if model.dialogs.open().is_some_and(|panel| panel.words.is_some()) {
        return on_text_key(model, key, now, effects);
    }
    if amend::field_key(model, key, now, effects) {
        return;
    }
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    // The notice was about the previous key.
    model.toast = None;
    if let Some(letter) = is_text(&key) {
        if rewind::marks(model, letter, now) || amend::marks(model, letter, now) || marks_part(model, letter, now) {
            return;
        }
        let repeats = key.kind == KeyEventKind::Repeat;
        return stimulus(model, if repeats { GuardInput::Repeat(letter) } else { GuardInput::Letter(letter) }, now, effects);
    }
    let navigation = match key.code {
        // A held key must not confirm a choice.
        KeyCode::Enter if key.kind == KeyEventKind::Repeat => return,
        KeyCode::Enter if key.modifiers.is_empty() => GuardInput::Enter,
        KeyCode::Up => GuardInput::Up,
        KeyCode::Down => GuardInput::Down,
        KeyCode::PageUp | KeyCode::PageDown | KeyCode::Home | KeyCode::End => GuardInput::Scroll,
        KeyCode::Char('u' | 'd' | 'f' | 'o') if ctrl => GuardInput::Scroll,
        _ => GuardInput::Other,
    };
    if navigation == GuardInput::Enter && opens_rule(model, now) {
        return;
    }
    stimulus(model, navigation, now, effects);
    let Some(panel) = model.dialogs.open_mut() else { return };
    let page = panel.view.shown.max(1) as isize;
    match key.code {
        KeyCode::PageUp => panel.scroll_by(-page),
        KeyCode::PageDown => panel.scroll_by(page),
        KeyCode::Char('u') if ctrl => panel.scroll_by(-page / 2),
        KeyCode::Char('d') if ctrl => panel.scroll_by(page / 2),
        KeyCode::Char('f') if ctrl => panel.turn_height(),
        KeyCode::Home => panel.scroll_by(isize::MIN),
        KeyCode::End => panel.scroll_by(isize::MAX),
        KeyCode::Tab => model.dialogs.cycle(true, model.keys.last_text),
        KeyCode::BackTab => model.dialogs.cycle(false, model.keys.last_text),
        KeyCode::Esc if model.dialogs.close_always(model.keys.last_text) => {}
        KeyCode::Esc if rewind::close_dialog(model, now) => {}
        KeyCode::Char('c') if ctrl && rewind::close_dialog(model, now) => {}
        KeyCode::Esc if elicitation::escapes(model, now, effects) => {}
        KeyCode::Esc => model.dialogs.dismiss(),
        KeyCode::Char('c') if ctrl => model.dialogs.dismiss(),
        KeyCode::Char('z') if ctrl => effects.push(UiEffect::Suspend),
        KeyCode::Char('o') if ctrl => model.transcript.fold_all(),
        KeyCode::Char('q') if ctrl => inbox::open(model, now),
        KeyCode::Char('s') if ctrl => super::pointer::toggle_mouse_capture(model, now, effects),
        _ => {}
    }
}

/// Selects another command part if the letter is a bracket. Returns `false` if it is not, or if it was typed as part of
/// a text.
fn marks_part(model: &mut UiModel, letter: char, now: u64) -> bool {
    let forward = match letter {
        ']' => true,
        '[' => false,
        _ => return false,
    };
    let Some(panel) = model.dialogs.open_mut() else { return false };
    panel.body.has_parts() && panel.guard.mark(letter, now) && mark_part(panel, forward)
}

/// Handles Enter by opening the rule of the selected command part, unless a choice is waiting to be confirmed by Enter.
/// Returns whether the rule was opened.
fn opens_rule(model: &mut UiModel, now: u64) -> bool {
    let Some(panel) = model.dialogs.open_mut() else { return false };
    if panel.guard.is_choice_pending() || !panel.guard.is_armed(now) || panel.body.marked_part().is_none() {
        return false;
    }
    // The typed keys have selected parts, so they are not the start of text.
    panel.guard.step(GuardInput::Other, now);
    model.dialogs.open_rule(model.keys.last_text)
}

/// Passes an input to the open dialog's guard and carries out the result.
pub(crate) fn stimulus(model: &mut UiModel, stimulus: GuardInput, now: u64, effects: &mut Vec<UiEffect>) {
    if model.dialogs.inbox().is_some() {
        return inbox::stimulus(model, stimulus, now, effects);
    }
    if let GuardInput::Letter(letter) = stimulus
        && model.dialogs.leave_page(letter, now)
    {
        return;
    }
    // A timer decides on the letter that was typed last.
    let pressed = match stimulus {
        GuardInput::Letter(_) => Some(now),
        GuardInput::Time => model.keys.last_text,
        _ => None,
    };
    let Some(panel) = model.dialogs.open_mut() else { return };
    match panel.step(stimulus, now) {
        GuardResult::Nothing => {}
        GuardResult::Draft(text) => to_draft(model, &text, now),
        GuardResult::Decided(choice) => on_choice(model, choice, pressed, now, effects),
        GuardResult::NoChoice(letter) => {
            let words = format!("{} is not a choice here: {}", key_name(letter), panel.valid_keys());
            let fits = text::width(&words) + usize::from(GUTTER) <= usize::from(model.screen.size.width);
            let short = || format!("{} is not a choice: {}", key_name(letter), panel.valid_letters());
            let words = if fits { words } else { short() };
            model.show_toast(words, now);
        }
    }
}

/// Returns the name of a key as used in a sentence.
fn key_name(letter: char) -> String {
    if letter == ' ' { "space".to_owned() } else { format!("`{letter}`") }
}

/// Handles a key while a prompt is pending without keyboard focus. Returns whether the key was handled. Escape returns
/// to the prompt for a short while after it lost focus. Enter does so if the draft is a single word, which was probably
/// meant for the prompt.
pub(crate) fn handle_return_key(model: &mut UiModel, key: &KeyEvent, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    if model.dialogs.is_empty() || model.is_too_small() {
        return false;
    }
    match key.code {
        KeyCode::Esc if model.keys.left_prompt.is_some_and(|at| now.saturating_sub(at) <= RETURN_MS) => {
            model.dialogs.open_current(model.keys.last_text);
            true
        }
        KeyCode::Enter if key.modifiers.is_empty() || key.modifiers == KeyModifiers::CONTROL => on_enter(model, now, effects),
        _ => false,
    }
}

/// Handles Enter while an approval is pending. A draft that is a single word is not sent. If the word is the key of a
/// choice, that choice is highlighted instead.
fn on_enter(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let draft = model.composer.text();
    let word = draft.trim();
    if model.dialogs.approvals() == 0 || word.starts_with(['/', '!']) || !is_one_word(word) {
        return false;
    }
    let mut letters = word.chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    let is_choice = |letter: char| {
        let current = model.dialogs.current();
        current.is_some_and(|panel| panel.choices.iter().any(|choice| choice.enabled && choice.key.letter == letter))
    };
    let marked = letter.filter(|letter| is_choice(*letter));
    if marked.is_some() {
        model.composer.set("");
        on_draft_changed(model, now);
    }
    model.dialogs.open_current(None);
    match marked {
        Some(letter) => stimulus(model, GuardInput::Letter(letter), now, effects),
        None => model.show_toast("not sent: an approval is waiting for you; your draft is unchanged", now),
    }
    true
}

/// Returns whether the text is a single word. For scripts that do not use spaces, several wide characters count as more
/// than one word.
fn is_one_word(text: &str) -> bool {
    let wide = text.chars().filter(|letter| text::width(letter.encode_utf8(&mut [0; 4])) > 1).count();
    !text.is_empty() && !text.contains(char::is_whitespace) && wide < WIDE_WORDS
}

pub(crate) fn on_paste(model: &mut UiModel, text: &str, now: u64) {
    if onboarding::on_paste(model, text, now) || elicitation::on_paste(model, text) || price::on_paste(model, text) {
        return;
    }
    if let Some(field) = model.dialogs.open_mut().and_then(|panel| panel.words.as_mut()) {
        return field.insert(text);
    }
    if amend::on_paste(model, text) {
        return;
    }
    model.draft.search = None;
    model.toast = None;
    amend::take_back(model, now);
    model.dialogs.stay();
    let held = model.dialogs.flush_guard(now);
    paste_to_draft(model, &held, text, now);
}

/// Carries out a choice. `pressed` is the time of the letter that decided on it, or `None` if another key did.
fn on_choice(model: &mut UiModel, choice: usize, pressed: Option<u64>, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(panel) = model.dialogs.open_mut() else { return };
    let Some(taken) = panel.choices.get(choice) else { return };
    if !taken.enabled {
        let reason = taken.words.clone();
        return model.show_toast(reason, now);
    }
    let (act, letter) = (taken.act, taken.key.letter);
    if panel.only_shows(act) {
        panel.show_unseen();
        if act == ChoiceAction::Always {
            model.show_toast(format!("read to the end first, then press `{letter}` again"), now);
        }
        return;
    }
    match act {
        ChoiceAction::DenyWithWords => return panel.words = Some(TextField::new()),
        ChoiceAction::Always | ChoiceAction::Look | ChoiceAction::Back => {
            return turn_page(model, act, letter, pressed, effects);
        }
        ChoiceAction::OpenFile => {
            let file = panel.kind.find::<Pager>().and_then(Pager::file).map(str::to_owned);
            return effects.extend(file.map(|file| UiEffect::Show(EditorTarget::File(file))));
        }
        ChoiceAction::ShowNew => return show_new(model, now, effects),
        ChoiceAction::Write => return model.dialogs.write_rule(),
        ChoiceAction::Widen | ChoiceAction::End | ChoiceAction::Diff | ChoiceAction::Reach => {
            let opener = pressed.and_then(|at| panel.guard.opener_of_next(letter, at, Some(now)));
            model.dialogs.turn_always(act, pressed.or(model.keys.last_text));
            model.dialogs.set_opener(opener);
            return ask_reach(model, effects);
        }
        ChoiceAction::Setup(pick) => return onboarding::on_picked(model, pick, now, effects),
        ChoiceAction::Asking(pick) => return elicitation::on_picked(model, pick, now, effects),
        ChoiceAction::Edit | ChoiceAction::EditWhole | ChoiceAction::View | ChoiceAction::Wrap => {
            amend::on_choice(model, act, now, effects);
            return;
        }
        ChoiceAction::Approve
        | ChoiceAction::ApproveClean
        | ChoiceAction::First
        | ChoiceAction::Offline
        | ChoiceAction::Unsandboxed
        | ChoiceAction::Preview
        | ChoiceAction::RunAgain
        | ChoiceAction::Keep(_)
        | ChoiceAction::Deny
        | ChoiceAction::Resolve(_)
        | ChoiceAction::Trust(_)
        | ChoiceAction::Mode(_)
        | ChoiceAction::Goal(_)
        | ChoiceAction::Held(_)
        | ChoiceAction::Rewind(_)
        | ChoiceAction::Fork
        | ChoiceAction::Forget(_) => {}
    }
    if let Some(at) = model.keys.last_text {
        model.dialogs.record_answer(letter, at);
    }
    answer(model, act, None, now, effects);
}

/// Opens the rule dialog or the pager, or closes it. The keys that follow are meant for what is then on the screen. `?`
/// begins no text, so the letter after it is not part of one.
fn turn_page(model: &mut UiModel, act: ChoiceAction, letter: char, pressed: Option<u64>, effects: &mut Vec<UiEffect>) {
    let last_text = if letter == '?' { None } else { pressed.or(model.keys.last_text) };
    let Some(panel) = model.dialogs.open_mut() else { return };
    let opener = pressed.and_then(|at| panel.guard.opener_of_next(letter, at, None));
    if letter == '?' {
        panel.guard.take_draft_text();
    }
    match act {
        ChoiceAction::Always => {
            if model.dialogs.open_always(last_text) {
                model.dialogs.set_opener(opener);
            }
            ask_reach(model, effects);
        }
        ChoiceAction::Look => {
            model.dialogs.open_pager(last_text);
            model.dialogs.set_opener(opener.filter(|_| letter == '?'));
        }
        _ => {
            model.dialogs.close_always(last_text);
            model.dialogs.set_opener(opener.filter(|_| letter == '?'));
        }
    }
}

/// Shows the updated proposal of an outdated prompt, requesting it first if necessary.
pub(crate) fn show_new(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if let Some(approval_id) = model.dialogs.show_new(Some(now)) {
        model.restart_activity_timer(now);
        effects.push(UiEffect::Send(Command::Decide { approval_id, decision: Decision::Renewed }));
    }
}

/// Requests the list of commands that a wider rule would have allowed, if it is needed.
fn ask_reach(model: &UiModel, effects: &mut Vec<UiEffect>) {
    if let Some((approval_id, offer)) = model.dialogs.wants_reach() {
        effects.push(UiEffect::Send(Command::AskRule { approval_id, asked: RuleQuery::Reach { offer } }));
    }
}

pub(crate) fn answer(model: &mut UiModel, act: ChoiceAction, reason: Option<String>, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(answer) = model.dialogs.open_mut().and_then(|panel| panel.answer(act, reason)) else { return };
    model.toast = None;
    model.dialogs.finish_current(None);
    model.keys.on_answer(now);
    model.restart_activity_timer(now);
    effects.push(match answer {
        DialogAnswer::Decide(approval_id, decision) => UiEffect::Send(Command::Decide { approval_id, decision }),
        DialogAnswer::Preview(approval_id) => UiEffect::Send(Command::Preview { approval_id }),
        DialogAnswer::Resolve(tool_call_id, resolution) => UiEffect::Send(Command::Resolve { tool_call_id, resolution }),
        DialogAnswer::Rewind { target, scope, overwrite } => {
            rewind::on_confirmed(model, now);
            UiEffect::Send(Command::Rewind { target, scope, overwrite })
        }
        DialogAnswer::Mode(mode) => UiEffect::Send(Command::SetMode { mode }),
        DialogAnswer::ModeStays | DialogAnswer::ForgetNot => return,
        DialogAnswer::Goal(goal, choice) => return goal::on_choice(model, &goal, choice, now, effects),
        DialogAnswer::Fork { before } => {
            model.layers.close::<RewindList>();
            return super::sessions::fork_before(model, before, now, effects);
        }
        DialogAnswer::Forget(id) => return super::sessions::forget(id, effects),
        DialogAnswer::Trust(_, TrustAnswer::Quit) => return super::quit::quit(model, effects),
        DialogAnswer::Held(held, answer) => return super::lock::on_answer(model, held, answer, effects),
        DialogAnswer::Trust(trust, answer) => {
            let words = match answer {
                TrustAnswer::Yes if !trust.has_items() => "project trusted: commands run in a sandboxed copy first",
                TrustAnswer::Yes => "project trusted: its settings now apply",
                TrustAnswer::Decline => "project not trusted: aye asks before each command",
                TrustAnswer::ReadOnly | TrustAnswer::Quit => {
                    "read-only: the project's settings are ignored and nothing is changed; with /mode ask, aye asks before changes"
                }
            };
            model.transcript.push(TranscriptEntryKind::Note { text: words.to_owned(), tone: NoteTone::Plain });
            UiEffect::Trust(trust, answer)
        }
    });
}

/// Returns whether a letter typed into an empty draft is ignored as a second press of the key that answered a dialog.
/// If other text follows immediately, the ignored letter is added to that text.
pub(crate) fn consume_echo(model: &mut UiModel, letter: Option<char>, now: u64) -> bool {
    let before = model.keys.echo.take();
    let Some(letter) = letter else { return false };
    if let Some((echo, at)) = before
        && now.saturating_sub(at) < ALONE_MS
        && echo != letter
    {
        model.composer.insert(echo.encode_utf8(&mut [0; 4]));
        return false;
    }
    let is_echo = model.composer.is_empty() && model.dialogs.is_echo(letter, now);
    model.keys.echo = is_echo.then_some((letter, now));
    is_echo
}

fn on_text_key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(panel) = model.dialogs.open_mut() else { return };
    let keeps = panel.kind.find::<RuleChoice>().map(RuleChoice::approval_id);
    let Some(field) = &mut panel.words else { return };
    match key.code {
        // A line break that is part of pasted text, or typed just before the screen changed, submits nothing.
        KeyCode::Enter if key.kind == KeyEventKind::Repeat || !panel.guard.is_settled(now) => {}
        KeyCode::Enter if model.keys.last_text.is_some_and(|at| now.saturating_sub(at) < MACHINE_MS) => field.insert(" "),
        KeyCode::Enter if keeps.is_some() => {
            let rule = field.text().trim().to_owned();
            let asked = keeps.map(|approval_id| Command::AskRule { approval_id, asked: RuleQuery::Written { rule } });
            effects.extend(asked.map(UiEffect::Send));
        }
        KeyCode::Esc if keeps.is_some() => model.dialogs.turn_always(ChoiceAction::Write, Some(now)),
        KeyCode::Enter => {
            let reason = field.text().trim().to_owned();
            answer(model, ChoiceAction::DenyWithWords, Some(reason).filter(|reason| !reason.is_empty()), now, effects);
        }
        KeyCode::Esc => {
            model.dialogs.open_current(model.keys.last_text);
        }
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => model.dialogs.dismiss(),
        KeyCode::Char(digit @ '1'..='9') if keeps.is_none() && field.text().is_empty() => {
            let nth = digit as usize - '1' as usize;
            field.insert(REASONS.get(nth).map_or(digit.encode_utf8(&mut [0; 4]), |words| words));
        }
        _ => field.key(key),
    }
}
