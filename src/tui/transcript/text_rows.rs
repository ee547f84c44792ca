//! Rows common to all kinds of entries: wrapped text, and rows that stand for hidden lines.

use super::RenderContext;
use crate::text;
use crate::tui::format::format_count;
use crate::tui::styled_text::{Row, SpanStyle, StyledText};
use crate::tui::theme::Token;
use ratatui::text::Line;

/// Wraps each line of the text into rows.
pub(crate) fn wrapped(text: &str, width: u16, look: RenderContext<'_>, token: Token) -> Vec<Row> {
    let ink = SpanStyle::from_token(token);
    let lines = text.split('\n').flat_map(|line| StyledText::new(&text::expand_tabs(line), ink).wrap(width.into()));
    lines.map(|row| row.fit_row(width.into(), look.theme)).collect()
}

/// Returns a line as a single row, truncated to the given width.
pub(crate) fn truncated_row(line: &str, width: u16, look: RenderContext<'_>, token: Token) -> Row {
    let line = text::expand_tabs(line);
    Row::from_line(Line::styled(text::truncate(&line, width.into()).into_owned(), look.theme.style(token)))
}

/// Returns a row that gives the number of hidden lines and the key that shows them.
pub(crate) fn more(hidden: usize, look: RenderContext<'_>) -> Row {
    hidden_rows_note(hidden, "line", look)
}

/// Returns a row that gives the number of hidden items and the key that shows them.
pub(crate) fn hidden_rows_note(hidden: usize, noun: &str, look: RenderContext<'_>) -> Row {
    folded_row(format!("{} {}", look.glyphs.more, format_count(hidden, noun)), look)
}

/// Returns the row shown in place of folded text, including the key that unfolds it.
pub(crate) fn folded_row(name: String, look: RenderContext<'_>) -> Row {
    let RenderContext { glyphs, theme, .. } = look;
    let key = if look.browses { "enter" } else { look.unfolds };
    let words = format!("{name} {} {key} unfold", glyphs.dot);
    Row::from_line(Line::styled(words, theme.style(Token::Faint)))
}
