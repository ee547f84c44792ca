//! Describes effects: details that a diff cannot show, the reasons why changes are not applied, and the result for the
//! model.

use super::is_gone;
use crate::protocol::{RefusedEffect, UNCHANGED_NOTE};
use crate::sys::overlay::{Change, Changes, NodeKind, RefusalReason, RefusedChange};
use crate::sys::path::read_link;
use crate::tools::paths::{display_path_one_line, join_names};
use crate::tools::settings::ToolSettings;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Number of refused changes in a directory above which they are listed as one.
const TOGETHER: usize = 8;

/// Returns the target of a symlink that the command has created.
pub(super) fn link(changes: &Changes, path: &Path) -> String {
    let says = read_link(&changes.new_content(path)).map_or_else(|_| "?".to_owned(), |says| says.to_string_lossy().into_owned());
    says.replace('\n', "\\n").replace('\r', "\\r")
}

pub(super) fn notes(change: &Change, changes: &Changes, settings: &ToolSettings) -> Vec<String> {
    let mut notes = Vec::new();
    let is_link = |node: Option<crate::sys::overlay::Node>| node.is_some_and(|node| node.kind == NodeKind::Link);
    match (change.before, change.after) {
        (Some(before), Some(after)) if before.kind != after.kind => {
            notes.push(match before.kind {
                NodeKind::Directory => "replaces a directory and everything in it".to_owned(),
                NodeKind::File => format!("replaces a file of {} bytes", before.bytes),
                NodeKind::Link => "replaces a symlink".to_owned(),
                NodeKind::Special => "replaces a device, FIFO or socket".to_owned(),
            });
        }
        (Some(before), Some(after)) if !is_link(change.after) => {
            if (before.owner, before.group) != (after.owner, after.group) {
                notes.push(format!("owner {}:{} becomes {}:{}", before.owner, before.group, after.owner, after.group));
            }
            if before.mode != after.mode && !change.same_content {
                notes.push(format!("mode {:04o} becomes {:04o}", before.mode, after.mode));
            }
        }
        _ => {}
    }
    if change.lost_set_id {
        notes.push("set-id bit dropped".to_owned());
    }
    if change.lost_attributes {
        notes.push("access list or extended attributes dropped".to_owned());
    }
    if let Some(leader) = &change.link_of {
        notes.push(format!("hard link to {}", display_path_one_line(&changes.old(leader), settings)));
    }
    match change.other_link_count() {
        0 => {}
        1 => notes.push("the other hard link keeps the old content".to_owned()),
        more => notes.push(format!("{more} other hard links keep the old content")),
    }
    notes
}

/// Lists the changes that are not applied. If there are many in one directory, they are listed as one.
pub(super) fn list_refused(changes: &Changes, settings: &ToolSettings) -> Vec<RefusedEffect> {
    let name = |path: &Path| display_path_one_line(&changes.old(path), settings);
    let mut together: BTreeMap<(PathBuf, String), Vec<&RefusedChange>> = BTreeMap::new();
    for unkept in changes.unkept() {
        together.entry((group_directory(&unkept.path), refusal_reason(unkept, changes, settings))).or_default().push(unkept);
    }
    let mut refused = Vec::new();
    for ((directory, reason), all) in together {
        if all.len() > TOGETHER {
            let reason = format!("{reason} ({} entries)", all.len());
            refused.push(RefusedEffect { path: format!("{}/", name(&directory)), reason });
        } else {
            refused.extend(all.into_iter().map(|unkept| RefusedEffect { path: name(&unkept.path), reason: reason.clone() }));
        }
    }
    refused
}

/// Returns the directory by which changes are combined: the repository's `.git` or, outside of one, the parent
/// directory.
fn group_directory(path: &Path) -> PathBuf {
    let own = path.ancestors().find(|above| above.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git")));
    own.or(path.parent()).unwrap_or(path).to_owned()
}

fn refusal_reason(unkept: &RefusedChange, changes: &Changes, settings: &ToolSettings) -> String {
    match &unkept.why {
        RefusalReason::Special => "sockets, FIFOs and devices are not applied".to_owned(),
        RefusalReason::SetId => "set-id bits are not applied".to_owned(),
        RefusalReason::Attributes => "access lists and extended attributes are not applied".to_owned(),
        RefusalReason::Closed => {
            "the directory cannot be listed, so its content is unknown; the directory is left as is".to_owned()
        }
        RefusalReason::TooDeep => "the path is too long and is left as is".to_owned(),
        RefusalReason::Refused => "the policy does not allow commands to change this path, which is left as is".to_owned(),
        RefusalReason::With(other) => {
            format!("not applied because of `{}`", display_path_one_line(&changes.old(other), settings))
        }
    }
}

/// Describes the changes that were applied, for the model.
pub(in crate::tools::shell::preview) fn describe_applied(changes: &[Changes]) -> String {
    let mut counts: [(u64, &str); 5] = [(0, "created"), (0, "changed"), (0, "deleted"), (0, "moved"), (0, "with a changed mode")];
    let (mut not, mut touched) = (Vec::new(), 0_u64);
    for changes in changes {
        let moved: BTreeSet<&PathBuf> = changes.entries().iter().filter_map(|change| change.moved_from.as_ref()).collect();
        for change in changes.entries() {
            if moved.contains(&change.path) || is_directory(change) {
                continue;
            }
            if change.is_only_touched() {
                touched += 1;
                continue;
            }
            let at = match (change.before, change.after) {
                _ if change.moved_from.is_some() => 3,
                _ if change.same_content => 4,
                (None, _) => 0,
                (Some(_), Some(_)) => 1,
                (Some(_), None) => 2,
            };
            counts[at].0 += 1;
        }
        not.extend(changes.unkept().iter().map(|unkept| changes.old(&unkept.path)));
    }
    not.sort_unstable();
    not.dedup();
    let mut parts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    // Most commands that change files also set times, so times are mentioned only if nothing else has changed.
    if parts.is_empty() && touched > 0 {
        parts.push(format!("{touched} with a changed time"));
    }
    let kept = if parts.is_empty() { "no file changed".to_owned() } else { format!("files: {}", parts.join(", ")) };
    if not.is_empty() {
        return if parts.is_empty() { UNCHANGED_NOTE.to_owned() } else { format!("[{kept}]") };
    }
    let not = join_names(not.iter().map(|path| format!("`{}`", path.display())));
    format!("[{kept}; not applied, so unchanged: {not}]")
}

fn is_directory(change: &Change) -> bool {
    is_gone(change) && change.after.is_none() || change.after.is_some_and(|node| node.kind == NodeKind::Directory)
}
