//! Diffs for display: redacted, with git's file names and headers.

pub(in crate::tools) mod cuts;
mod long_lines;

use super::document::content::Document;
use super::document::line_breaks::shown_lines;
use super::settings::Settings;
use crate::ports::StoredState;
use cuts::Cut;
use long_lines::shortened;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Time limit for finding the smallest diff; a longer diff is still correct.
const DIFF_LIMIT: Duration = Duration::from_millis(500);

/// Number of context lines.
const AROUND: usize = 3;

/// Prepares a text for a diff: LF endings (also for lone CR) and redaction of the whole text, so that no single line of a key
/// is shown.
pub(in crate::tools) fn plain(text: &str, settings: &Settings) -> String {
    settings.redactor.hide(&shown_lines(text)).into_owned()
}

/// Prepares file content for a diff; `None` if it is not text.
pub(in crate::tools) fn plain_of(content: &[u8], settings: &Settings) -> Option<String> {
    Document::decode(content).ok().map(|document| plain(&document.text, settings))
}

/// Returns the unified diff (empty if nothing changed) and the number of added and removed lines.
pub(in crate::tools) fn unified(old: &str, new: &str, old_name: &str, new_name: &str) -> (String, usize, usize) {
    let (diff, added, removed, _) = unified_with_cuts(old, new, old_name, new_name);
    (diff, added, removed)
}

/// Like `unified`, and also returns the hunks.
pub(in crate::tools) fn unified_with_cuts(
    old: &str,
    new: &str,
    old_name: &str,
    new_name: &str,
) -> (String, usize, usize, Vec<Cut>) {
    if old == new {
        return (String::new(), 0, 0, Vec::new());
    }
    // Only LF ends a line; a lone CR is an ordinary character.
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let diff = TextDiff::configure().newline_terminated(true).timeout(DIFF_LIMIT).diff_slices(&old_lines, &new_lines);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
    let cuts = cuts::cuts(&diff.grouped_ops(AROUND), &old_lines, &new_lines);
    let unified = diff.unified_diff().context_radius(AROUND).header(old_name, new_name).to_string();
    (shortened(unified), added, removed, cuts)
}

/// Returns the diff between the earlier and the current content of a path.
pub(in crate::tools) fn of_place(
    name: &str,
    (before, old): (&StoredState, &str),
    (now, new): (&StoredState, &str),
) -> (String, usize, usize) {
    let side = |stood: &StoredState, side| {
        if *stood == StoredState::Missing { "/dev/null".to_owned() } else { format!("{side}/{name}") }
    };
    unified(old, new, &side(before, 'a'), &side(now, 'b'))
}

/// Returns the header line of a file in a diff, and its mode lines if the mode changed.
pub(in crate::tools) fn head(name: &str, before: &StoredState, now: &StoredState) -> String {
    let modes = match (before, now) {
        (StoredState::File { mode: old, .. }, StoredState::File { mode: new, .. }) if old != new => {
            format!("old mode {:06o}\nnew mode {:06o}\n", 0o100_000 | old, 0o100_000 | new)
        }
        _ => String::new(),
    };
    format!("diff --git a/{name} b/{name}\n{modes}")
}
