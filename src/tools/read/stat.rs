//! The `Stat` tool, which returns a path's metadata but not its content.

use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, Place, Target, ToolError, format_count};
use crate::sys::file;
use crate::sys::path::{EntryKind, Facts, facts};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::document::content::Document;
use crate::tools::document::replacement::endings;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::paths::{ExpectedKind, Paths, display_path, not_found_error, open_error};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum file size in bytes for which lines are counted.
const COUNTED_BYTES: u64 = 1 << 20;

pub(in crate::tools) struct Stat;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    path: String,
}

pub(in crate::tools) struct Work {
    /// The entry itself, which may be a symlink.
    entry: Target,
    /// Target of the symlink, if the entry is one and its target may be read.
    end: Option<Target>,
}

impl Tool for Stat {
    const NAME: &'static str = "Stat";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("stat"),
        Alias::with_same_arguments("file_info"),
        Alias::with_same_arguments("get_file_info"),
        Alias::with_same_arguments("file_stat"),
        Alias::with_same_arguments("lstat"),
    ];
    const CAPABILITY: &'static str = "File.Read";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/Stat.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let (entry, end) = resolve_entry_and_target(arguments, paths)?;
        Ok(std::iter::once(entry).chain(end).map(|target| Action::Read { target }).collect())
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let (entry, end) = resolve_entry_and_target(&arguments, &Paths::on_disk(settings))?;
        Ok(CallDraft {
            summary: format!("Stat {}", entry.given),
            actions: std::iter::once(&entry).chain(&end).map(|target| Action::Read { target: target.clone() }).collect(),
            proposal: None,
            effect: CallEffect::Reads,
            work: Work { entry, end },
        })
    }

    fn run(work: Work, settings: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || Ok(format_entries(&work, &settings)?))
    }
}

/// Resolves an entry and, if it is a symlink, its target. If the target may not be read, only the symlink itself is
/// described.
fn resolve_entry_and_target(arguments: &Arguments, paths: &Paths<'_>) -> Result<(Target, Option<Target>), ToolError> {
    let entry = paths.entry("path", &arguments.path)?;
    let end = paths.target("path", &arguments.path, ExpectedKind::Directory).ok();
    let end = end.filter(|end| end.real != entry.real && (paths.settings.paths.may_read)(&end.real));
    Ok((entry, end))
}

fn format_entries(work: &Work, settings: &ToolSettings) -> Result<String, ToolError> {
    let entry = &work.entry;
    if entry.place == Place::Missing {
        return Err(not_found_error(entry, settings));
    }
    let own = facts(&entry.real).map_err(|error| open_error(entry, &error))?;
    let mut text = format_entry(entry, &own, settings);
    if own.sort == EntryKind::Link {
        let says = own.says.as_ref().map_or_else(|| "?".into(), |says| says.to_string_lossy());
        let _ = writeln!(text, "target: {says}");
        match work.end.as_ref().map(|end| (end, facts(&end.real))) {
            Some((end, Ok(facts))) => {
                let _ = write!(text, "\nIt points to:\n{}", format_entry(end, &facts, settings));
            }
            Some((end, Err(_))) => {
                let _ = writeln!(text, "points to: {}, which does not exist", display_path(&end.real, settings));
            }
            None => text.push_str("points to: a path that cannot be read\n"),
        }
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

fn format_entry(target: &Target, facts: &Facts, settings: &ToolSettings) -> String {
    let mut text = format!("path: {}\nkind: {}\n", target.real.display(), kind(facts.sort));
    let _ = writeln!(text, "size: {} bytes", facts.bytes);
    if facts.sort == EntryKind::File {
        let _ = writeln!(text, "on disk: {} bytes", facts.allocated);
    }
    let _ = writeln!(text, "mode: {:04o} ({})", facts.mode, format_mode(facts.mode));
    let named = |(id, name): &(u32, Option<String>)| name.as_ref().map_or(id.to_string(), |name| format!("{name} ({id})"));
    let _ = writeln!(text, "owner: {}, group: {}", named(&facts.owner), named(&facts.group));
    if facts.names > 1 && facts.sort == EntryKind::File {
        let _ = writeln!(text, "hard links: {}", facts.names);
    }
    for (name, at) in [("modified", facts.modified), ("accessed", facts.accessed), ("status changed", facts.changed)] {
        let _ = writeln!(text, "{name}: {}", at.map_or_else(|| "unknown".to_owned(), format_iso));
    }
    if facts.sort == EntryKind::File && facts.bytes <= COUNTED_BYTES.min(settings.max_file_size_bytes) {
        text.push_str(&content(target));
    }
    text
}

/// Describes the text content of a file that does not exceed the size limit.
fn content(target: &Target) -> String {
    // The file may be visible but not readable.
    let Ok(bytes) = file::read(&target.real, COUNTED_BYTES) else { return String::new() };
    match Document::decode(&bytes) {
        _ if bytes.is_empty() => "content: empty\n".to_owned(),
        Ok(Document { text, form }) => {
            let lines = text.split_inclusive('\n').count();
            let last = if text.ends_with('\n') { "" } else { ", no trailing newline" };
            let endings = endings(&text).map_or(String::new(), |endings| format!(", {endings}"));
            format!("content: {}, {}{endings}{last}\n", form.name(), format_count(lines as u64, "line", "lines"))
        }
        Err(_) => "content: binary\n".to_owned(),
    }
}

fn kind(sort: EntryKind) -> &'static str {
    match sort {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Link => "symbolic link",
        EntryKind::Fifo => "FIFO",
        EntryKind::Socket => "socket",
        EntryKind::CharacterDevice => "character device",
        EntryKind::BlockDevice => "block device",
    }
}

/// Formats a mode, for example as `rwxr-xr-x`, with `s` and `t` for the special bits that are set.
fn format_mode(mode: u32) -> String {
    let special = [(0o4000, 's'), (0o2000, 's'), (0o1000, 't')];
    (0..3)
        .flat_map(|who| {
            let bits = mode >> (6 - 3 * who);
            let (bit, letter) = special[who];
            let runs = match (mode & bit != 0, bits & 1 != 0) {
                (true, true) => letter,
                (true, false) => letter.to_ascii_uppercase(),
                (false, true) => 'x',
                (false, false) => '-',
            };
            [if bits & 4 != 0 { 'r' } else { '-' }, if bits & 2 != 0 { 'w' } else { '-' }, runs]
        })
        .collect()
}

/// Formats a time, for example as `2026-11-21T17:04:05.123456789Z`.
fn format_iso(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at).map_or_else(|_| "unknown".to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_formatted_as_letters() {
        for (mode, told) in
            [(0o644, "rw-r--r--"), (0o4755, "rwsr-xr-x"), (0o1777, "rwxrwxrwt"), (0o2640, "rw-r-S---"), (0, "---------")]
        {
            assert_eq!(format_mode(mode), told);
        }
    }
}
