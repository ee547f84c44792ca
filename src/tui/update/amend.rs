//! Keys that amend a proposal by selecting hunks, editing text, or opening files in an editor.

use crate::protocol::{Amendment, ApprovalId, Command, Decision};
use crate::text;
use crate::tui::approval::{AmendField, AmendTarget, ChoiceAction, Dialog, HunkMark, PlanDialog};
use crate::tui::composer::Lines;
use crate::tui::model::{Editable, EditorText, UiEffect, UiModel};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Message shown if a file cannot be edited as a whole because choices in other files would be lost.
const OTHERS_CHANGED: &str = "E would reset your choices in other files; e edits this hunk";

/// Handles a letter if it is a hunk key. Returns whether it was handled as one. A letter typed as part of a text leaves
/// the hunks unchanged and remains text.
pub(crate) fn marks(model: &mut UiModel, letter: char, now: u64) -> bool {
    let Some(mark) = HunkMark::from_key(letter) else { return false };
    let Some(panel) = model.dialogs.open_mut() else { return false };
    let Some(before) = panel.hunks().cloned() else { return false };
    let refused = match panel.mark_hunk(mark) {
        Ok(false) => return false,
        Ok(true) => None,
        Err(why) => Some(why),
    };
    if !panel.guard.mark(letter, now) {
        panel.restore_hunks(before);
        return false;
    }
    panel.record_mark(before, now);
    if let Some(why) = refused {
        model.show_toast(format!("this hunk cannot be left out: {}", text::reveal(&why)), now);
    }
    true
}

/// Undoes the recent hunk keys because they turned out to be the start of typed text.
pub(crate) fn take_back(model: &mut UiModel, now: u64) {
    if let Some(panel) = model.dialogs.open_mut() {
        panel.undo_recent_marks(now);
    }
}

/// Carries out an action that amends the proposal or changes how it is displayed. Returns `false` for any other action.
pub(crate) fn on_choice(model: &mut UiModel, act: ChoiceAction, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let width = model.screen.size.width;
    match act {
        ChoiceAction::Edit => write(model, now, effects),
        ChoiceAction::EditWhole => {
            let Some(panel) = model.dialogs.open() else { return true };
            let Some(approval) = panel.asked_approval() else { return true };
            let approval_id = approval.approval_id.clone();
            match editable_file(panel) {
                Ok(file) => effects.push(UiEffect::Send(Command::ShowProposed { approval_id, file })),
                Err(why) => model.show_toast(why, now),
            }
        }
        ChoiceAction::View => {
            if !model.dialogs.open_mut().is_some_and(|panel| panel.turn_view(width)) {
                model.show_toast("side-by-side view needs 80 columns", now);
            }
        }
        ChoiceAction::Wrap => {
            if let Some(panel) = model.dialogs.open_mut() {
                panel.turn_wrap(width);
            }
        }
        _ => return false,
    }
    true
}

/// Returns the index of the file that can be opened in an editor, or the reason why it cannot be. aye asks for approval
/// of the edited text again, with the call's other files as proposed.
fn editable_file(panel: &Dialog) -> Result<usize, &'static str> {
    let Some(hunks) = panel.hunks() else { return Ok(0) };
    let file = hunks.file().ok_or("this file cannot be edited; space leaves it out")?;
    if hunks.changes_others(file) { Err(OTHERS_CHANGED) } else { Ok(file) }
}

fn write(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(panel) = model.dialogs.open_mut() else { return };
    let Some(approval) = panel.asked_approval() else { return };
    if approval.plan.is_some() {
        // Only the session has the whole text of the plan.
        let approval_id = approval.approval_id.clone();
        if let Some(plan) = panel.kind.find_mut::<PlanDialog>() {
            plan.await_text();
        }
        return effects.push(UiEffect::Send(Command::ShowProposed { approval_id, file: 0 }));
    }
    let (text, what) = match (panel.hunks(), &approval.amendable.command) {
        (Some(hunks), _) => (hunks.text(), AmendTarget::Hunk),
        (None, Some(command))
            if text::reveal(command) == *command || !command.contains(|letter: char| letter.is_control() && letter != '\n') =>
        {
            (Ok(command.clone()), AmendTarget::Command)
        }
        (None, _) => (Err("some characters cannot be shown here".to_owned()), AmendTarget::Command),
    };
    match text {
        Ok(text) => {
            let open = text.strip_suffix('\n').unwrap_or(&text);
            let mut lines = Lines::new(open);
            if what == AmendTarget::Command {
                lines.go_to_end();
            }
            panel.set_amend_field(Some(AmendField { lines, what }));
        }
        Err(why) => model.show_toast(why, now),
    }
}

/// Handles a key while the user is editing a hunk, command or plan in the panel.
pub(crate) fn key(model: &mut UiModel, key: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(panel) = model.dialogs.open_mut() else { return };
    let Some(writing) = panel.kind.amend_field_mut().and_then(Option::as_mut) else { return };
    let what = writing.what;
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    match key.code {
        KeyCode::Esc => model.dialogs.open_current(Some(now)),
        KeyCode::Char('c') if ctrl => model.dialogs.dismiss(),
        KeyCode::Char('s') if ctrl => take_field_text(model, now, effects),
        KeyCode::Enter if what == AmendTarget::Command && key.modifiers.is_empty() => take_field_text(model, now, effects),
        KeyCode::Enter if what != AmendTarget::Command && alt => take_field_text(model, now, effects),
        KeyCode::Char('j') if ctrl => writing.lines.new_line(),
        KeyCode::Enter => writing.lines.new_line(),
        _ => writing.lines.key(key),
    }
}

pub(crate) fn paste(panel: &mut Dialog, text: &str) -> bool {
    let Some(writing) = panel.kind.amend_field_mut().and_then(Option::as_mut) else { return false };
    writing.lines.insert(text);
    true
}

fn take_field_text(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(panel) = model.dialogs.open_mut() else { return };
    let Some(AmendField { lines, what }) = panel.kind.amend_field_mut().and_then(Option::take) else { return };
    let text = lines.text();
    match (what, panel.asked_approval()) {
        (AmendTarget::Command, Some(approval)) => {
            if approval.amendable.command.as_deref() == Some(text.as_str()) {
                model.show_toast("command unchanged", now);
                return model.dialogs.open_current(Some(now));
            }
            if text.trim().is_empty() {
                model.show_toast("the command is empty; n denies", now);
                return model.dialogs.open_current(Some(now));
            }
            let decision = Decision::Amended { amendment: Amendment::Command { line: text } };
            let approval_id = approval.approval_id.clone();
            on_amended(model, approval_id, decision, now, effects);
        }
        (AmendTarget::Hunk, _) => {
            panel.replace_hunk(&text);
            // The content has changed, so keys take effect once it is on the screen.
            model.dialogs.open_current(Some(now));
        }
        (AmendTarget::Plan, Some(approval)) => {
            let approval_id = approval.approval_id.clone();
            let proposed = panel.kind.find_mut::<PlanDialog>().map(PlanDialog::take_proposed).unwrap_or_default();
            let end = if proposed.ends_with('\n') && !text.ends_with('\n') { "\n" } else { "" };
            let text = text + end;
            if text == proposed {
                model.show_toast("plan unchanged", now);
                return model.dialogs.open_current(Some(now));
            }
            if text.trim().is_empty() {
                model.show_toast("the plan is empty; n keeps planning", now);
                return model.dialogs.open_current(Some(now));
            }
            let decision = Decision::Amended { amendment: Amendment::File { file: 0, text } };
            on_amended(model, approval_id, decision, now, effects);
        }
        (AmendTarget::Command | AmendTarget::Plan, _) => {}
    }
}

fn on_amended(model: &mut UiModel, approval_id: ApprovalId, decision: Decision, now: u64, effects: &mut Vec<UiEffect>) {
    model.toast = None;
    model.dialogs.forget_approval(&approval_id, Some(now));
    model.restart_activity_timer(now);
    effects.push(UiEffect::Send(Command::Decide { approval_id, decision }));
}

/// Opens a field with the plan's text in the plan's dialog. Returns `false` if the user did not ask to edit the plan
/// there.
fn write_plan(model: &mut UiModel, approval_id: &ApprovalId, text: &str, now: u64) -> bool {
    let Some(panel) = model.dialogs.iter_mut().find(|panel| panel.is_for(approval_id)) else { return false };
    let Some(plan) = panel.kind.find_mut::<PlanDialog>() else { return false };
    let is_shown = text::reveal(text) == text && !text.contains(|letter: char| letter.is_control() && letter != '\n');
    if !plan.open_field(text, is_shown) {
        return false;
    }
    if !is_shown {
        model.show_toast("some characters cannot be shown here; E opens the plan in your editor", now);
    }
    true
}

/// Opens the text that a file would have, given the user's decisions so far, in an editor. If the user asked to edit a
/// plan in its dialog, opens the text there instead.
pub(crate) fn on_proposed_text(model: &mut UiModel, approval_id: &ApprovalId, file: usize, text: &str, now: u64) {
    if write_plan(model, approval_id, text, now) {
        return;
    }
    let Some(panel) = model.dialogs.iter().find(|panel| panel.is_for(approval_id)) else { return };
    let Some(approval) = panel.asked_approval() else { return };
    let text = panel.hunks().map_or_else(|| text.to_owned(), |hunks| hunks.file_text(file, text));
    let name = approval.amendable.files.get(file).cloned().unwrap_or_default();
    model.draft.to_edit = Some(EditorText { what: Editable::Proposed { approval_id: approval_id.clone(), file }, name, text });
    model.restart_activity_timer(now);
}

/// Handles the outcome of editing a proposal in the user's editor.
pub(crate) fn on_edited(
    model: &mut UiModel,
    edit: EditorText,
    outcome: Result<String, String>,
    now: u64,
    effects: &mut Vec<UiEffect>,
) {
    let EditorText { what: Editable::Proposed { approval_id, file }, name, text } = edit else { return };
    let name = text::reveal(&name).into_owned();
    match outcome {
        Err(why) => {
            let words = format!("{name} was not edited: {}", text::clean(&why).trim_end());
            model.show_toast(words.clone(), now);
            model.transcript.push(TranscriptEntryKind::Note { text: words, tone: NoteTone::Warning });
        }
        Ok(mut edited) => {
            // Editors add a line ending to the last line. It is removed if the original text had none.
            if !text.ends_with('\n') && edited.ends_with('\n') {
                edited.pop();
            }
            if edited == text {
                model.show_toast(format!("{name} unchanged"), now);
                return;
            }
            let panel = model.dialogs.iter().find(|panel| panel.is_for(&approval_id));
            if panel.and_then(Dialog::hunks).is_some_and(|hunks| hunks.changes_others(file)) {
                return model.show_toast(OTHERS_CHANGED, now);
            }
            let decision = Decision::Amended { amendment: Amendment::File { file, text: edited } };
            on_amended(model, approval_id, decision, now, effects);
        }
    }
}

/// Inserts pasted text into the open dialog's amend field. Returns `false` if no such field is open.
pub(crate) fn on_paste(model: &mut UiModel, text: &str) -> bool {
    model.dialogs.open_mut().is_some_and(|panel| paste(panel, text))
}

/// Passes a key to the open dialog's amend field. Returns `false` if no such field is open.
pub(crate) fn field_key(model: &mut UiModel, pressed: KeyEvent, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    if model.dialogs.open().is_none_or(|panel| panel.amend_field().is_none()) {
        return false;
    }
    key(model, pressed, now, effects);
    model.screen.dirty = true;
    true
}
