//! Context window usage, and compaction.

use super::draft::take_draft;
use super::notes::note_event;
use super::readiness::is_ready;
use crate::protocol::{Command, Compaction, CompactionTrigger, ContextUse, EventKind, NoticeKind};
use crate::text;
use crate::tui::format::{format_count, tokens};
use crate::tui::model::{Activity, UiEffect, UiModel};
use crate::tui::picker::Row;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Usage, in percent, from which it is displayed in percent instead of tokens.
const FULL_PERCENT: u64 = 50;
/// Length of the longest bar in the list, in cells.
const BAR: usize = 20;

/// Handles `/compact`, `/compact FOCUS` and `/compact undo`.
pub(crate) fn compact(model: &mut UiModel, words: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if !is_ready(model, now) {
        return;
    }
    take_draft(model, now, effects);
    effects.push(UiEffect::Send(match words {
        "undo" => Command::UndoCompaction,
        "" => Command::Compact { focus: None },
        focus => Command::Compact { focus: Some(focus.to_owned()) },
    }));
}

/// Handles `/context`.
pub(crate) fn request_context(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if is_ready(model, now) {
        take_draft(model, now, effects);
        effects.push(UiEffect::Send(Command::ShowContext));
    }
}

/// Returns one list row per share of the context window, each with a bar.
pub(crate) fn context_rows(model: &UiModel, filled: &ContextUse) -> Vec<Row> {
    let glyphs = &model.screen.glyphs;
    let window = filled.window.max(1);
    let most = filled.shares.iter().map(|share| share.tokens).max().unwrap_or(0).max(1);
    let row = |name: String, count: u64, bar: String, detail: String| {
        let percent = count.saturating_mul(100) / window;
        let percent = if percent == 0 && count > 0 { "<1 %".to_owned() } else { format!("{percent} %") };
        Row { key: name.clone(), cells: vec![name, tokens(count), percent, bar], mark: "", lacks: None, detail }
    };
    let shares = filled.shares.iter().map(|share| {
        let name = text::reveal_line(&share.name);
        let count = if share.count > 1 { format!(" ({})", share.count) } else { String::new() };
        let bar = glyphs.block.repeat(bar_cells(share.tokens, most));
        let items = format_count(usize::try_from(share.count).unwrap_or(usize::MAX), "item");
        let detail = format!("{name}: {} tokens in {items}", tokens(share.tokens));
        row(format!("{name}{count}"), share.tokens, bar, detail)
    });
    let free = window.saturating_sub(filled.used().saturating_add(filled.reserved));
    let reserved = "kept free for the model's response".to_owned();
    let rest = [
        row("reserved for output".to_owned(), filled.reserved, String::new(), reserved),
        row("free".to_owned(), free, String::new(), "left for messages and tool results".to_owned()),
    ];
    shares.chain(rest).collect()
}

/// Returns the overall context window usage, such as `30 %, 61.3k of 200k tokens`.
pub(crate) fn context_summary(filled: &ContextUse) -> String {
    let (used, window) = (filled.used(), filled.window);
    format!("{} %, {} of {} tokens", used.saturating_mul(100) / window.max(1), tokens(used), tokens(window))
}

/// Returns notices that say how many tokens `/compact` would free, when compaction runs automatically, and how the
/// tokens were counted.
pub(crate) fn context_notices(model: &UiModel, filled: &ContextUse) -> Vec<String> {
    let frees = match filled.compactable {
        0 => "/compact would free nothing now".to_owned(),
        count => format!("/compact would free about {} tokens", tokens(count)),
    };
    let own = match filled.compacts_at_percent {
        Some(percent) => format!("runs automatically at {percent} %"),
        None => "never runs automatically".to_owned(),
    };
    let counted = match filled.counted {
        0 => "all counts are estimates".to_owned(),
        count => format!("{} tokens counted by the provider, the rest estimated", tokens(count)),
    };
    let name = text::reveal_line(&filled.model);
    vec![name, format!("{frees} {} {own}", model.screen.glyphs.dot), counted]
}

/// Returns the length of a bar in cells. Every non-empty share gets at least one cell.
fn bar_cells(count: u64, most: u64) -> usize {
    let exact = u128::from(count) * BAR as u128 / u128::from(most);
    usize::try_from(exact).unwrap_or(BAR).max(usize::from(count > 0)).min(BAR)
}

/// Returns the context window usage, in percent if it is high and in tokens otherwise.
pub(crate) fn window_usage(model: &UiModel) -> String {
    let used = model.info.tally.context_tokens;
    match model.context_limit().map(|all| used * 100 / all) {
        Some(percent) if percent >= FULL_PERCENT => format!("Context {percent} %"),
        Some(_) | None => format!("Context {} tokens", tokens(used)),
    }
}

pub(crate) fn on_start(model: &mut UiModel, trigger: CompactionTrigger, messages: u64, used: u64, now: u64) {
    model.info.tally.context_tokens = used;
    if trigger == CompactionTrigger::TooLong {
        note(model, "the provider reports that the conversation is too long for the model", NoteTone::Warning);
    }
    model.task.summarized_messages = Some(messages);
    model.set_activity(Activity::Compacting { messages }, now);
}

pub(crate) fn on_done(model: &mut UiModel, compaction: &Compaction, now: u64) {
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
    model.transcript.push(TranscriptEntryKind::Summary { head, text: text::clean(summary).trim_end().to_owned() });
}

pub(crate) fn on_undone(model: &mut UiModel, count: u64, now: u64) {
    on_end(model, now);
    model.info.tally.context_tokens = count;
    note_event(model, &EventKind::CompactionUndone { tokens: count }, "");
}

pub(crate) fn on_truncated(model: &mut UiModel, removed: u64) {
    note_event(model, &EventKind::ContextTruncated { removed }, "; /compact makes a summary instead");
}

/// Ends the compaction if the notice reports that it failed.
pub(crate) fn on_notice(model: &mut UiModel, kind: Option<NoticeKind>, now: u64) {
    if kind == Some(NoticeKind::NotCompacted) {
        on_end(model, now);
    }
}

/// Ends the compaction, whatever its outcome.
pub(crate) fn on_end(model: &mut UiModel, now: u64) {
    if model.task.summarized_messages.take().is_none() {
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

fn note(model: &mut UiModel, words: &str, tone: NoteTone) {
    model.transcript.push(TranscriptEntryKind::Note { text: words.to_owned(), tone });
}
