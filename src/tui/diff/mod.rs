//! Stand-in until the `view` branch is merged.
use super::theme::{Theme, Token};
use ratatui::text::Line;
use std::ops::Range;
use std::path::Path;
pub struct Diff {
    lines: Vec<String>,
}
impl Diff {
    pub fn parse(unified: &str, _path: Option<&Path>) -> Self {
        Self { lines: unified.lines().filter(|l| !l.starts_with("---") && !l.starts_with("+++")).map(str::to_owned).collect() }
    }
    fn count(&self, sign: &str) -> usize {
        self.lines.iter().filter(|l| l.starts_with(sign)).count()
    }
    pub fn added(&self) -> usize {
        self.count("+")
    }
    pub fn removed(&self) -> usize {
        self.count("-")
    }
    pub fn hunks(&self) -> usize {
        self.count("@@")
    }
    pub fn height(&self, _width: u16) -> usize {
        self.lines.len()
    }
    pub fn rows(&self, _width: u16, range: Range<usize>, theme: &Theme) -> Vec<Line<'static>> {
        let end = range.end.min(self.lines.len());
        self.lines[range.start.min(end)..end].iter().map(|l| Line::styled(l.clone(), theme.style(Token::Text))).collect()
    }
}
