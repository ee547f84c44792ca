//! Styled text before it has colours: what each piece is, cut into rows of cells.

use std::ops::Range;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::theme::{Syntax, Theme, Token};
use crate::text;

/// What a piece of text is and how it is stressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanStyle {
    pub token: Token,
    pub syntax: Option<Syntax>,
    pub stress: Modifier,
}

impl SpanStyle {
    pub const fn of(token: Token) -> Self {
        Self { token, syntax: None, stress: Modifier::empty() }
    }

    pub const fn code(syntax: Option<Syntax>, ground: Token) -> Self {
        Self { token: ground, syntax, stress: Modifier::empty() }
    }

    pub fn style(self, theme: &Theme) -> Style {
        let style = match self.syntax {
            Some(syntax) => theme.syntax(syntax, self.token),
            None => theme.style(self.token),
        };
        style.add_modifier(self.stress)
    }
}

/// How a row goes on from the one above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Join {
    /// It begins a line of its own.
    #[default]
    Line,
    /// It was broken at a space, which stands in neither.
    Space,
    /// It was broken inside a word, or every space was kept.
    Nothing,
}

impl Join {
    /// What stands between two pieces of a text says how they belong together.
    pub fn over(between: &str) -> Self {
        match between {
            "" => Self::Nothing,
            words if words.contains('\n') => Self::Line,
            _ => Self::Space,
        }
    }
}

/// What of a row is drawn for the eye between its texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Frame {
    #[default]
    Nothing,
    /// All of it.
    Rule,
    /// A row of a table: where its bars begin, and on the first of its rows all its cells as a line of text.
    Bars { at: Vec<usize>, line: Option<String> },
}

impl Frame {
    /// Bars stand elsewhere now.
    fn moved(self, to: impl Fn(usize) -> usize) -> Self {
        match self {
            Self::Bars { at, line } => Self::Bars { at: at.into_iter().map(to).collect(), line },
            other => other,
        }
    }
}

/// A row as it is drawn, and what of it is text that can be taken away.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub line: Line<'static>,
    /// Cells at its left that are no part of the text: numbers, bars, indents of lists.
    pub skip: u16,
    pub join: Join,
    /// By cells.
    pub frame: Frame,
}

impl Row {
    /// A row that begins a line.
    pub fn of(line: Line<'static>) -> Self {
        Self { line, skip: 0, join: Join::Line, frame: Frame::Nothing }
    }

    /// The same behind other cells that are no text.
    pub fn behind(self, lead: Span<'static>) -> Self {
        let by = lead.width();
        let skip = self.skip + by as u16;
        let style = self.line.style;
        let mut spans = vec![lead];
        spans.extend(self.line.spans.into_iter().map(|span| span.patch_style(style)));
        Self { line: Line::from(spans), skip, join: self.join, frame: self.frame.moved(|at| at + by) }
    }

    /// All of its cells as text.
    pub fn cells(&self) -> String {
        self.line.spans.iter().map(|span| span.content.as_ref()).collect()
    }
}

/// A text with an ink for every byte.
#[derive(Clone, Debug, Default)]
pub struct StyledText {
    pub text: String,
    /// Bytes at its left that are no part of the text.
    pub skip: usize,
    pub join: Join,
    /// By bytes.
    pub frame: Frame,
    /// End of each run and its ink.
    runs: Vec<(usize, SpanStyle)>,
}

impl StyledText {
    pub fn new(text: &str, ink: SpanStyle) -> Self {
        let mut inked = Self::default();
        inked.push(text, ink);
        inked
    }

    pub fn push(&mut self, text: &str, ink: SpanStyle) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        let end = self.text.len();
        match self.runs.last_mut() {
            Some((last, same)) if *same == ink => *last = end,
            _ => self.runs.push((end, ink)),
        }
    }

    pub fn append(&mut self, other: &Self) {
        self.append_range(other, 0..other.text.len());
    }

    /// Appends a part of another text with its inks.
    pub fn append_range(&mut self, other: &Self, range: Range<usize>) {
        let mut at = range.start;
        let first = other.runs.partition_point(|(end, _)| *end <= at);
        for (end, ink) in &other.runs[first..] {
            if at >= range.end {
                break;
            }
            let end = (*end).min(range.end);
            self.push(&other.text[at..end], *ink);
            at = end;
        }
    }

    /// The ink of the byte at `at`.
    pub fn ink_at(&self, at: usize) -> SpanStyle {
        let run = self.runs.partition_point(|(end, _)| *end <= at);
        self.runs.get(run).map_or(SpanStyle::of(Token::Text), |(_, ink)| *ink)
    }

    pub fn width(&self) -> usize {
        text::width(&self.text)
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The rows of this text, broken at spaces.
    pub fn wrap(&self, width: usize) -> Vec<Self> {
        self.wrap_keeping(width, &[])
    }

    /// The same, and these pieces stay whole where a row has room for them.
    pub fn wrap_keeping(&self, width: usize, whole: &[Range<usize>]) -> Vec<Self> {
        let mut before: Option<usize> = None;
        let row = |range: Range<usize>| {
            let join = before.map_or(Join::Line, |end| Join::over(self.text.get(end..range.start).unwrap_or_default()));
            before = Some(range.end);
            Self { join, ..self.slice(range) }
        };
        text::wrap_keeping(&self.text, width, whole).into_iter().map(row).collect()
    }

    /// The same, drawn for the eye so far.
    pub fn framed(self, frame: Frame) -> Self {
        Self { frame, ..self }
    }

    /// The same row of another one, in which it begins at this byte.
    pub fn framed_as(self, row: &Self, begin: usize) -> Self {
        Self { frame: row.frame.clone().moved(|at| at + begin), ..self }
    }

    /// The same, going on in this way.
    pub fn joined(self, join: Join) -> Self {
        Self { join, ..self }
    }

    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut part = Self::default();
        part.append_range(self, range);
        part
    }

    /// The same text with another stress added everywhere.
    pub fn stressed(mut self, stress: Modifier) -> Self {
        for (_, ink) in &mut self.runs {
            ink.stress |= stress;
        }
        self
    }

    /// The same text with another stress added in some places.
    pub fn stressed_at(&self, places: &[Range<usize>], stress: Modifier) -> Self {
        let mut out = Self::default();
        let mut at = 0;
        for place in places {
            out.append_range(self, at..place.start);
            out.append(&self.slice(place.clone()).stressed(stress));
            at = place.end;
        }
        out.append_range(self, at..self.text.len());
        out
    }

    pub fn line(&self, theme: &Theme) -> Line<'static> {
        let mut spans = Vec::with_capacity(self.runs.len());
        let mut at = 0;
        for (end, ink) in &self.runs {
            // A mark that is drawn onto a letter is nothing without it.
            let end = text::grapheme_end(&self.text, *end);
            if end > at {
                spans.push(Span::styled(self.text[at..end].to_owned(), ink.style(theme)));
                at = end;
            }
        }
        Line::from(spans)
    }

    /// The row, cut as [`StyledText::fitted_line`] is.
    pub fn fitted_row(&self, width: usize, theme: &Theme) -> Row {
        let cells = |bytes: usize| text::width(self.text.get(..bytes).unwrap_or_default());
        let (skip, frame) = (cells(self.skip) as u16, self.frame.clone().moved(cells));
        Row { line: self.fitted_line(width, theme), skip, join: self.join, frame }
    }

    /// The line, cut to `width` cells: on a screen narrower than a gutter nothing may run over the edge.
    pub fn fitted_line(&self, width: usize, theme: &Theme) -> Line<'static> {
        if self.width() <= width {
            return self.line(theme);
        }
        let row = text::wrap_exact(&self.text, width).into_iter().next().unwrap_or(0..0);
        let row = self.slice(row);
        if row.width() > width { Line::default() } else { row.line(theme) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::Colours;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    #[test]
    fn a_mark_stays_with_its_letter_where_the_colours_change() {
        let mut line = StyledText::new("if a(", SpanStyle::of(Token::Text));
        line.push("\u{338}b", SpanStyle::of(Token::Accent));
        line.push("\u{301}", SpanStyle::of(Token::Danger));
        line.push(") {}", SpanStyle::of(Token::Text));
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        buffer.set_line(0, 0, &line.line(&Theme::choose(None, Colours::True)), 12);
        let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        assert_eq!(cells.concat().trim_end(), "if a(\u{338}b\u{301}) {}");
    }
}
