//! Viewer for long text, shown in place of the transcript.

use super::{Canvas, LayerContext, Reaction, ScreenLayer};
use crate::protocol::{Artifact, size};
use crate::text;
use crate::tui::keymap::Focus;
use crate::tui::metrics::GUTTER;
use crate::tui::theme::Token;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use std::ops::Range;

pub(crate) struct TextViewer {
    /// Title, shown in the row above the text.
    pub title: String,
    /// Index of the first visible row.
    pub top: usize,
    /// Number of text rows visible in the last frame.
    page: usize,
    /// Letter of the ctrl key that opened the viewer, if any. The same key closes it.
    opened_by: Option<char>,
    /// Text to show, without control characters.
    text: String,
    /// Layout: the width in cells for which it was computed, and the byte range of each row.
    rows: (u16, Vec<Range<usize>>),
}

impl TextViewer {
    pub(crate) fn new(artifact: &Artifact, content: &str) -> Self {
        let name = text::reveal_line(&artifact.name);
        Self::from_text(format!("{name}, {}, {}", size(artifact.bytes), artifact.uri), content)
    }

    /// Creates a viewer for `content` with the given title.
    pub(crate) fn with_title(title: &str, content: &str) -> Self {
        Self::from_text(text::reveal_line(title), content)
    }

    fn from_text(title: String, content: &str) -> Self {
        let mut cleaner = text::Cleaner::new();
        let mut clean = String::new();
        cleaner.push(content, &mut clean);
        cleaner.finish(&mut clean);
        Self { title, top: 0, page: 1, opened_by: None, text: clean, rows: (0, Vec::new()) }
    }

    /// Returns the viewer with the letter of the ctrl key that opened it, which then also closes it.
    pub(crate) fn opened_by(self, letter: char) -> Self {
        Self { opened_by: Some(letter), ..self }
    }

    /// Returns the visible rows. If `top` is past the last page, moves it back.
    pub(crate) fn view(&mut self, width: u16, height: usize) -> impl Iterator<Item = &str> {
        if self.rows.0 != width {
            self.rows = (width, wrap_rows(&self.text, width.max(1).into()));
        }
        let rows = &self.rows.1;
        self.top = self.top.min(rows.len().saturating_sub(height));
        rows[self.top..].iter().take(height).map(|row| &self.text[row.clone()])
    }

    /// Returns the total number of rows in the current layout.
    fn count(&self) -> usize {
        self.rows.1.len()
    }
}

impl ScreenLayer for TextViewer {
    fn focus(&self) -> Focus {
        Focus::Reader
    }

    fn stays_above_question(&self) -> bool {
        false
    }

    fn replaces_composer(&self) -> bool {
        false
    }

    /// Handles a key. A key that does not scroll closes the viewer and is passed on to the view below.
    fn key(&mut self, key: KeyEvent, _around: LayerContext) -> Reaction {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => self.top = self.top.saturating_sub(1),
            KeyCode::Down => self.top += 1,
            KeyCode::PageUp => self.top = self.top.saturating_sub(self.page),
            KeyCode::PageDown => self.top += self.page,
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = usize::MAX,
            KeyCode::Esc | KeyCode::Char('q') => return Reaction::Close,
            KeyCode::Char(letter) if ctrl && self.opened_by == Some(letter) => return Reaction::Close,
            _ => return Reaction::ClosePass,
        }
        Reaction::Done
    }

    fn wheel(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows);
    }

    fn draw(&mut self, area: Rect, buffer: &mut Buffer, canvas: &Canvas<'_>) -> Option<Position> {
        let width = area.width.saturating_sub(GUTTER);
        let title = text::truncate(&self.title, width.into()).into_owned();
        buffer.set_stringn(area.x + GUTTER, area.y, title, width.into(), canvas.theme.style(Token::Heading));
        let height = usize::from(area.height.saturating_sub(1));
        self.page = height.max(1);
        let style = canvas.theme.style(Token::Text);
        for (y, row) in (area.y + 1..area.bottom()).zip(self.view(width, height)) {
            buffer.set_stringn(area.x + GUTTER, y, row, width.into(), style);
        }
        if self.top + height < self.count() {
            buffer.set_stringn(area.x, area.bottom() - 1, canvas.glyphs.down, 1, canvas.theme.style(Token::Accent));
        }
        None
    }

    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        vec!["esc close", "up down pgup pgdn scroll"]
    }
}

fn wrap_rows(content: &str, width: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut start = 0;
    for line in content.split_inclusive('\n') {
        let words = line.trim_end_matches('\n');
        rows.extend(text::wrap_exact(words, width).into_iter().map(|row| start + row.start..start + row.end));
        start += line.len();
    }
    rows
}
