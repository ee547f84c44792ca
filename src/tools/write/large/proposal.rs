//! The diff of a large file, which shows each change with the text around it.

use super::Large;
use super::pieces::{Part, SplicedFile};
use crate::protocol::{FileDiff, Proposal, Target};
use crate::tools::diff::{compare, prepare_text};
use crate::tools::document::content::Form;
use crate::tools::paths::display_path_one_line;
use crate::tools::settings::ToolSettings;
use std::io;
use std::ops::Range;

/// Maximum number of groups of changes to show.
const MAX_GROUPS: usize = 20;
/// Number of bytes to examine around a change. Changes that are closer to each other are shown together.
const CONTEXT_BYTES: u64 = 32 << 10;
/// Maximum size, in bytes, of a group's old or new text, including its context. Larger groups are not shown.
const MAX_BYTES: u64 = 1 << 20;

/// Adjacent changes, as the range in the old file and the range that replaces it in the new one.
struct Group {
    old: Range<u64>,
    new: Range<u64>,
}

pub(super) fn proposal(
    pieces: &mut SplicedFile,
    form: Form,
    large: &Large,
    target: &Target,
    settings: &ToolSettings,
) -> io::Result<Proposal> {
    let name = display_path_one_line(&target.real, settings);
    let groups = groups(pieces.parts(), large.bytes);
    let mut original = SplicedFile::new(crate::sys::path::open_file(&target.real)?, large.bytes);
    let windows: Vec<(Range<u64>, Range<u64>)> = groups.iter().take(MAX_GROUPS).map(|group| window(group, large.bytes)).collect();
    let old_lines = original.lines_before(&windows.iter().map(|(old, _)| old.start).collect::<Vec<_>>())?;
    let new_lines = pieces.lines_before(&windows.iter().map(|(_, new)| new.start).collect::<Vec<_>>())?;
    let (mut hunks, mut added, mut removed) = (Vec::new(), 0, 0);
    let mut notes = Vec::new();
    let text = |bytes: Vec<u8>| prepare_text(&form.encoding().decode_without_bom_handling(&bytes).0, settings);
    for (((old, new), old_before), new_before) in windows.into_iter().zip(old_lines).zip(new_lines) {
        if old.end - old.start > MAX_BYTES || new.end - new.start > MAX_BYTES {
            notes.push(format!("the change at line {} is too large to show", old_before + 1));
            continue;
        }
        let (old, new) = (text(original.read(old)?), text(pieces.read(new)?));
        let mut part = compare(&old, &new);
        for hunk in &mut part.hunks {
            hunk.move_down(old_before, new_before);
        }
        (added, removed) = (added + part.added, removed + part.removed);
        hunks.append(&mut part.hunks);
    }
    if groups.len() > MAX_GROUPS {
        notes.push(format!("{} more changed places are not shown", groups.len() - MAX_GROUPS));
    }
    if form != Form::Utf8 {
        notes.push(format!("encoding stays {}", form.name()));
    }
    let summary = format!("Edit {name} +{added} −{removed}");
    let diff = FileDiff::new(&format!("a/{name}"), &format!("b/{name}"), hunks).into();
    Ok(Proposal { summary, diff, paths: vec![target.real.clone()], bytes: pieces.len(), notes, ..Proposal::default() })
}

/// Groups new text with the ranges that it replaces.
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

/// Extends both ranges of a group by the same context.
fn window(group: &Group, bytes: u64) -> (Range<u64>, Range<u64>) {
    let before = group.old.start.min(CONTEXT_BYTES);
    let after = (bytes - group.old.end).min(CONTEXT_BYTES);
    (group.old.start - before..group.old.end + after, group.new.start - before..group.new.end + after)
}
