//! Path patterns, and paths that are protected regardless of any bundle.

mod credentials;
mod macos;
mod names;
mod pattern;
mod protected;
mod runs_code;
mod secret_names;
#[cfg(test)]
mod tests;
mod windows;

pub(crate) use pattern::Pattern;
pub(crate) use protected::{
    PROTECTED, credential_places, credentials, is_deeper_than_credentials, is_in_other_home, is_process_path, is_protected_name,
    protected, start_up_places,
};
pub(crate) use runs_code::opened_entry;
pub use runs_code::{CodeReader, CodeReaders, is_kept_only_with_approval, runs_code};
pub use secret_names::is_secret_name;

use crate::protocol::{ARTIFACT_SCHEME, Mode, Target};
use globset::{GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// Placeholder for any name; no literal pattern matches it.
const ANY: &str = "\u{1}any\u{1}name\u{1}";

/// Folder of the plugins in the data directory.
const PLUGINS: &str = "plugins";

/// Facts about the machine that the evaluation needs.
#[derive(Debug, Clone)]
pub struct Context {
    /// Real paths of the workspace roots, the main one first.
    pub roots: Vec<PathBuf>,
    pub home: PathBuf,
    pub mode: Mode,
    pub sandbox: Sandbox,
    /// aye's config and data directories, to which no tool has access.
    pub own: Vec<PathBuf>,
    /// Real directories of the user's skills, which are readable even outside the workspace.
    pub skills: Vec<PathBuf>,
}

/// Whether the operating system can sandbox commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    Present,
    Absent,
}

impl Context {
    pub fn in_workspace(&self, path: &Path) -> bool {
        // A search calls this for every entry: if the path starts with the bytes of a root and a slash, it need not be split.
        let plainly = |root: &Path| {
            let rest = path.as_os_str().as_encoded_bytes().strip_prefix(root.as_os_str().as_encoded_bytes());
            !root.as_os_str().is_empty() && rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        self.roots.iter().any(|root| plainly(root)) || self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Returns the entry for credentials that contains a path. A command that names such a path needs approval,
    /// regardless of rules.
    pub fn credential_place(&self, path: &Path) -> Option<&'static str> {
        credentials(path, self).map(|found| found.name)
    }

    pub fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    /// Returns whether a path is in the directory of one of the user's skills.
    pub fn is_in_skill(&self, path: &Path) -> bool {
        self.skills.iter().any(|skill| path.starts_with(skill))
    }

    /// Returns whether a path is in the directory of a plugin's skill, whose files are pinned.
    pub fn is_in_plugin_skill(&self, path: &Path) -> bool {
        self.is_in_skill(path) && self.own.iter().any(|own| path.starts_with(own.join(PLUGINS)))
    }

    /// Returns whether a target was named by its URI and is in the artifact directory. Both are required: a symlink
    /// with that name could lead anywhere, and artifacts of other sessions are not accessible.
    pub fn is_artifact(&self, target: &Target) -> bool {
        let digits = target.given.strip_prefix(ARTIFACT_SCHEME).unwrap_or_default();
        let kept = |own: &PathBuf| {
            target.real.strip_prefix(own.join("artifacts/contents")).is_ok_and(|rest| rest.components().count() == 2)
        };
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && self.own.iter().any(kept)
    }

    /// Returns whether the workspace is so broad that all access in it needs approval: the home directory, the root, or
    /// a parent of aye's own directories.
    pub fn is_too_wide(&self) -> bool {
        let wide = |root: &PathBuf| {
            self.home.starts_with(root) || root.parent().is_none() || self.own.iter().any(|own| own.starts_with(root))
        };
        self.roots.iter().any(wide)
    }

    /// Returns the path that a program in `cwd` would open, based on the text alone.
    pub fn resolve(&self, text: &str, cwd: &Path) -> PathBuf {
        let mut resolved = if let Some(rest) = text.strip_prefix("~/") {
            return normal(&self.home.join(rest));
        } else if text == "~" {
            self.home.clone()
        } else {
            cwd.to_path_buf()
        };
        if text != "~" {
            resolved.push(text);
        }
        normal(&resolved)
    }
}

/// Normalizes a path without accessing the disk: removes `.` and `..`.
pub fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => result.push(component),
        }
    }
    result
}

/// Kind of an operation on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "used only for systems that aye does not run on yet"))]
pub(crate) enum Use {
    Reads,
    Changes,
}

/// Result for a path on a system with known rules but an unknown disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathJudgement {
    Inside,
    Outside,
    /// Denied regardless of any bundle, with the reason.
    Blocked(&'static str),
}

/// Patterns of one list, compiled for one context.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathPatterns {
    prefixes: Vec<(PathBuf, usize)>,
    /// All globs in one set, if they fit.
    globs: Option<GlobSet>,
    glob_lines: Vec<usize>,
    /// Each glob with its starting directory.
    globs_within: Vec<(PathBuf, GlobMatcher)>,
    folds: bool,
}

impl PathPatterns {
    /// Compiles patterns. `folds`: ignore case if the file system does.
    pub(crate) fn new(patterns: &[Pattern], context: &Context, folds: bool) -> Self {
        let folds = folds && cfg!(any(windows, target_os = "macos"));
        let mut places = Self { folds, ..Self::default() };
        let mut globs = GlobSetBuilder::new();
        for pattern in patterns {
            for text in expand(&pattern.text, context) {
                if !text.contains(['*', '?', '[', '{']) {
                    places.prefixes.push((places.fold(&normal(Path::new(&text))).into_owned(), pattern.line));
                } else if let Ok(glob) = GlobBuilder::new(&text).literal_separator(true).case_insensitive(folds).build() {
                    places.globs_within.push((places.fold(&literal_prefix(&text)).into_owned(), glob.compile_matcher()));
                    globs.add(glob);
                    places.glob_lines.push(pattern.line);
                }
            }
        }
        // If there are more globs than one set can hold, each is matched separately: a list that is too long must not become
        // empty.
        places.globs = globs.build().ok();
        places
    }

    fn fold<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        if self.folds { PathBuf::from(path.to_string_lossy().to_lowercase()).into() } else { path.into() }
    }

    /// Returns whether a pattern that starts at or below `place` matches the path.
    pub(crate) fn names(&self, place: &Path, path: &Path) -> bool {
        let (place, path) = (&self.fold(place), &self.fold(path));
        self.prefixes.iter().any(|(prefix, _)| prefix.starts_with(place) && path.starts_with(prefix))
            || self
                .globs_within
                .iter()
                .any(|(start, glob)| start.starts_with(place) && path.ancestors().any(|part| glob.is_match(part)))
    }

    /// Returns the literal paths.
    pub(crate) fn literal(&self) -> impl Iterator<Item = &Path> {
        self.prefixes.iter().map(|(place, _)| place.as_path())
    }

    /// Returns the globs, each with its starting directory.
    pub(crate) fn globs(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.globs_within.iter().map(|(start, glob)| (start.as_path(), glob.glob().glob()))
    }

    /// Returns whether a glob matches exactly this path, regardless of its parents.
    pub(crate) fn is_exact_match(&self, path: &Path) -> bool {
        let path = &self.fold(path);
        match &self.globs {
            Some(globs) => globs.is_match(path),
            None => self.globs_within.iter().any(|(_, glob)| glob.is_match(path)),
        }
    }

    /// Returns whether the list matches the path, given that it matches none of the path's parents.
    pub(crate) fn reaches_entry(&self, path: &Path) -> bool {
        let folded = self.fold(path);
        self.prefixes.iter().any(|(prefix, _)| prefix.as_os_str() == folded.as_os_str())
            || (!self.glob_lines.is_empty() && self.is_exact_match(path))
    }

    /// Returns whether the list matches every name in this directory.
    pub(crate) fn covers(&self, directory: &Path) -> bool {
        self.matching_line(directory).is_some() || self.matching_line(&directory.join(ANY)).is_some()
    }

    /// Returns the line of the pattern that matches the path or one of its parents.
    pub(crate) fn matching_line(&self, path: &Path) -> Option<usize> {
        let path = &self.fold(path);
        let prefix = self.prefixes.iter().find(|(prefix, _)| path.starts_with(prefix)).map(|(_, line)| *line);
        prefix.or_else(|| {
            if self.glob_lines.is_empty() {
                return None;
            }
            let first = |part: &Path| match &self.globs {
                Some(globs) => globs.matches(part).first().copied(),
                None => self.globs_within.iter().position(|(_, glob)| glob.is_match(part)),
            };
            path.ancestors().find_map(|part| first(part).and_then(|index| self.glob_lines.get(index).copied()))
        })
    }
}

/// Returns a glob that matches only this text. A backslash is an ordinary character of a name.
pub(crate) fn literal(text: &str) -> String {
    text.split('\\').map(globset::escape).collect::<Vec<_>>().join("[\\]")
}

/// Returns the directory before the first wildcard of a glob.
fn literal_prefix(glob: &str) -> PathBuf {
    let plain = glob.split('/').take_while(|name| !name.contains(['*', '?', '[', '{', '\\']));
    normal(Path::new(&plain.collect::<Vec<_>>().join("/")))
}

/// Expands `${workspace}` and `~`. Relative patterns are below the workspace; `**/…` matches anywhere.
fn expand(text: &str, context: &Context) -> Vec<String> {
    let escape = |path: &Path| literal(&path.to_string_lossy());
    let glob = text.replace("${workspace}", "").contains(['*', '?', '[', '{']);
    let shown = |path: &Path| if glob { escape(path) } else { path.to_string_lossy().into_owned() };
    if text == "~" || text.starts_with("~/") {
        return vec![format!("{}{}", shown(&context.home), &text[1..])];
    }
    if text.contains("${workspace}") {
        return context
            .roots
            .iter()
            .map(|root| text.replace("${workspace}", shown(root).trim_end_matches('/')))
            .map(with_root)
            .collect();
    }
    if text.starts_with('/') || text.starts_with("**") || Path::new(text).is_absolute() {
        return vec![text.to_owned()];
    }
    context.roots.iter().map(|root| format!("{}/{text}", shown(root).trim_end_matches('/'))).collect()
}

fn with_root(text: String) -> String {
    if text.is_empty() { "/".to_owned() } else { text }
}
