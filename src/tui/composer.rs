//! Composer, which contains the draft of the prompt that the user is typing.

mod paste_marks;
mod pastes;
mod rows;

pub(crate) use pastes::label as paste_label;

use super::history::{History, HistoryOptions};
use super::theme::{Theme, Token};
use super::vim::{self, KeyOutcome, Vim, VimMode};
use crate::text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pastes::Pastes;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use std::borrow::Cow;
use std::cell::Cell;
use std::io;
use std::ops::Range;
use tui_textarea::{CursorMove, TextArea};
use unicode_segmentation::UnicodeSegmentation;

/// Maximum number of draft rows that are visible.
pub(crate) const ROWS: u16 = 10;
/// Characters that may follow a chip without a space.
const CLOSING: &str = ",.;:!?)]}>'\"";

#[derive(Debug)]
pub(crate) struct Composer {
    area: TextArea<'static>,
    history: History,
    /// Screen area of the draft in the last frame.
    place: Cell<Rect>,
    /// Index of the first visible row in the last frame.
    top: Cell<usize>,
    /// Vim key handling, if it is enabled.
    vim: Option<Vim>,
    /// Long pastes, which are shown in the draft as chips.
    pastes: Pastes,
}

impl Composer {
    pub(crate) fn new(history: HistoryOptions, vim: bool) -> Self {
        let pastes = history.file.as_ref().map(|file| file.with_file_name("pastes.jsonl"));
        Self {
            area: TextArea::new(Vec::new()),
            history: History::new(history.file).with_redactor(history.redactor),
            place: Cell::default(),
            top: Cell::new(0),
            vim: vim.then(Vim::default),
            pastes: Pastes::new(pastes),
        }
    }

    /// Toggles Vim keys. Returns whether they are now on.
    pub(crate) fn turn_vim(&mut self) -> bool {
        self.vim = if self.vim.is_none() { Some(Vim::default()) } else { None };
        self.vim.is_some()
    }

    /// Returns the name of the current Vim mode, or `None` in insert mode or if Vim keys are off.
    pub(crate) fn vim_mode(&self) -> Option<&'static str> {
        let vim = self.vim.as_ref().filter(|_| !vim::is_too_large(&self.area))?;
        match vim.mode() {
            VimMode::Insert => None,
            _ if vim.is_in_command_line() => Some("COMMAND"),
            VimMode::Normal => Some("NORMAL"),
        }
    }

    /// Handles a key in Vim mode. Returns whether the text changed, or `None` if Vim does not handle the key.
    pub(crate) fn vim_key(&mut self, key: KeyEvent) -> Option<bool> {
        self.edit(|composer| composer.apply_vim_key(key))
    }

    fn apply_vim_key(&mut self, key: KeyEvent) -> Option<bool> {
        // Vim keys are disabled in a draft that is too large for cursor movement.
        let vim = self.vim.as_mut().filter(|_| !vim::is_too_large(&self.area))?;
        let was = vim.mode();
        let is_letter = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match (vim.key(&mut self.area, key), key.code) {
            (KeyOutcome::Moved, _) => Some(false),
            (KeyOutcome::Changed, _) => {
                self.history.adopt_shown();
                Some(true)
            }
            (KeyOutcome::Nothing, KeyCode::Char('j')) if was == VimMode::Normal => Some(self.down()),
            (KeyOutcome::Nothing, KeyCode::Char('k')) if was == VimMode::Normal => Some(self.up()),
            (KeyOutcome::Nothing, KeyCode::Char(_)) if was == VimMode::Normal && is_letter => {
                vim.reset();
                None
            }
            (KeyOutcome::Nothing, _) => {
                if was == VimMode::Insert {
                    vim.record_typed(key);
                }
                None
            }
        }
    }

    /// Returns the draft with its chips replaced by the full text of the pastes.
    pub(crate) fn text(&self) -> String {
        let shown = self.shown_text();
        match self.pastes.unfold(&shown) {
            Cow::Owned(text) => text,
            Cow::Borrowed(_) => shown,
        }
    }

    /// Returns the draft as displayed, with chips in place of long pastes.
    pub(crate) fn shown_text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub(crate) fn set(&mut self, text: &str) {
        let text = self.pastes.fold(text);
        self.area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
        if let Some(vim) = &mut self.vim {
            vim.reset_pending();
        }
    }

    /// Returns the draft and clears it. Also returns the outcome of adding the draft to the history file.
    pub(crate) fn take(&mut self) -> (String, io::Result<()>) {
        let text = self.text();
        self.set("");
        if let Some(vim) = &mut self.vim {
            vim.reset();
        }
        let kept = self.history.add(&text);
        (text, kept)
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.history.adopt_shown();
        self.edit(|composer| composer.area.insert_str(text));
    }

    /// Edits the draft in a way that never damages a chip. If the edit would remove part of a chip, the whole chip is
    /// removed. If the edit would insert text into a chip, the text is inserted after the chip.
    fn edit<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.pastes.has_chips().then(|| (self.shown_text(), cursor(&self.area)));
        let changed = change(self);
        let Some((old, (row, column))) = before else { return changed };
        let new = self.shown_text();
        let Some(whole) = self.pastes.whole_change(&old, &new) else { return changed };
        // Undoing the damage first ensures that no later undo restores it.
        self.area.cancel_selection();
        while self.shown_text() != old {
            if !self.area.undo() {
                self.area = TextArea::new(old.split('\n').map(str::to_owned).collect());
                vim::move_cursor(&mut self.area, vim::Place { row, column });
                break;
            }
        }
        let (start, end) = (whole.range.start, whole.range.end);
        self.move_to(&old[..start]);
        self.delete_text(old[start..end].chars().count());
        self.area.insert_str(whole.text);
        if let Some(vim) = &mut self.vim {
            vim.correct_change(&new, &self.area);
        }
        changed
    }

    /// Moves the cursor to the end of `text`, which must be a prefix of the draft as displayed.
    fn move_to(&mut self, text: &str) {
        let (above, line) = text.rsplit_once('\n').unwrap_or(("", text));
        let row = if line.len() == text.len() { 0 } else { above.matches('\n').count() + 1 };
        vim::move_cursor(&mut self.area, vim::Place { row, column: line.chars().count() });
    }

    /// Deletes `count` characters after the cursor as a single edit, without copying them to the yank buffer.
    fn delete_text(&mut self, count: usize) {
        let copied = self.area.yank_text();
        self.area.delete_str(count);
        self.area.set_yank_text(copied);
    }

    /// Inserts pasted text. If it is long, it is inserted as a chip.
    pub(crate) fn insert_paste(&mut self, pasted: &str) {
        let (shown, before) = (self.shown_text(), self.text_before_cursor());
        match self.pastes.add(pasted, &shown, &before) {
            Some(label) => {
                // Without the file, the paste is shown as text after a restart.
                let _ = self.pastes.record(pasted, |pasted| self.history.redact(pasted));
                self.insert(&label);
            }
            None => self.insert(pasted),
        }
    }

    /// Returns the byte ranges of the long pastes in a prompt.
    pub(crate) fn pastes_in(&mut self, prompt: &str) -> Vec<Range<usize>> {
        self.pastes.ranges_in(prompt)
    }

    /// Returns a prompt with labels in place of long pastes.
    pub(crate) fn abbreviate_pastes(&mut self, prompt: &str) -> String {
        let mut text = prompt.to_owned();
        for range in self.pastes.ranges_in(prompt).into_iter().rev() {
            text.replace_range(range.clone(), &paste_label(&prompt[range]));
        }
        text
    }

    /// Deletes the chip directly before or after the cursor. Returns `false` if there is none.
    fn delete_chip(&mut self, is_before: bool) -> bool {
        // With a selection, the key deletes the selected text.
        if self.area.selection_range().is_some() {
            return false;
        }
        let (row, column) = (self.area.cursor().0, self.area.cursor().1);
        let Some(line) = self.area.lines().get(row) else { return false };
        let at = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        let side = if is_before { &line[..at] } else { &line[at..] };
        let Some(length) = self.pastes.chip_length(side, is_before) else { return false };
        if is_before {
            vim::move_cursor(&mut self.area, vim::Place { row, column: column.saturating_sub(length) });
        }
        self.delete_text(length);
        true
    }

    /// Inserts a space if the key would add a word directly behind a chip.
    fn separate_from_chip(&mut self, key: KeyEvent) {
        let is_command = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let KeyCode::Char(letter) = key.code else { return };
        if is_command || letter.is_whitespace() || CLOSING.contains(letter) || self.area.selection_range().is_some() {
            return;
        }
        if self.pastes.chip_length(&self.before_cursor(), true).is_some() {
            self.area.insert_char(' ');
        }
    }

    /// Returns the draft as displayed, up to the cursor.
    fn text_before_cursor(&self) -> String {
        let (row, _) = cursor(&self.area);
        let above = self.area.lines().iter().take(row).flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
        above + &self.before_cursor()
    }

    /// Returns the current line, up to the cursor.
    pub(crate) fn before_cursor(&self) -> String {
        let (row, column) = (self.area.cursor().0, self.area.cursor().1);
        self.area.lines().get(row).map(|line| line.chars().take(column).collect()).unwrap_or_default()
    }

    /// Inserts a completion, which replaces the text between byte `from` of the current line and the cursor, as well as
    /// a closing quote after the cursor. Then moves the cursor back by `back` characters.
    pub(crate) fn complete(&mut self, from: usize, words: &str, back: usize) {
        self.history.adopt_shown();
        self.edit(|composer| composer.replace_before_cursor(from, words));
        for _ in 0..back {
            self.area.move_cursor(CursorMove::Back);
        }
    }

    fn replace_before_cursor(&mut self, from: usize, words: &str) {
        let column = self.area.cursor().1;
        for _ in from..column {
            self.area.delete_char();
        }
        let last = words.trim_end_matches(' ').chars().next_back().filter(|letter| *letter == '"');
        let (row, column) = (self.area.cursor().0, self.area.cursor().1);
        if last.is_some() && self.area.lines().get(row).and_then(|line| line.chars().nth(column)) == last {
            self.area.delete_next_char();
        }
        self.area.insert_str(words);
    }

    /// Replaces pasted text that has not been edited since. Returns `false` if it is no longer in the draft. Text after
    /// it is preserved.
    pub(crate) fn replace_paste(&mut self, pasted: &str, words: impl FnOnce(&str) -> String) -> bool {
        let text = self.shown_text();
        let cursor = self.text_before_cursor().len().min(text.len());
        // The most recent paste is the last match before the cursor, either as text or as a chip.
        let find = |shown: &str| text[..cursor].rfind(shown).map(|start| (start, shown.len()));
        let label = self.pastes.label_of(pasted);
        let Some((start, length)) = find(pasted).or_else(|| label.and_then(find)) else { return false };
        let (before, after) = (&text[..start], &text[start + length..]);
        let words = words(before);
        let before = before.strip_suffix('@').unwrap_or(before);
        let behind = cursor - start - length;
        let to = format!("{before}{words}{}", &after[..behind]);
        self.history.adopt_shown();
        self.set(&format!("{to}{}", &after[behind..]));
        self.move_to(&to);
        true
    }

    /// Returns whether the composer shows an earlier prompt from the history.
    pub(crate) fn is_browsing(&self) -> bool {
        self.history.is_browsing()
    }

    /// Returns the earlier prompts that start with `start`, newest first, without duplicates.
    pub(crate) fn prompts_starting_with(&mut self, start: &str) -> Vec<String> {
        self.history.starting_with(start)
    }

    pub(crate) fn new_line(&mut self) {
        self.history.adopt_shown();
        self.edit(|composer| composer.area.insert_newline());
    }

    pub(crate) fn delete_to_line_start(&mut self) {
        self.edit(|composer| composer.area.delete_line_by_head());
    }

    /// Removes a `\` directly before the cursor, which makes Enter insert a line break instead of sending the draft.
    /// Returns whether there was one.
    pub(crate) fn take_backslash(&mut self) -> bool {
        let (row, column) = (self.area.cursor().0, self.area.cursor().1);
        let ends_in_one = column > 0 && self.area.lines()[row].chars().nth(column - 1) == Some('\\');
        if ends_in_one {
            self.area.delete_char();
        }
        ends_in_one
    }

    /// Handles a key that edits the draft. Returns whether the text changed.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let deletes = |code| key.code == code && key.modifiers.is_empty();
        let is_of_chip =
            (deletes(KeyCode::Backspace) && self.delete_chip(true)) || (deletes(KeyCode::Delete) && self.delete_chip(false));
        self.separate_from_chip(key);
        let changed = is_of_chip || self.edit(|composer| composer.area.input(key));
        if changed {
            self.history.adopt_shown();
        }
        changed
    }

    /// Moves the cursor up one line. From the first line, shows the previous prompt in the history instead. Returns
    /// whether the text changed.
    pub(crate) fn up(&mut self) -> bool {
        if self.area.cursor().0 > 0 {
            self.area.move_cursor(CursorMove::Up);
            return false;
        }
        let older = self.history.previous(&self.text());
        older.is_some_and(|text| {
            self.set(&text);
            true
        })
    }

    pub(crate) fn down(&mut self) -> bool {
        if self.area.cursor().0 + 1 < self.area.lines().len() {
            self.area.move_cursor(CursorMove::Down);
            return false;
        }
        self.history.following().is_some_and(|text| {
            self.set(&text);
            true
        })
    }

    /// Returns an earlier prompt that contains `words`. `nth` is the index of the match, counted from the newest.
    pub(crate) fn find_prompt(&mut self, words: &str, nth: usize) -> Option<String> {
        self.history.adopt_shown();
        self.history.find(words, nth)
    }

    pub(crate) fn rows(&self, width: u16) -> u16 {
        rows::count(self.area.lines(), width.into(), ROWS.into()) as u16
    }

    /// Returns the number of draft rows that are hidden above the visible ones.
    pub(crate) fn rows_above(&self) -> usize {
        self.top.get()
    }

    /// Moves the cursor to the clicked position. Does nothing if any line is wrapped or any row is hidden.
    pub(crate) fn click(&mut self, column: u16, row: u16) {
        let place = self.place.get();
        let lines = self.area.lines();
        let is_plain =
            lines.len() <= usize::from(place.height) && lines.iter().all(|line| text::width(line) < usize::from(place.width));
        if !is_plain || !place.contains(Position { x: column, y: row }) {
            return;
        }
        let line = usize::from(row - place.y).min(lines.len().saturating_sub(1));
        let (mut cells, mut at) = (0, 0);
        for grapheme in lines[line].graphemes(true) {
            cells += text::width(grapheme);
            if cells > usize::from(column - place.x) {
                break;
            }
            at += grapheme.chars().count();
        }
        vim::move_cursor(&mut self.area, vim::Place { row: line, column: at });
    }

    /// Draws the draft. Returns the position of the cursor.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Position {
        self.place.set(area);
        if self.area.is_empty() {
            self.top.set(0);
            return area.as_position();
        }
        let (style, mut top) = (theme.style(Token::Text), self.top.get());
        let position = rows::draw(self.area.lines(), cursor(&self.area), &mut top, area, buffer, style);
        self.top.set(top);
        if let Some(selected) = self.area.selection_range() {
            rows::mark(self.area.lines(), selected, top, area, buffer);
        }
        position
    }
}

/// Returns the cursor's line index and character index. The terminal's cursor is placed there, because screen readers
/// and input methods rely on it.
fn cursor(area: &TextArea<'_>) -> (usize, usize) {
    (area.cursor().0, area.cursor().1)
}

/// One-line text field shown in a panel.
#[derive(Debug)]
pub(crate) struct TextField(TextArea<'static>);

impl TextField {
    pub(crate) fn new() -> Self {
        Self(TextArea::new(Vec::new()))
    }

    pub(crate) fn text(&self) -> String {
        self.0.lines().join(" ")
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.0.insert_str(text.replace('\n', " "));
    }

    pub(crate) fn key(&mut self, key: KeyEvent) {
        self.0.input(key);
    }

    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Position {
        let line = self.0.lines().first().map_or("", String::as_str);
        rows::draw_line(line, cursor(&self.0).1, area, buffer, theme.style(Token::Text))
    }
}

/// Multi-line text field shown in a panel, for editing a file, hunk or command.
#[derive(Debug)]
pub(crate) struct Lines {
    area: TextArea<'static>,
    /// Index of the first visible row in the last frame.
    top: Cell<usize>,
}

impl Lines {
    pub(crate) fn new(text: &str) -> Self {
        let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
        area.set_hard_tab_indent(text.lines().any(|line| line.starts_with('\t')));
        Self { area, top: Cell::new(0) }
    }

    pub(crate) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub(crate) fn rows(&self) -> usize {
        self.area.lines().len()
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.area.insert_str(text);
    }

    pub(crate) fn new_line(&mut self) {
        self.area.insert_newline();
    }

    pub(crate) fn key(&mut self, key: KeyEvent) {
        self.area.input(key);
    }

    pub(crate) fn go_to_end(&mut self) {
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
    }

    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Position {
        let (style, mut top) = (theme.style(Token::Text), self.top.get());
        let position = rows::draw(self.area.lines(), cursor(&self.area), &mut top, area, buffer, style);
        self.top.set(top);
        position
    }
}
