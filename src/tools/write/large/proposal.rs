//! Diff of a large file: each change with its surroundings.

use super::Large;
use super::pieces::{Part, SplicedFile};
use crate::protocol::{Proposal, Target};
use crate::tools::diff::{plain, unified};
use crate::tools::document::content::Form;
use crate::tools::paths::shown_in_one_line;
use crate::tools::settings::Settings;
use std::fmt::Write;
use std::io;
use std::ops::Range;

/// Maximum number of shown groups of changes.
const MAX_GROUPS: usize = 20;
/// Number of bytes examined around a change; closer changes are shown together.
const CONTEXT_BYTES: u64 = 32 << 10;
/// Size in bytes above which a replaced text is not shown.
const MAX_BYTES: u64 = 1 << 20;

/// Adjacent changes: a range of the file, and its replacement.
struct Group {
    old: Range<u64>,
    new: Range<u64>,
}

pub(super) fn proposal(
    pieces: &mut SplicedFile,
    form: Form,
    large: &Large,
    target: &Target,
    settings: &Settings,
) -> io::Result<Proposal> {
    let name = shown_in_one_line(&target.real, settings);
    let groups = groups(pieces.parts(), large.bytes);
    let mut original = SplicedFile::of(crate::sys::path::open_file(&target.real)?, large.bytes);
    let windows: Vec<(Range<u64>, Range<u64>)> = groups.iter().take(MAX_GROUPS).map(|group| window(group, large.bytes)).collect();
    let old_lines = original.lines_before(&windows.iter().map(|(old, _)| old.start).collect::<Vec<_>>())?;
    let new_lines = pieces.lines_before(&windows.iter().map(|(_, new)| new.start).collect::<Vec<_>>())?;
    let (mut diff, mut added, mut removed) = (String::new(), 0, 0);
    let mut notes = Vec::new();
    let text = |bytes: Vec<u8>| plain(&form.encoding().decode_without_bom_handling(&bytes).0, settings);
    for (((old, new), old_before), new_before) in windows.into_iter().zip(old_lines).zip(new_lines) {
        if old.end - old.start > MAX_BYTES || new.end - new.start > MAX_BYTES {
            notes.push(format!("the change at line {} is too large to show", old_before + 1));
            continue;
        }
        let (old, new) = (text(original.read(old)?), text(pieces.read(new)?));
        let (hunks, more, less) = unified(&old, &new, &format!("a/{name}"), &format!("b/{name}"));
        (added, removed) = (added + more, removed + less);
        diff.push_str(&moved(&hunks, old_before, new_before, diff.is_empty()));
    }
    if groups.len() > MAX_GROUPS {
        notes.push(format!("{} more changed places are not shown", groups.len() - MAX_GROUPS));
    }
    if form != Form::Utf8 {
        notes.push(format!("encoding stays {}", form.name()));
    }
    let summary = format!("Edit {name} +{added} −{removed}");
    Ok(Proposal { summary, diff, paths: vec![target.real.clone()], bytes: pieces.len(), notes, ..Proposal::default() })
}

/// Groups the new text with the ranges it replaces.
fn groups(parts: &[Part], bytes: u64) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let (mut old, mut new) = (0, 0);
    let mut begun: Option<(u64, u64)> = None;
    for part in parts.iter().cloned().chain([Part::Old(bytes..bytes)]) {
        match part {
            Part::New(more) => {
                begun = begun.or(Some((old, new)));
                new += more.len() as u64;
            }
            Part::Old(range) => {
                if range.start > old || begun.is_some() {
                    let (from_old, from_new) = begun.take().unwrap_or((old, new));
                    match groups.last_mut() {
                        Some(last) if from_old - last.old.end <= 2 * CONTEXT_BYTES => {
                            *last = Group { old: last.old.start..range.start, new: last.new.start..new };
                        }
                        _ => groups.push(Group { old: from_old..range.start, new: from_new..new }),
                    }
                }
                new += range.end - range.start;
                old = range.end;
            }
        }
    }
    groups
}

/// Returns the ranges with the same context on both sides.
fn window(group: &Group, bytes: u64) -> (Range<u64>, Range<u64>) {
    let before = group.old.start.min(CONTEXT_BYTES);
    let after = (bytes - group.old.end).min(CONTEXT_BYTES);
    (group.old.start - before..group.old.end + after, group.new.start - before..group.new.end + after)
}

/// Converts the hunks of a part to hunks of the file; file names appear once.
fn moved(hunks: &str, old: u64, new: u64, named: bool) -> String {
    let mut result = String::with_capacity(hunks.len());
    for (index, line) in hunks.split_inclusive('\n').enumerate() {
        if index < 2 {
            result.push_str(if named { line } else { "" });
            continue;
        }
        match line.strip_prefix("@@ -").and_then(|rest| rest.strip_suffix(" @@\n")).and_then(|rest| rest.split_once(" +")) {
            Some((from, to)) => {
                let _ = writeln!(result, "@@ -{} +{} @@", later(from, old), later(to, new));
            }
            None => result.push_str(line),
        }
    }
    result
}

/// Shifts a range such as `12,3` by a number of lines.
fn later(range: &str, lines: u64) -> String {
    let (start, length) = range.split_once(',').map_or((range, None), |(start, length)| (start, Some(length)));
    let start = start.parse::<u64>().map_or_else(|_| start.to_owned(), |start| (start + lines).to_string());
    length.map_or_else(|| start.clone(), |length| format!("{start},{length}"))
}
