//! Full-screen view of one finding of a review: its explanation, and the diff of its file at its line.

use super::diff::Diff;
use super::glyphs::Glyphs;
use super::metrics::GUTTER;
use super::theme::{Theme, Token};
use crate::protocol::{Finding, Review, Severity};
use crate::text;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use std::path::Path;

/// Number of rows of the heading.
const HEAD_ROWS: u16 = 2;
/// Minimum number of rows of the explanation.
const MIN_ROWS: u16 = 2;

pub(crate) struct FindingView {
    finding: Finding,
    /// Index of the finding, and the number of findings.
    pub at: usize,
    count: usize,
    /// The diff of its file.
    diff: Diff,
    /// Index of the first diff row on the screen, once the user has scrolled.
    top: Option<usize>,
    /// First diff row, diff rows on the last screen, and all diff rows.
    drawn: (usize, usize, usize),
    /// Whether part of the explanation was cut off on the last screen.
    pub is_cut: bool,
}

impl FindingView {
    /// Opens a finding by its index; `None` if the index is out of range.
    pub(crate) fn new(review: &Review, at: usize) -> Option<Self> {
        let finding = review.findings.get(at)?.clone();
        let diff = review.changes.diffs.iter().find(|diff| finding.is_in(diff))?;
        let diff = Diff::new(std::slice::from_ref(diff), Some(Path::new(&finding.file)));
        Some(Self { finding, at, count: review.findings.len(), diff, top: None, drawn: (0, 1, 0), is_cut: false })
    }

    /// Returns the title and the explanation without control characters.
    pub(crate) fn description(&self) -> String {
        description(&self.finding)
    }

    /// Returns the location of the finding on one line.
    pub(crate) fn location(&self) -> String {
        text::reveal_line(&self.finding.location())
    }

    pub(crate) fn scroll_by(&mut self, rows: isize) {
        let (first, shown, all) = self.drawn;
        self.top = Some(first.saturating_add_signed(rows).min(all.saturating_sub(shown)));
    }

    pub(crate) fn page(&self) -> usize {
        self.drawn.1.max(1)
    }

    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme, glyphs: &Glyphs) {
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

    /// Returns the severity, the position among the findings, and the location.
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

    /// Returns the rows of the title and the explanation, cut after `most` rows.
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
        // A third of the rows is above the line.
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

/// Returns the title and the explanation of a finding without control characters.
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
