//! Text whose styles are symbolic and independent of theme colours, and its layout in rows.

use std::ops::Range;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::theme::{Syntax, Theme, Token};
use crate::text;

/// Style of a piece of text: its role, syntax kind and emphasis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanStyle {
    pub token: Token,
    pub syntax: Option<Syntax>,
    pub stress: Modifier,
}

impl SpanStyle {
    pub(crate) const fn from_token(token: Token) -> Self {
        Self { token, syntax: None, stress: Modifier::empty() }
    }

    pub(crate) const fn code(syntax: Option<Syntax>, ground: Token) -> Self {
        Self { token: ground, syntax, stress: Modifier::empty() }
    }

    pub(crate) fn style(self, theme: &Theme) -> Style {
        let style = match self.syntax {
            Some(syntax) => theme.syntax(syntax, self.token),
            None => theme.style(self.token),
        };
        style.add_modifier(self.stress)
    }
}

/// Connection between a row and the row above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Join {
    /// The row starts a new line.
    #[default]
    Line,
    /// The row continues a line that was wrapped at spaces, which are part of neither row.
    Space,
    /// The row continues a line that was wrapped without removing spaces, for example inside a word.
    Nothing,
}

impl Join {
    /// Returns the connection between two rows that are separated by the text `between`.
    pub(crate) fn from_separator(between: &str) -> Self {
        match between {
            "" => Self::Nothing,
            words if words.contains('\n') => Self::Line,
            _ => Self::Space,
        }
    }
}

/// Decoration in a row, which is not part of the text that is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Frame {
    #[default]
    Nothing,
    /// The whole row is decoration.
    Rule,
    /// The row belongs to a table. Contains the positions of its bars and, in the first row, the text of all cells on
    /// one line.
    Bars { at: Vec<usize>, line: Option<String> },
}

impl Frame {
    /// Applies a function to the positions of all bars.
    fn map_positions(self, to: impl Fn(usize) -> usize) -> Self {
        match self {
            Self::Bars { at, line } => Self::Bars { at: at.into_iter().map(to).collect(), line },
            other => other,
        }
    }
}

/// Row that is ready to be drawn, with a record of which text in it can be copied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub line: Line<'static>,
    /// Number of leading cells that are not copied, such as line numbers, bars and list indentation.
    pub skip: u16,
    pub join: Join,
    /// Decoration of the row, with positions in cells.
    pub frame: Frame,
}

impl Row {
    /// Creates a row that starts a new line.
    pub(crate) fn from_line(line: Line<'static>) -> Self {
        Self { line, skip: 0, join: Join::Line, frame: Frame::Nothing }
    }

    /// Prepends cells that are not copied with the row.
    pub(crate) fn with_prefix(self, lead: Span<'static>) -> Self {
        let by = lead.width();
        let skip = self.skip + by as u16;
        let style = self.line.style;
        let mut spans = vec![lead];
        spans.extend(self.line.spans.into_iter().map(|span| span.patch_style(style)));
        Self { line: Line::from(spans), skip, join: self.join, frame: self.frame.map_positions(|at| at + by) }
    }

    /// Returns the characters in all cells of the row.
    pub(crate) fn cells(&self) -> String {
        self.line.spans.iter().map(|span| span.content.as_ref()).collect()
    }
}

/// Text in which every byte has a style.
#[derive(Clone, Debug, Default)]
pub(crate) struct StyledText {
    pub text: String,
    /// Number of leading bytes that are not copied.
    pub skip: usize,
    pub join: Join,
    /// Decoration of the text, with positions in bytes.
    pub frame: Frame,
    /// Runs of bytes with the same style, each given by the end of the run and its style.
    runs: Vec<(usize, SpanStyle)>,
}

impl StyledText {
    pub(crate) fn new(text: &str, ink: SpanStyle) -> Self {
        let mut inked = Self::default();
        inked.push(text, ink);
        inked
    }

    pub(crate) fn push(&mut self, text: &str, ink: SpanStyle) {
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

    pub(crate) fn append(&mut self, other: &Self) {
        self.append_range(other, 0..other.text.len());
    }

    /// Appends a byte range of another text, including its styles.
    pub(crate) fn append_range(&mut self, other: &Self, range: Range<usize>) {
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

    /// Returns the style of the byte at index `at`.
    pub(crate) fn style_at(&self, at: usize) -> SpanStyle {
        let run = self.runs.partition_point(|(end, _)| *end <= at);
        self.runs.get(run).map_or(SpanStyle::from_token(Token::Text), |(_, ink)| *ink)
    }

    pub(crate) fn width(&self) -> usize {
        text::width(&self.text)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Wraps the text at spaces into rows that are at most `width` cells wide.
    pub(crate) fn wrap(&self, width: usize) -> Vec<Self> {
        self.wrap_keeping(width, &[])
    }

    /// Wraps the text at spaces, but not within the byte ranges in `whole`, provided they fit into one row.
    pub(crate) fn wrap_keeping(&self, width: usize, whole: &[Range<usize>]) -> Vec<Self> {
        let mut before: Option<usize> = None;
        let row = |range: Range<usize>| {
            let join = before.map_or(Join::Line, |end| Join::from_separator(self.text.get(end..range.start).unwrap_or_default()));
            before = Some(range.end);
            Self { join, ..self.slice(range) }
        };
        text::wrap_keeping(&self.text, width, whole).into_iter().map(row).collect()
    }

    /// Returns the text with the given decoration.
    pub(crate) fn with_frame(self, frame: Frame) -> Self {
        Self { frame, ..self }
    }

    /// Returns the text with the decoration of `row`, whose content starts at byte `begin` of this text.
    pub(crate) fn with_frame_of(self, row: &Self, begin: usize) -> Self {
        Self { frame: row.frame.clone().map_positions(|at| at + begin), ..self }
    }

    /// Returns the text with the given connection to the row above it.
    pub(crate) fn joined(self, join: Join) -> Self {
        Self { join, ..self }
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        let mut part = Self::default();
        part.append_range(self, range);
        part
    }

    /// Returns the text with emphasis added to all of it.
    pub(crate) fn with_modifier(mut self, stress: Modifier) -> Self {
        for (_, ink) in &mut self.runs {
            ink.stress |= stress;
        }
        self
    }

    /// Returns the text with emphasis added to the given byte ranges.
    pub(crate) fn with_modifier_at(&self, places: &[Range<usize>], stress: Modifier) -> Self {
        let mut out = Self::default();
        let mut at = 0;
        for place in places {
            out.append_range(self, at..place.start);
            out.append(&self.slice(place.clone()).with_modifier(stress));
            at = place.end;
        }
        out.append_range(self, at..self.text.len());
        out
    }

    pub(crate) fn line(&self, theme: &Theme) -> Line<'static> {
        let mut spans = Vec::with_capacity(self.runs.len());
        let mut at = 0;
        for (end, ink) in &self.runs {
            // A combining mark must not be separated from its base character.
            let end = text::grapheme_end(&self.text, *end);
            if end > at {
                spans.push(Span::styled(self.text[at..end].to_owned(), ink.style(theme)));
                at = end;
            }
        }
        Line::from(spans)
    }

    /// Returns the text as a row, truncated in the same way as by [`StyledText::fit_line`].
    pub(crate) fn fit_row(&self, width: usize, theme: &Theme) -> Row {
        let cells = |bytes: usize| text::width(self.text.get(..bytes).unwrap_or_default());
        let (skip, frame) = (cells(self.skip) as u16, self.frame.clone().map_positions(cells));
        Row { line: self.fit_line(width, theme), skip, join: self.join, frame }
    }

    /// Returns the text as a line, truncated to `width` cells, so that it does not overflow a very narrow screen.
    pub(crate) fn fit_line(&self, width: usize, theme: &Theme) -> Line<'static> {
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
    use crate::tui::theme::ColourDepth;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    #[test]
    fn combining_marks_stay_with_their_base_character_across_colour_changes() {
        let mut line = StyledText::new("if a(", SpanStyle::from_token(Token::Text));
        line.push("\u{338}b", SpanStyle::from_token(Token::Accent));
        line.push("\u{301}", SpanStyle::from_token(Token::Danger));
        line.push(") {}", SpanStyle::from_token(Token::Text));
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        buffer.set_line(0, 0, &line.line(&Theme::choose(None, ColourDepth::True)), 12);
        let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        assert_eq!(cells.concat().trim_end(), "if a(\u{338}b\u{301}) {}");
    }
}
