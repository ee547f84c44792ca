//! Proposals for instruction files: `/memory`, the list, and the note about new ones after a task.

use super::draft::take_draft;
use super::notes::{note, note_problem, show_requested};
use crate::protocol::{EventKind, HostRequest, MemoryProposal, MemoryRequest, MemoryTarget, Problem, Query};
use crate::text;
use crate::tui::memory_list::details;
use crate::tui::model::{EditFile, Editable, Effect, Model};
use crate::tui::picker::PickerResult;
use crate::tui::text_viewer::TextViewer;
use crate::tui::transcript::{Kind, Tone};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const USAGE: &str = "usage: /memory, /memory add TEXT, /memory apply ID, /memory edit ID TEXT, /memory drop ID";
const OFF: &str = "aye collects no proposals here: `[memory] enabled` is false, or the session is not saved";

/// Handles `/memory` and its forms.
pub(crate) fn memory(model: &mut Model, words: &str, now: u64, effects: &mut Vec<Effect>) {
    if !model.options.memory {
        return model.show_toast(OFF, now);
    }
    let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let rest = rest.trim();
    match (verb, rest) {
        ("", "") => open(model, now, effects),
        ("add", text) if !text.is_empty() => {
            let request = MemoryRequest::Add { text: text.to_owned(), target: MemoryTarget::Personal };
            take_and_ask(model, request, now, effects);
        }
        ("apply" | "drop" | "edit", rest) if !rest.is_empty() => {
            let (id, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let Some(proposal) = model.memory.find(id).cloned() else {
                return model.show_toast(format!("no proposal `{}`; /memory lists them", text::reveal_line(id)), now);
            };
            let (id, text) = (proposal.id.clone(), text.trim());
            match (verb, text) {
                ("drop", "") => take_and_ask(model, MemoryRequest::Drop { id }, now, effects),
                ("apply", "") => {
                    take_draft(model, now, effects);
                    apply(model, &proposal, now, effects);
                }
                ("edit", "") if !model.in_lines => {
                    take_draft(model, now, effects);
                    edit(&proposal, effects);
                }
                ("edit", text) if !text.is_empty() => {
                    let request = MemoryRequest::Edit { id, text: Some(text.to_owned()), target: None };
                    take_and_ask(model, request, now, effects);
                }
                _ => model.show_toast(USAGE, now),
            }
        }
        _ => model.show_toast(USAGE, now),
    }
}

fn open(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    model.memory.requested = model.in_lines;
    take_and_ask(model, MemoryRequest::List, now, effects);
    if !model.in_lines {
        model.overlays.make_room();
        model.memory.open();
    }
}

fn take_and_ask(model: &mut Model, request: MemoryRequest, now: u64, effects: &mut Vec<Effect>) {
    take_draft(model, now, effects);
    ask(request, effects);
}

fn ask(request: MemoryRequest, effects: &mut Vec<Effect>) {
    effects.push(Effect::Ask(Query::LookUp(HostRequest::Memory(request))));
}

/// Asks for the proposals when a task has ended.
pub(crate) fn request_after(model: &Model, kind: &EventKind, effects: &mut Vec<Effect>) {
    if model.options.memory && matches!(kind, EventKind::TaskCompleted { .. }) {
        ask(MemoryRequest::List, effects);
    }
}

/// Sets the proposals, and reports what was done.
pub(crate) fn set(model: &mut Model, proposals: Vec<MemoryProposal>, done: (Option<String>, Option<Problem>), now: u64) {
    let announcement = model.memory.set(proposals);
    let (notice, failed) = done;
    match (notice, failed) {
        (Some(notice), _) if model.memory.list.is_some() => model.show_toast(text::clean_line(&notice), now),
        (Some(notice), _) => note(model, &notice, Tone::Plain),
        (None, Some(problem)) if model.memory.list.is_some() => model.show_toast(text::clean_line(&problem.one_line()), now),
        (None, Some(problem)) => note_problem(model, &problem, Tone::Warning),
        (None, None) => {}
    }
    if std::mem::take(&mut model.memory.requested) {
        let text = model.memory.text();
        show_requested(model, Kind::Note { text, tone: Tone::Plain });
    } else if let Some(announcement) = announcement {
        note(model, &announcement, Tone::Plain);
    }
}

/// Handles a key of the list. Returns whether the list is open.
pub(crate) fn key(model: &mut Model, key: KeyEvent, now: u64, effects: &mut Vec<Effect>) -> bool {
    let waits = !model.dialogs.is_empty() && !model.is_too_small();
    let Some(list) = &mut model.memory.list else { return false };
    if model.overlays.reading.is_some() {
        return false;
    }
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    model.keys.last_key = Some(now);
    model.toast = None;
    let result = list.key(key);
    let highlighted = list.highlighted().map(|row| row.key.clone());
    let highlighted = highlighted.and_then(|id| model.memory.find(&id).cloned());
    match result {
        PickerResult::Nothing => {}
        PickerResult::Closed => model.memory.list = None,
        PickerResult::Chosen(_) | PickerResult::Refused(_) => {
            if let Some(proposal) = highlighted {
                let title = format!("{} · {}", proposal.id, text::reveal_line(&proposal.file));
                model.overlays.reading = Some(TextViewer::with_title(&title, &details(&proposal)));
            }
        }
        PickerResult::Other => match (key.code, highlighted) {
            (KeyCode::Char('a'), Some(proposal)) if ctrl => apply(model, &proposal, now, effects),
            (KeyCode::Char('e'), Some(proposal)) if ctrl => edit(&proposal, effects),
            (KeyCode::Char('t'), Some(proposal)) if ctrl => {
                let target = Some(proposal.target.next());
                ask(MemoryRequest::Edit { id: proposal.id, text: None, target }, effects);
            }
            (KeyCode::Char('x'), Some(proposal)) if ctrl => ask(MemoryRequest::Drop { id: proposal.id }, effects),
            (KeyCode::Char('z'), _) if ctrl => effects.push(Effect::Suspend),
            // Pending dialogs come first.
            (KeyCode::Tab, _) if waits => model.dialogs.open_current(model.keys.last_text),
            _ => {}
        },
    }
    true
}

/// Applies a proposal with the diff as it is shown.
fn apply(model: &mut Model, proposal: &MemoryProposal, now: u64, effects: &mut Vec<Effect>) {
    match &proposal.problem {
        Some(problem) => model.show_toast(format!("cannot apply {}: {}", proposal.id, text::reveal_line(problem)), now),
        None => ask(MemoryRequest::Apply { id: proposal.id.clone(), digest: proposal.digest.clone() }, effects),
    }
}

fn edit(proposal: &MemoryProposal, effects: &mut Vec<Effect>) {
    let what = Editable::Memory { id: proposal.id.clone() };
    effects.push(Effect::EditFile(EditFile { what, name: "memory.md".to_owned(), text: format!("{}\n", proposal.text) }));
}

/// Changes the text of a proposal to that from the editor.
pub(crate) fn on_edited(
    model: &mut Model,
    edit: &EditFile,
    outcome: Result<String, String>,
    now: u64,
    effects: &mut Vec<Effect>,
) {
    let Editable::Memory { id } = &edit.what else { return };
    match outcome {
        Ok(text) if text.trim() == edit.text.trim() || text.trim().is_empty() => {}
        Ok(text) => ask(MemoryRequest::Edit { id: id.clone(), text: Some(text.trim().to_owned()), target: None }, effects),
        Err(why) => model.show_toast(text::clean(&why).into_owned(), now),
    }
}
