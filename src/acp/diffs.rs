//! Conversion of a unified diff into the old and new text of each file, the form in which an editor shows a change.

use super::host::Files;
use super::places;
use agent_client_protocol::v1::schema::{Diff, ToolCallContent};
use std::path::{Path, PathBuf};

/// Size in bytes above which only the changed parts of a file are shown.
const WHOLE_BYTES: usize = 128 << 10;
/// Maximum number of changes shown; the caller reports how many were left out.
const MAX: usize = 100;

/// One file of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileDiff {
    /// The name in the diff; for a deleted file the old name.
    pub name: Option<String>,
    pub is_new: bool,
    pub is_gone: bool,
    pub hunks: Vec<Hunk>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hunk {
    /// First line of the hunk in the old file, counted from 1; 0 stands for the place before the first line.
    pub old_start: usize,
    pub new_start: usize,
    pub old: Vec<String>,
    pub new: Vec<String>,
}

/// The direction in which a diff is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the old file to the new one.
    Forth,
    /// From the new file to the old one.
    Back,
}

pub fn parse(unified: &str) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    let mut lines = unified.split_inclusive('\n').peekable();
    let mut in_header = false;
    while let Some(line) = lines.next() {
        let words = line.trim_end_matches(['\n', '\r']);
        if words.starts_with("diff --git ") {
            files.push(FileDiff { name: git_name(words), ..FileDiff::default() });
            in_header = true;
        } else if let Some(old) = words.strip_prefix("--- ")
            && lines.peek().is_some_and(|next| next.starts_with("+++ "))
        {
            let new = lines.next().unwrap_or_default()[4..].trim_end_matches(['\n', '\r']).to_owned();
            if !std::mem::take(&mut in_header) {
                files.push(FileDiff::default());
            }
            if let Some(file) = files.last_mut() {
                (file.is_new, file.is_gone) = (old == MISSING, new == MISSING);
                file.name = Some(if file.is_gone { bare(old) } else { bare(&new) });
            }
        } else if let Some((old_start, old_count, new_start, new_count)) = ranges(words) {
            if files.is_empty() {
                files.push(FileDiff::default());
            }
            let (mut hunk, mut sign) = (Hunk { old_start, new_start, ..Hunk::default() }, b' ');
            loop {
                let is_full = hunk.old.len() >= old_count && hunk.new.len() >= new_count;
                let belongs = |line: &&str| line.starts_with('\\') || !is_full && line.starts_with([' ', '-', '+', '\n', '\r']);
                let Some(line) = lines.next_if(belongs) else { break };
                sign = hunk.take(line, sign);
            }
            if let Some(file) = files.last_mut() {
                file.hunks.push(hunk);
            }
        }
    }
    files
}

const MISSING: &str = "/dev/null";

impl Hunk {
    /// Adds a line and returns its sign; `before` is the sign of the previous line.
    fn take(&mut self, line: &str, before: u8) -> u8 {
        match line.as_bytes().first() {
            Some(b'-') => self.old.push(line[1..].to_owned()),
            Some(b'+') => self.new.push(line[1..].to_owned()),
            Some(b'\\') => {
                let (old, new) = (matches!(before, b'-' | b' '), matches!(before, b'+' | b' '));
                for (side, ends) in [(&mut self.old, old), (&mut self.new, new)] {
                    if let Some(last) = side.last_mut().filter(|_| ends) {
                        last.truncate(last.trim_end_matches('\n').len());
                    }
                }
                return before;
            }
            _ => {
                let line = line.strip_prefix(' ').unwrap_or(line);
                self.old.push(line.to_owned());
                self.new.push(line.to_owned());
                return b' ';
            }
        }
        line.as_bytes()[0]
    }
}

fn ranges(line: &str) -> Option<(usize, usize, usize, usize)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |range: &str| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((old_start, old_count), (new_start, new_count)) = (range(old)?, range(new)?);
    Some((old_start, old_count, new_start, new_count))
}

/// Returns `src/main.rs` for `a/src/main.rs`.
fn bare(name: &str) -> String {
    ["a/", "b/"].into_iter().find_map(|side| name.strip_prefix(side)).unwrap_or(name).to_owned()
}

/// Returns the new name from `diff --git a/old b/new`.
fn git_name(line: &str) -> Option<String> {
    line.rsplit_once(" b/").map(|(_, name)| name.to_owned())
}

impl FileDiff {
    /// Applies the diff to the text, if the text is exactly the one the diff was made from.
    pub fn follow(&self, text: &str, way: Way) -> Option<String> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (mut out, mut at) = (String::new(), 0);
        for hunk in &self.hunks {
            let (from, to, start) = match way {
                Way::Forth => (&hunk.old, &hunk.new, hunk.old_start),
                Way::Back => (&hunk.new, &hunk.old, hunk.new_start),
            };
            // A hunk without context lines fits an empty text only.
            if from.is_empty() && !lines.is_empty() {
                return None;
            }
            let first = start.saturating_sub(1).max(at);
            let end = first + from.len();
            if start.saturating_sub(1) < at || lines.get(first..end)?.iter().ne(from.iter()) {
                return None;
            }
            out.extend(lines[at..first].iter().copied());
            out.extend(to.iter().map(String::as_str));
            at = end;
        }
        out.extend(lines[at..].iter().copied());
        Some(out)
    }

    /// Returns what an editor shows of the file; `now` is its current text, if it can be read.
    fn shown(&self, path: &Path, now: Option<&str>, way: Way) -> Vec<Diff> {
        let now = now.filter(|text| text.len() <= WHOLE_BYTES).map(|text| text.replace("\r\n", "\n"));
        if let Some(now) = &now
            && let Some(other) = self.follow(now, way).filter(|text| text.len() <= WHOLE_BYTES)
        {
            let (old, new) = match way {
                Way::Forth => (now.clone(), other),
                Way::Back => (other, now.clone()),
            };
            let old = Some(old).filter(|old| !(self.is_new || way == Way::Back && old.is_empty() && self.begins_empty()));
            return vec![Diff::new(path, new).old_text(old)];
        }
        // A file that does not exist yet is new, whatever its diff calls it.
        let is_new = self.is_new || now.is_none() && way == Way::Forth && self.begins_empty();
        let piece = |hunk: &Hunk| Diff::new(path, hunk.new.concat()).old_text((!is_new).then(|| hunk.old.concat()));
        self.hunks.iter().map(piece).collect()
    }

    fn begins_empty(&self) -> bool {
        matches!(&self.hunks[..], [hunk] if hunk.old.is_empty() && hunk.old_start == 0)
    }
}

/// Converts a diff into the content of a call. Also returns how many changes were left out. `paths` names the files of
/// a diff that does not name them itself.
pub async fn contents(
    unified: &str,
    (paths, directory): (&[PathBuf], &Path),
    files: &dyn Files,
    way: Way,
) -> (Vec<ToolCallContent>, usize) {
    let mut diffs = Vec::new();
    for file in parse(unified).into_iter().filter(|file| !file.hunks.is_empty()) {
        let named = file.name.as_ref().map(PathBuf::from).or_else(|| paths.first().cloned());
        let Some(named) = named else { continue };
        let path = places::absolute(&named.to_string_lossy(), directory);
        let now = if diffs.len() < MAX { files.text(&path).await } else { None };
        diffs.extend(file.shown(&path, now.as_deref(), way));
    }
    let left_out = diffs.len().saturating_sub(MAX);
    (diffs.into_iter().take(MAX).map(ToolCallContent::Diff).collect(), left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n--- not a head\n+TWO\n++++ nor this\n\\ No newline at end of file\n";

    #[test]
    fn a_diff_is_followed_both_ways_where_the_text_is_the_one_it_was_made_of() {
        let files = parse(DIFF);
        assert_eq!((files.len(), files[0].name.as_deref(), files[0].hunks.len()), (1, Some("a.txt"), 1));
        let (old, new) = ("one\ntwo\n-- not a head\n", "one\nTWO\n+++ nor this");
        assert_eq!(files[0].follow(old, Way::Forth).as_deref(), Some(new));
        assert_eq!(files[0].follow(new, Way::Back).as_deref(), Some(old));
        assert_eq!(files[0].follow("one\nthree\n-- not a head\n", Way::Forth), None);
    }

    #[test]
    fn what_is_appended_is_shown_as_that_and_a_new_file_has_no_old_text() {
        let files = parse("--- a/log\n+++ b/log\n@@ -0,0 +1 @@\n+more\n");
        let shown = |now: Option<&str>, way| {
            let shown = files[0].shown(Path::new("/w/log"), now, way);
            (shown[0].old_text.clone(), shown[0].new_text.clone())
        };
        assert_eq!(shown(Some("all before\n"), Way::Forth), (Some(String::new()), "more\n".to_owned()));
        assert_eq!(shown(None, Way::Forth), (None, "more\n".to_owned()));
        assert_eq!(shown(Some("more\n"), Way::Back), (None, "more\n".to_owned()));
    }

    #[test]
    fn a_file_that_goes_is_named_by_its_old_name_and_each_file_has_its_own_hunks() {
        let files = parse(
            "diff --git a/x b/x\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\ndiff --git a/y b/z\nsimilarity index 100%\n--- a/k\n+++ b/k\n@@ -2 +2 @@\n-a\n+b\n",
        );
        let told: Vec<_> = files.iter().map(|file| (file.name.as_deref(), file.is_gone, file.hunks.len())).collect();
        assert_eq!(told, [(Some("x"), true, 1), (Some("k"), false, 1)]);
        assert_eq!(files[0].follow("gone\n", Way::Forth).as_deref(), Some(""));
    }

    #[test]
    fn nothing_is_too_strange_to_be_read() {
        for text in ["", "@@ -1,9 +1 @@\n-a", "--- \n+++ \n@@ -x +1 @@\n", "@@ -0,0 +0,0 @@\n", "\\ No\n--- a\n"] {
            for file in parse(text) {
                file.follow("a\nb\n", Way::Forth);
                file.follow("a\nb\n", Way::Back);
            }
        }
    }
}
