//! Context window: its content, and the summary that frees space.

use super::draft::take_draft;
use super::notes::show_requested;
use super::readiness::is_ready;
use crate::protocol::{Command, Compaction, CompactionTrigger, ContextUse, NOT_COMPACTED};
use crate::text;
use crate::tui::format::{format_count, tokens};
use crate::tui::model::{Activity, Effect, Model};
use crate::tui::transcript::{Kind, Tone};

/// Usage from which it is shown in percent.
const FULL_PERCENT: u64 = 50;

/// Handles `/compact`, `/compact FOCUS` and `/compact undo`.
pub(crate) fn compact(model: &mut Model, words: &str, now: u64, effects: &mut Vec<Effect>) {
    if !is_ready(model, now) {
        return;
    }
    take_draft(model, now, effects);
    effects.push(Effect::Send(match words {
        "undo" => Command::UndoCompaction,
        "" => Command::Compact { focus: None },
        focus => Command::Compact { focus: Some(focus.to_owned()) },
    }));
}

/// Handles `/context`.
pub(crate) fn request_context(model: &mut Model, now: u64, effects: &mut Vec<Effect>) {
    if is_ready(model, now) {
        take_draft(model, now, effects);
        effects.push(Effect::Send(Command::ShowContext));
    }
}

pub(crate) fn on_context_shown(model: &mut Model, filled: ContextUse) {
    if filled.used() > 0 {
        model.info.tally.context_tokens = filled.used();
    }
    show_requested(model, Kind::Window(filled));
}

/// Returns the usage of the context window, in percent if it is high.
pub(crate) fn window_usage(model: &Model) -> String {
    let used = model.info.tally.context_tokens;
    match model.context_limit().map(|all| used * 100 / all) {
        Some(percent) if percent >= FULL_PERCENT => format!("Context {percent} %"),
        Some(_) | None => format!("Context {} tokens", tokens(used)),
    }
}

pub(crate) fn on_start(model: &mut Model, trigger: CompactionTrigger, messages: u64, used: u64, now: u64) {
    model.info.tally.context_tokens = used;
    if trigger == CompactionTrigger::TooLong {
        note(model, "the provider reports that the conversation is too long for the model", Tone::Warning);
    }
    model.task.summing_up = Some(messages);
    model.set_activity(Activity::Compacting { messages }, now);
}

pub(crate) fn on_done(model: &mut Model, compaction: &Compaction, now: u64) {
    let Compaction { trigger, focus, summary, model: writer, summarised, kept, tokens_before, tokens_after } = compaction;
    on_end(model, now);
    model.info.tally.context_tokens = *tokens_after;
    let why = match trigger {
        CompactionTrigger::Asked => "",
        CompactionTrigger::Threshold => " because the context window was nearly full",
        CompactionTrigger::TooLong => " because it was too long for the model",
    };
    let focus = focus.as_ref().map(|focus| format!(", focusing on: {}", text::clean_line(focus))).unwrap_or_default();
    let by = writer.as_ref().map(|name| format!(" by {}", text::clean_line(name))).unwrap_or_default();
    let head = format!(
        "Compacted {} into a summary{by}{why}{focus}\n{} → {} tokens, {}; /compact undo reverts it",
        messages(*summarised),
        tokens(*tokens_before),
        tokens(*tokens_after),
        if *kept == 1 { "1 message kept in full".to_owned() } else { format!("{kept} messages kept in full") },
    );
    model.transcript.push(Kind::Summary { head, text: text::clean(summary).trim_end().to_owned() });
}

pub(crate) fn on_undone(model: &mut Model, count: u64, now: u64) {
    on_end(model, now);
    model.info.tally.context_tokens = count;
    note(model, &format!("summary removed, messages restored: {} tokens", tokens(count)), Tone::Plain);
}

pub(crate) fn on_truncated(model: &mut Model, removed: u64) {
    let are = if removed == 1 { "is" } else { "are" };
    let words = format!("the oldest {} {are} no longer sent to the model; /compact makes a summary instead", messages(removed));
    note(model, &words, Tone::Warning);
}

/// Handles a notice with the reason why the summary failed.
pub(crate) fn on_notice(model: &mut Model, words: &str, now: u64) {
    if words.starts_with(NOT_COMPACTED) {
        on_end(model, now);
    }
}

/// Ends the compaction, regardless of its result.
pub(crate) fn on_end(model: &mut Model, now: u64) {
    if model.task.summing_up.take().is_none() {
        return;
    }
    match (model.task.goes_on, &model.task.activity) {
        (false, Activity::Idle) => {}
        (false, _) => model.set_activity(Activity::Idle, now),
        (true, Activity::Compacting { .. }) => model.set_activity(Activity::Thinking, now),
        (true, _) => {}
    }
}

pub(crate) fn messages(count: u64) -> String {
    format_count(usize::try_from(count).unwrap_or(usize::MAX), "message")
}

fn note(model: &mut Model, words: &str, tone: Tone) {
    model.transcript.push(Kind::Note { text: words.to_owned(), tone });
}
