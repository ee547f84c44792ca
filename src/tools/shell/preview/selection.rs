//! Selection among a command's effects. Those that the user omits are discarded with the layer, as is all build output,
//! which may depend on them.

use super::effects::ListedEffect;
use crate::protocol::{DiscardedEffect, HunkChoice, ToolError};
use crate::sys::file;
use crate::sys::overlay::{Change, Changes, NodeKind};
use crate::tools::diff::cuts::with_choices;
use crate::tools::document::content::Document;
use crate::tools::error::invalid;
use crate::tools::settings::ToolSettings;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::PathBuf;

/// Maximum number of paths to list for the model. The limit applies separately to applied and discarded paths.
const MAX_NAMED: usize = 100;

/// Removes the parts that the user omitted from the changes. If some hunks of a text file were omitted, writes the
/// resulting content to the layer. Returns a note for the model.
pub(super) fn select(
    changes: &mut [Changes],
    effects: &[ListedEffect],
    discarded: &[DiscardedEffect],
    settings: &ToolSettings,
) -> Result<String, ToolError> {
    let mut hunks = Vec::new();
    for effect in effects.iter().filter(|effect| !is_discarded(effect, discarded)) {
        let Some(left) = discarded.iter().find(|left| left.path == effect.name) else { continue };
        write_without(&mut changes[effect.root], effect, &left.hunks, settings)?;
        let numbers: Vec<String> = left.hunks.iter().map(|hunk| (hunk + 1).to_string()).collect();
        hunks.push(format!("`{}` (hunk {} of {})", effect.name, numbers.join(", "), effect.cuts.len()));
    }
    let mut has_build_output = false;
    for (root, changes) in changes.iter_mut().enumerate() {
        let own: Vec<&ListedEffect> = effects.iter().filter(|effect| effect.root == root).collect();
        let choices = choices(changes, &own, discarded);
        let kept = applied_paths(changes, &choices);
        let left: BTreeSet<PathBuf> =
            changes.entries().iter().filter(|change| !kept.contains(&change.path)).map(|change| change.path.clone()).collect();
        let is_directory = |path: &PathBuf| {
            let nodes = find(changes, path).map(|change| [change.before, change.after]);
            nodes.into_iter().flatten().flatten().any(|node| node.kind == NodeKind::Directory)
        };
        has_build_output |= left.iter().any(|path| !choices.contains_key(path) && !is_directory(path));
        // Changes that depend on discarded changes are left out too.
        changes.without(&left);
    }
    Ok(selection_note(changes, effects, hunks, has_build_output))
}

fn is_discarded(effect: &ListedEffect, discarded: &[DiscardedEffect]) -> bool {
    let all = |left: &DiscardedEffect| left.hunks.is_empty() || left.hunks.len() == effect.cuts.len();
    discarded.iter().any(|left| left.path == effect.name && all(left))
}

/// Returns whether each changed path that belongs to a listed effect is applied.
fn choices(changes: &Changes, effects: &[&ListedEffect], discarded: &[DiscardedEffect]) -> BTreeMap<PathBuf, bool> {
    let moved = changes.moved_directories();
    let sources: BTreeSet<&PathBuf> = changes.entries().iter().filter_map(|change| change.moved_from.as_ref()).collect();
    let mut choices: BTreeMap<PathBuf, bool> = BTreeMap::new();
    let mut own = Vec::new();
    for effect in effects {
        let applies = !is_discarded(effect, discarded);
        for path in &effect.paths {
            own.push((path.clone(), applies));
            let Some(change) = find(changes, path) else { continue };
            own.extend(change.moved_from.iter().map(|from| (from.clone(), applies)));
            let mut cover = |covered: &PathBuf| {
                let choice = choices.entry(covered.clone()).or_insert(applies);
                *choice &= applies;
            };
            if let Some((from, to)) = moved.iter().find(|(_, to)| to == path) {
                changes.below(from).iter().chain(changes.below(to)).for_each(|below| cover(&below.path));
            } else if change.before.is_some_and(|node| node.kind == NodeKind::Directory) && change.kind().is_none()
                || change.after.is_none()
            {
                // The entries of a deleted directory are deleted with it, except those that are moved away.
                let deleted = changes.below(path).iter().filter(|below| below.after.is_none() && !sources.contains(&below.path));
                deleted.for_each(|below| cover(&below.path));
            }
        }
    }
    // A path with its own effect follows that effect.
    choices.extend(own);
    choices
}

/// Returns the paths whose changes are applied. A new directory that is not listed is created if an entry inside it is.
fn applied_paths(changes: &Changes, choices: &BTreeMap<PathBuf, bool>) -> BTreeSet<PathBuf> {
    let mut kept: BTreeSet<PathBuf> = choices.iter().filter(|(_, applies)| **applies).map(|(path, _)| path.clone()).collect();
    let is_made = |path: &&std::path::Path| {
        !choices.contains_key(*path)
            && find(changes, path).is_some_and(|change| change.after.is_some_and(|node| node.kind == NodeKind::Directory))
    };
    let parents: Vec<PathBuf> =
        kept.iter().flat_map(|path| path.ancestors().skip(1)).filter(is_made).map(std::path::Path::to_owned).collect();
    kept.extend(parents);
    kept
}

fn find<'a>(changes: &'a Changes, path: &std::path::Path) -> Option<&'a Change> {
    let entries = changes.entries();
    entries.binary_search_by(|change| change.path.as_path().cmp(path)).ok().map(|at| &entries[at])
}

/// Writes a text file without some of its hunks to the layer.
fn write_without(changes: &mut Changes, effect: &ListedEffect, left: &[usize], settings: &ToolSettings) -> Result<(), ToolError> {
    let Some(path) = effect.paths.first() else { return Ok(()) };
    let failed = |why: String| invalid(format!("cannot leave out hunks of `{}`: {why}; nothing was written", effect.name));
    let read = |path: PathBuf| -> Result<Document, String> {
        let bytes = file::read(&path, settings.max_file_size_bytes).map_err(|error| error.to_string())?;
        Document::decode(&bytes).map_err(|_| "the file is not text".to_owned())
    };
    let old = read(changes.old(path)).map_err(failed)?;
    let new = read(changes.new_content(path)).map_err(failed)?;
    let choice = |at| if left.contains(&at) { HunkChoice::Left } else { HunkChoice::Taken };
    let choices: Vec<HunkChoice> = (0..effect.cuts.len()).map(choice).collect();
    let restored = |text: &str| Ok::<_, Infallible>(text.to_owned());
    let Ok(text) = with_choices((&old.text, &new.text), &effect.cuts, &choices, settings, restored);
    let content = text.and_then(|text| new.form.encode(&text));
    let content = content.ok_or_else(|| failed("the hunks cannot be separated".to_owned()))?;
    changes.rewrite(path, &content).map_err(|error| failed(error.to_string()))
}

fn is_kept(changes: &[Changes], effect: &ListedEffect) -> bool {
    effect.paths.iter().any(|path| find(&changes[effect.root], path).is_some())
}

/// Returns how many of the listed effects are applied.
pub(super) fn applied_count(changes: &[Changes], effects: &[ListedEffect]) -> usize {
    effects.iter().filter(|effect| is_kept(changes, effect)).count()
}

/// Describes the applied and the discarded effects, for the model.
fn selection_note(changes: &[Changes], effects: &[ListedEffect], hunks: Vec<String>, has_build_output: bool) -> String {
    let (kept, left): (Vec<_>, Vec<_>) = effects.iter().partition(|effect| is_kept(changes, effect));
    let names = |effects: Vec<&ListedEffect>| effects.iter().map(|effect| format!("`{}`", effect.name)).collect::<Vec<_>>();
    let left: Vec<String> = names(left).into_iter().chain(hunks).collect();
    let kept = names(kept);
    let build = if has_build_output { "; build output was discarded too" } else { "" };
    let kept = if kept.is_empty() { "nothing".to_owned() } else { list_names(&kept) };
    format!("[The user applied only part of the changes. Applied: {kept}; discarded, so unchanged: {}{build}]", list_names(&left))
}

/// Lists names, followed by the number of those beyond the limit.
fn list_names(names: &[String]) -> String {
    let shown = names[..names.len().min(MAX_NAMED)].join(", ");
    match names.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
