//! Effects of a command in its preview, as shown to the user before they are applied.

mod describe;
mod diff;
mod refusals;
#[cfg(test)]
mod tests;

pub(super) use describe::describe_applied;
pub(super) use refusals::refusals;

use super::layer_end::OtherChanges;
use super::written_bytes::written_bytes;
use crate::policy::CodeReader;
use crate::protocol::{CountedEffects, CreatedFiles, EffectKind, EffectPart, FileDiffs, FileEffect, RefusedEffect, RunsCode};
use crate::sys::overlay::{Change, Changes, Node, NodeKind};
use crate::tools::diff::cuts::HunkLines;
use crate::tools::executable_files::readers;
use crate::tools::ignored::IgnoreRules;
use crate::tools::paths::display_path_one_line;
use crate::tools::settings::ToolSettings;
use crate::tools::shell::preview::build_output::BuildOutput;
use diff::EffectsDiff;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Maximum number of listed paths. If there are more, the effects cannot be approved.
const MAX_FILES: usize = 5_000;
/// Maximum number of new files listed in groups, over all folders.
const MAX_GROUPED: usize = 50_000;
/// Maximum number of new files that are listed individually. If there are more, the files of one folder form a group.
const FEW_CREATED: usize = 100;
/// Minimum number of new files in a group, unless git ignores the folder.
const SMALLEST_GROUP: usize = 4;

/// The effects and other details to show.
#[derive(Debug, Default)]
pub(super) struct ShownEffects {
    pub files: Vec<FileEffect>,
    /// Parts that can be left out.
    pub parts: Vec<EffectPart>,
    /// Changes of each listed path: those in `files` first, then those in `groups`.
    pub listed: Vec<ListedEffect>,
    pub more_files: u64,
    pub groups: Vec<CreatedFiles>,
    pub refused: Vec<RefusedEffect>,
    pub diff: FileDiffs,
    pub paths: Vec<PathBuf>,
    pub bytes: u64,
    pub notes: Vec<String>,
    pub runs_code: Vec<RunsCode>,
    /// Build output by real directory, for a command that ran before any approval.
    pub build: Vec<(PathBuf, CountedEffects)>,
    pub rest: OtherChanges,
}

/// Changes of one listed path, which are applied or left out together.
#[derive(Debug, Clone)]
pub(super) struct ListedEffect {
    /// Path as listed.
    pub name: String,
    /// Index of the root directory among all changes.
    pub root: usize,
    pub paths: Vec<PathBuf>,
    /// Hunks that can be left out separately.
    pub cuts: Vec<HunkLines>,
}

/// Returns the effects to apply in all directories. Removes changes that are never applied from `changes`.
pub(super) fn collect_effects(changes: &mut [Changes], settings: &ToolSettings) -> ShownEffects {
    let mut shown = ShownEffects::default();
    let mut diff = EffectsDiff::new(settings);
    let mut found = Vec::new();
    for (root, changes) in changes.iter_mut().enumerate() {
        changes.refuse(&refusals(changes, settings));
        shown.refused.extend(describe::list_refused(changes, settings));
        let first = found.len();
        collect_changed(changes, settings, &mut shown, &mut found);
        found[first..].iter_mut().for_each(|one| one.root = root);
    }
    list(found, &mut shown, &mut diff, settings);
    let (files, without) = diff.finish();
    shown.diff = files;
    if without > 0 {
        shown.notes.push(format!("{without} more files are shown without a diff: too many or too large"));
    }
    hide(shown, settings)
}

/// Redacts all secrets in the result.
fn hide(mut shown: ShownEffects, settings: &ToolSettings) -> ShownEffects {
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
    for part in &mut shown.parts {
        hidden(&mut part.path);
        part.name.iter_mut().for_each(hidden);
    }
    shown.listed.iter_mut().for_each(|listed| hidden(&mut listed.name));
    for group in &mut shown.groups {
        hidden(&mut group.folder);
        group.files.iter_mut().for_each(hidden);
    }
    for refused in &mut shown.refused {
        hidden(&mut refused.path);
        hidden(&mut refused.reason);
    }
    shown
}

/// A changed path before it is listed.
struct ChangedPath<'a> {
    /// Index of the root directory among all changes.
    root: usize,
    changes: &'a Changes,
    change: &'a Change,
    kind: EffectKind,
    notes: Vec<String>,
    /// Folder whose entries may be grouped, and whether git ignores it.
    folder: Option<(PathBuf, bool)>,
}

/// Collects all changed paths. A removed or moved directory covers the entries below it.
fn collect_changed<'a>(
    changes: &'a Changes,
    settings: &ToolSettings,
    shown: &mut ShownEffects,
    found: &mut Vec<ChangedPath<'a>>,
) {
    let mut ignored = IgnoreRules::new(changes.directory(), &*settings.paths.may_read);
    let mut build = settings.command.sandbox.layered.then(|| BuildOutput::new(changes, settings));
    let mut readers = readers(settings);
    let moved = changes.moved_directories();
    let moves: HashMap<&Path, (&Path, &Path)> =
        moved.iter().flat_map(|(from, to)| [(from.as_path(), (from.as_path(), to.as_path())), (to, (from, to))]).collect();
    let sources: BTreeSet<&Path> = changes.entries().iter().filter_map(|change| change.moved_from.as_deref()).collect();
    let name = |path: &Path| display_path_one_line(&changes.old(path), settings);
    let mut told: Option<PathBuf> = None;
    // The outermost new directories, in the order of the changes: a path can only be in the last one.
    let mut made: Vec<&Path> = Vec::new();
    for (at, change) in changes.entries().iter().enumerate() {
        let real = changes.old(&change.path);
        let reader = readers.find(&real);
        if let Some(build) = &mut build {
            if build.count_if_output(change, reader, &mut ignored) {
                continue;
            }
            shown.rest.add(change, changes, reader, &mut ignored, settings);
        }
        shown.bytes += written_bytes(change);
        let in_move = if moves.is_empty() { None } else { change.path.ancestors().find_map(|above| moves.get(above)) };
        if let Some(ends) = in_move {
            add_moved((changes, change), reader, *ends, settings, shown, found);
            continue;
        }
        let below = told.as_ref().is_some_and(|told| change.path.starts_with(told));
        if !below {
            shown.paths.push(real);
        }
        // Reported by the other end of the rename.
        if below || sources.contains(change.path.as_path()) {
            continue;
        }
        if is_gone(change) {
            told = Some(change.path.clone());
        }
        let mut notes = describe::notes(change, changes, settings);
        let Some(kind) = effect_kind(changes, at, &sources, &mut made, notes.is_empty()) else { continue };
        let kind = match (kind, &change.moved_from) {
            (EffectKind::Created { .. } | EffectKind::Linked { .. }, Some(from)) => {
                shown.paths.push(changes.old(from));
                EffectKind::Renamed { from: name(from), changed: false }
            }
            (kind, _) => kind,
        };
        if change.is_only_touched() {
            notes.push("only the modification time changes".to_owned());
        }
        if let Some(reader) = reader {
            shown.runs_code.push(code_mark(name(&change.path), reader));
            notes.push(reader.note());
        }
        let is_plain = matches!(kind, EffectKind::Created { .. }) && change.before.is_none() && notes.is_empty();
        let folder = is_plain.then(|| group_folder(change, &made, &mut ignored));
        found.push(ChangedPath { root: 0, changes, change, kind, notes, folder });
    }
    shown.build.extend(build.into_iter().flat_map(BuildOutput::into_counts));
    shown.paths.sort_unstable();
    shown.paths.dedup();
}

/// Adds a path of a moved directory: the directory itself, and each of its files that other programs run.
fn add_moved<'a>(
    (changes, change): (&'a Changes, &'a Change),
    reader: Option<CodeReader>,
    (from, to): (&Path, &Path),
    settings: &ToolSettings,
    shown: &mut ShownEffects,
    found: &mut Vec<ChangedPath<'a>>,
) {
    let name = |path: &Path| display_path_one_line(&changes.old(path), settings);
    if change.path == *to {
        shown.paths.extend([changes.old(from), changes.old(to)]);
        let kind = EffectKind::Renamed { from: format!("{}/", name(from)), changed: false };
        found.push(ChangedPath { root: 0, changes, change, kind, notes: Vec::new(), folder: None });
    } else if let Some((reader, from)) = reader.zip(change.moved_from.as_ref()) {
        // Named individually, although the whole directory is removed.
        shown.runs_code.push(code_mark(name(&change.path), reader));
        let kind = EffectKind::Renamed { from: name(from), changed: false };
        found.push(ChangedPath { root: 0, changes, change, kind, notes: vec![reader.note()], folder: None });
    }
}

/// Returns the effect of the entry at this index; `None` if there is no effect, or if other entries cover it. Adds new
/// directories to `made`.
fn effect_kind<'a>(
    changes: &'a Changes,
    at: usize,
    sources: &BTreeSet<&Path>,
    made: &mut Vec<&'a Path>,
    is_without_notes: bool,
) -> Option<EffectKind> {
    let (change, rest) = (&changes.entries()[at], &changes.entries()[at + 1..]);
    let mut inside = rest.iter().take_while(|below| below.path.starts_with(&change.path));
    match effect(change, changes)? {
        EffectKind::DirectoryCreated => {
            if change.before.is_none() {
                if !made.last().is_some_and(|made| change.path.starts_with(made)) {
                    made.push(&change.path);
                }
                // The directory is covered by its files.
                if inside.next().is_some() && is_without_notes {
                    return None;
                }
            }
            Some(EffectKind::DirectoryCreated)
        }
        EffectKind::DirectoryDeleted { .. } => {
            let files = inside.filter(|below| {
                let was_file = below.before.is_some_and(|node| node.kind != NodeKind::Directory);
                was_file && below.after.is_none() && !sources.contains(below.path.as_path())
            });
            Some(EffectKind::DirectoryDeleted { files: files.count() as u64 })
        }
        kind => Some(kind),
    }
}

/// Returns the folder whose new entries may be grouped, and whether git ignores it.
fn group_folder(change: &Change, made: &[&Path], ignored: &mut IgnoreRules<'_>) -> (PathBuf, bool) {
    if let Some(directory) = ignored.ignored_directory(change) {
        return (directory, true);
    }
    let new = made.last().filter(|made| change.path.starts_with(made));
    (new.copied().or_else(|| change.path.parent()).unwrap_or(Path::new("")).to_owned(), false)
}

/// Lists the changes: modified, mode-changed, renamed and deleted paths first, then created ones. Many new files in one
/// folder form a group.
fn list(found: Vec<ChangedPath<'_>>, shown: &mut ShownEffects, diff: &mut EffectsDiff<'_>, settings: &ToolSettings) {
    let name = |found: &ChangedPath<'_>, path: &Path| display_path_one_line(&found.changes.old(path), settings);
    let few = found.iter().filter(|one| matches!(one.kind, EffectKind::Created { .. })).count() <= FEW_CREATED;
    let (plain, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.folder.is_some());
    let (created, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_new);
    let mut folders: BTreeMap<(PathBuf, PathBuf), Vec<ChangedPath<'_>>> = BTreeMap::new();
    let mut single = Vec::new();
    for one in plain {
        match &one.folder {
            Some((folder, ignored)) if !few || *ignored => {
                folders.entry((one.changes.directory().to_owned(), folder.clone())).or_default().push(one);
            }
            _ => single.push(one),
        }
    }
    let is_ignored = |files: &[ChangedPath<'_>]| files.iter().any(|one| one.folder.as_ref().is_some_and(|(_, ignored)| *ignored));
    let is_group = |files: &[ChangedPath<'_>]| files.len() >= SMALLEST_GROUP || is_ignored(files);
    let (groups, small): (Vec<_>, Vec<_>) = folders.into_iter().partition(|(_, files)| is_group(files));
    single.extend(small.into_iter().flat_map(|(_, files)| files));
    single.extend(created);
    single
        .sort_by(|one, other| (one.changes.directory(), &one.change.path).cmp(&(other.changes.directory(), &other.change.path)));
    for one in others.into_iter().chain(single) {
        if shown.files.len() >= MAX_FILES {
            shown.more_files += 1;
            continue;
        }
        let (kind, hunks, cuts) = diff.file(one.change, one.changes, one.kind.clone());
        let slash =
            if matches!((&kind, one.change.kind()), (EffectKind::Renamed { .. }, Some(NodeKind::Directory))) { "/" } else { "" };
        let path = format!("{}{slash}", name(&one, &one.change.path));
        shown.parts.extend(parts(&path, hunks, &cuts));
        shown.listed.push(ListedEffect { name: path.clone(), root: one.root, paths: vec![one.change.path.clone()], cuts });
        shown.files.push(FileEffect { path, kind, notes: one.notes });
    }
    let mut grouped = 0;
    for ((_, folder), files) in groups {
        let room = MAX_GROUPED - grouped;
        shown.more_files += files.len().saturating_sub(room) as u64;
        grouped += files.len().min(room);
        let bytes = files.iter().map(|one| written_bytes(one.change)).sum();
        let ignored = is_ignored(&files);
        let names = files.iter().take(room).map(|one| {
            let below = one.change.path.strip_prefix(&folder).unwrap_or(&one.change.path);
            below.to_string_lossy().replace('\n', "\\n").replace('\r', "\\r")
        });
        let names = names.collect();
        let root = files.first().map_or(0, |one| one.root);
        let paths = files.iter().take(room).map(|one| one.change.path.clone()).collect();
        let folder = files.first().map(|one| name(one, &folder)).unwrap_or_default();
        let folder = if folder.is_empty() { "./".to_owned() } else { format!("{folder}/") };
        let first = shown.parts.last().map_or(0, |part| part.end);
        shown.parts.extend(parts(&folder, first..first, &[]));
        shown.listed.push(ListedEffect { name: folder.clone(), root, paths, cuts: Vec::new() });
        shown.groups.push(CreatedFiles { folder, files: names, bytes, ignored });
    }
}

/// Returns the parts of a listed path that can be left out: its hunks if they can be separated, otherwise the whole
/// path.
fn parts(path: &str, hunks: Range<usize>, cuts: &[HunkLines]) -> Vec<EffectPart> {
    let part = |hunk, name, first, end| EffectPart { path: path.to_owned(), hunk, name, first, end };
    if cuts.is_empty() {
        return vec![part(None, None, hunks.start, hunks.end)];
    }
    let one = |(at, cut): (usize, &HunkLines)| part(Some(at), cut.name.clone(), hunks.start + at, hunks.start + at + 1);
    cuts.iter().enumerate().map(one).collect()
}

fn code_mark(path: String, reader: CodeReader) -> RunsCode {
    RunsCode { path, when: reader.when, readers: reader.readers.to_owned() }
}

/// Returns whether the change affects no existing path.
fn is_new(found: &ChangedPath<'_>) -> bool {
    matches!(found.kind, EffectKind::Created { .. } | EffectKind::DirectoryCreated) && found.change.before.is_none()
}

/// Returns whether a directory was removed, or replaced by an entry of another kind.
fn is_gone(change: &Change) -> bool {
    let is_directory = |node: Option<Node>| node.is_some_and(|node| node.kind == NodeKind::Directory);
    is_directory(change.before) && !is_directory(change.after)
}

/// Returns the effect, without details that require reading the content.
fn effect(change: &Change, changes: &Changes) -> Option<EffectKind> {
    let binary = false;
    let same_kind = change.kind().is_some();
    Some(match (change.before, change.after) {
        (Some(before), Some(after)) if same_kind && change.same_content => {
            EffectKind::ModeChanged { from: before.mode, to: after.mode }
        }
        (_, Some(after)) if after.kind == NodeKind::Link => EffectKind::Linked { to: describe::link(changes, &change.path) },
        (_, Some(after)) if after.kind == NodeKind::Directory => EffectKind::DirectoryCreated,
        (Some(before), Some(after)) if same_kind => {
            EffectKind::Changed { bytes_before: before.bytes, bytes_after: after.bytes, binary }
        }
        (_, Some(after)) => EffectKind::Created { bytes: after.bytes, binary },
        (Some(before), None) if before.kind == NodeKind::Directory => EffectKind::DirectoryDeleted { files: 0 },
        (Some(before), None) => EffectKind::Deleted { bytes: before.bytes, binary },
        (None, None) => return None,
    })
}
