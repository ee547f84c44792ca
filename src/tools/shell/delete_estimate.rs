//! Estimates the size of what a command deletes, for its approval prompt.

use crate::policy::{deleted_paths, normal};
use crate::protocol::{Target, format_count, size};
use crate::tools::settings::ToolSettings;
use std::path::Path;

/// Maximum number of entries to count. Beyond that, the note says "more than".
const MAX: usize = 10_000;
/// Maximum number of paths to list.
const MAX_NAMED: usize = 3;

#[derive(Debug, Default)]
struct Count {
    files: u64,
    bytes: u64,
    /// Whether there are more entries than were counted.
    more: bool,
}

/// Returns a note such as `deletes target/tmp: 9 files, 1.2 MB`. Considers only paths in the workspace or below the
/// command's working directory, because others may be slow to read.
pub(in crate::tools) fn delete_note(line: &str, cwd: &Target, settings: &ToolSettings) -> Option<String> {
    let mut left = MAX;
    let mut named = Vec::new();
    let places = deleted_paths(line);
    for place in &places {
        let path = normal(&cwd.real.join(place));
        if !path.starts_with(&settings.workspace) && !path.starts_with(&cwd.real) {
            continue;
        }
        if let Some(count) = count_path(&path, &mut left) {
            named.push(format!("{place}: {}", describe_count(&count)));
        }
        if named.len() == MAX_NAMED {
            break;
        }
    }
    let more = if named.len() == MAX_NAMED && places.len() > MAX_NAMED { ", \u{2026}" } else { "" };
    (!named.is_empty()).then(|| format!("deletes {}{more}", named.join(", ")))
}

fn describe_count(count: &Count) -> String {
    let Count { files, bytes, more } = count;
    let over = if *more { "more than " } else { "" };
    format!("{over}{}, {}", format_count(*files, "file", "files"), size(*bytes))
}

/// Counts the entries at a path. Returns `None` if the path does not exist.
fn count_path(path: &Path, left: &mut usize) -> Option<Count> {
    let form = path.symlink_metadata().ok()?;
    let mut count = Count::default();
    let mut directories = Vec::new();
    if form.is_dir() {
        directories.push(path.to_owned());
    } else {
        (count.files, count.bytes) = (1, form.len());
    }
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            if *left == 0 {
                count.more = true;
                return Some(count);
            }
            *left -= 1;
            // A symlink itself is deleted, not its target.
            match entry.metadata() {
                Ok(form) if form.is_dir() => directories.push(entry.path()),
                Ok(form) => (count.files, count.bytes) = (count.files + 1, count.bytes + form.len()),
                Err(_) => count.more = true,
            }
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn deletion_estimates_stop_at_the_count_limit() {
        let directory = tempfile::tempdir().unwrap();
        let big = directory.path();
        for number in 0..20 {
            fs::write(big.join(number.to_string()), "x").unwrap();
        }
        let mut left = 8;
        let count = count_path(big, &mut left).unwrap();
        assert_eq!(describe_count(&count), "more than 8 files, 8 bytes");
        assert_eq!(left, 0);
    }
}
