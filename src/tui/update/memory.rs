//! Proposed changes to instruction files: the `/memory` command, the list, and the notice about new proposals after a
//! task.

use super::draft::take_draft;
use super::notes::{note, note_problem, show_requested};
use crate::protocol::{EventKind, HostRequest, MemoryProposal, MemoryRequest, MemoryTarget, Problem, Query};
use crate::text;
use crate::tui::layers::{MemoryList, ShownList, TextViewer, proposal_details, proposal_rows};
use crate::tui::model::{Editable, EditorText, UiEffect, UiModel};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

const USAGE: &str = "usage: /memory, /memory add TEXT, /memory apply ID, /memory edit ID TEXT, /memory drop ID";
const NO_PROPOSALS: &str = "no proposals; /memory add TEXT adds one";
const OFF: &str = "aye collects no proposals here: `[memory] enabled` is false, or the session is not saved";

/// Handles `/memory` in all its forms.
pub(crate) fn memory(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
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
                ("edit", "") if !model.screen.in_lines => {
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

fn open(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    model.memory.requested = model.screen.in_lines;
    take_and_ask(model, MemoryRequest::List, now, effects);
    if !model.screen.in_lines {
        let list = MemoryList::new(model.memory.all());
        model.layers.open(list);
    }
}

fn take_and_ask(model: &mut UiModel, request: MemoryRequest, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    ask(request, effects);
}

fn ask(request: MemoryRequest, effects: &mut Vec<UiEffect>) {
    effects.push(UiEffect::Ask(Query::LookUp(HostRequest::Memory(request))));
}

/// Requests the list of proposals once a task has completed.
pub(crate) fn request_after(model: &UiModel, kind: &EventKind, effects: &mut Vec<UiEffect>) {
    if model.options.memory && matches!(kind, EventKind::TaskCompleted { .. }) {
        ask(MemoryRequest::List, effects);
    }
}

/// Stores the proposals and reports the notice or error in `done`, which is the outcome of the request that led to the
/// update. Closes the list if there are none.
pub(crate) fn set(model: &mut UiModel, proposals: Vec<MemoryProposal>, done: (Option<String>, Option<Problem>), now: u64) {
    let is_list_open = model.layers.is_open::<MemoryList>();
    let announcement = model.memory.set(proposals, is_list_open);
    model.layers.set_rows(ShownList::Proposals, || proposal_rows(model.memory.all()));
    if model.memory.all().is_empty() && model.layers.close::<MemoryList>().is_some() {
        model.show_toast(NO_PROPOSALS, now);
    }
    let (notice, failed) = done;
    match (notice, failed) {
        (Some(notice), _) if is_list_open => model.show_toast(text::clean_line(&notice), now),
        (Some(notice), _) => note(model, &notice, NoteTone::Plain),
        (None, Some(problem)) if is_list_open => model.show_toast(text::clean_line(&problem.one_line()), now),
        (None, Some(problem)) => note_problem(model, &problem, NoteTone::Warning),
        (None, None) => {}
    }
    if std::mem::take(&mut model.memory.requested) {
        let text = model.memory.text();
        show_requested(model, TranscriptEntryKind::Note { text, tone: NoteTone::Plain });
    } else if let Some(announcement) = announcement {
        note(model, &announcement, NoteTone::Plain);
    }
}

/// Shows a proposal's diff in front of the list.
pub(super) fn show(model: &mut UiModel, id: &str) {
    let Some(proposal) = model.memory.find(id) else { return };
    let title = format!("{} · {}", proposal.id, text::reveal_line(&proposal.file));
    let viewer = TextViewer::with_title(&title, &proposal_details(proposal));
    model.layers.push(viewer);
}

/// Applies the listed proposal with this ID.
pub(super) fn apply_listed(model: &mut UiModel, id: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if let Some(proposal) = model.memory.find(id).cloned() {
        apply(model, &proposal, now, effects);
    }
}

/// Opens the text of the listed proposal with this ID in the user's editor.
pub(super) fn edit_listed(model: &UiModel, id: &str, effects: &mut Vec<UiEffect>) {
    if let Some(proposal) = model.memory.find(id) {
        edit(proposal, effects);
    }
}

/// Moves the listed proposal with this ID to the next instruction file.
pub(super) fn move_listed(model: &UiModel, id: &str, effects: &mut Vec<UiEffect>) {
    if let Some(proposal) = model.memory.find(id) {
        let target = Some(proposal.target.next());
        ask(MemoryRequest::Edit { id: proposal.id.clone(), text: None, target }, effects);
    }
}

pub(super) fn drop_listed(id: String, effects: &mut Vec<UiEffect>) {
    ask(MemoryRequest::Drop { id }, effects);
}

/// Applies a proposal, provided its diff is still the one that the user saw.
fn apply(model: &mut UiModel, proposal: &MemoryProposal, now: u64, effects: &mut Vec<UiEffect>) {
    match &proposal.problem {
        Some(problem) => model.show_toast(format!("cannot apply {}: {}", proposal.id, text::reveal_line(problem)), now),
        None => ask(MemoryRequest::Apply { id: proposal.id.clone(), digest: proposal.digest.clone() }, effects),
    }
}

fn edit(proposal: &MemoryProposal, effects: &mut Vec<UiEffect>) {
    let what = Editable::Memory { id: proposal.id.clone() };
    effects.push(UiEffect::EditFile(EditorText { what, name: "memory.md".to_owned(), text: format!("{}\n", proposal.text) }));
}

/// Replaces a proposal's text with the text from the user's editor.
pub(crate) fn on_edited(
    model: &mut UiModel,
    edit: &EditorText,
    outcome: Result<String, String>,
    now: u64,
    effects: &mut Vec<UiEffect>,
) {
    let Editable::Memory { id } = &edit.what else { return };
    match outcome {
        Ok(text) if text.trim() == edit.text.trim() || text.trim().is_empty() => {}
        Ok(text) => ask(MemoryRequest::Edit { id: id.clone(), text: Some(text.trim().to_owned()), target: None }, effects),
        Err(why) => model.show_toast(text::clean(&why).into_owned(), now),
    }
}
