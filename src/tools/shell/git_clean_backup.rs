//! Backs up ignored files before `git clean -x` removes them, because workspace snapshots do not contain them. They are
//! saved up to a limit, and the approval prompt lists the rest.

use crate::policy::deletes_ignored_files;
use crate::protocol::{Target, format_count};
use crate::tools::blocking::off_thread;
use crate::tools::change_log::SavedPaths;
use crate::tools::search::skipped::SkippedPlaces;
use crate::tools::search::walk::{Depth, WalkScope, walk};
use crate::tools::settings::ToolSettings;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Maximum number of files to save before one command.
const MAX_FILES: usize = 2_000;
const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of files to examine. If there are more, what the command would remove is unknown.
const MAX_SEEN: usize = 200_000;
/// Maximum number of entries to list in a note.
const MAX_NAMED: usize = 6;

/// The files in one entry of the directory that is cleaned.
#[derive(Default)]
struct Entry {
    files: Vec<PathBuf>,
    bytes: u64,
}

/// Ignored files below a directory, divided into those within the limit and the rest.
#[derive(Default)]
struct IgnoredFiles {
    kept: Vec<PathBuf>,
    left_out: Vec<String>,
    /// Whether there are more files than were examined.
    unknown: bool,
}

/// Returns a note for the approval prompt, or `None` if the line does not remove ignored files.
pub(in crate::tools) fn backup_note(line: &str, cwd: &Target, settings: &ToolSettings) -> Option<String> {
    if !deletes_ignored_files(line) || settings.session.changes.is_none() {
        return None;
    }
    let IgnoredFiles { kept, left_out, unknown } = find_ignored(cwd, settings);
    let kept = match kept.len() {
        0 => String::new(),
        count => format!("; saved before it runs: {}", format_count(count as u64, "ignored file", "ignored files")),
    };
    if unknown {
        return Some(format!("removes ignored files, too many to save them all{kept}"));
    }
    if left_out.is_empty() {
        return (!kept.is_empty()).then(|| format!("removes ignored files{kept}"));
    }
    let more = left_out.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = left_out.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    Some(format!("removes ignored files; not saved, so lost for good: {named}{more}{kept}"))
}

/// Saves the ignored files that the command would remove. Must be called before the command runs.
pub(in crate::tools) async fn keep(line: &str, cwd: &Target, settings: &Arc<ToolSettings>) -> Option<SavedPaths> {
    let changes = settings.session.changes.clone().filter(|_| deletes_ignored_files(line))?;
    let (cwd, looked) = (cwd.clone(), Arc::clone(settings));
    let found = off_thread(move || find_ignored(&cwd, &looked)).await.ok()?;
    if found.unknown || !found.left_out.is_empty() {
        let what = if found.unknown { "too many to save".to_owned() } else { found.left_out.join(", ") };
        changes.note_gap(format!("a command removed ignored files that were not saved: {what}")).await;
    }
    Some(changes.keep(found.kept).await)
}

fn find_ignored(cwd: &Target, settings: &ToolSettings) -> IgnoredFiles {
    let Some(all) = files(cwd, settings, true) else { return IgnoredFiles { unknown: true, ..IgnoredFiles::default() } };
    let tracked: HashSet<PathBuf> = files(cwd, settings, false).unwrap_or_default().into_iter().collect();
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for file in all.into_iter().filter(|file| !tracked.contains(file)) {
        let entry = entries.entry(name(&file, &cwd.real)).or_default();
        entry.bytes += file.symlink_metadata().map_or(0, |metadata| metadata.len());
        entry.files.push(file);
    }
    let mut entries: Vec<_> = entries.into_iter().collect();
    // Small entries come first, because they are more likely written by hand.
    entries.sort_by_key(|(_, entry)| (entry.bytes, entry.files.len()));
    let mut found = IgnoredFiles::default();
    let mut bytes = 0;
    for (name, entry) in entries {
        if found.kept.len() + entry.files.len() <= MAX_FILES && bytes + entry.bytes <= MAX_BYTES {
            bytes += entry.bytes;
            found.kept.extend(entry.files);
        } else {
            let files = format_count(entry.files.len() as u64, "file", "files");
            found.left_out.push(format!("{name} ({files}, {} MiB)", entry.bytes.div_ceil(1 << 20)));
        }
    }
    found
}

/// Returns the name of the entry in `directory` that contains the file.
fn name(file: &Path, directory: &Path) -> String {
    let below = file.strip_prefix(directory).unwrap_or(file);
    let first = below.components().next().map(|first| first.as_os_str().to_string_lossy().into_owned()).unwrap_or_default();
    if below.components().count() > 1 { format!("{first}/") } else { first }
}

fn files(cwd: &Target, settings: &ToolSettings, ignored: bool) -> Option<Vec<PathBuf>> {
    let (found, enough) = (Mutex::new(Vec::new()), CancellationToken::new());
    let reach = WalkScope { ignored, ..WalkScope::default_scope(Depth::All) };
    let walked = walk(cwd, settings, reach, &SkippedPlaces::new(), &enough, || {
        |entry: &ignore::DirEntry| {
            if entry.file_type().is_some_and(|kind| !kind.is_dir()) {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.push(entry.path().to_owned());
                if found.len() > MAX_SEEN {
                    enough.cancel();
                }
            }
        }
    });
    if walked.is_err() || enough.is_cancelled() {
        return None;
    }
    Some(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}
