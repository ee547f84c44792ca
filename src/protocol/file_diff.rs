//! Diff of a single file: its hunks and lines, and their representation as a unified diff.

use serde::{Serialize, Serializer};
use std::fmt::{self, Write as _};

/// Name used for the missing side of a created or deleted file.
const MISSING: &str = "/dev/null";
const NO_NEWLINE: &str = "\\ No newline at end of file";
/// Prefixes of the git header lines that describe file content, which the hunks already show.
const CONTENT_ROWS: [&str; 3] = ["index ", "similarity index ", "dissimilarity index "];

/// Difference between the old and the new content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    /// File name in the diff: the new name, or the old name of a deleted file. `None` if the diff does not name a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub kind: FileDiffKind,
    /// Rows before the first hunk, exactly as in the diff: names, modes and remarks.
    #[serde(rename = "remarks", serialize_with = "only_remarks", skip_serializing_if = "has_no_remark")]
    head: Vec<HeadRow>,
    pub hunks: Vec<DiffHunk>,
}

/// Row that precedes the first hunk of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HeadRow {
    text: String,
    /// Whether the row contains information other than file names and content hashes.
    is_remark: bool,
}

fn has_no_remark(head: &[HeadRow]) -> bool {
    !head.iter().any(|row| row.is_remark)
}

fn only_remarks<S: Serializer>(head: &[HeadRow], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(head.iter().filter(|row| row.is_remark).map(|row| &row.text))
}

/// Kind of change made to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileDiffKind {
    #[default]
    Modified,
    Added,
    Deleted,
    Renamed,
    /// Change to content that is not text, so there are no hunks.
    Binary,
}

/// Group of changed lines, with the surrounding context lines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffHunk {
    /// 1-based number of the first line in the old file. If the old side is empty, the number of the line before the
    /// hunk.
    pub old_start: usize,
    pub new_start: usize,
    /// Number of lines in the old file. It exceeds the number of old lines in `lines` if the diff was truncated.
    pub old_count: usize,
    pub new_count: usize,
    /// Text that follows the line ranges in the hunk header, such as the name of the enclosing function.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    pub lines: Vec<DiffLine>,
    /// Rows after the hunk that belong to no file, such as a note about omitted lines.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remarks: String,
}

/// Line in a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffLine {
    pub side: DiffSide,
    /// Line text without the LF, but including a trailing CR.
    pub text: String,
    /// Whether the line ends with an LF. Only the last line of a file can lack one.
    #[serde(skip_serializing_if = "is_ended")]
    pub has_newline: bool,
}

fn is_ended(has_newline: &bool) -> bool {
    *has_newline
}

/// Side of a diff that contains a line: the old file, the new file, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffSide {
    Context,
    Added,
    Removed,
}

impl DiffSide {
    fn symbol(self) -> char {
        match self {
            Self::Context => ' ',
            Self::Added => '+',
            Self::Removed => '-',
        }
    }
}

impl FileDiff {
    /// Creates a file diff with the given names of both sides: `a/x` and `b/x`, or `/dev/null` if the file does not
    /// exist.
    pub fn new(old: &str, new: &str, hunks: Vec<DiffHunk>) -> Self {
        Self::default().with_hunks(old, new, hunks)
    }

    /// Creates a file diff that starts with git's `diff --git` line, which names the file even if no line changes.
    pub fn with_title(old: &str, new: &str) -> Self {
        let file = Self { name: Some(new.to_owned()), ..Self::default() };
        file.with_row(format!("diff --git a/{old} b/{new}"), false)
    }

    /// Marks the file as new, with its mode in git's notation, such as `100644`.
    #[must_use]
    pub fn created(self, mode: &str) -> Self {
        Self { kind: FileDiffKind::Added, ..self.with_row(format!("new file mode {mode}"), true) }
    }

    /// Marks the file as deleted, with the mode that it had.
    #[must_use]
    pub fn deleted(self, mode: &str) -> Self {
        Self { kind: FileDiffKind::Deleted, ..self.with_row(format!("deleted file mode {mode}"), true) }
    }

    /// Adds the file modes before and after the change.
    #[must_use]
    pub fn with_modes(self, old: &str, new: &str) -> Self {
        self.with_row(format!("old mode {old}"), true).with_row(format!("new mode {new}"), true)
    }

    /// Adds the similarity between old and new content, in percent.
    #[must_use]
    pub fn with_similarity(self, percent: u32) -> Self {
        self.with_row(format!("similarity index {percent}%"), false)
    }

    /// Marks the file as renamed.
    #[must_use]
    pub fn renamed(self, from: &str, to: &str) -> Self {
        let file = self.with_row(format!("rename from {from}"), true).with_row(format!("rename to {to}"), true);
        Self { kind: FileDiffKind::Renamed, ..file }
    }

    /// Marks the file as binary.
    #[must_use]
    pub fn binary(self, name: &str) -> Self {
        let file = self.with_row(format!("Binary files a/{name} and b/{name} differ"), true);
        Self { kind: FileDiffKind::Binary, ..file }
    }

    /// Adds the hunks. If there are any, also adds the names of both sides.
    #[must_use]
    pub fn with_hunks(mut self, old: &str, new: &str, hunks: Vec<DiffHunk>) -> Self {
        if !hunks.is_empty() {
            self.set_names(old, new);
            self = self.with_row(format!("--- {old}"), false).with_row(format!("+++ {new}"), false);
            self.hunks = hunks;
        }
        self
    }

    /// Returns the rows that concern the whole file: modes, rename information, and text outside the header.
    pub fn remarks(&self) -> impl Iterator<Item = &str> {
        self.head.iter().filter(|row| row.is_remark).map(|row| row.text.as_str())
    }

    /// Returns whether the diff has neither header rows nor hunks.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.hunks.is_empty()
    }

    /// Returns the length of the unified diff in bytes.
    pub fn text_bytes(&self) -> usize {
        let mut length = ByteCounter(0);
        let _ = write!(length, "{self}");
        length.0
    }

    fn with_row(mut self, text: String, is_remark: bool) -> Self {
        self.head.push(HeadRow { text, is_remark });
        self
    }

    /// Sets the file name and the kind of change from the names of both sides.
    fn set_names(&mut self, old: &str, new: &str) {
        let (old, new) = (strip_name(old, "a/"), strip_name(new, "b/"));
        if old == MISSING {
            self.kind = FileDiffKind::Added;
        } else if new == MISSING {
            self.kind = FileDiffKind::Deleted;
        }
        self.name = Some(if new == MISSING { old } else { new });
    }
}

/// Writer that only counts the bytes written to it.
struct ByteCounter(usize);

impl fmt::Write for ByteCounter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

impl DiffHunk {
    /// Shifts the hunk's line numbers on each side, so a diff of part of a file can be used for the whole file.
    pub fn move_down(&mut self, old_lines: u64, new_lines: u64) {
        let later = |start: usize, lines: u64| start.saturating_add(usize::try_from(lines).unwrap_or(usize::MAX));
        (self.old_start, self.new_start) = (later(self.old_start, old_lines), later(self.new_start, new_lines));
    }

    /// Returns the hunk's lines in the old file, including their line endings.
    pub fn old_lines(&self) -> impl Iterator<Item = String> {
        self.lines_without(DiffSide::Added)
    }

    /// Returns the hunk's lines in the new file, including their line endings.
    pub fn new_lines(&self) -> impl Iterator<Item = String> {
        self.lines_without(DiffSide::Removed)
    }

    fn lines_without(&self, side: DiffSide) -> impl Iterator<Item = String> {
        let lines = self.lines.iter().filter(move |line| line.side != side);
        lines.map(|line| if line.has_newline { format!("{}\n", line.text) } else { line.text.clone() })
    }
}

impl fmt::Display for FileDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.iter().try_for_each(|row| writeln!(f, "{}", row.text))?;
        self.hunks.iter().try_for_each(|hunk| hunk.fmt(f))
    }
}

impl fmt::Display for DiffHunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |start: usize, count: usize| if count == 1 { start.to_string() } else { format!("{start},{count}") };
        let (old, new) = (range(self.old_start, self.old_count), range(self.new_start, self.new_count));
        writeln!(f, "@@ -{old} +{new} @@{}", self.place)?;
        for line in &self.lines {
            writeln!(f, "{}{}", line.side.symbol(), line.text)?;
            if !line.has_newline {
                writeln!(f, "{NO_NEWLINE}")?;
            }
        }
        f.write_str(&self.remarks)
    }
}

/// Parses a unified diff. Rows that belong to no hunk or header are preserved as remarks.
pub(super) fn read(unified: &str) -> Vec<FileDiff> {
    let mut reader = DiffReader::default();
    if unified.is_empty() {
        return Vec::new();
    }
    let mut rows = unified.strip_suffix('\n').unwrap_or(unified).split('\n').peekable();
    while let Some(row) = rows.next() {
        let next = rows.peek().copied().unwrap_or_default();
        reader.row(row, next);
    }
    reader.files
}

#[derive(Default)]
struct DiffReader {
    files: Vec<FileDiff>,
    /// Number of old lines that the current hunk still lacks.
    old_left: usize,
    new_left: usize,
    /// Whether the current file started with a `diff --git` row and its names have not been read yet.
    is_in_head: bool,
    /// Whether the next row contains the new name, because the previous row contained the old one.
    is_new_name: bool,
}

impl DiffReader {
    fn row(&mut self, row: &str, next: &str) {
        if std::mem::take(&mut self.is_new_name) {
            return self.head_row(row);
        }
        if let Some(hunk) = self.files.last_mut().and_then(|file| file.hunks.last_mut()) {
            let is_full = self.old_left == 0 && self.new_left == 0;
            if row.starts_with("\\ ") && hunk.remarks.is_empty() && !hunk.lines.is_empty() {
                hunk.lines.last_mut().into_iter().for_each(|line| line.has_newline = false);
                return;
            }
            let sided = match row.as_bytes().first() {
                Some(b'-') if self.old_left > 0 => Some((DiffSide::Removed, &row[1..])),
                Some(b'+') if self.new_left > 0 => Some((DiffSide::Added, &row[1..])),
                Some(b' ') if !is_full => Some((DiffSide::Context, &row[1..])),
                None | Some(b'\r') if !is_full => Some((DiffSide::Context, row)),
                _ => None,
            };
            if let Some((side, text)) = sided {
                self.old_left -= usize::from(side != DiffSide::Added && self.old_left > 0);
                self.new_left -= usize::from(side != DiffSide::Removed && self.new_left > 0);
                hunk.lines.push(DiffLine { side, text: text.to_owned(), has_newline: true });
                return;
            }
        }
        self.read_header_row(row, next);
    }

    /// Parses a row that does not belong to a hunk.
    fn read_header_row(&mut self, row: &str, next: &str) {
        (self.old_left, self.new_left) = (0, 0);
        if let Some(hunk) = header(row) {
            (self.old_left, self.new_left) = (hunk.old_count, hunk.new_count);
            self.is_in_head = false;
            self.file().hunks.push(hunk);
        } else if let Some(names) = row.strip_prefix("diff --git ") {
            let name = names.trim_end().rsplit_once(" b/").map(|(_, name)| name.to_owned());
            self.files.push(FileDiff { name, ..FileDiff::default() });
            self.is_in_head = true;
            self.head_row(row);
        } else if let (Some(old), Some(new)) = (row.strip_prefix("--- "), next.strip_prefix("+++ ")) {
            let has_hunks = self.files.last().is_none_or(|file| !file.hunks.is_empty());
            if !std::mem::take(&mut self.is_in_head) && has_hunks {
                self.files.push(FileDiff::default());
            }
            self.file().set_names(old, new);
            self.head_row(row);
            self.is_new_name = true;
        } else {
            self.remark(row);
        }
    }

    fn remark(&mut self, row: &str) {
        let file = self.file();
        if let Some(hunk) = file.hunks.last_mut() {
            return hunk.remarks.extend([row, "\n"]);
        }
        if row.starts_with("rename from ") {
            file.kind = FileDiffKind::Renamed;
        } else if row.starts_with("new file mode ") {
            file.kind = FileDiffKind::Added;
        } else if row.starts_with("deleted file mode ") {
            file.kind = FileDiffKind::Deleted;
        } else if row.starts_with("Binary files ") || row == "GIT binary patch" {
            file.kind = FileDiffKind::Binary;
        }
        let is_remark = !CONTENT_ROWS.iter().any(|start| row.starts_with(start));
        file.head.push(HeadRow { text: row.to_owned(), is_remark });
    }

    fn head_row(&mut self, row: &str) {
        self.file().head.push(HeadRow { text: row.to_owned(), is_remark: false });
    }

    /// Returns the current file. If there is none, starts a file without a name.
    fn file(&mut self) -> &mut FileDiff {
        if self.files.is_empty() {
            self.files.push(FileDiff::default());
        }
        let last = self.files.len() - 1;
        &mut self.files[last]
    }
}

/// Returns a file name without its side prefix, quotes and timestamp.
fn strip_name(name: &str, prefix: &str) -> String {
    let name = name.split('\t').next().unwrap_or(name).trim_end().trim_matches('"');
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

/// Parses a hunk header: `@@ -old,count +new,count @@ place`.
fn header(row: &str) -> Option<DiffHunk> {
    let (ranges, place) = row.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |range: &str| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((old_start, old_count), (new_start, new_count)) = (range(old)?, range(new)?);
    Some(DiffHunk { old_start, new_start, old_count, new_count, place: place.to_owned(), ..DiffHunk::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use similar::TextDiff;

    fn text_of(files: &[FileDiff]) -> String {
        files.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_diff_format_round_trips_through_the_structure() {
        let long = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{}\n+b\n", "x".repeat(1 << 20));
        for (text, names, kinds) in [
            ("", &[][..], &[][..]),
            (
                "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ fn x\n a\n-b\n+c\n\\ No newline at end of file\n",
                &["x"],
                &[FileDiffKind::Modified],
            ),
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+a\n", &["x"], &[FileDiffKind::Modified]),
            ("--- /dev/null\n+++ b/x y\n@@ -0,0 +1 @@\n+a\n", &["x y"], &[FileDiffKind::Added]),
            ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", &["x"], &[FileDiffKind::Deleted]),
            ("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- a/y\n-b\n+++ b/y\n", &["x"], &[FileDiffKind::Modified]),
            (
                "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n\
                 diff --git a/e b/e\nnew file mode 100644\nindex 0..0\n\
                 diff --git a/b b/b\nBinary files a/b and b/b differ\n\
                 diff --git a/m b/m\nold mode 100644\nnew mode 100755\n--- a/m\n+++ b/m\n@@ -1 +1 @@\n-a\n+b\n",
                &["y", "e", "b", "m"],
                &[FileDiffKind::Renamed, FileDiffKind::Added, FileDiffKind::Binary, FileDiffKind::Modified],
            ),
            ("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n… 8 more lines\n", &["x"], &[FileDiffKind::Modified]),
            (long.as_str(), &["x"], &[FileDiffKind::Modified]),
        ] {
            let files = read(text);
            assert_eq!(text_of(&files), text);
            assert_eq!(files.iter().filter_map(|file| file.name.as_deref()).collect::<Vec<_>>(), names, "{text:.200}");
            assert_eq!(files.iter().map(|file| file.kind).collect::<Vec<_>>(), kinds, "{text:.200}");
        }
    }

    #[test]
    fn diffs_built_in_code_round_trip_through_their_text() {
        let hunks = || read("@@ -1 +1 @@\n-a\n+b\n")[0].hunks.clone();
        let made = [
            FileDiff::new("a/x", "b/x", hunks()),
            FileDiff::with_title("x", "y").with_similarity(90).renamed("x", "y").with_hunks("a/x", "b/y", hunks()),
            FileDiff::with_title("n", "n").created("100644").with_hunks("/dev/null", "b/n", hunks()),
            FileDiff::with_title("d", "d").deleted("100644").with_hunks("a/d", "/dev/null", hunks()),
            FileDiff::with_title("m", "m").with_modes("100644", "100755"),
            FileDiff::with_title("b", "b").created("100644").binary("b"),
        ];
        assert_eq!(read(&text_of(&made)), made);
        assert_eq!(made.iter().map(FileDiff::text_bytes).sum::<usize>(), text_of(&made).len());
        assert_eq!(made[1].remarks().collect::<Vec<_>>(), ["rename from x", "rename to y"]);
        assert!(FileDiff::new("a/x", "b/x", Vec::new()).is_empty());
    }

    #[test]
    fn diffs_serialize_to_json_with_their_lines() {
        let file = &read(
            "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n",
        )[0];
        let lines = json!([{"side": "removed", "text": "a"}, {"side": "added", "text": "b", "hasNewline": false}]);
        let hunk = json!({"oldStart": 1, "newStart": 1, "oldCount": 1, "newCount": 1, "lines": lines});
        let remarks = json!(["old mode 100644", "new mode 100755"]);
        let wanted = json!({"name": "x", "kind": "modified", "remarks": remarks, "hunks": [hunk]});
        assert_eq!(serde_json::to_value(file).unwrap(), wanted);
    }

    #[test]
    fn missing_newlines_at_end_of_file_are_preserved() {
        let files = read("@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+\r\n");
        let hunk = &files[0].hunks[0];
        assert_eq!(hunk.old_lines().collect::<String>(), "a");
        assert_eq!(hunk.new_lines().collect::<String>(), "a\n\r\n");
    }

    proptest! {
        #[test]
        fn old_and_new_text_are_recovered_from_their_diff(old in "([ab+@\\\\ -]{0,3}\r?\n){0,12}[ab]{0,2}", new in "([ab+@\\\\ -]{0,3}\r?\n){0,12}[ab]{0,2}") {
            let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
            let (olds, news) = (lines(&old), lines(&new));
            let (olds, news): (Vec<&str>, Vec<&str>) =
                (olds.iter().map(String::as_str).collect(), news.iter().map(String::as_str).collect());
            let diff = TextDiff::configure().newline_terminated(true).diff_slices(&olds, &news);
            let text = diff.unified_diff().context_radius(100).header("a/x", "b/x").to_string();
            let files = read(&text);
            prop_assert_eq!(text_of(&files), text);
            if old != new {
                let hunks = || files.iter().flat_map(|file| &file.hunks);
                prop_assert_eq!(hunks().flat_map(DiffHunk::old_lines).collect::<String>(), old);
                prop_assert_eq!(hunks().flat_map(DiffHunk::new_lines).collect::<String>(), new);
            }
        }

        #[test]
        fn parsing_any_text_as_a_diff_is_idempotent(text in "((---|\\+\\+\\+|@@ -1 \\+1 @@|diff --git|[-+ \\\\]| |b/|x|\r|\n){0,4}\n){0,12}") {
            let files = read(&text);
            prop_assert_eq!(read(&text_of(&files)), files);
        }
    }
}
