//! Paths that are protected by every policy: those that control which programs run, and those that contain credentials.

use super::Context;
use super::credentials::CREDENTIALS;
use super::names::{fold_name, is_short_for};
use crate::policy::excluded::EXCLUDED_LIST;
use std::path::{Component, Path, PathBuf};

/// Names that are protected at any depth, both inside and outside a project.
pub(crate) const PROTECTED: &[&str] =
    &[".git", ".aye", ".vscode", ".idea", ".cursor", ".claude", ".codex", ".gemini", ".mcp.json", ".envrc", ".ayeignore"];

/// Files in a home directory that shells, editors, git, the desktop or package managers read at startup.
pub(super) const START_UP: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".bash_completion",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".oh-my-zsh",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".inputrc",
    ".pam_environment",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".gitconfig",
    ".config/git",
    ".ripgreprc",
    ".curlrc",
    ".wgetrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".condarc",
    ".pythonrc",
    ".irbrc",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/env",
    ".vimrc",
    ".vim",
    ".config/nvim",
    ".exrc",
    ".emacs",
    ".emacs.d",
    ".config/emacs",
    ".gdbinit",
    ".lldbinit",
    ".tmux.conf",
    ".config/tmux",
    ".screenrc",
    ".config/fish",
    ".config/zsh",
    ".config/direnv",
    ".config/autostart",
    ".config/environment.d",
    ".config/systemd",
    ".config/powershell",
    "library/launchagents",
];

/// A path that must not be written, deleted or moved. A bundle may lift the protection of some of these paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Protected {
    pub name: String,
    pub may_be_opened: bool,
    why: &'static str,
}

impl Protected {
    fn running_code(name: &str, may_be_opened: bool) -> Self {
        let why = if name == EXCLUDED_LIST {
            "the path excludes files from the tools"
        } else {
            "the path controls what other programs run"
        };
        Self { name: name.to_owned(), may_be_opened, why }
    }

    /// Explains why the path is protected and how to allow access.
    pub(crate) fn reason(&self) -> String {
        format!("`{}` is protected: {}", self.name, self.why)
    }
}

/// A path that is readable only if the user's policy lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CredentialPath {
    pub name: &'static str,
    pub place: PathBuf,
}

impl CredentialPath {
    /// Explains why the path is protected and how to allow access.
    pub(crate) fn reason(&self) -> String {
        format!("`{}` contains credentials; to allow access, add it to `allowed_paths` in your policy", self.name)
    }
}

/// Returns the protected entry that contains a path. In directories above the workspace, only `.git` is protected.
pub(crate) fn protected(path: &Path, context: &Context) -> Option<Protected> {
    let root = context.roots.iter().filter(|root| path.starts_with(root)).max_by_key(|root| root.as_os_str().len());
    let below = root.and_then(|root| path.strip_prefix(root).ok());
    if let Some(name) = names(below.unwrap_or(path)).find_map(|name| protected_name(&name)) {
        return Some(Protected::running_code(name, !matches!(name, ".git" | ".aye")));
    }
    if root.is_some_and(|root| names(root).any(|name| protected_name(&name) == Some(".git"))) {
        return Some(Protected::running_code(".git", false));
    }
    if let Some(found) = credentials(path, context) {
        return Some(Protected { name: found.name.to_owned(), may_be_opened: false, why: "the path contains credentials" });
    }
    find(START_UP, path, context).map(|(name, _)| Protected::running_code(name, true))
}

/// Returns the entry of the credentials list that contains a path.
pub(crate) fn credentials(path: &Path, context: &Context) -> Option<CredentialPath> {
    find(CREDENTIALS, path, context).map(|(name, place)| CredentialPath { name, place })
}

/// Returns whether a path is so deep that it cannot be an entry of the credentials list in any home directory, but only
/// be below one.
pub(crate) fn is_deeper_than_credentials(path: &Path, context: &Context) -> bool {
    let below = |home: &Path| path.strip_prefix(home).map_or(true, |below| below.components().nth(DEEPEST_CREDENTIALS).is_some());
    let deep = |home: &Path| have_different_starts(path, home) || below(home);
    let other = || ABOVE_HOMES.iter().all(|(above, _)| have_different_starts(path, Path::new(above)));
    deep(&context.home) && (other() || context.in_workspace(path) || containing_home(path).is_none_or(|home| deep(&home)))
}

/// Returns whether the first components of two paths begin with different characters, in which case neither path can be
/// below the other.
fn have_different_starts(path: &Path, other: &Path) -> bool {
    let first = |path: &Path| match path.as_os_str().as_encoded_bytes() {
        [b'/', letter, ..] if !matches!(letter, b'/' | b'.') => Some(*letter),
        _ => None,
    };
    first(path).zip(first(other)).is_some_and(|(letter, other)| letter != other)
}

/// Returns the paths in a home directory that contain credentials.
pub(crate) fn credential_places(home: &Path) -> impl Iterator<Item = PathBuf> {
    CREDENTIALS.iter().map(|name| home.join(name))
}

/// Returns the files in a home directory that programs read at startup.
pub(crate) fn start_up_places(home: &Path) -> impl Iterator<Item = PathBuf> {
    START_UP.iter().map(|name| home.join(name))
}

/// Returns whether an entry with this name is protected everywhere.
pub(crate) fn is_protected_name(name: &str) -> bool {
    protected_name(&fold_name(name)).is_some()
}

/// Returns whether a path exposes the memory or the open files of a running process. If `changes` is set, kernel paths
/// are included.
pub(crate) fn is_process_path(path: &Path, changes: bool) -> bool {
    let process = |below: &Path| {
        let first = below.components().next().map(|first| first.as_os_str().to_string_lossy().into_owned()).unwrap_or_default();
        first.bytes().all(|byte| byte.is_ascii_digit()) && !first.is_empty() || matches!(&*first, "self" | "thread-self")
    };
    let kernel = ["/proc", "/sys", "/dev"].iter().any(|place| path.starts_with(place)) && !path.starts_with("/dev/shm");
    path.strip_prefix("/proc").is_ok_and(process) || path.starts_with("/dev/fd") || (changes && kernel)
}

/// Number of components in the longest entry of the credentials list.
const DEEPEST_CREDENTIALS: usize = {
    let (mut deepest, mut entry) = (0, 0);
    while entry < CREDENTIALS.len() {
        let (bytes, mut names, mut at) = (CREDENTIALS[entry].as_bytes(), 1, 0);
        while at < bytes.len() {
            names += (bytes[at] == b'/') as usize;
            at += 1;
        }
        deepest = if names > deepest { names } else { deepest };
        entry += 1;
    }
    deepest
};

/// Maximum number of components in an entry of any list.
const MAX_ENTRY_LEN: usize = 8;

/// Returns the list entry that contains a path in the user's home directory. For a path outside the workspace, other
/// home directories are considered too.
fn find(list: &[&'static str], path: &Path, context: &Context) -> Option<(&'static str, PathBuf)> {
    let homes = std::iter::once(context.home.clone()).chain(containing_home(path).filter(|_| !context.in_workspace(path)));
    homes.filter(|home| home.parent().is_some()).find_map(|home| {
        let below = path.strip_prefix(&home).ok()?;
        // No entry is longer. Folding the names once is enough for all entries.
        let folded: Vec<String> = names(below).take(MAX_ENTRY_LEN).collect();
        let name = list.iter().find(|entry| starts_with(&folded, entry)).copied()?;
        Some((name, prefix_through(path, home.components().count(), name)))
    })
}

/// Returns the home directory that contains a path, based on the usual locations of home directories.
fn containing_home(path: &Path) -> Option<PathBuf> {
    let (above, names) = ABOVE_HOMES.iter().find(|(above, _)| path.starts_with(above))?;
    Some(path.components().take(Path::new(above).components().count() + names).collect())
}

/// Returns whether a path is in another user's home directory and outside every workspace.
pub(crate) fn is_in_other_home(path: &Path, context: &Context) -> bool {
    let works_in = |home: &Path| context.home == home || context.roots.iter().any(|root| root.starts_with(home));
    containing_home(path).is_some_and(|home| !works_in(&home))
}

/// Directories that contain home directories, each with the number of path components between it and a home directory.
const ABOVE_HOMES: [(&str, usize); 4] = [("/root", 0), ("/var/root", 0), ("/home", 1), ("/Users", 1)];

/// Returns the beginning of `path`, up to the end of the entry `name` that follows the first `skipped` components.
fn prefix_through(path: &Path, skipped: usize, name: &str) -> PathBuf {
    path.components().take(skipped + name.split('/').count()).collect()
}

fn starts_with(folded: &[String], entry: &str) -> bool {
    let mut names = folded.iter();
    entry.split('/').all(|wanted| names.next().is_some_and(|name| wanted.eq_ignore_ascii_case(name)))
}

/// Returns the components of a path, folded for comparison.
fn names(path: &Path) -> impl Iterator<Item = String> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(fold_name(&name.to_string_lossy())),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    })
}

/// Returns the protected name that matches a folded name. The short name of `.git` is recognized on every system,
/// because the disk may also be used with Windows.
pub(super) fn protected_name(folded: &str) -> Option<&'static str> {
    PROTECTED.iter().find(|name| **name == folded || (**name == ".git" && is_short_for(folded, name))).copied()
}
