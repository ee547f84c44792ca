//! Conversion of diffs to the old and new text of each file, which is the form in which editors display changes.

use super::host::FileProvider;
use super::places;
use crate::protocol::{DiffHunk, FileDiff, FileDiffKind};
use agent_client_protocol::v1::schema::{Diff, ToolCallContent};
use std::path::{Path, PathBuf};

/// Size in bytes above which only the changed parts of a file are displayed.
const WHOLE_BYTES: usize = 128 << 10;
/// Maximum number of changes to display. The number of changes left out is returned to the caller.
const MAX: usize = 100;

/// Direction in which to apply a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the old file to the new one.
    Forth,
    /// From the new file to the old one.
    Back,
}

/// Applies a file's diff to its text in the given direction. Returns `None` if the text does not match the diff.
fn apply(file: &FileDiff, text: &str, way: Direction) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut out, mut at) = (String::new(), 0);
    for hunk in &file.hunks {
        let (old, new): (Vec<String>, Vec<String>) = (hunk.old_lines().collect(), hunk.new_lines().collect());
        let (from, to, start) = match way {
            Direction::Forth => (old, new, hunk.old_start),
            Direction::Back => (new, old, hunk.new_start),
        };
        // A hunk without context lines fits only empty text.
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

/// Converts a file's diff to the form that editors display. `now` is the file's current text, if it can be read.
fn editor_diffs(file: &FileDiff, path: &Path, now: Option<&str>, way: Direction) -> Vec<Diff> {
    let was_missing = file.kind == FileDiffKind::Added;
    let now = now.filter(|text| text.len() <= WHOLE_BYTES).map(|text| text.replace("\r\n", "\n"));
    if let Some(now) = &now
        && let Some(other) = apply(file, now, way).filter(|text| text.len() <= WHOLE_BYTES)
    {
        let (old, new) = match way {
            Direction::Forth => (now.clone(), other),
            Direction::Back => (other, now.clone()),
        };
        let old = Some(old).filter(|old| !(was_missing || way == Direction::Back && old.is_empty() && has_empty_old_side(file)));
        return vec![Diff::new(path, new).old_text(old)];
    }
    // A file that does not exist yet is new, even if its diff says otherwise.
    let is_new = was_missing || now.is_none() && way == Direction::Forth && has_empty_old_side(file);
    let piece = |hunk: &DiffHunk| {
        let old = (!is_new).then(|| hunk.old_lines().collect::<String>());
        Diff::new(path, hunk.new_lines().collect::<String>()).old_text(old)
    };
    file.hunks.iter().map(piece).collect()
}

fn has_empty_old_side(file: &FileDiff) -> bool {
    matches!(&file.hunks[..], [hunk] if hunk.old_lines().next().is_none() && hunk.old_start == 0)
}

/// Converts diffs to the content of a call. Also returns the number of changes that were left out. `paths` provides
/// names for diffs that do not name a file.
pub(crate) async fn contents(
    changed: &[FileDiff],
    (paths, directory): (&[PathBuf], &Path),
    files: &dyn FileProvider,
    way: Direction,
) -> (Vec<ToolCallContent>, usize) {
    let mut diffs = Vec::new();
    for file in changed {
        if file.hunks.is_empty() {
            continue;
        }
        let named = file.name.as_ref().map(PathBuf::from).or_else(|| paths.first().cloned());
        let Some(named) = named else { continue };
        let path = places::absolute(&named.to_string_lossy(), directory);
        let now = if diffs.len() < MAX { files.text(&path).await } else { None };
        diffs.extend(editor_diffs(file, &path, now.as_deref(), way));
    }
    let left_out = diffs.len().saturating_sub(MAX);
    (diffs.into_iter().take(MAX).map(ToolCallContent::Diff).collect(), left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FileDiffs;

    const DIFF: &str = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n--- not a head\n+TWO\n++++ nor this\n\\ No newline at end of file\n";

    #[test]
    fn diffs_apply_in_both_directions_only_to_matching_text() {
        let files = FileDiffs::read(DIFF);
        assert_eq!((files.len(), files[0].name.as_deref(), files[0].hunks.len()), (1, Some("a.txt"), 1));
        let (old, new) = ("one\ntwo\n-- not a head\n", "one\nTWO\n+++ nor this");
        assert_eq!(apply(&files[0], old, Direction::Forth).as_deref(), Some(new));
        assert_eq!(apply(&files[0], new, Direction::Back).as_deref(), Some(old));
        assert_eq!(apply(&files[0], "one\nthree\n-- not a head\n", Direction::Forth), None);
    }

    #[test]
    fn appended_text_is_shown_as_an_addition_and_new_files_have_no_old_text() {
        let files = FileDiffs::read("--- a/log\n+++ b/log\n@@ -0,0 +1 @@\n+more\n");
        let shown_text = |now: Option<&str>, way| {
            let shown = editor_diffs(&files[0], Path::new("/w/log"), now, way);
            (shown[0].old_text.clone(), shown[0].new_text.clone())
        };
        assert_eq!(shown_text(Some("all before\n"), Direction::Forth), (Some(String::new()), "more\n".to_owned()));
        assert_eq!(shown_text(None, Direction::Forth), (None, "more\n".to_owned()));
        assert_eq!(shown_text(Some("more\n"), Direction::Back), (None, "more\n".to_owned()));
    }

    #[test]
    fn deleted_files_keep_their_old_name_and_each_file_has_its_own_hunks() {
        let files = FileDiffs::read(
            "diff --git a/x b/x\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\ndiff --git a/y b/z\nsimilarity index 100%\n--- a/k\n+++ b/k\n@@ -2 +2 @@\n-a\n+b\n",
        );
        let told: Vec<_> =
            files.iter().map(|file| (file.name.as_deref(), file.kind == FileDiffKind::Deleted, file.hunks.len())).collect();
        assert_eq!(told, [(Some("x"), true, 1), (Some("k"), false, 1)]);
        assert_eq!(apply(&files[0], "gone\n", Direction::Forth).as_deref(), Some(""));
    }

    #[test]
    fn malformed_diffs_are_parsed_without_panics() {
        for text in ["", "@@ -1,9 +1 @@\n-a", "--- \n+++ \n@@ -x +1 @@\n", "@@ -0,0 +0,0 @@\n", "\\ No\n--- a\n"] {
            for file in FileDiffs::read(text).iter() {
                apply(file, "a\nb\n", Direction::Forth);
                apply(file, "a\nb\n", Direction::Back);
            }
        }
    }
}
