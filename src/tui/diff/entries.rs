//! Entries of a displayed diff: file names, remarks, lines, and gaps between hunks.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::protocol::{DiffHunk, DiffLine, DiffSide, FileDiff};
use crate::text;

/// Entry of a diff, which is shown on one or more rows.
#[derive(Debug)]
pub(super) enum DiffEntry {
    /// File name, shown if the diff has several files.
    File(String),
    /// Remark on the file or the previous line.
    Note(String),
    /// Lines omitted between two hunks, with the location of the second hunk.
    Break(String),
    Line(ChangeLine),
}

#[derive(Debug)]
pub(super) struct ChangeLine {
    pub side: DiffSide,
    pub number: usize,
    /// Line number in the old file, for context lines.
    pub old_number: usize,
    /// Text to display, with marks in place of invisible characters. Tabs and trailing spaces are left unchanged.
    pub text: String,
    /// Byte ranges of the marks for invisible characters within the text.
    pub marks: Vec<Range<usize>>,
    pub hunk: usize,
    /// Index of the line among those on the same side of its hunk.
    pub index: usize,
    /// Index of the entry that contains the other version of a changed line, if there is one.
    pub partner: Option<usize>,
}

/// Entries of a hunk: the path of its file, and the indexes of its lines in the old and the new version.
#[derive(Debug)]
pub(super) struct HunkEntries {
    pub path: Option<PathBuf>,
    pub old: Vec<usize>,
    pub new: Vec<usize>,
}

impl DiffEntry {
    pub(crate) fn side(&self) -> Option<DiffSide> {
        match self {
            Self::Line(line) => Some(line.side),
            Self::File(_) | Self::Note(_) | Self::Break(_) => None,
        }
    }
}

pub(super) fn number_width(entries: &[DiffEntry]) -> usize {
    let numbers = entries.iter().filter_map(|entry| match entry {
        DiffEntry::Line(line) => Some(line.number),
        DiffEntry::File(_) | DiffEntry::Note(_) | DiffEntry::Break(_) => None,
    });
    numbers.max().unwrap_or(0).to_string().len().max(2)
}

/// Returns the entries and hunks of a diff. `path` is the path of the file, for diffs that do not contain file names.
pub(super) fn entries(files: &[FileDiff], path: Option<&Path>) -> (Vec<DiffEntry>, Vec<HunkEntries>) {
    let mut list = EntryList { entries: Vec::new(), hunks: Vec::new(), all_crlf: all_lines_end_in_crlf(files) };
    let names_files = files.len() > 1;
    let mut path = path.map(Path::to_path_buf);
    for file in files {
        if let Some(name) = &file.name {
            if names_files {
                list.entries.push(DiffEntry::File(display_row(name)));
            }
            if names_files || path.is_none() {
                path = Some(PathBuf::from(name));
            }
        }
        file.remarks().filter_map(|remark| readable(remark, names_files)).for_each(|remark| list.note(remark));
        for (at, hunk) in file.hunks.iter().enumerate() {
            if at > 0 {
                list.entries.push(DiffEntry::Break(display_row(hunk.place.trim())));
            }
            list.hunk(hunk, path.as_deref());
        }
    }
    if list.all_crlf {
        list.entries.push(DiffEntry::Note("every line here ends in CRLF".to_owned()));
    }
    (list.entries, list.hunks)
}

/// Returns a remark on a file in words, without git's notation for modes. Returns `None` for what the title of a diff of
/// a single file already says.
fn readable(remark: &str, names_files: bool) -> Option<&str> {
    match remark {
        "new file mode 100644" => names_files.then_some("new file"),
        "new file mode 100755" => Some("new executable file"),
        "new file mode 120000" => Some("new symlink"),
        "deleted file mode 100644" | "deleted file mode 100755" => names_files.then_some("deleted file"),
        "deleted file mode 120000" => Some("deleted symlink"),
        _ => Some(remark),
    }
}

/// Returns whether every line ends in CRLF, in which case the lines are not marked individually.
fn all_lines_end_in_crlf(files: &[FileDiff]) -> bool {
    let mut lines = files.iter().flat_map(|file| &file.hunks).flat_map(|hunk| &hunk.lines).peekable();
    lines.peek().is_some() && lines.all(|line| line.text.ends_with('\r'))
}

fn display_row(row: &str) -> String {
    text::expand_tabs(&text::reveal(row)).into_owned()
}

struct EntryList {
    entries: Vec<DiffEntry>,
    hunks: Vec<HunkEntries>,
    all_crlf: bool,
}

impl EntryList {
    fn note(&mut self, remark: &str) {
        if !remark.trim().is_empty() {
            self.entries.push(DiffEntry::Note(display_row(remark)));
        }
    }

    fn hunk(&mut self, hunk: &DiffHunk, path: Option<&Path>) {
        self.hunks.push(HunkEntries { path: path.map(Path::to_path_buf), old: Vec::new(), new: Vec::new() });
        let (mut old, mut new) = (hunk.old_start, hunk.new_start);
        for line in &hunk.lines {
            self.line(line, old, new);
            old = old.saturating_add(usize::from(line.side != DiffSide::Added));
            new = new.saturating_add(usize::from(line.side != DiffSide::Removed));
            if !line.has_newline {
                self.entries.push(DiffEntry::Note("no newline at end of file".to_owned()));
            }
        }
        hunk.remarks.lines().for_each(|remark| self.note(remark));
    }

    /// Adds a line. `old` and `new` are its line numbers in the two files. The number for a file that does not contain
    /// the line is ignored.
    fn line(&mut self, line: &DiffLine, old: usize, new: usize) {
        let content = line.text.strip_suffix('\r').filter(|_| self.all_crlf).unwrap_or(&line.text);
        let entry = self.entries.len();
        let number_of_hunks = self.hunks.len();
        let Some(hunk) = self.hunks.last_mut() else { return };
        let (mut number, mut index, mut old_number) = (0, 0, 0);
        if line.side != DiffSide::Added {
            (number, old_number) = (old, old);
            index = hunk.old.len();
            hunk.old.push(entry);
        }
        if line.side != DiffSide::Removed {
            number = new;
            index = hunk.new.len();
            hunk.new.push(entry);
        }
        let (text, marks) = text::reveal_at(content);
        self.entries.push(DiffEntry::Line(ChangeLine {
            side: line.side,
            number,
            old_number,
            text,
            marks,
            hunk: number_of_hunks - 1,
            index,
            partner: None,
        }));
    }
}
