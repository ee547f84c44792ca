//! The rows between transcript and composer: what waits, what is queued, what goes on.

use super::GUTTER;
use crate::text;
use crate::tui::approval;
use crate::tui::model::Model;
use crate::tui::status;
use crate::tui::theme::Token;
use crate::tui::update::commands;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// At least so many cells of what it says; what to press gives way.
const WORDS: usize = 24;

pub struct Row {
    sign: &'static str,
    words: String,
    /// What to press.
    right: &'static str,
    token: Token,
}

pub fn rows(model: &mut Model, width: u16, limit: u16, now: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let glyphs = model.glyphs;
    let (transcript, look) = model.transcript_look(now);
    if let Some((new, below)) = transcript.unread(look) {
        let words = if new > 0 { status::counted(new, "new line") } else { format!("{} below", status::counted(below, "line")) };
        let words = format!("{words} {} end", glyphs.dot);
        rows.push(Row { sign: glyphs.down, words, right: "", token: Token::Accent });
    }
    if let Some(words) = approval::strip_words(&model.panels, width, &glyphs) {
        rows.push(Row { sign: glyphs.waits, words, right: "", token: Token::Warn });
    }
    rows.extend(prompts(model, width).map(|words| Row { sign: glyphs.note, words, right: "", token: Token::Muted }));
    // The question comes first; what is queued says it too.
    let asks = !model.panels.is_empty() || !model.task.queued.is_empty();
    if let Some(words) = model.task.paused.filter(|_| !asks && !model.is_running()) {
        let words = format!("{words} {} /continue goes on", glyphs.dot);
        rows.push(Row { sign: glyphs.note, words, right: "", token: Token::Warn });
    }
    if let Some(words) = commands::words(model) {
        rows.push(Row { sign: glyphs.running, words, right: "/ps lists them", token: Token::Muted });
    }
    if let Some((sign, words, right)) = status::activity(model, now) {
        // A panel has the keyboard: Escape is its own.
        let right = if model.panels.is_open() { "" } else { right };
        rows.push(Row { sign, words, right, token: Token::Muted });
    }
    if let Some((words, _)) = &model.said {
        rows.push(Row { sign: "", words: words.clone(), right: "", token: Token::Accent });
    }
    if let Some(search) = &model.search {
        let none = if search.found { String::new() } else { format!(" {} no more", glyphs.dash) };
        let words = format!("sent before: {}{}{none}", search.query, glyphs.cursor);
        rows.push(Row { sign: "", words, right: "", token: if search.found { Token::Accent } else { Token::Warn } });
    }
    // The last ones matter most.
    let limit = usize::from(limit.clamp(1, 4));
    rows.split_off(rows.len().saturating_sub(limit))
}

/// What was sent and has not begun, and what makes it begin.
fn prompts(model: &Model, width: u16) -> impl Iterator<Item = String> {
    let line = |prompt: &String| text::clean(prompt).split_whitespace().collect::<Vec<_>>().join(" ");
    let list = |prompts: &[String]| {
        let room = (usize::from(width).saturating_sub(24) / prompts.len().max(1)).max(12);
        let names: Vec<_> = prompts.iter().map(|prompt| text::truncate(&line(prompt), room).into_owned()).collect();
        names.join(&format!(" {} ", model.glyphs.separator))
    };
    let (sent, queued) = (&model.task.sent, &model.task.queued);
    let waits = !model.is_running() && !model.panels.is_empty();
    let sent = (waits && !sent.is_empty()).then(|| format!("sent after your answer: {}", list(sent)));
    let queued = (!queued.is_empty()).then(|| {
        let how = if model.is_running() { String::new() } else { format!(" {} /continue sends them", model.glyphs.dot) };
        format!("{} queued{how}: {}", queued.len(), list(queued))
    });
    sent.into_iter().chain(queued)
}

pub fn draw(model: &Model, rows: &[Row], area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.width.saturating_sub(GUTTER));
    for (y, row) in (area.y..area.bottom()).zip(rows) {
        let style = model.theme.style(row.token);
        let right = if room < row.right.len() + 2 + WORDS.min(text::width(&row.words)) { "" } else { row.right };
        let room = if right.is_empty() { room } else { room - right.len() - 2 };
        buffer.set_stringn(area.x, y, row.sign, GUTTER.into(), style);
        let line = Line::from(Span::styled(text::truncate(&row.words, room), style));
        buffer.set_line(area.x + GUTTER, y, &line, room as u16);
        let x = area.right().saturating_sub(right.len() as u16);
        buffer.set_stringn(x, y, right, right.len(), model.theme.style(Token::Faint));
    }
}
