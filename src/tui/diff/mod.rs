//! Stand-in until the `view` branch is merged.
use super::theme::Theme;
use ratatui::text::Line;
use std::ops::Range;
use std::path::Path;
#[derive(Debug)]
pub struct Diff {
    pub added: usize,
    pub removed: usize,
    pub hunks: usize,
    lines: Vec<String>,
}
impl Diff {
    pub fn parse(unified: &str, _path: Option<&Path>) -> Self {
        let body: Vec<String> =
            unified.lines().filter(|l| !l.starts_with("---") && !l.starts_with("+++")).map(str::to_owned).collect();
        Self {
            added: body.iter().filter(|l| l.starts_with('+')).count(),
            removed: body.iter().filter(|l| l.starts_with('-')).count(),
            hunks: body.iter().filter(|l| l.starts_with("@@")).count(),
            lines: body,
        }
    }
    pub fn height(&self, _width: u16) -> usize {
        self.lines.len()
    }
    pub fn rows(&self, _width: u16, range: Range<usize>, _theme: &Theme) -> Vec<Line<'static>> {
        self.lines[range.start.min(self.lines.len())..range.end.min(self.lines.len())]
            .iter()
            .map(|l| Line::from(l.clone()))
            .collect()
    }
}
