//! Splitting of a unified diff into hunks, and joining them again.

use std::fmt::Write as _;

/// Hunk of a unified diff.
#[derive(Debug, Clone)]
pub struct ApprovalHunk {
    /// Lines before the hunk header, such as file names and modes.
    before: String,
    old_start: usize,
    new_start: usize,
    place: String,
    /// Lines with their signs and without line ends, including the note about a missing final newline.
    lines: Vec<String>,
}

fn is_note(line: &str) -> bool {
    line.starts_with('\\')
}

impl ApprovalHunk {
    /// Returns the range from the first to the last changed line, including notes about them.
    fn core(&self) -> std::ops::Range<usize> {
        let changes = |line: &String| line.starts_with(['-', '+']);
        let first = self.lines.iter().position(changes).unwrap_or(0);
        let mut end = self.lines.iter().rposition(changes).map_or(first, |last| last + 1);
        while self.lines.get(end).is_some_and(|line| is_note(line)) {
            end += 1;
        }
        first..end
    }

    /// Returns one side of these lines as text; the last line has no line end if the file has none.
    fn side(&self, range: std::ops::Range<usize>, without: char) -> String {
        let mut text = String::new();
        let mut skipped = false;
        for line in &self.lines[range] {
            if is_note(line) {
                if !skipped {
                    text.pop();
                }
                continue;
            }
            skipped = line.starts_with(without);
            if !skipped {
                text.push_str(line.get(1..).unwrap_or_default());
                text.push('\n');
            }
        }
        text
    }

    pub fn old_text(&self) -> String {
        self.side(self.core(), '+')
    }

    pub fn new_text(&self) -> String {
        self.side(self.core(), '-')
    }

    /// Returns the hunk with this text as its new side.
    pub fn with(&self, text: &str) -> Self {
        let core = self.core();
        let old = signed(&self.old_text(), '-');
        let new = signed(text, '+');
        let lines = self.lines[..core.start].iter().cloned().chain(old).chain(new).chain(self.lines[core.end..].iter().cloned());
        Self { lines: lines.collect(), ..self.clone() }
    }

    pub fn push_to(&self, diff: &mut String) {
        let count = |without: char| self.lines.iter().filter(|line| !is_note(line) && !line.starts_with(without)).count();
        let (old, new) = (count('+'), count('-'));
        // If a side has no lines, its number is that of the line before.
        let start =
            |start: usize, count: usize| if count == 0 { start.saturating_sub(usize::from(start > 0)) } else { start.max(1) };
        diff.push_str(&self.before);
        let (old_start, new_start) = (start(self.old_start, old), start(self.new_start, new));
        let _ = writeln!(diff, "@@ -{old_start},{old} +{new_start},{new} @@{}", self.place);
        for line in &self.lines {
            diff.push_str(line);
            diff.push('\n');
        }
    }
}

fn signed(text: &str, sign: char) -> Vec<String> {
    let mut lines: Vec<String> =
        text.split_inclusive('\n').map(|line| format!("{sign}{}", line.trim_end_matches('\n'))).collect();
    if !text.is_empty() && !text.ends_with('\n') {
        lines.push("\\ No newline at end of file".to_owned());
    }
    lines
}

/// Splits a unified diff into hunks and the text after the last one.
pub fn pieces(diff: &str) -> (Vec<ApprovalHunk>, String) {
    let mut pieces: Vec<ApprovalHunk> = Vec::new();
    let mut between = String::new();
    let (mut old, mut new) = (0, 0);
    for row in diff.strip_suffix('\n').unwrap_or(diff).split('\n') {
        let goes_on = (old + new > 0 && !row.starts_with("@@ -")) || (is_note(row) && between.is_empty());
        if let Some(piece) = pieces.last_mut().filter(|_| goes_on) {
            match row.as_bytes().first() {
                Some(b'-') => old -= old.min(1),
                Some(b'+') => new -= new.min(1),
                Some(b'\\') => {}
                _ => (old, new) = (old - old.min(1), new - new.min(1)),
            }
            piece.lines.push(row.to_owned());
        } else if let Some(((old_start, olds), (new_start, news), place)) = head(row) {
            (old, new) = (olds, news);
            let before = std::mem::take(&mut between);
            let shown = |start: usize, count: usize| start + usize::from(count == 0);
            let (old_start, new_start) = (shown(old_start, olds), shown(new_start, news));
            pieces.push(ApprovalHunk { before, old_start, new_start, place: place.to_owned(), lines: Vec::new() });
        } else {
            between.push_str(row);
            between.push('\n');
        }
    }
    (pieces, between)
}

type Side = (usize, usize);

fn head(row: &str) -> Option<(Side, Side, &str)> {
    let (ranges, place) = row.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let side = |range: &str| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    Some((side(old)?, side(new)?, place))
}
