//! Conversion of paths between editors and prompts.

use std::path::{Component, Path, PathBuf};

/// Location in a file as given by an editor: a path, optionally with a range of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileLocation {
    pub path: PathBuf,
    pub lines: Option<(u64, u64)>,
}

/// Parses a URI such as `file:///home/me/a%20b.rs#L10-20`. Returns `None` if it does not refer to a local file.
pub(crate) fn parse_uri(uri: &str) -> Option<FileLocation> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let (path, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let path = percent_decode(path)?;
    (path.starts_with('/') && !path.contains(['\0', '\n', '\r']))
        .then(|| FileLocation { path: PathBuf::from(path), lines: lines(fragment) })
}

/// Parses a range of lines, such as `L10`, `L10-20`, `L10:20` or `L10-L20`.
fn lines(fragment: &str) -> Option<(u64, u64)> {
    let fragment = fragment.strip_prefix(['L', 'l'])?;
    let number = |text: &str| text.strip_prefix(['L', 'l']).unwrap_or(text).parse::<u64>().ok().filter(|line| *line > 0);
    let (first, last) = fragment.split_once(['-', ':']).unwrap_or((fragment, fragment));
    let (first, last) = (number(first)?, number(last)?);
    Some((first.min(last), first.max(last)))
}

fn percent_decode(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

impl FileLocation {
    /// Returns a mention of this location for use in a prompt: `@src/main.rs#L10-20`.
    pub(crate) fn mention(&self, directory: &Path) -> Option<String> {
        let path = relative_path(&self.path, directory);
        if path.contains('"') {
            return None;
        }
        let is_plain = path.chars().all(|letter| letter.is_alphanumeric() || "/._-+~".contains(letter));
        let lines = match self.lines {
            None => String::new(),
            Some((first, last)) if first == last => format!("#L{first}"),
            Some((first, last)) => format!("#L{first}-{last}"),
        };
        Some(if is_plain && !path.ends_with('.') { format!("@{path}{lines}") } else { format!("@\"{path}\"{lines}") })
    }
}

/// Returns a path as relative to the workspace if it is inside it, and otherwise unchanged.
pub(crate) fn relative_path(path: &Path, directory: &Path) -> String {
    match path.strip_prefix(directory) {
        Ok(rest) if rest.as_os_str().is_empty() => "./".to_owned(),
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// Returns the absolute path for a file name in a call or a diff, without accessing the disk.
pub(crate) fn absolute(name: &str, directory: &Path) -> PathBuf {
    let mut path = PathBuf::new();
    for part in directory.join(name).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_uris_from_the_editor_become_mentions() {
        let directory = Path::new("/home/me/app");
        for (uri, expected) in [
            ("file:///home/me/app/src/main.rs", Some("@src/main.rs")),
            ("file:///home/me/app/src/main.rs#L10-20", Some("@src/main.rs#L10-20")),
            ("file:///home/me/app/src/main.rs#L7:7", Some("@src/main.rs#L7")),
            ("file:///home/me/app/my%20notes/t%C3%B6.md", Some("@\"my notes/tö.md\"")),
            ("file:///etc/hosts", Some("@/etc/hosts")),
            ("file:///home/me/app/a%2", None),
            ("file:///home/me/a%22b", None),
            ("file:///a%0Ab", None),
            ("https://example.org/x", None),
            ("zed:///agent/thread/1", None),
        ] {
            let found = parse_uri(uri).and_then(|place| place.mention(directory));
            assert_eq!(found.as_deref(), expected, "{uri}");
        }
    }

    #[test]
    fn paths_are_made_absolute_without_file_system_access() {
        assert_eq!(absolute("../x/./a.rs", Path::new("/p/q")), Path::new("/p/x/a.rs"));
        assert_eq!(absolute("/etc/hosts", Path::new("/p")), Path::new("/etc/hosts"));
    }
}
