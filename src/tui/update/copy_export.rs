//! Copying and exporting content of the session, and opening it in the user's editor.

use super::draft::take_draft;
use super::readiness::check_session;
use crate::protocol::{ExportForm, Query};
use crate::text;
use crate::tui::clipboard::Clip;
use crate::tui::interface::EditorTarget;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::{AnswerState, Transcript, TranscriptEntryKind, code_blocks};

/// Copies a transcript entry as Markdown.
pub(crate) fn entry(model: &mut UiModel, at: usize, now: u64, effects: &mut Vec<UiEffect>) {
    match model.transcript.entry(at).map(crate::tui::transcript::TranscriptEntry::markdown) {
        Some(words) if !words.is_empty() => effects.push(UiEffect::Copy(Clip::from_text(words))),
        _ => model.show_toast("this entry has no text", now),
    }
}

/// Copies a code block from an entry. Each repetition copies the next block.
pub(crate) fn code_of_entry(model: &mut UiModel, at: usize, now: u64, effects: &mut Vec<UiEffect>) {
    let blocks = model.transcript.entry(at).map(crate::tui::transcript::TranscriptEntry::code).unwrap_or_default();
    let Some(browse) = model.browse.as_mut() else { return };
    let nth = if browse.code.0 == at { browse.code.1 } else { 0 };
    let count = blocks.len();
    browse.code = (at, nth + 1);
    match blocks.into_iter().nth(nth % count.max(1)) {
        Some(code) if count > 1 => {
            let name = format!("code {} of {count}", nth % count + 1);
            effects.push(UiEffect::Copy(Clip::with_name(code, &name)));
        }
        Some(code) => effects.push(UiEffect::Copy(Clip::with_name(code, "code"))),
        None => model.show_toast("no code in this entry; y copies the whole entry", now),
    }
}

fn entry_path(model: &UiModel, at: usize) -> Option<String> {
    model.transcript.entry(at)?.card()?.path.clone()
}

pub(crate) fn copy_path(model: &mut UiModel, at: usize, now: u64, effects: &mut Vec<UiEffect>) {
    match entry_path(model, at) {
        Some(path) => {
            let what = text::clean(&path).into_owned();
            effects.push(UiEffect::Copy(Clip { text: path, what }));
        }
        None => model.show_toast("this entry has no file", now),
    }
}

/// Opens a card's file in the user's editor or, for other entries, the entry as Markdown.
pub(crate) fn edit(model: &mut UiModel, at: usize, now: u64, effects: &mut Vec<UiEffect>) {
    let shown = match entry_path(model, at) {
        Some(path) => EditorTarget::File(path),
        None => match model.transcript.entry(at).map(crate::tui::transcript::TranscriptEntry::markdown) {
            Some(words) if !words.is_empty() => EditorTarget::Text(words),
            _ => return model.show_toast("this entry has no text", now),
        },
    };
    effects.push(UiEffect::Show(shown));
}

/// Handles `/copy`, `/copy 2` (the second-to-last response) and `/copy code` (the last code block).
pub(crate) fn copy(model: &mut UiModel, which: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let nth = match which {
        "" | "code" => 1,
        number => match number.parse::<usize>() {
            Ok(number @ 1..) => number,
            Ok(_) | Err(_) => return model.show_toast("use /copy, /copy code, or /copy 2 for the second-to-last response", now),
        },
    };
    let mut answers = response_texts(&model.transcript);
    let clip = match which {
        "code" => {
            let code = answers.find_map(|words| code_blocks(words).pop());
            code.map(|code| Clip::with_name(code, "the last code block"))
        }
        _ => answers.nth(nth - 1).map(|words| {
            let name = if nth == 1 { "the last response".to_owned() } else { format!("response {nth} from the end") };
            Clip::with_name(words.trim_end().to_owned(), &name)
        }),
    };
    drop(answers);
    let Some(clip) = clip else {
        let words = if which == "code" { "no response contains code yet" } else { "no such response yet" };
        return model.show_toast(words, now);
    };
    take_draft(model, now, effects);
    effects.push(UiEffect::Copy(clip));
}

/// Handles `/export`, such as `/export html` or `/export json FILE`.
pub(crate) fn export(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if !check_session(model, now) {
        return;
    }
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let (form, file) = match ExportForm::from_name(first) {
        Some(form) => (form, rest.trim()),
        // A single word that is not a format is more likely a mistake than a file name.
        None if !words.is_empty() && !words.contains(['.', '/']) => {
            let word = text::clean_line(words);
            let word = text::truncate(&word, 24);
            return model.show_toast(format!("`{word}` is not md, json or html; a file name must contain a dot or a slash"), now);
        }
        None => (ExportForm::from_file_name(words), words),
    };
    take_draft(model, now, effects);
    let path = Some(file).filter(|file| !file.is_empty()).map(Into::into);
    super::worktree::exports(model);
    effects.push(UiEffect::Ask(Query::Export { form, path }));
}

/// Shows the outcome of work done outside the UI, such as copying.
pub(crate) fn report_done(model: &mut UiModel, words: &str, now: u64) {
    model.show_toast(text::clean(words).into_owned(), now);
}

/// Returns the text of each complete response in the conversation, newest first.
fn response_texts(transcript: &Transcript) -> impl Iterator<Item = &str> {
    (0..transcript.len()).rev().filter_map(|at| transcript.entry(at)).filter(|entry| entry.undone.is_none()).filter_map(|entry| {
        match &entry.kind {
            TranscriptEntryKind::Answer { document, state: AnswerState::Done } => Some(document.text()),
            _ => None,
        }
    })
}
