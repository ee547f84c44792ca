//! Rendering of the theme list, with a sample of the highlighted theme's colours.

use super::{SAMPLE, ThemeList};
use crate::protocol::FileDiffs;
use crate::tui::diff::Diff;
use crate::tui::glyphs::Glyphs;
use crate::tui::metrics::GUTTER;
use crate::tui::picker::{draw_separator, split};
use crate::tui::theme::{Theme, Token};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// Minimum screen height, in rows, at which a narrow screen shows the sample below the list.
const ROOMY: u16 = 18;

/// Draws the list. Returns the position of the cursor.
pub(super) fn draw(list: &mut ThemeList, area: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) -> Position {
    if let Some([left, preview]) = split(area) {
        draw_separator(preview, buffer, theme, glyphs);
        draw_sample(preview, buffer, theme, glyphs);
        return list.picker.draw_list(left, buffer, theme, glyphs);
    }
    let rows = sample(area.width.saturating_sub(GUTTER), theme, glyphs).len() as u16;
    let height = if area.height >= ROOMY { rows + 1 } else { 0 };
    let above = Rect { height: area.height - height, ..area };
    let below = Rect {
        x: area.x + GUTTER,
        y: above.bottom() + 1,
        width: area.width.saturating_sub(GUTTER),
        height: height.saturating_sub(1),
    };
    draw_sample(below, buffer, theme, glyphs);
    list.picker.draw_list(above, buffer, theme, glyphs)
}

fn draw_sample(area: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) {
    for (line, y) in sample(area.width, theme, glyphs).iter().zip(area.y..area.bottom()) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// Returns sample text and a sample diff that together use all colours of the theme.
fn sample(width: u16, theme: &Theme, glyphs: &Glyphs) -> Vec<Line<'static>> {
    let said = |sign: &'static str, words: &'static str, token: Token| {
        Line::from(vec![Span::styled(format!("{sign} "), theme.symbol(token)), Span::styled(words, theme.style(token))])
    };
    let words = |parts: &[(&'static str, Token)]| {
        Line::from(parts.iter().map(|(words, token)| Span::styled(format!("{words}  "), theme.style(*token))).collect::<Vec<_>>())
    };
    let mut lines = vec![
        said(glyphs.user, "Make the greeting friendlier", Token::Accent),
        words(&[("text", Token::Text), ("muted", Token::Muted), ("faint", Token::Faint), ("heading", Token::Heading)]),
        words(&[("`code`", Token::Code), ("a link", Token::Link), ("a quote", Token::Quote)]),
        said(glyphs.state.done, "Edit src/greet.rs", Token::Ok),
        words(&[("warning", Token::Warn), ("failure", Token::Danger), ("critical", Token::Critical)]),
    ];
    let diff = Diff::new(&FileDiffs::read(SAMPLE), None);
    lines.extend(diff.rows(width.max(1), 0..diff.height(width.max(1)), theme));
    lines
}
