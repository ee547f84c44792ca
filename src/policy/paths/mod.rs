//! Path patterns, and paths that are protected by every policy.

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

/// Placeholder for an arbitrary name, which no literal pattern matches.
const ANY: &str = "\u{1}any\u{1}name\u{1}";

/// Plugin folder in the data directory.
const PLUGINS: &str = "plugins";

/// Information about the machine and the session that the evaluation needs.
#[derive(Debug, Clone)]
pub struct Context {
    /// Workspace roots without symlinks, the main root first.
    pub roots: Vec<PathBuf>,
    pub home: PathBuf,
    pub mode: Mode,
    pub sandbox: Sandbox,
    /// aye's configuration and data directories, which no tool may access.
    pub own: Vec<PathBuf>,
    /// Directories of the user's skills, without symlinks. They are readable even if they are outside the workspace.
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
        // A search calls this function for every entry. A path that starts with the bytes of a root and a slash need
        // not be split into components.
        let plainly = |root: &Path| {
            let rest = path.as_os_str().as_encoded_bytes().strip_prefix(root.as_os_str().as_encoded_bytes());
            !root.as_os_str().is_empty() && rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        self.roots.iter().any(|root| plainly(root)) || self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Returns the entry of the credentials list that contains a path. A command that refers to such a path needs
    /// approval, regardless of rules.
    pub fn credential_place(&self, path: &Path) -> Option<&'static str> {
        credentials(path, self).map(|found| found.name)
    }

    pub fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    /// Returns whether a path is in the directory of a skill.
    pub fn is_in_skill(&self, path: &Path) -> bool {
        self.skills.iter().any(|skill| path.starts_with(skill))
    }

    /// Returns whether a path is in the directory of a plugin's skill. The files of a plugin are pinned.
    pub fn is_in_plugin_skill(&self, path: &Path) -> bool {
        self.is_in_skill(path) && self.own.iter().any(|own| path.starts_with(own.join(PLUGINS)))
    }

    /// Returns whether a target was given as an artifact URI and is in the artifact directory. Both conditions are
    /// required, because a symlink with such a name could point anywhere, and artifacts of other sessions must not be
    /// accessible.
    pub fn is_artifact(&self, target: &Target) -> bool {
        let digits = target.given.strip_prefix(ARTIFACT_SCHEME).unwrap_or_default();
        let kept = |own: &PathBuf| {
            target.real.strip_prefix(own.join("artifacts/contents")).is_ok_and(|rest| rest.components().count() == 2)
        };
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && self.own.iter().any(kept)
    }

    /// Returns whether the workspace is so broad that all access in it needs approval. This is true for the root
    /// directory, and for any directory that contains the home directory or one of aye's own directories.
    pub fn is_too_wide(&self) -> bool {
        let wide = |root: &PathBuf| {
            self.home.starts_with(root) || root.parent().is_none() || self.own.iter().any(|own| own.starts_with(root))
        };
        self.roots.iter().any(wide)
    }

    /// Returns the path that a program running in `cwd` would open. Only the text is considered, not the disk.
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

/// Normalizes a path textually, without accessing the disk, by removing `.` and resolving `..`.
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

/// Type of operation on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "used only for systems that aye does not run on yet"))]
pub(crate) enum Use {
    Reads,
    Changes,
}

/// Result of judging a path when the rules of the system are known, but the content of the disk is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathJudgement {
    Inside,
    Outside,
    /// Denied by every policy, for this reason.
    Blocked(&'static str),
}

/// Patterns from one list, compiled for one context.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathPatterns {
    prefixes: Vec<(PathBuf, usize)>,
    /// All globs in a single set, or `None` if there are too many of them.
    globs: Option<GlobSet>,
    glob_lines: Vec<usize>,
    /// Each glob and the directory below which it matches.
    globs_within: Vec<(PathBuf, GlobMatcher)>,
    folds: bool,
}

impl PathPatterns {
    /// Compiles patterns. `folds` specifies whether to ignore case on systems whose file systems do so.
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
        // If the globs are too many for one set, each glob is matched separately, because a list that is too long must
        // not become empty.
        places.globs = globs.build().ok();
        places
    }

    fn fold<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        if self.folds { PathBuf::from(path.to_string_lossy().to_lowercase()).into() } else { path.into() }
    }

    /// Returns whether the path is matched by a pattern whose literal beginning is at or below `place`.
    pub(crate) fn names(&self, place: &Path, path: &Path) -> bool {
        let (place, path) = (&self.fold(place), &self.fold(path));
        self.prefixes.iter().any(|(prefix, _)| prefix.starts_with(place) && path.starts_with(prefix))
            || self
                .globs_within
                .iter()
                .any(|(start, glob)| start.starts_with(place) && path.ancestors().any(|part| glob.is_match(part)))
    }

    /// Returns the patterns that contain no wildcards.
    pub(crate) fn literal(&self) -> impl Iterator<Item = &Path> {
        self.prefixes.iter().map(|(place, _)| place.as_path())
    }

    /// Returns the globs, each with the directory below which it matches.
    pub(crate) fn globs(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.globs_within.iter().map(|(start, glob)| (start.as_path(), glob.glob().glob()))
    }

    /// Returns whether a glob matches exactly this path, without considering its parents.
    pub(crate) fn is_exact_match(&self, path: &Path) -> bool {
        let path = &self.fold(path);
        match &self.globs {
            Some(globs) => globs.is_match(path),
            None => self.globs_within.iter().any(|(_, glob)| glob.is_match(path)),
        }
    }

    /// Returns whether the list matches the path itself, assuming that it matches none of the path's parents.
    pub(crate) fn reaches_entry(&self, path: &Path) -> bool {
        let folded = self.fold(path);
        self.prefixes.iter().any(|(prefix, _)| prefix.as_os_str() == folded.as_os_str())
            || (!self.glob_lines.is_empty() && self.is_exact_match(path))
    }

    /// Returns whether the list matches every name in this directory.
    pub(crate) fn covers(&self, directory: &Path) -> bool {
        self.matching_line(directory).is_some() || self.matching_line(&directory.join(ANY)).is_some()
    }

    /// Returns the line number of the pattern that matches the path or one of its parents.
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

/// Returns a glob that matches exactly this text, treating backslashes as ordinary characters.
pub(crate) fn literal(text: &str) -> String {
    text.split('\\').map(globset::escape).collect::<Vec<_>>().join("[\\]")
}

/// Returns the directory that precedes the first wildcard in a glob.
fn literal_prefix(glob: &str) -> PathBuf {
    let plain = glob.split('/').take_while(|name| !name.contains(['*', '?', '[', '{', '\\']));
    normal(Path::new(&plain.collect::<Vec<_>>().join("/")))
}

/// Expands `${workspace}` and `~` in a pattern. Relative patterns are resolved against the workspace, and patterns of
/// the form `**/…` match anywhere.
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
