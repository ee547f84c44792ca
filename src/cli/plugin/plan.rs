//! Formats the plan for adding or updating a plugin.

use crate::cli::list_section::list_section;
use crate::host::plugins::{Contents, Part, Plugin, PluginManifest};
use crate::protocol::{FileDiff, format_count, size};
use crate::text::{clean, clean_line, reveal_line, truncate};
use crate::tools::line_hunks;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Maximum width of a description, in terminal cells.
const DESCRIPTION_CELLS: usize = 120;
/// Maximum size, in bytes, of a file whose changes are shown line by line.
const DIFF_BYTES: u64 = 128 << 10;
/// Maximum number of diff lines shown for all files together.
const DIFF_LINES: usize = 400;
/// Number of digits of the plugin hash that are shown.
const DIGITS: usize = 16;

/// Describes the name, origin, size and contents of a plugin.
pub(super) fn describe(plugin: &Plugin, manifest: Option<&PluginManifest>, contents: &Contents) -> String {
    let pin = &plugin.pin;
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key:12} {}", reveal_line(value));
    };
    line("name", &pin.name);
    if let Some(version) = &pin.version {
        line("version", version);
    }
    if !pin.description.is_empty() {
        line("description", &pin.description);
    }
    if let Some(author) = manifest.and_then(|manifest| manifest.author.as_ref()) {
        line("author", author);
    }
    line("source", &pin.source);
    for (key, value) in [("folder", &pin.path), ("commit", &pin.commit), ("SHA-256", &pin.archive_hash)] {
        if let Some(value) = value {
            line(key, value);
        }
    }
    line("files", &files(plugin));
    line("hash", pin.digest().get(..DIGITS).unwrap_or_default());
    for (title, parts, has_commands) in [
        ("Skills", &contents.skills, false),
        ("Agents", &contents.agents, false),
        ("Slash commands", &contents.commands, false),
        ("Tools", &contents.tools, true),
        ("Hooks", &contents.hooks, true),
        ("MCP servers", &contents.servers, true),
    ] {
        text.push_str(&list_section(title, &parts.iter().map(|found| part(found, has_commands)).collect::<Vec<_>>()));
    }
    let notes = manifest.map(|manifest| manifest.notes.as_slice()).unwrap_or_default();
    let unused: Vec<String> = contents.unused.iter().chain(notes).cloned().collect();
    text.push_str(&list_section("Not used", &unused));
    text.push_str(&list_section("Errors; these files are not used", &contents.errors));
    text
}

/// Describes the number and total size of the plugin's files.
pub(super) fn files(plugin: &Plugin) -> String {
    let files = &plugin.pin.files;
    let bytes = files.values().map(|file| file.bytes).sum();
    format!("{}, {}", format_count(files.len() as u64, "file", "files"), size(bytes))
}

/// Describes part of a plugin on one line. Descriptions are truncated, but commands are shown in full.
fn part(part: &Part, is_command: bool) -> String {
    let description = clean_line(&part.description);
    let description = if is_command { description } else { truncate(&description, DESCRIPTION_CELLS).into_owned() };
    format!("{}: {description}", part.name)
}

/// Shows how a new version of a plugin differs from the installed one, file by file.
pub(super) fn differences(old: &Plugin, new: &Plugin) -> String {
    let paths: BTreeSet<&String> = old.pin.files.keys().chain(new.pin.files.keys()).collect();
    let (mut text, mut lines) = (String::new(), 0);
    for path in paths {
        let verb = match (old.pin.files.get(path), new.pin.files.get(path)) {
            (Some(before), Some(now)) if before == now => continue,
            (Some(_), Some(_)) => "change",
            (None, _) => "add",
            (Some(_), None) => "remove",
        };
        let _ = writeln!(text, "\n{verb} {}", reveal_line(path));
        let diff = diff(old, new, path);
        lines += diff.lines().count();
        if lines > DIFF_LINES {
            text.push_str("  (not shown: the differences are too long)\n");
        } else {
            text.push_str(&diff);
        }
    }
    clean(&text).into_owned()
}

fn diff(old: &Plugin, new: &Plugin, path: &str) -> String {
    let content = |plugin: &Plugin| match plugin.pin.files.get(path) {
        None => Some(String::new()),
        Some(file) if file.bytes > DIFF_BYTES => None,
        Some(_) => String::from_utf8(plugin.read(path, DIFF_BYTES).ok()?).ok(),
    };
    match (content(old), content(new)) {
        (Some(before), Some(now)) => {
            let shown = reveal_line(path);
            FileDiff::new(&format!("a/{shown}"), &format!("b/{shown}"), line_hunks(&before, &now)).to_string()
        }
        (None, _) | (_, None) => "  (not shown: not text, too large, or changed since the plugin was added)\n".to_owned(),
    }
}
