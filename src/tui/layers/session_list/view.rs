//! Rendering of the session list and the preview of the highlighted session.

use super::SessionList;
use crate::protocol::PreviewLineKind;
use crate::text;
use crate::tui::layers::Canvas;
use crate::tui::metrics::GUTTER;
use crate::tui::picker::{draw_separator, split};
use crate::tui::theme::Token;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

/// Draws the list. Returns the position of the cursor.
pub(super) fn draw(sessions: &mut SessionList, area: Rect, buffer: &mut Buffer, canvas: &Canvas<'_>) -> Position {
    let beside = split(area);
    if beside.is_none() && sessions.shows_look {
        // Only the highlighted session remains visible, because hidden sessions cannot be chosen.
        let above = Rect { height: 3.min(area.height), ..area };
        let cursor = sessions.picker.draw_list(above, buffer, canvas.theme, canvas.glyphs);
        let below = Rect { y: area.y + 3.min(area.height), height: area.height.saturating_sub(3), ..area };
        draw_preview(sessions, below, buffer, canvas);
        return cursor;
    }
    let list = beside.map_or(area, |[list, _]| list);
    let cursor = sessions.picker.draw_list(list, buffer, canvas.theme, canvas.glyphs);
    if let Some([_, preview]) = beside {
        draw_separator(preview, buffer, canvas.theme, canvas.glyphs);
        draw_preview(sessions, Rect { x: preview.x - 1, width: preview.width + 2, ..preview }, buffer, canvas);
    }
    cursor
}

fn draw_preview(sessions: &SessionList, area: Rect, buffer: &mut Buffer, canvas: &Canvas<'_>) {
    let width = usize::from(area.width.saturating_sub(GUTTER + 1));
    let x = area.x + 1;
    let Some(look) = sessions.highlighted_preview() else {
        let words = waiting_text(sessions);
        buffer.set_stringn(x + GUTTER, area.y, words, width, canvas.theme.style(Token::Muted));
        return;
    };
    let facts: Vec<String> = look.facts.iter().map(|fact| text::truncate(&text::reveal_line(fact), width).into_owned()).collect();
    let room = usize::from(area.height).saturating_sub(facts.len() + 1);
    let mut rows: Vec<(&str, String, Token)> = Vec::new();
    for one in &look.lines {
        let (sign, token) = match one.kind {
            PreviewLineKind::Prompt => (canvas.glyphs.user, Token::Accent),
            PreviewLineKind::Answer => ("", Token::Text),
            PreviewLineKind::Done => (canvas.glyphs.state.done, Token::Muted),
            PreviewLineKind::Failed => (canvas.glyphs.state.failed, Token::Danger),
            PreviewLineKind::Denied => (canvas.glyphs.state.denied, Token::Warn),
            PreviewLineKind::Waits => (canvas.glyphs.state.waits, Token::Warn),
            PreviewLineKind::Note => (canvas.glyphs.state.note, Token::Muted),
        };
        let words = if one.kind == PreviewLineKind::Answer {
            text::reveal_line(&strip_markdown(&one.text))
        } else {
            text::reveal_line(&one.text)
        };
        // Messages get up to three rows, actions only one.
        let most = if matches!(one.kind, PreviewLineKind::Prompt | PreviewLineKind::Answer) { 3 } else { 1 };
        let pieces = text::wrap(&words, width.max(1));
        let cut = pieces.len() > most;
        for (at, piece) in pieces.into_iter().take(most).enumerate() {
            let mut words = words[piece].trim_end().to_owned();
            if cut && at + 1 == most {
                words = text::truncate(&format!("{words} …"), width).into_owned();
            }
            rows.push((if at == 0 { sign } else { "" }, words, token));
        }
    }
    // The end of the session, where work continues, is always shown.
    let skip = rows.len().saturating_sub(room);
    for ((sign, words, token), y) in rows.iter().skip(skip).zip(area.y..area.bottom()) {
        buffer.set_stringn(x, y, sign, GUTTER.into(), canvas.theme.style(*token));
        buffer.set_stringn(x + GUTTER, y, words, width, canvas.theme.style(*token));
    }
    for (fact, y) in facts.iter().zip(area.bottom().saturating_sub(facts.len() as u16)..area.bottom()) {
        buffer.set_stringn(x + GUTTER, y, fact, width, canvas.theme.style(Token::Faint));
    }
}

fn waiting_text(sessions: &SessionList) -> &'static str {
    if sessions.highlighted().is_some() { "loading" } else { "" }
}

/// Removes Markdown markup and code fences, which would be meaningless in a one-row preview.
fn strip_markdown(answer: &str) -> String {
    let lines = answer.lines().filter(|line| !line.trim_start().starts_with("```"));
    let lines = lines.map(|line| line.trim_start_matches('#').replace("**", "").replace('`', ""));
    lines.collect::<Vec<_>>().join(" ")
}
