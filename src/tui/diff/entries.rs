//! Parser for unified diffs.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::text;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Context,
    Added,
    Removed,
}

/// Entry of a diff, shown in one or more rows.
#[derive(Debug)]
pub(super) enum Entry {
    /// File name, if there are several files.
    File(String),
    /// Remark about the file or the previous line.
    Note(String),
    /// Omitted lines between two hunks, and the location of the next one.
    Break(String),
    Line(ChangeLine),
}

#[derive(Debug)]
pub(super) struct ChangeLine {
    pub side: Side,
    pub number: usize,
    /// Number of a context line in the old file.
    pub old_number: usize,
    /// Displayed text, with marks for invisible characters; tabs and trailing spaces are unchanged.
    pub text: String,
    /// Ranges of the marks for invisible characters in the text.
    pub marks: Vec<Range<usize>>,
    pub hunk: usize,
    /// Index among the lines of its side in the hunk.
    pub index: usize,
    /// Entry of the line this one was changed from or into.
    pub partner: Option<usize>,
}

/// One hunk: the indices of its entries in the old and in the new file.
#[derive(Debug)]
pub(super) struct Hunk {
    pub path: Option<PathBuf>,
    pub old: Vec<usize>,
    pub new: Vec<usize>,
}

impl Entry {
    pub fn side(&self) -> Option<Side> {
        match self {
            Self::Line(line) => Some(line.side),
            Self::File(_) | Self::Note(_) | Self::Break(_) => None,
        }
    }
}

pub(super) fn number_width(entries: &[Entry]) -> usize {
    let numbers = entries.iter().filter_map(|entry| match entry {
        Entry::Line(line) => Some(line.number),
        Entry::File(_) | Entry::Note(_) | Entry::Break(_) => None,
    });
    numbers.max().unwrap_or(0).to_string().len().max(2)
}

pub(super) fn parse(unified: &str, path: Option<&Path>) -> (Vec<Entry>, Vec<Hunk>) {
    let heads = |start| unified.lines().filter(|line| line.starts_with(start)).count();
    let mut reader = Reader {
        entries: Vec::new(),
        hunks: Vec::new(),
        path: path.map(Path::to_path_buf),
        names_files: heads("+++ ").max(heads("diff --git ")) > 1,
        is_named: false,
        in_file: false,
        old: Cursor::default(),
        new: Cursor::default(),
        all_crlf: all_lines_end_in_crlf(unified),
    };
    let body = unified.strip_suffix('\n').unwrap_or(unified);
    if !body.is_empty() {
        body.split('\n').for_each(|line| reader.line(line));
    }
    if reader.all_crlf && !reader.hunks.is_empty() {
        reader.entries.push(Entry::Note("every line here ends in CRLF".to_owned()));
    }
    (reader.entries, reader.hunks)
}

/// Reports whether all lines end in CRLF, so that individual marks are unnecessary.
fn all_lines_end_in_crlf(unified: &str) -> bool {
    let is_content = |line: &&str| line.starts_with([' ', '+', '-']) && !line.starts_with("+++ ") && !line.starts_with("--- ");
    let mut lines = unified.split('\n').filter(is_content).peekable();
    lines.peek().is_some() && lines.all(|line| line.ends_with('\r'))
}

/// Position in one side of a hunk: next line number, and remaining lines.
#[derive(Clone, Copy, Default)]
struct Cursor {
    next: usize,
    left: usize,
}

impl Cursor {
    fn take(&mut self) -> usize {
        self.left = self.left.saturating_sub(1);
        self.next += 1;
        self.next - 1
    }
}

struct Reader {
    entries: Vec<Entry>,
    hunks: Vec<Hunk>,
    path: Option<PathBuf>,
    names_files: bool,
    /// Whether the current file has a name row.
    is_named: bool,
    /// Whether the current file already has a hunk.
    in_file: bool,
    old: Cursor,
    new: Cursor,
    all_crlf: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if let Some(note) = line.strip_prefix("\\ ") {
            return self.entries.push(Entry::Note(text::reveal(note.trim_end()).to_lowercase()));
        }
        if self.old.left + self.new.left == 0 {
            return self.between(line);
        }
        match line.as_bytes().first() {
            Some(b'-') if self.old.left > 0 => self.change(Side::Removed, &line[1..]),
            Some(b'+') if self.new.left > 0 => self.change(Side::Added, &line[1..]),
            Some(b' ') => self.change(Side::Context, &line[1..]),
            None => self.change(Side::Context, ""),
            Some(_) => {
                (self.old.left, self.new.left) = (0, 0);
                self.between(line);
            }
        }
    }

    fn between(&mut self, line: &str) {
        if let Some((old, new, place)) = hunk_head(line) {
            return self.hunk(old, new, place);
        }
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.in_file = false;
            let name = names.rsplit_once(" b/").map_or(names, |(_, name)| name);
            return self.name_file(name.trim_end());
        }
        if let Some(name) = line.strip_prefix("--- ") {
            self.is_named &= !std::mem::take(&mut self.in_file);
            return self.path(name, "a/");
        }
        if let Some(name) = line.strip_prefix("+++ ") {
            self.path(name, "b/");
            if !std::mem::replace(&mut self.is_named, false) {
                let name = self.path.as_deref().map(|path| path.to_string_lossy().into_owned());
                self.name_file(&name.unwrap_or_default());
                self.is_named = false;
            }
            return;
        }
        let silent = ["index ", "similarity index ", "dissimilarity index "];
        if !line.trim().is_empty() && !silent.iter().any(|start| line.starts_with(start)) {
            self.entries.push(Entry::Note(text::expand_tabs(&text::reveal(line)).into_owned()));
        }
    }

    fn name_file(&mut self, name: &str) {
        self.is_named = true;
        if self.names_files {
            self.entries.push(Entry::File(text::expand_tabs(&text::reveal(name)).into_owned()));
        }
    }

    /// Sets the path; the old name is used until a new one follows, since a deleted file has only the old one.
    fn path(&mut self, name: &str, prefix: &str) {
        let name = name.split('\t').next().unwrap_or(name).trim_end().trim_matches('"');
        if name != "/dev/null" && (self.path.is_none() || self.names_files) {
            self.path = Some(PathBuf::from(name.strip_prefix(prefix).unwrap_or(name)));
        }
    }

    fn hunk(&mut self, old: Cursor, new: Cursor, place: &str) {
        (self.old, self.new) = (old, new);
        if self.in_file {
            self.entries.push(Entry::Break(text::expand_tabs(&text::reveal(place.trim())).into_owned()));
        }
        self.in_file = true;
        self.hunks.push(Hunk { path: self.path.clone(), old: Vec::new(), new: Vec::new() });
    }

    fn change(&mut self, side: Side, content: &str) {
        let content = content.strip_suffix('\r').filter(|_| self.all_crlf).unwrap_or(content);
        let entry = self.entries.len();
        let number_of_hunks = self.hunks.len();
        let Some(hunk) = self.hunks.last_mut() else { return };
        let (mut number, mut index, mut old_number) = (0, 0, 0);
        if side != Side::Added {
            number = self.old.take();
            old_number = number;
            index = hunk.old.len();
            hunk.old.push(entry);
        }
        if side != Side::Removed {
            number = self.new.take();
            index = hunk.new.len();
            hunk.new.push(entry);
        }
        let (text, marks) = text::reveal_at(content);
        self.entries.push(Entry::Line(ChangeLine {
            side,
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

/// Parses `@@ -old,count +new,count @@ place`.
fn hunk_head(line: &str) -> Option<(Cursor, Cursor, &str)> {
    let (ranges, place) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let cursor = |range: &str| {
        let (next, left) = range.split_once(',').unwrap_or((range, "1"));
        Some(Cursor { next: next.parse().ok()?, left: left.parse().ok()? })
    };
    Some((cursor(old)?, cursor(new)?, place))
}
