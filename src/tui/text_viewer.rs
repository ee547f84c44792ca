//! State of the text viewer that replaces the transcript.

use crate::protocol::{Artifact, size};
use crate::text;
use std::ops::Range;

pub(crate) struct TextViewer {
    /// Title of the text, shown in the row above it.
    pub title: String,
    /// Index of the first visible row.
    pub top: usize,
    /// Text with control characters removed.
    text: String,
    /// Layout width and the byte range of each row.
    rows: (u16, Vec<Range<usize>>),
}

impl TextViewer {
    pub(crate) fn new(artifact: &Artifact, content: &str) -> Self {
        let name = text::reveal_line(&artifact.name);
        Self::from_text(format!("{name}, {}, {}", size(artifact.bytes), artifact.uri), content)
    }

    /// Creates a viewer for a text with a title.
    pub(crate) fn with_title(title: &str, content: &str) -> Self {
        Self::from_text(text::reveal_line(title), content)
    }

    fn from_text(title: String, content: &str) -> Self {
        let mut cleaner = text::Cleaner::new();
        let mut clean = String::new();
        cleaner.push(content, &mut clean);
        cleaner.finish(&mut clean);
        Self { title, top: 0, text: clean, rows: (0, Vec::new()) }
    }

    /// Returns the visible rows; moves `top` back if it is past the end.
    pub(crate) fn view(&mut self, width: u16, height: usize) -> impl Iterator<Item = &str> {
        if self.rows.0 != width {
            self.rows = (width, wrap_rows(&self.text, width.max(1).into()));
        }
        let rows = &self.rows.1;
        self.top = self.top.min(rows.len().saturating_sub(height));
        rows[self.top..].iter().take(height).map(|row| &self.text[row.clone()])
    }

    /// Returns the number of rows in the current layout.
    pub(crate) fn count(&self) -> usize {
        self.rows.1.len()
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
