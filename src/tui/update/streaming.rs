//! Responses and reasoning as they are streamed.

use super::activity::set_activity;
use crate::text;
use crate::tui::markdown::MarkdownDocument;
use crate::tui::model::{Activity, UiModel};
use crate::tui::theme::ColourDepth;
use crate::tui::transcript::{AnswerState, TranscriptEntryKind};

pub(crate) fn text_chunk(model: &mut UiModel, chunk: &str, now: u64) {
    set_activity(model, Activity::Answering, now);
    end_reasoning(model);
    if let Some(document) = model.transcript.streaming_mut() {
        return document.push(chunk);
    }
    let is_colourless = model.options.terminal.colours == ColourDepth::None;
    let mut document = if is_colourless { MarkdownDocument::colourless() } else { MarkdownDocument::new() };
    document.push(chunk);
    model.transcript.push(TranscriptEntryKind::Answer { document, state: AnswerState::Streaming });
}

pub(crate) fn reasoning_chunk(model: &mut UiModel, chunk: &str, now: u64) {
    if model.task.activity == Activity::Idle {
        model.set_activity(Activity::Thinking, now);
    }
    if let Some(entry) = model.transcript.last_mut()
        && let TranscriptEntryKind::Reasoning { text, filter, live: true } = &mut entry.kind
    {
        filter.push(chunk, text);
        return entry.forget_layout();
    }
    let (mut text, mut filter) = (String::new(), text::Filter::default());
    filter.push(chunk, &mut text);
    model.transcript.push(TranscriptEntryKind::Reasoning { text, filter, live: true });
}

fn end_reasoning(model: &mut UiModel) {
    if let Some(entry) = model.transcript.last_mut()
        && let TranscriptEntryKind::Reasoning { text, filter, live } = &mut entry.kind
        && std::mem::replace(live, false)
    {
        filter.finish(text);
        entry.forget_layout();
    }
}

/// Completes the reasoning and response being streamed, if any.
pub(crate) fn complete_response(model: &mut UiModel) {
    end_reasoning(model);
    let Some(entry) = model.transcript.last_answer_mut() else { return };
    if let TranscriptEntryKind::Answer { document, state } = &mut entry.kind
        && *state == AnswerState::Streaming
    {
        document.finish();
        *state = AnswerState::Done;
        model.info.last_answer = Some(document.text().to_owned());
    }
}
