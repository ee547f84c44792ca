//! The effects of a command that ran in a preview, as shown to the user before they are applied.

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
use crate::protocol::{
    CountedEffects, CreatedFiles, EffectKind, EffectPart, FileDiffs, FileEffect, ONLY_TOUCHED, RefusedEffect, RunsCode,
};
use crate::sys::overlay::{Change, Changes, Node, NodeKind};
use crate::tools::diff::cuts::HunkLines;
use crate::tools::executable_files::readers;
use crate::tools::ignored::IgnoreRules;
use crate::tools::paths::display_path_one_line;
use crate::tools::settings::ToolSettings;
use crate::tools::shell::preview::build_output::BuildOutput;
use diff::EffectsDiff;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Maximum number of paths to list. If there are more, the effects cannot be approved.
const MAX_FILES: usize = 5_000;
/// Maximum number of new files to list in groups, for all folders together.
const MAX_GROUPED: usize = 50_000;
/// Maximum number of new files to list individually. If there are more, those in the same folder form a group.
const FEW_CREATED: usize = 100;
/// Minimum number of new files that form a group. Does not apply to folders that git ignores.
const SMALLEST_GROUP: usize = 4;

/// The effects, and other details to show with them.
#[derive(Debug, Default)]
pub(super) struct ShownEffects {
    pub files: Vec<FileEffect>,
    /// Parts of the effects that the user can omit.
    pub parts: Vec<EffectPart>,
    /// Changes to each listed path, first those in `files`, then those in `groups`.
    pub listed: Vec<ListedEffect>,
    pub more_files: u64,
    pub groups: Vec<CreatedFiles>,
    pub refused: Vec<RefusedEffect>,
    pub diff: FileDiffs,
    pub paths: Vec<PathBuf>,
    pub bytes: u64,
    pub notes: Vec<String>,
    pub runs_code: Vec<RunsCode>,
    /// Build output by real directory, if the command ran before any approval.
    pub build: Vec<(PathBuf, CountedEffects)>,
    pub rest: OtherChanges,
}

/// Changes to one listed path, all of which are either applied or omitted.
#[derive(Debug, Clone)]
pub(super) struct ListedEffect {
    /// Path as it appears in the list.
    pub name: String,
    /// Index of the root directory to which the path belongs.
    pub root: usize,
    pub paths: Vec<PathBuf>,
    /// Hunks that can be omitted separately.
    pub cuts: Vec<HunkLines>,
}

/// Returns the effects to apply in all directories. Changes that are never applied are removed from `changes`.
pub(super) fn collect_effects(changes: &mut [Changes], settings: &ToolSettings) -> ShownEffects {
    let mut shown = ShownEffects::default();
    let mut diff = EffectsDiff::new(settings);
    let mut found = FoundPaths::default();
    for (root, changes) in changes.iter_mut().enumerate() {
        changes.refuse(&refusals(changes, settings));
        shown.refused.extend(describe::list_refused(changes, settings));
        found.begin(root);
        collect_changed(changes, settings, &mut shown, &mut found);
    }
    list(found, &mut shown, &mut diff, settings);
    let (files, without) = diff.finish();
    shown.diff = files;
    if without > 0 {
        shown.notes.push(format!("{without} more files are shown without a diff: too many or too large"));
    }
    hide(shown, settings)
}

/// Redacts every secret in the result.
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

/// A changed path that has not been listed yet.
struct ChangedPath<'a> {
    /// Index of the root directory to which the folder belongs.
    root: usize,
    changes: &'a Changes,
    change: &'a Change,
    kind: EffectKind,
    notes: Vec<String>,
}

/// A new file for which there are no notes, so it may be listed in a group.
struct NewFile<'a> {
    change: &'a Change,
    /// Index of the folder that contains the file.
    folder: u32,
}

/// A folder whose new files may be listed as a group.
struct Folder<'a> {
    /// Index of the root directory to which the folder belongs.
    root: usize,
    changes: &'a Changes,
    path: PathBuf,
    /// Whether git ignores the folder.
    ignored: bool,
    /// Number of new files in the folder.
    files: usize,
}

/// All changed paths before they are listed. If there are many of them, most are new files, so the record for a new
/// file is kept small.
#[derive(Default)]
struct FoundPaths<'a> {
    /// Index of the root directory that is being examined.
    root: usize,
    /// Paths that are not new, up to the limit on listed paths, followed by the number of any others.
    changed: Vec<ChangedPath<'a>>,
    more_changed: u64,
    /// New paths that are always listed individually.
    created: Vec<ChangedPath<'a>>,
    new_files: Vec<NewFile<'a>>,
    folders: Vec<Folder<'a>>,
    folder_indexes: HashMap<(usize, PathBuf), u32>,
    /// Folder and parent of the last new file, and the number of new directories at that time.
    last: Option<(u32, &'a Path, usize)>,
    /// Number of new files, whether or not they can be grouped.
    files_created: usize,
}

impl<'a> FoundPaths<'a> {
    /// Starts examining the next root directory.
    fn begin(&mut self, root: usize) {
        self.root = root;
        self.last = None;
    }

    fn add(&mut self, changes: &'a Changes, change: &'a Change, kind: EffectKind, notes: Vec<String>) {
        self.files_created += usize::from(matches!(kind, EffectKind::Created { .. }));
        let found = ChangedPath { root: self.root, changes, change, kind, notes };
        if is_new(&found) {
            self.created.push(found);
        } else if self.changed.len() < MAX_FILES {
            self.changed.push(found);
        } else {
            self.more_changed += 1;
        }
    }

    /// Adds a new file to its folder. `made` contains the new directories found so far.
    fn add_new_file(&mut self, changes: &'a Changes, change: &'a Change, made: &[&Path], ignored: &mut IgnoreRules<'_>) {
        let parent = change.path.parent().unwrap_or(Path::new(""));
        let folder = match self.last {
            // All files of one directory are in the same folder.
            Some((folder, last, count)) if last.as_os_str() == parent.as_os_str() && count == made.len() => folder,
            _ => self.folder_index(changes, group_folder(change, made, ignored)),
        };
        self.last = Some((folder, parent, made.len()));
        self.files_created += 1;
        self.folders[folder as usize].files += 1;
        self.new_files.push(NewFile { change, folder });
    }

    fn folder_index(&mut self, changes: &'a Changes, (path, ignored): (PathBuf, bool)) -> u32 {
        let key = (self.root, path);
        if let Some(known) = self.folder_indexes.get(&key) {
            self.folders[*known as usize].ignored |= ignored;
            return *known;
        }
        let index = self.folders.len() as u32;
        self.folders.push(Folder { root: self.root, changes, path: key.1.clone(), ignored, files: 0 });
        self.folder_indexes.insert(key, index);
        index
    }

    /// Returns the folders to list as groups, ordered by path, along with their files. New files in any other folder
    /// are moved to `created`.
    fn take_groups(&mut self) -> Vec<(Folder<'a>, Vec<&'a Change>)> {
        let few = self.files_created <= FEW_CREATED;
        let is_group = |folder: &Folder<'_>| folder.ignored || !few && folder.files >= SMALLEST_GROUP;
        let mut groups: Vec<_> = std::mem::take(&mut self.folders).into_iter().map(|folder| (folder, Vec::new())).collect();
        for NewFile { change, folder } in std::mem::take(&mut self.new_files) {
            let (folder, files) = &mut groups[folder as usize];
            if is_group(folder) {
                files.push(change);
            } else {
                let kind = EffectKind::Created { bytes: change.after.map_or(0, |after| after.bytes), binary: false };
                let (root, changes) = (folder.root, folder.changes);
                self.created.push(ChangedPath { root, changes, change, kind, notes: Vec::new() });
            }
        }
        groups.retain(|(_, files)| !files.is_empty());
        groups
            .sort_by(|(one, _), (other, _)| (one.changes.directory(), &one.path).cmp(&(other.changes.directory(), &other.path)));
        groups
    }
}

/// Collects all changed paths. Entries below a directory that was removed or moved are not collected separately.
fn collect_changed<'a>(changes: &'a Changes, settings: &ToolSettings, shown: &mut ShownEffects, found: &mut FoundPaths<'a>) {
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
        // The other end of the rename reports this path.
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
        if change.is_touched_file() {
            notes.push(ONLY_TOUCHED.to_owned());
        } else if let Some(reader) = reader {
            shown.runs_code.push(code_mark(name(&change.path), reader));
            notes.push(reader.note());
        }
        if matches!(kind, EffectKind::Created { .. }) && change.before.is_none() && notes.is_empty() {
            found.add_new_file(changes, change, &made, &mut ignored);
        } else {
            found.add(changes, change, kind, notes);
        }
    }
    shown.build.extend(build.into_iter().flat_map(BuildOutput::into_counts));
    shown.paths.sort_unstable();
    shown.paths.dedup();
}

/// Adds a path of a moved directory if it has to be listed, which is the case for the directory itself and for those of
/// its files that other programs run.
fn add_moved<'a>(
    (changes, change): (&'a Changes, &'a Change),
    reader: Option<CodeReader>,
    (from, to): (&Path, &Path),
    settings: &ToolSettings,
    shown: &mut ShownEffects,
    found: &mut FoundPaths<'a>,
) {
    let name = |path: &Path| display_path_one_line(&changes.old(path), settings);
    if change.path == *to {
        shown.paths.extend([changes.old(from), changes.old(to)]);
        let kind = EffectKind::Renamed { from: format!("{}/", name(from)), changed: false };
        found.add(changes, change, kind, Vec::new());
    } else if let Some((reader, from)) = reader.zip(change.moved_from.as_ref()) {
        // Named individually, although the whole directory is removed.
        shown.runs_code.push(code_mark(name(&change.path), reader));
        let kind = EffectKind::Renamed { from: name(from), changed: false };
        found.add(changes, change, kind, vec![reader.note()]);
    }
}

/// Returns the effect of the entry at index `at`. Returns `None` if it has no effect, or if its effect is listed with
/// another entry. Adds new directories to `made`.
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

/// Returns the folder with which a new entry may be grouped, and whether git ignores that folder.
fn group_folder(change: &Change, made: &[&Path], ignored: &mut IgnoreRules<'_>) -> (PathBuf, bool) {
    if let Some(directory) = ignored.ignored_directory(change) {
        return (directory, true);
    }
    let new = made.last().filter(|made| change.path.starts_with(made));
    (new.copied().or_else(|| change.path.parent()).unwrap_or(Path::new("")).to_owned(), false)
}

/// Lists the changes. Paths that were modified, renamed or deleted, or whose mode changed, come first, followed by
/// created ones. If there are many new files in a folder, they form a group.
fn list(mut found: FoundPaths<'_>, shown: &mut ShownEffects, diff: &mut EffectsDiff<'_>, settings: &ToolSettings) {
    let groups = found.take_groups();
    let FoundPaths { changed, more_changed, mut created, .. } = found;
    shown.more_files += more_changed;
    created
        .sort_by(|one, other| (one.changes.directory(), &one.change.path).cmp(&(other.changes.directory(), &other.change.path)));
    for one in changed.into_iter().chain(created) {
        if shown.files.len() >= MAX_FILES {
            shown.more_files += 1;
            continue;
        }
        let is_directory = one.change.kind() == Some(NodeKind::Directory);
        let (kind, hunks, cuts) = diff.file(one.change, one.changes, one.kind);
        let slash = if matches!(kind, EffectKind::Renamed { .. }) && is_directory { "/" } else { "" };
        let path = format!("{}{slash}", display_path_one_line(&one.changes.old(&one.change.path), settings));
        shown.parts.extend(parts(&path, hunks, &cuts));
        shown.listed.push(ListedEffect { name: path.clone(), root: one.root, paths: vec![one.change.path.clone()], cuts });
        shown.files.push(FileEffect { path, kind, notes: one.notes });
    }
    let mut grouped = 0;
    for (folder, files) in groups {
        let room = MAX_GROUPED - grouped;
        shown.more_files += files.len().saturating_sub(room) as u64;
        grouped += files.len().min(room);
        list_group(&folder, &files, room, shown, settings);
    }
}

/// Lists the new files in a folder as a group, with at most `room` of them by name.
fn list_group(folder: &Folder<'_>, files: &[&Change], room: usize, shown: &mut ShownEffects, settings: &ToolSettings) {
    let bytes = files.iter().map(|change| written_bytes(change)).sum();
    let listed = &files[..files.len().min(room)];
    let name = |change: &&Change| {
        let below = change.path.strip_prefix(&folder.path).unwrap_or(&change.path).to_string_lossy();
        if below.contains(['\n', '\r']) { below.replace('\n', "\\n").replace('\r', "\\r") } else { below.into_owned() }
    };
    let names = listed.iter().map(name).collect();
    let paths = listed.iter().map(|change| change.path.clone()).collect();
    let path = display_path_one_line(&folder.changes.old(&folder.path), settings);
    let path = if path.is_empty() { "./".to_owned() } else { format!("{path}/") };
    let first = shown.parts.last().map_or(0, |part| part.end);
    shown.parts.extend(parts(&path, first..first, &[]));
    shown.listed.push(ListedEffect { name: path.clone(), root: folder.root, paths, cuts: Vec::new() });
    shown.groups.push(CreatedFiles { folder: path, files: names, bytes, ignored: folder.ignored });
}

/// Returns the parts of a listed path that can be omitted: its hunks if they can be separated, and otherwise the whole
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

/// Returns whether there was no entry at the path before the change.
fn is_new(found: &ChangedPath<'_>) -> bool {
    matches!(found.kind, EffectKind::Created { .. } | EffectKind::DirectoryCreated) && found.change.before.is_none()
}

/// Returns whether a directory was removed, or replaced with an entry of another kind.
fn is_gone(change: &Change) -> bool {
    let is_directory = |node: Option<Node>| node.is_some_and(|node| node.kind == NodeKind::Directory);
    is_directory(change.before) && !is_directory(change.after)
}

/// Returns the effect of a change, without details for which the content would have to be read.
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
