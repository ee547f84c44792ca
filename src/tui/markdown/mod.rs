//! Stand-in until the `view` branch is merged.
use super::theme::Theme;
use ratatui::text::Line;
use std::ops::Range;
#[derive(Debug, Default)]
pub struct Document {
    text: String,
}
impl Document {
    pub fn new() -> Self {
        Self::default()
    }
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }
    pub fn finish(&mut self) {}
    pub fn text(&self) -> &str {
        &self.text
    }
    fn all(&self, width: u16) -> Vec<Line<'static>> {
        self.text
            .lines()
            .flat_map(|l| crate::text::wrap(l, width.into()).into_iter().map(|r| Line::from(l[r].to_owned())).collect::<Vec<_>>())
            .collect()
    }
    pub fn height(&mut self, width: u16) -> usize {
        self.all(width).len()
    }
    pub fn rows(&mut self, width: u16, range: Range<usize>, _theme: &Theme) -> Vec<Line<'static>> {
        self.all(width).into_iter().skip(range.start).take(range.len()).collect()
    }
}
