//! The patch of a single file in git's format, as accepted by `git apply`.

use super::MAX_FILE_BYTES;
use super::binary;
use super::header::FileEntry;
use crate::protocol::{DiffHunk, FileDiff};
use crate::text::hex;
use crate::tools::diff::line_hunks;
use sha1::{Digest, Sha1};
use std::fmt::Write as _;

/// Hash that git uses for a side that does not exist.
const NO_HASH: &str = "0000000000000000000000000000000000000000";

/// Returns the patch of a file. `old` and `new` are the contents of the two sides, each of which is empty if the side
/// does not exist.
pub(super) fn section(entry: &FileEntry, old: &[u8], new: &[u8]) -> std::io::Result<String> {
    let path = &entry.path;
    let mut rows = head(entry).to_string();
    let hash = |side: bool, content: &[u8]| if side { blob_hash(content) } else { NO_HASH.to_owned() };
    if old != new || entry.base.is_none() || entry.result.is_none() {
        let _ = writeln!(rows, "index {}..{}", hash(entry.base.is_some(), old), hash(entry.result.is_some(), new));
    }
    if old == new {
        return Ok(rows);
    }
    let Some((old_text, new_text)) = text(old).zip(text(new)) else {
        return Ok(rows + &binary::encode(new)?);
    };
    let name = |side: bool, letter: char| if side { format!("{letter}/{path}") } else { "/dev/null".to_owned() };
    let (old_name, new_name) = (name(entry.base.is_some(), 'a'), name(entry.result.is_some(), 'b'));
    rows.push_str(&FileDiff::new(&old_name, &new_name, line_hunks(old_text, new_text)).to_string());
    Ok(rows)
}

/// Returns the header lines of the patch: the path, the mode, and whether the file was created or deleted.
fn head(entry: &FileEntry) -> FileDiff {
    let file = FileDiff::with_title(&entry.path, &entry.path);
    match (&entry.base, &entry.result) {
        (Some(base), Some(result)) if base.mode != result.mode => file.with_modes(&base.mode, &result.mode),
        (None, Some(result)) => file.created(&result.mode),
        (Some(base), None) => file.deleted(&base.mode),
        _ => file,
    }
}

/// Checks that a diff contains nothing but the name and the lines of its entry.
pub(super) fn check(diff: &FileDiff, entry: &FileEntry) -> Result<(), String> {
    if diff.name.as_deref() != Some(entry.path.as_str()) {
        let name = diff.name.as_deref().unwrap_or_default();
        return Err(format!("the patch has `{name}` instead of this file"));
    }
    let expected = head(entry);
    let is_binary = is_binary(diff);
    if !diff.remarks().take_while(|row| *row != binary::START).eq(expected.remarks()) {
        return Err("the diff header does not match the header of the patch file".to_owned());
    }
    let is_whole = |hunk: &DiffHunk| {
        hunk.remarks.is_empty() && hunk.old_lines().count() == hunk.old_count && hunk.new_lines().count() == hunk.new_count
    };
    if is_binary && !diff.hunks.is_empty() || !diff.hunks.iter().all(is_whole) {
        return Err("the patch is incomplete, or has extra lines".to_owned());
    }
    Ok(())
}

fn is_binary(diff: &FileDiff) -> bool {
    diff.remarks().any(|row| row == binary::START)
}

/// Applies a diff to the content on which it is based.
pub(super) fn apply(diff: &FileDiff, base: &[u8]) -> Result<Vec<u8>, String> {
    if is_binary(diff) {
        let rows = diff.remarks().skip_while(|row| *row != binary::START).skip(1);
        return binary::decode(rows, MAX_FILE_BYTES);
    }
    if diff.hunks.is_empty() {
        return Ok(base.to_vec());
    }
    let text = text(base).ok_or("the patch has lines, but the file is not text")?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut result = String::new();
    let mut done = 0;
    for hunk in &diff.hunks {
        let start = if hunk.old_count == 0 { hunk.old_start } else { hunk.old_start.saturating_sub(1) };
        let end = start.saturating_add(hunk.old_count);
        let fits = start >= done
            && lines.get(start..end).is_some_and(|there| there.iter().copied().eq(hunk.old_lines().collect::<Vec<_>>()));
        if !fits {
            return Err(format!("the patch does not match the file at line {}", hunk.old_start));
        }
        result.extend(lines[done..start].iter().copied());
        result.extend(hunk.new_lines());
        done = end;
    }
    result.extend(lines[done..].iter().copied());
    if result.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("the result is larger than {MAX_FILE_BYTES} bytes"));
    }
    Ok(result.into_bytes())
}

/// Returns the content as text, or `None` if git would treat it as binary.
fn text(content: &[u8]) -> Option<&str> {
    std::str::from_utf8(content).ok().filter(|text| !text.contains('\0'))
}

/// Returns the hash that the content has as a git blob.
fn blob_hash(content: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    hex(&hash.finalize())
}
