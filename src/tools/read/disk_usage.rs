//! The `DiskUsage` tool, which measures the size of a directory tree and of the largest entries in it.

use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Place, Target, ToolError, format_count, size};
use crate::sys::file::usage::{EntryTotals, TreeTotals, TreeUsage, UsageOptions, usage};
use crate::sys::path::facts;
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, display_path, join_names, not_found_error, open_error, special_file_error};
use crate::tools::search::top_k::TopItems;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Maximum number of entries to list.
const MAX_SHOWN: usize = 100;
/// Maximum depth to list.
const MAX_DEPTH: u64 = 20;

pub(in crate::tools) struct DiskUsage;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    path: Option<String>,
    /// Levels that are listed: 1 by default, 0 for the sum alone, at most 20.
    #[schemars(range(max = 20))]
    depth: Option<u64>,
}

pub(in crate::tools) struct Work {
    target: Target,
    depth: usize,
}

impl Tool for DiskUsage {
    const NAME: &'static str = "DiskUsage";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("disk_usage"),
        Alias::with_same_arguments("du"),
        Alias::with_same_arguments("directory_size"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/DiskUsage.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let path = arguments.path.as_deref().unwrap_or(".");
        Ok(vec![Action::Read { target: paths.target("path", path, ExpectedKind::Directory)? }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let target =
            Paths::on_disk(settings).target("path", arguments.path.as_deref().unwrap_or("."), ExpectedKind::Directory)?;
        let depth = arguments.depth.unwrap_or(1);
        if depth > MAX_DEPTH {
            return Err(invalid(format!(
                "`depth` is {depth}; at most {MAX_DEPTH} levels are listed; use a subdirectory as `path` instead"
            )));
        }
        Ok(CallDraft::reads(format!("Disk usage of {}", target.given), target.clone(), Work { target, depth: depth as usize }))
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || Ok(measure(&work, &settings, &context.kill)?))
    }
}

fn measure(work: &Work, settings: &ToolSettings, kill: &CancellationToken) -> Result<String, ToolError> {
    let target = &work.target;
    let name = display_path(&target.real, settings);
    match target.place {
        Place::Directory => {}
        Place::Missing => return Err(not_found_error(target, settings)),
        Place::File { .. } => {
            let facts = facts(&target.real).map_err(|error| open_error(target, &error))?;
            return Ok(format!("{name}: {} in one file, {} on disk", format_exact(facts.bytes), format_exact(facts.allocated)));
        }
        Place::Special => return Err(special_file_error(target)),
    }
    // Ordered by size, then by name. Only the largest entries are kept.
    let mut largest: TopItems<(Reverse<u64>, PathBuf, EntryDetails)> = TopItems::new(MAX_SHOWN);
    let found = usage(
        &target.real,
        &mut UsageOptions {
            depth: work.depth,
            may_see: &*settings.paths.may_read,
            stopped: &|| kill.is_cancelled(),
            on_part: &mut |EntryTotals { path, is_directory, sum }| {
                largest.push((Reverse(sum.bytes), path, EntryDetails { is_directory, files: sum.files }));
            },
        },
    )
    .map_err(|error| open_error(target, &error))?;
    let Some(usage) = found else {
        return Err(ToolError::new(ErrorCode::Cancelled, "stopped before everything was counted; try a subdirectory"));
    };
    let mut lines = vec![format!("{name}: {}", summarize(&usage.sum))];
    let seen = largest.seen;
    for (Reverse(bytes), path, sum) in largest.into_sorted() {
        let below = path.strip_prefix(&target.real).unwrap_or(&path).display();
        lines.push(match sum {
            EntryDetails { is_directory: true, files } => {
                format!("{}  {below}/ ({})", format_exact(bytes), format_count(files, "file", "files"))
            }
            EntryDetails { is_directory: false, .. } => format!("{}  {below}", format_exact(bytes)),
        });
    }
    if seen > MAX_SHOWN as u64 {
        lines.push(format!(
            "[the {MAX_SHOWN} largest of {seen} entries shown; use a subdirectory as `path`, or a smaller `depth`]"
        ));
    }
    lines.extend(notes(&usage, settings));
    Ok(lines.join("\n"))
}

/// Details shown about an entry apart from its size and path.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct EntryDetails {
    is_directory: bool,
    files: u64,
}

fn notes(usage: &TreeUsage, settings: &ToolSettings) -> Vec<String> {
    let mut notes = vec!["[ignored and hidden files are counted; symlinks are not followed]".to_owned()];
    if usage.further_names > 0 {
        notes.push(format!("[{} of the files are additional hard links, whose bytes are counted once]", usage.further_names));
    }
    if !usage.other_file_systems.is_empty() {
        let places = join_names(usage.other_file_systems.iter().map(|path| format!("`{}`", display_path(path, settings))));
        notes.push(format!("[not counted because they are on other file systems: {places}; call DiskUsage with each path]"));
    }
    if !usage.unread.is_empty() {
        let places = join_names(usage.unread.iter().map(|(path, why)| format!("`{}`: {why}", display_path(path, settings))));
        notes.push(format!("[not counted: {places}]"));
    }
    if usage.is_cut {
        notes.push(format!(
            "[stopped after {} entries: the total covers only these; measure subdirectories]",
            usage.sum.entries()
        ));
    }
    notes
}

fn summarize(sum: &TreeTotals) -> String {
    let mut parts = vec![format_count(sum.files, "file", "files"), format_count(sum.directories - 1, "directory", "directories")];
    if sum.others > 0 {
        parts.push(format_count(sum.others, "symlink or special file", "symlinks and special files"));
    }
    format!("{} in {}; {} on disk", format_exact(sum.bytes), parts.join(", "), format_exact(sum.allocated))
}

/// Formats a size including the exact number of bytes, for example as `812 bytes` or `4.1 MB (4300123 bytes)`.
fn format_exact(bytes: u64) -> String {
    if bytes < 1024 { size(bytes) } else { format!("{} ({bytes} bytes)", size(bytes)) }
}
