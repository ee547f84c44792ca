//! Full-screen view of the files that the session has changed, with the selected file's diff.

use super::{Canvas, LayerContext, LayerRequest, Reaction, ScreenLayer};
use crate::protocol::{ChangedFile, ChangedFiles};
use crate::text;
use crate::tui::diff::Diff;
use crate::tui::format::format_count;
use crate::tui::glyphs::Glyphs;
use crate::tui::keymap::Focus;
use crate::tui::metrics::GUTTER;
use crate::tui::theme::{Theme, Token};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use std::path::Path;

/// Maximum number of rows that show notes.
const MAX_NOTES: usize = 4;
/// Minimum width, in cells, to which a name is truncated.
const NAME: usize = 12;

pub(crate) struct ChangesView {
    changed: ChangedFiles,
    /// Index of the selected file, whose diff is shown.
    at: usize,
    diff: Option<Diff>,
    /// Index of the first visible diff row.
    top: usize,
    /// Number of diff rows visible in the last frame. `rows` is the total number of diff rows.
    shown: usize,
    rows: usize,
}

impl ChangesView {
    pub(crate) fn new(changed: ChangedFiles) -> Self {
        let mut changes = Self { changed, at: 0, diff: None, top: 0, shown: 1, rows: 0 };
        changes.open(0);
        changes
    }

    /// Replaces the list of files. The selected file stays selected if it is still in the list.
    pub(crate) fn set_files(&mut self, changed: ChangedFiles) {
        let open = self.changed.files.get(self.at).map(|file| file.path.clone());
        let at = changed.files.iter().position(|file| Some(&file.path) == open.as_ref());
        let top = self.top;
        *self = Self::new(changed);
        if let Some(at) = at {
            self.open(at);
            self.top = top;
        }
    }

    fn open(&mut self, at: usize) {
        self.at = at;
        self.top = 0;
        let file = self.changed.files.get(at).filter(|file| !file.diff.is_empty());
        self.diff = file.map(|file| Diff::new(&file.diff, Some(Path::new(&file.path))));
    }

    /// Selects the next or previous file, wrapping around at the ends.
    fn turn(&mut self, forward: bool) {
        let count = self.changed.files.len();
        if count > 0 {
            self.open((self.at + if forward { 1 } else { count - 1 }) % count);
        }
    }

    fn scroll_by(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows).min(self.rows.saturating_sub(self.shown));
    }

    fn draw_all(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) {
        let inner = Rect { x: area.x + GUTTER, width: area.width.saturating_sub(GUTTER), ..area };
        let mut y = area.y;
        let mut put = |buffer: &mut Buffer, x: u16, line: &Line<'_>| {
            if y < area.bottom() {
                buffer.set_line(x, y, line, area.right().saturating_sub(x));
            }
            y = y.saturating_add(1);
        };
        let count = self.changed.files.len();
        let room = (usize::from(area.height) / 3).max(3).min(count);
        put(buffer, inner.x, &self.head(theme, glyphs, inner.width, room < count));
        for note in self.notes(inner.width) {
            put(buffer, inner.x, &Line::styled(note, theme.style(Token::Warn)));
        }
        if self.changed.files.is_empty() {
            let words = "No changes: every file is as it was at that time.";
            for part in text::wrap(words, inner.width.into()) {
                put(buffer, inner.x, &Line::styled(&words[part], theme.style(Token::Text)));
            }
            return;
        }
        let first = self.at.saturating_sub(room / 2).min(count - room);
        for at in first..first + room {
            put(buffer, area.x, &self.row(at, area.width, theme, glyphs));
        }
        put(buffer, area.x, &Line::styled(glyphs.rule.repeat(area.width.into()), theme.style(Token::Faint)));
        let body = Rect { y, height: area.bottom().saturating_sub(y), ..inner };
        self.draw_body(body, buffer, theme, glyphs);
    }

    /// Returns the title. If the list of files is truncated, the title includes the selected file's position.
    fn head(&self, theme: &Theme, glyphs: &Glyphs, width: u16, is_cut: bool) -> Line<'static> {
        let since = if self.changed.since_task.is_some() { "this task" } else { "this session" };
        let counts = self.changed.summary().map_or_else(String::new, |counts| format!(" {} {counts}", glyphs.dot));
        let place = format!(" {} {} of {}", glyphs.dot, self.at + 1, self.changed.files.len());
        let counts = if is_cut { counts + &place } else { counts };
        let long = format!("Changed since {since} began{counts}");
        let words = if text::width(&long) <= width.into() { long } else { format!("Changed{counts}") };
        let words = words.replace('−', glyphs.minus);
        Line::styled(text::truncate(&words, width.into()).into_owned(), theme.style(Token::Heading))
    }

    fn notes(&self, width: u16) -> Vec<String> {
        let more = match self.changed.more_files {
            0 => None,
            more => Some(format!("{} more not listed", format_count(usize::try_from(more).unwrap_or(usize::MAX), "file"))),
        };
        let notes = more.iter().chain(&self.changed.notes).map(|note| line(note));
        let rows = notes.flat_map(|note| {
            let parts = text::wrap(&note, width.into());
            parts.into_iter().map(|part| note[part].to_owned()).collect::<Vec<_>>()
        });
        rows.take(MAX_NOTES).collect()
    }

    /// Returns the row of a file, such as `❯ M src/main.rs  +3 −1  aye, a command`.
    fn row(&self, at: usize, width: u16, theme: &Theme, glyphs: &Glyphs) -> Line<'static> {
        let Some(file) = self.changed.files.get(at) else { return Line::default() };
        let open = at == self.at;
        let by: Vec<_> = file.by.iter().map(|by| by.description()).collect();
        let counts = if file.added + file.removed > 0 {
            format!("  +{} {}{}", file.added, glyphs.minus, file.removed)
        } else {
            String::new()
        };
        let by = format!("  {}", by.join(", "));
        let sign = if open { glyphs.user } else { "" };
        let lead = format!("{sign:<2}{} ", file.status.status_char());
        let room = usize::from(width).saturating_sub(text::width(&lead) + text::width(&counts));
        let name = line(&file.path);
        let by = if text::width(&name).max(NAME) + text::width(&by) <= room { by } else { String::new() };
        let name = text::truncate_middle(&name, room.saturating_sub(text::width(&by)).max(NAME)).into_owned();
        Line::from(vec![
            Span::styled(lead, theme.style(if open { Token::Accent } else { Token::Muted })),
            Span::styled(name, theme.style(if open { Token::Heading } else { Token::Text })),
            Span::styled(counts, theme.style(Token::Muted)),
            Span::styled(by, theme.style(Token::Faint)),
        ])
    }

    fn draw_body(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) {
        let Some(file) = self.changed.files.get(self.at) else { return };
        let notes = note_rows(file, area.width);
        let height = self.diff.as_ref().map_or(0, |diff| diff.height(area.width));
        self.rows = notes.len() + height;
        let room = usize::from(area.height);
        // The counter of hidden lines uses the last row.
        let counts = self.rows.saturating_sub(self.top) > room && room > 1;
        self.shown = room - usize::from(counts);
        self.top = self.top.min(self.rows.saturating_sub(self.shown));
        let range = self.top..self.top + self.shown;
        let mut lines: Vec<Line<'static>> = notes
            .iter()
            .map(|note| Line::styled(note.clone(), theme.style(Token::Muted)))
            .skip(range.start)
            .take(range.len())
            .collect();
        if let Some(diff) = &self.diff {
            let at = |row: usize| row.saturating_sub(notes.len());
            lines.extend(diff.rows(area.width, at(range.start)..at(range.end), theme));
        }
        for (y, line) in (area.y..area.bottom()).zip(&lines) {
            buffer.set_line(area.x, y, line, area.width);
        }
        if counts {
            let left = self.rows - self.top - self.shown.min(self.rows - self.top);
            let words = format!("{} {} below {} pgdn", glyphs.down, format_count(left, "line"), glyphs.dot);
            let line = Line::styled(words, theme.style(Token::Warn));
            buffer.set_line(area.x - GUTTER, area.bottom() - 1, &line, area.width + GUTTER);
        }
    }
}

impl ScreenLayer for ChangesView {
    fn focus(&self) -> Focus {
        Focus::Reader
    }

    fn key(&mut self, key: KeyEvent, _around: LayerContext) -> Reaction {
        let page = self.shown.max(1).cast_signed();
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if ctrl => return Reaction::Close,
            KeyCode::Char('u') if ctrl => self.scroll_by(-page / 2),
            KeyCode::Char('d') if ctrl => self.scroll_by(page / 2),
            KeyCode::Char(_) if ctrl => return Reaction::Pass,
            KeyCode::Esc | KeyCode::Char('q') => return Reaction::Close,
            KeyCode::Up | KeyCode::Char('k') => self.scroll_by(-1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll_by(1),
            KeyCode::PageUp => self.scroll_by(-page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_by(page),
            KeyCode::Home | KeyCode::Char('g') => self.scroll_by(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.scroll_by(isize::MAX),
            KeyCode::Char('n') | KeyCode::Tab | KeyCode::Right => self.turn(true),
            KeyCode::Char('p') | KeyCode::BackTab | KeyCode::Left => self.turn(false),
            KeyCode::Char('r') => return Reaction::Request(LayerRequest::ReloadChanges),
            _ => return Reaction::Pass,
        }
        Reaction::Done
    }

    fn wheel(&mut self, rows: isize) {
        self.scroll_by(rows);
    }

    fn draw(&mut self, area: Rect, buffer: &mut Buffer, canvas: &Canvas<'_>) -> Option<Position> {
        self.draw_all(area, buffer, canvas.theme, canvas.glyphs);
        None
    }

    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        if self.changed.files.is_empty() {
            return vec!["esc close", "r refresh"];
        }
        vec!["esc close", "n p switch file", "up down pgup pgdn scroll", "r refresh"]
    }
}

/// Returns the note about a file, such as the reason why it has no diff, wrapped into rows.
fn note_rows(file: &ChangedFile, width: u16) -> Vec<String> {
    let Some(note) = &file.note else { return Vec::new() };
    let note = line(note);
    text::wrap(&note, width.into()).into_iter().map(|part| note[part].to_owned()).collect()
}

/// Returns the text on one line, with control characters made visible.
fn line(words: &str) -> String {
    text::reveal(words).replace(['\n', '\r'], " ")
}
