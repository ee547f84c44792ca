//! Full-screen view of one review finding, with its explanation and the part of the file's diff that it refers to.

use super::{Canvas, LayerContext, LayerRequest, Reaction, ScreenLayer};
use crate::protocol::{Finding, Review, Severity};
use crate::text;
use crate::tui::diff::Diff;
use crate::tui::glyphs::Glyphs;
use crate::tui::keymap::Focus;
use crate::tui::metrics::GUTTER;
use crate::tui::theme::{Theme, Token};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use std::path::Path;

/// Number of rows in the heading.
const HEAD_ROWS: u16 = 2;
/// Minimum number of rows that show the explanation.
const MIN_ROWS: u16 = 2;

pub(crate) struct FindingView {
    finding: Finding,
    /// Index of the finding. `count` is the number of findings in the review.
    at: usize,
    count: usize,
    /// Diff of the file to which the finding refers.
    diff: Diff,
    /// Index of the first visible diff row, or `None` if the user has not scrolled.
    top: Option<usize>,
    /// State of the last frame: index of the first visible diff row, number of visible diff rows, and total number of
    /// diff rows.
    drawn: (usize, usize, usize),
    /// Whether the explanation was truncated in the last frame.
    is_cut: bool,
}

impl FindingView {
    /// Creates the view of the finding at index `at`. Returns `None` if there is no such finding, or if the review has
    /// no diff of its file.
    pub(crate) fn new(review: &Review, at: usize) -> Option<Self> {
        let finding = review.findings.get(at)?.clone();
        let diff = review.changes.diffs.iter().find(|diff| finding.is_in(diff))?;
        let diff = Diff::new(std::slice::from_ref(diff), Some(Path::new(&finding.file)));
        Some(Self { finding, at, count: review.findings.len(), diff, top: None, drawn: (0, 1, 0), is_cut: false })
    }

    /// Returns the finding's title and explanation, without control characters.
    fn description(&self) -> String {
        description(&self.finding)
    }

    /// Returns the finding's location on one line.
    fn location(&self) -> String {
        text::reveal_line(&self.finding.location())
    }

    fn scroll_by(&mut self, rows: isize) {
        let (first, shown, all) = self.drawn;
        self.top = Some(first.saturating_add_signed(rows).min(all.saturating_sub(shown)));
    }

    /// Requests the next or previous finding, wrapping around at the ends.
    fn turn(&self, forward: bool) -> Reaction {
        match self.count {
            0 => Reaction::Done,
            count => Reaction::Request(LayerRequest::OpenFinding((self.at + if forward { 1 } else { count - 1 }) % count)),
        }
    }

    fn draw_all(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) {
        let inner = Rect { x: area.x + GUTTER, width: area.width.saturating_sub(GUTTER), ..area };
        let most = (area.height / 2).saturating_sub(HEAD_ROWS).max(MIN_ROWS);
        let mut rows = self.head(inner.width, theme, glyphs);
        rows.extend(self.explanation(inner.width, most.into(), theme));
        for (row, y) in rows.iter().zip(area.y..area.bottom()) {
            buffer.set_line(inner.x, y, row, inner.width);
        }
        let y = area.y.saturating_add(rows.len() as u16).min(area.bottom());
        if y < area.bottom() {
            let rule = glyphs.rule.repeat(area.width.into());
            buffer.set_stringn(area.x, y, rule, area.width.into(), theme.style(Token::Faint));
        }
        let y = y.saturating_add(1).min(area.bottom());
        self.draw_diff(Rect { y, height: area.bottom() - y, ..inner }, buffer, theme, glyphs);
    }

    /// Returns the two heading rows: severity, position and confidence on the first, the location on the second.
    fn head(&self, width: u16, theme: &Theme, glyphs: &Glyphs) -> Vec<Line<'static>> {
        let Finding { severity, confidence, .. } = &self.finding;
        let (dot, number) = (glyphs.dot, self.at + 1);
        let rest = format!(" {dot} finding {number} of {} {dot} confidence {}", self.count, confidence.as_str());
        let room = usize::from(width).saturating_sub(severity.as_str().len());
        let first = Line::from(vec![
            Span::styled(severity.as_str(), theme.style(token(*severity))),
            Span::styled(text::truncate(&rest, room).into_owned(), theme.style(Token::Muted)),
        ]);
        let place = text::truncate_middle(&self.location(), width.into()).into_owned();
        vec![first, Line::styled(place, theme.style(Token::Heading))]
    }

    /// Returns the title and explanation as rows. If there are more than `most` rows, they are truncated.
    fn explanation(&mut self, width: u16, most: usize, theme: &Theme) -> Vec<Line<'static>> {
        let words = self.description();
        let mut rows: Vec<Line<'static>> = Vec::new();
        for (at, line) in words.lines().enumerate() {
            let style = theme.style(if at == 0 { Token::Heading } else { Token::Text });
            let parts = text::wrap(line, width.max(1).into());
            rows.extend(parts.into_iter().map(|part| Line::styled(line[part].trim_end().to_owned(), style)));
        }
        self.is_cut = rows.len() > most;
        if self.is_cut {
            let left = rows.len() - most.saturating_sub(1);
            rows.truncate(most.saturating_sub(1));
            let words = format!("… {left} more rows");
            rows.push(Line::styled(text::truncate(&words, width.into()).into_owned(), theme.style(Token::Warn)));
        }
        rows
    }

    fn draw_diff(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) {
        let (room, all) = (usize::from(area.height), self.diff.height(area.width));
        let place = self.diff.row_of_line(area.width, self.finding.line);
        let last = all.saturating_sub(room);
        // A third of the visible rows is above the line of the finding.
        let first = self.top.unwrap_or_else(|| place.unwrap_or(0).saturating_sub(room / 3)).min(last);
        self.drawn = (first, room, all);
        for (row, y) in self.diff.rows(area.width, first..first + room, theme).iter().zip(area.y..area.bottom()) {
            buffer.set_line(area.x, y, row, area.width);
        }
        if let Some(row) = place.and_then(|place| place.checked_sub(first)).filter(|row| *row < room) {
            let y = area.y + row as u16;
            buffer.set_stringn(area.x - GUTTER, y, glyphs.user, GUTTER.into(), theme.symbol(Token::Accent));
        }
        if first < last && room > 0 {
            buffer.set_stringn(area.x - GUTTER, area.bottom() - 1, glyphs.down, 1, theme.style(Token::Warn));
        }
    }
}

impl ScreenLayer for FindingView {
    fn focus(&self) -> Focus {
        Focus::Reader
    }

    fn key(&mut self, key: KeyEvent, _around: LayerContext) -> Reaction {
        let page = self.drawn.1.max(1).cast_signed();
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
            KeyCode::Char('e') => {
                let (title, text) = (self.location(), self.description());
                return Reaction::Request(LayerRequest::OpenText { title, text });
            }
            KeyCode::Char('f') => return Reaction::Request(LayerRequest::DraftFix(self.at)),
            KeyCode::Char('n') | KeyCode::Tab | KeyCode::Right => return self.turn(true),
            KeyCode::Char('p') | KeyCode::BackTab | KeyCode::Left => return self.turn(false),
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
        let whole = self.is_cut.then_some("e read all");
        let keys = ["esc back", "f draft fix"].into_iter().chain(whole);
        keys.chain(["n p other finding", "up down pgup pgdn scroll"]).collect()
    }
}

/// Returns a finding's title and explanation, without control characters.
pub(crate) fn description(finding: &Finding) -> String {
    let Finding { title, explanation, .. } = finding;
    format!("{}\n{}", text::clean_line(title), text::clean(explanation)).trim_end().to_owned()
}

fn token(severity: Severity) -> Token {
    match severity {
        Severity::Critical | Severity::High => Token::Danger,
        Severity::Medium => Token::Warn,
        Severity::Low => Token::Muted,
    }
}
