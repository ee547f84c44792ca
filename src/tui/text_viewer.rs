//! A long text in place of the transcript, row by row.

use crate::protocol::{Artifact, size};
use crate::text;
use std::ops::Range;

pub struct TextViewer {
    /// What is read, for the row above it.
    pub title: String,
    /// The first row shown.
    pub top: usize,
    /// Made harmless.
    text: String,
    /// The rows at the width they were laid out for.
    rows: (u16, Vec<Range<usize>>),
}

impl TextViewer {
    pub fn new(artifact: &Artifact, content: &str) -> Self {
        let name = text::reveal_line(&artifact.name);
        Self::of(format!("{name}, {}, {}", size(artifact.bytes), artifact.uri), content)
    }

    /// All that was said in a session.
    pub fn session(title: &str, content: &str) -> Self {
        Self::of(text::reveal_line(title), content)
    }

    fn of(title: String, content: &str) -> Self {
        let mut cleaner = text::Cleaner::new();
        let mut clean = String::new();
        cleaner.push(content, &mut clean);
        cleaner.finish(&mut clean);
        Self { title, top: 0, text: clean, rows: (0, Vec::new()) }
    }

    /// The rows that `height` of them show from the top on; a top past the end is moved back.
    pub fn view(&mut self, width: u16, height: usize) -> impl Iterator<Item = &str> {
        if self.rows.0 != width {
            self.rows = (width, laid_out(&self.text, width.max(1).into()));
        }
        let rows = &self.rows.1;
        self.top = self.top.min(rows.len().saturating_sub(height));
        rows[self.top..].iter().take(height).map(|row| &self.text[row.clone()])
    }

    /// How many there are, as far as they were laid out.
    pub fn count(&self) -> usize {
        self.rows.1.len()
    }
}

fn laid_out(content: &str, width: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut start = 0;
    for line in content.split_inclusive('\n') {
        let words = line.trim_end_matches('\n');
        rows.extend(text::wrap_exact(words, width).into_iter().map(|row| start + row.start..start + row.end));
        start += line.len();
    }
    rows
}
