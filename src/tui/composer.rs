//! The draft: what the person is typing.

use super::front::KeptAs;
use super::history::History;
use super::theme::{Theme, Token};
use crate::text;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::widgets::Widget;
use std::io;
use std::path::PathBuf;
use tui_textarea::{CursorMove, TextArea, WrapMode};

/// At most this many rows of the draft are shown.
pub const ROWS: u16 = 10;

#[derive(Debug)]
pub struct Composer {
    area: TextArea<'static>,
    history: History,
}

impl Composer {
    pub fn new(history: Option<PathBuf>, kept_as: KeptAs) -> Self {
        Self { area: text_area(Vec::new()), history: History::new(history).kept_as(kept_as) }
    }

    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub fn set(&mut self, text: &str) {
        self.area = text_area(text.split('\n').map(str::to_owned).collect());
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
    }

    /// The draft, which is empty afterwards and kept in the history.
    pub fn take(&mut self) -> (String, io::Result<()>) {
        let text = self.text();
        self.set("");
        let kept = self.history.add(&text);
        (text, kept)
    }

    pub fn insert(&mut self, text: &str) {
        self.history.leave();
        self.area.insert_str(text);
    }

    pub fn new_line(&mut self) {
        self.history.leave();
        self.area.insert_newline();
    }

    pub fn delete_to_line_start(&mut self) {
        self.area.delete_line_by_head();
    }

    /// The `\` before the cursor made a new line of Enter: it goes.
    pub fn takes_backslash(&mut self) -> bool {
        let (row, column) = (self.area.cursor().0, self.area.cursor().1);
        let ends_in_one = column > 0 && self.area.lines()[row].chars().nth(column - 1) == Some('\\');
        if ends_in_one {
            self.area.delete_char();
        }
        ends_in_one
    }

    /// An editing key; whether the text changed.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let changed = self.area.input(key);
        if changed {
            self.history.leave();
        }
        changed
    }

    /// A line up, or from the first line to the prompt sent before; whether the text changed.
    pub fn up(&mut self) -> bool {
        if self.area.cursor().0 > 0 {
            self.area.move_cursor(CursorMove::Up);
            return false;
        }
        let older = self.history.older(&self.text());
        older.is_some_and(|text| {
            self.set(&text);
            true
        })
    }

    pub fn down(&mut self) -> bool {
        if self.area.cursor().0 + 1 < self.area.lines().len() {
            self.area.move_cursor(CursorMove::Down);
            return false;
        }
        self.history.newer().is_some_and(|text| {
            self.set(&text);
            true
        })
    }

    /// The nth newest of the prompts with these words in them.
    pub fn sent_before(&mut self, words: &str, nth: usize) -> Option<String> {
        self.history.leave();
        self.history.find(words, nth)
    }

    pub fn rows(&self, width: u16) -> u16 {
        let rows: usize = self.area.lines().iter().map(|line| text::wrap(line, width.into()).len().max(1)).take(64).sum();
        (rows.max(1) as u16).min(ROWS)
    }

    /// Rows of the draft above those that were drawn last.
    pub fn rows_above(&self) -> usize {
        self.area.scroll_offset().0.into()
    }

    /// Draws it and says where the cursor is.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Position {
        if self.area.is_empty() {
            return area.as_position();
        }
        (&self.area).render(area, buffer);
        buffer.set_style(area, theme.style(Token::Text));
        cursor(&self.area, area)
    }
}

fn text_area(lines: Vec<String>) -> TextArea<'static> {
    let mut area = TextArea::new(lines);
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    // The terminal's own cursor stands there: screen readers and input methods follow it.
    area.set_cursor_style(Style::new());
    area.set_cursor_line_style(Style::new());
    area
}

fn cursor(text_area: &TextArea<'_>, area: Rect) -> Position {
    let at = text_area.screen_cursor();
    let top = usize::from(text_area.scroll_offset().0);
    let x = area.x + (at.col as u16).min(area.width.saturating_sub(1));
    let y = area.y + (at.row.saturating_sub(top) as u16).min(area.height.saturating_sub(1));
    Position { x, y }
}

/// One line of words in a panel.
#[derive(Debug)]
pub struct Field(TextArea<'static>);

impl Field {
    pub fn new() -> Self {
        let mut area = text_area(Vec::new());
        area.set_wrap_mode(WrapMode::None);
        Self(area)
    }

    pub fn text(&self) -> String {
        self.0.lines().join(" ")
    }

    pub fn insert(&mut self, text: &str) {
        self.0.insert_str(text.replace('\n', " "));
    }

    pub fn key(&mut self, key: KeyEvent) {
        self.0.input(key);
    }

    pub fn draw(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Position {
        (&self.0).render(area, buffer);
        buffer.set_style(area, theme.style(Token::Text));
        cursor(&self.0, area)
    }
}
