//! Files that a workspace excludes from all tools. `.ayeignore` lists their patterns in `.gitignore` syntax.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::path::{Path, PathBuf};

/// Name of the file in the workspace root that lists the excluded files.
pub const EXCLUDED_LIST: &str = ".ayeignore";

/// The excluded files of one workspace root.
#[derive(Debug, Clone)]
pub struct ExcludedPaths {
    root: PathBuf,
    patterns: Gitignore,
}

impl ExcludedPaths {
    /// Parses the text of an `.ayeignore` file. Invalid patterns are ignored.
    pub fn parse(root: &Path, text: &str) -> Self {
        let mut builder = GitignoreBuilder::new(root);
        // On macOS, names that differ only in case are the same file.
        let _ = builder.case_insensitive(cfg!(target_os = "macos"));
        for line in text.lines() {
            let _ = builder.add_line(None, line);
        }
        Self { root: root.to_owned(), patterns: builder.build().unwrap_or_else(|_| Gitignore::empty()) }
    }

    /// Returns whether a path or any directory above it is excluded.
    pub fn excludes(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.root) else { return false };
        let mut above = self.root.clone();
        let mut components = below.components().peekable();
        while let Some(component) = components.next() {
            above.push(component);
            let is_excluded = if components.peek().is_some() {
                self.patterns.matched(&above, true).is_ignore()
            } else {
                self.excludes_entry(&above)
            };
            if is_excluded {
                return true;
            }
        }
        false
    }

    /// Returns whether an entry is itself excluded, either as a file or as a directory. The entry's directory must not
    /// be excluded.
    pub fn excludes_entry(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
            && path != self.root
            && (self.patterns.matched(path, false).is_ignore() || self.patterns.matched(path, true).is_ignore())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_exclude_paths_as_in_gitignore() {
        let list = ExcludedPaths::parse(
            Path::new("/w"),
            "# notes\nsecrets/\n*.sql\n!schema.sql\n/private\nsecrets/!x\n!secrets/open\n[bad\n",
        );
        for path in
            ["/w/secrets", "/w/secrets/a/b", "/w/a/secrets/b", "/w/x.sql", "/w/a/x.sql", "/w/private/a", "/w/secrets/open"]
        {
            assert!(list.excludes(Path::new(path)), "{path}");
        }
        for path in ["/w", "/w/a", "/w/schema.sql", "/w/a/private", "/other/secrets/a", "/w/notes"] {
            assert!(!list.excludes(Path::new(path)), "{path}");
        }
        let nothing = ExcludedPaths::parse(Path::new("/w"), "");
        assert!(!nothing.excludes(Path::new("/w/a")));
        let everything = ExcludedPaths::parse(Path::new("/w"), "*\n");
        assert!(everything.excludes(Path::new("/w/a")) && !everything.excludes(Path::new("/w")));
    }
}
