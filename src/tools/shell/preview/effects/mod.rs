//! What a command did in its view, as the person sees it before any of it is kept.

mod diff;
mod ignored;
mod refusals;
#[cfg(test)]
mod tests;
mod words;

pub(super) use refusals::refusals;
pub(super) use words::kept_words;

use crate::protocol::{CountedEffects, EffectKind, FileEffect, RefusedEffect};
use crate::sys::layer::{Change, Changes, Kind, Node};
use crate::tools::paths::shown_in_one_line;
use crate::tools::tool::Settings;
use diff::Diff;
use ignored::Ignored;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// More are counted.
const MAX_FILES: usize = 500;

/// The effects, and the rest of what is shown of them.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub files: Vec<FileEffect>,
    pub more_files: u64,
    pub counted: Vec<CountedEffects>,
    pub refused: Vec<RefusedEffect>,
    pub diff: String,
    pub paths: Vec<PathBuf>,
    pub bytes: u64,
    pub notes: Vec<String>,
}

/// What would be kept of the changes, in all directories. What is never kept is taken out of them.
pub(super) fn shown(changes: &mut [Changes], settings: &Settings) -> Shown {
    let mut shown = Shown::default();
    let mut diff = Diff::new(settings);
    let mut touched = 0;
    for changes in changes.iter_mut() {
        changes.refuse(&refusals(changes, settings));
        shown.refused.extend(words::refused(changes, settings));
        touched += look(changes, settings, &mut shown, &mut diff);
    }
    let (text, without) = diff.finish();
    shown.diff = text;
    if without > 0 {
        shown.notes.push(format!("{without} more files have no diff here, because they are many or large"));
    }
    if touched > 0 {
        let files = if touched == 1 { "file gets" } else { "files get" };
        shown.notes.push(format!("{touched} {files} another time of change and nothing else"));
    }
    hide(shown, settings)
}

/// No secret is shown, wherever it stands.
fn hide(mut shown: Shown, settings: &Settings) -> Shown {
    let hidden = |text: &mut String| {
        if settings.redactor.holds_secret(text) {
            *text = settings.redactor.redact(text).text.into_owned();
        }
    };
    for file in &mut shown.files {
        hidden(&mut file.path);
        file.notes.iter_mut().for_each(hidden);
        match &mut file.kind {
            EffectKind::Renamed { from: text, .. } | EffectKind::Linked { to: text } => hidden(text),
            _ => {}
        }
    }
    shown.counted.iter_mut().for_each(|counted| hidden(&mut counted.path));
    for refused in &mut shown.refused {
        hidden(&mut refused.path);
        hidden(&mut refused.reason);
    }
    shown
}

/// Looks at the changes of one directory; gives how many files have another time and nothing else.
fn look(changes: &Changes, settings: &Settings, shown: &mut Shown, diff: &mut Diff<'_>) -> u64 {
    let mut touched = 0;
    let mut ignored = Ignored::new(changes, settings);
    let mut counted: BTreeMap<PathBuf, CountedEffects> = BTreeMap::new();
    let moved = changes.moved_directories();
    let sources: BTreeSet<&Path> = changes.entries().iter().filter_map(|change| change.moved_from.as_deref()).collect();
    let name = |path: &Path| shown_in_one_line(&changes.old(path), settings);
    // What stands below it is told of with it: a directory that was deleted, one that was moved, or one that git ignores.
    let mut told: Option<PathBuf> = None;
    for (from, to) in &moved {
        shown.paths.extend([changes.old(from), changes.old(to)]);
        let kind = EffectKind::Renamed { from: format!("{}/", name(from)), changed: false };
        push(shown, format!("{}/", name(to)), kind, Vec::new());
        diff.moved(&name(from), &name(to), 100);
    }
    for (at, change) in changes.entries().iter().enumerate() {
        shown.bytes += bytes_of(change);
        if moved.iter().any(|(from, to)| change.path.starts_with(from) || change.path.starts_with(to)) {
            continue;
        }
        if change.is_only_touched() {
            touched += 1;
            continue;
        }
        if let Some(directory) = ignored.directory_of(change) {
            let empty = || CountedEffects { path: String::new(), created: 0, changed: 0, deleted: 0, bytes: 0 };
            count(counted.entry(directory).or_insert_with(empty), change);
            continue;
        }
        let below = told.as_ref().is_some_and(|told| change.path.starts_with(told));
        if !below {
            shown.paths.push(changes.old(&change.path));
        }
        // The other end tells of it.
        if below || sources.contains(change.path.as_path()) {
            continue;
        }
        let rest = &changes.entries()[at + 1..];
        let inside = || rest.iter().take_while(|below| below.path.starts_with(&change.path));
        if is_gone(change) {
            told = Some(change.path.clone());
        }
        let kind = match effect(change, changes) {
            // Its files tell of it.
            Some(EffectKind::DirectoryCreated) if inside().next().is_some() && change.before.is_none() => continue,
            Some(EffectKind::DirectoryDeleted { .. }) => {
                let files = inside().filter(|below| {
                    let was_file = below.before.is_some_and(|node| node.kind != Kind::Directory);
                    was_file && below.after.is_none() && !sources.contains(below.path.as_path())
                });
                EffectKind::DirectoryDeleted { files: files.count() as u64 }
            }
            Some(kind) => kind,
            None => continue,
        };
        let kind = match (kind, &change.moved_from) {
            (EffectKind::Created { .. } | EffectKind::Linked { .. }, Some(from)) => {
                shown.paths.push(changes.old(from));
                EffectKind::Renamed { from: name(from), changed: false }
            }
            (kind, _) => kind,
        };
        let kind = diff.file(change, changes, kind);
        push(shown, name(&change.path), kind, words::notes(change, changes, settings));
    }
    shown.paths.extend(counted.keys().map(|directory| changes.old(directory)));
    shown.counted.extend(
        counted.into_iter().map(|(directory, counted)| CountedEffects { path: format!("{}/", name(&directory)), ..counted }),
    );
    shown.paths.sort_unstable();
    shown.paths.dedup();
    touched
}

fn push(shown: &mut Shown, path: String, kind: EffectKind, notes: Vec<String>) {
    if shown.files.len() < MAX_FILES {
        shown.files.push(FileEffect { path, kind, notes });
    } else {
        shown.more_files += 1;
    }
}

/// A directory that is not one any more.
fn is_gone(change: &Change) -> bool {
    let is_directory = |node: Option<Node>| node.is_some_and(|node| node.kind == Kind::Directory);
    is_directory(change.before) && !is_directory(change.after)
}

/// What is written.
fn bytes_of(change: &Change) -> u64 {
    match change.after {
        Some(after) if after.kind == Kind::File && !change.same_content && change.moved_from.is_none() => after.bytes,
        _ => 0,
    }
}

fn count(counted: &mut CountedEffects, change: &Change) {
    counted.bytes += bytes_of(change);
    let is_file = |node: &Node| node.kind != Kind::Directory;
    match (change.before.as_ref().filter(|node| is_file(node)), change.after.as_ref().filter(|node| is_file(node))) {
        (None, Some(_)) => counted.created += 1,
        (Some(_), Some(_)) => counted.changed += 1,
        (Some(_), None) => counted.deleted += 1,
        (None, None) => {}
    }
}

/// The effect without what only a look at the content tells.
fn effect(change: &Change, changes: &Changes) -> Option<EffectKind> {
    let binary = false;
    let same_kind = change.kind().is_some();
    Some(match (change.before, change.after) {
        (Some(before), Some(after)) if same_kind && change.same_content => {
            EffectKind::ModeChanged { from: before.mode, to: after.mode }
        }
        (_, Some(after)) if after.kind == Kind::Link => EffectKind::Linked { to: words::link(changes, &change.path) },
        (_, Some(after)) if after.kind == Kind::Directory => EffectKind::DirectoryCreated,
        (Some(before), Some(after)) if same_kind => {
            EffectKind::Changed { bytes_before: before.bytes, bytes_after: after.bytes, binary }
        }
        (_, Some(after)) => EffectKind::Created { bytes: after.bytes, binary },
        (Some(before), None) if before.kind == Kind::Directory => EffectKind::DirectoryDeleted { files: 0 },
        (Some(before), None) => EffectKind::Deleted { bytes: before.bytes, binary },
        (None, None) => return None,
    })
}
