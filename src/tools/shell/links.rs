//! Links that lead out of the workspace, where no sandbox hides what is there: looked for before a rule lets a line run.
//!
//! What another program changes between this look and the run is not seen. Only the sandbox closes that.

use crate::policy::{Follows, Operand, operands};
use crate::sys::path::{PathError, resolve};
use crate::sys::process::command_environment;
use crate::tools::tool::Settings;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{DirEntry, read_dir};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Entries of directories that are looked at for one line.
const MAX_ENTRIES: usize = 50_000;
/// A file of options of `rg`, `--follow` among them.
const RG_OPTIONS: &str = "RIPGREP_CONFIG_PATH";

/// Why a line that a rule allows needs an approval: a link leads one of its programs out of the workspace, or that cannot be
/// told. `None` where a sandbox holds the line. Waits for a disk.
pub(in crate::tools) fn lead_out(line: &str, cwd: &Path, settings: &Settings) -> Option<String> {
    if settings.holding.tier.holds() {
        return None;
    }
    let operands = match operands(line) {
        Ok(operands) => operands,
        Err(why) => return Some(format!("{why}, and symlinks there may point outside the workspace")),
    };
    let mut look = Look { settings, cwd, left: MAX_ENTRIES, seen: HashSet::new() };
    operands.iter().find_map(|operand| look.operand(operand))
}

struct Look<'a> {
    settings: &'a Settings,
    cwd: &'a Path,
    /// Entries that may still be looked at.
    left: usize,
    /// Directories that were walked.
    seen: HashSet<PathBuf>,
}

impl Look<'_> {
    fn operand(&mut self, operand: &Operand) -> Option<String> {
        let follows = match operand.follows {
            Follows::TreeIfConfigured if is_configured(self.settings) => Follows::Tree,
            Follows::TreeIfConfigured => Follows::Nothing,
            follows => follows,
        };
        if !operand.is_glob {
            return self.place(&operand.path, follows);
        }
        let names: Vec<&str> = operand.path.split('/').collect();
        let first = names.iter().position(|name| is_pattern(name)).unwrap_or(names.len());
        let start = match names[..first].join("/") {
            start if start.is_empty() && operand.path.starts_with('/') => "/".to_owned(),
            start if start.is_empty() => ".".to_owned(),
            start => start,
        };
        let found = resolve(&start, self.cwd, self.settings.home.as_deref());
        match self.place(&start, Follows::Nothing) {
            Some(why) => Some(why),
            None => self.matches(&found.ok()?.real, &names[first..], follows),
        }
    }

    /// A path, and what is followed from there.
    fn place(&mut self, path: &str, follows: Follows) -> Option<String> {
        if let Some(why) = self.leads_out(path) {
            return Some(why);
        }
        let real = resolve(path, self.cwd, self.settings.home.as_deref()).ok()?.real;
        match follows {
            Follows::Nothing | Follows::TreeIfConfigured => None,
            Follows::Entries => self.walk(real, Depth::One),
            Follows::Tree => self.walk(real, Depth::All),
        }
    }

    /// Whether a link on the way leads out of what the policy lets be read.
    fn leads_out(&self, path: &str) -> Option<String> {
        let shown = path.strip_prefix(&format!("{}/", self.cwd.display())).unwrap_or(path);
        match resolve(path, self.cwd, self.settings.home.as_deref()) {
            // The policy judged it by its words.
            Ok(found) if !found.through_links => None,
            Ok(found) if (self.settings.may_follow)(&found.real) => None,
            Ok(found) => Some(format!("`{shown}` leads through a symlink to `{}`", found.real.display())),
            // The kernel refuses these, too.
            Err(
                PathError::Empty | PathError::TooLong | PathError::Loop(_) | PathError::NotADirectory(_) | PathError::Denied(_),
            ) => None,
            Err(error) => Some(format!("cannot resolve `{shown}`: {error}")),
        }
    }

    /// What a glob may match: entries by the start and the end of a name. More than the shell matches, never less.
    fn matches(&mut self, directory: &Path, names: &[&str], follows: Follows) -> Option<String> {
        let Some((name, rest)) = names.split_first() else {
            return self.entry(directory, |look, text| look.place(text, follows));
        };
        if !is_pattern(name) {
            return self.matches(&directory.join(name), rest, follows);
        }
        if name.contains("**") {
            return self.walk(directory.to_owned(), Depth::All);
        }
        let entries = match self.entries(directory) {
            Ok(entries) => entries,
            Err(why) => return why,
        };
        entries.into_iter().filter(|entry| may_match(&entry.file_name(), name)).find_map(|entry| {
            let path = entry.path();
            let is_link = entry.file_type().map_or(true, |kind| kind.is_symlink());
            let out = if is_link { self.entry(&path, |look, text| look.leads_out(text)) } else { None };
            out.or_else(|| self.matches(&path, rest, follows))
        })
    }

    /// Every link in a directory, or in a tree with all that its links lead to.
    fn walk(&mut self, start: PathBuf, depth: Depth) -> Option<String> {
        let mut waiting = vec![start];
        while let Some(directory) = waiting.pop() {
            if !self.seen.insert(directory.clone()) && depth == Depth::All {
                continue;
            }
            let entries = match self.entries(&directory) {
                Ok(entries) => entries,
                Err(Some(why)) => return Some(why),
                Err(None) => continue,
            };
            for entry in entries {
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { return Some(format!("cannot read `{}`", path.display())) };
                if kind.is_symlink() {
                    if let Some(why) = self.entry(&path, |look, text| look.leads_out(text)) {
                        return Some(why);
                    }
                    waiting.extend(path.canonicalize().ok().filter(|_| depth == Depth::All));
                } else if kind.is_dir() && depth == Depth::All {
                    waiting.push(path);
                }
            }
        }
        None
    }

    /// The entries of a directory; none where there is no directory, or none that this user can read.
    fn entries(&mut self, directory: &Path) -> Result<Vec<DirEntry>, Option<String>> {
        let unread = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => None,
            _ => Some(format!("cannot read `{}`: {error}", directory.display())),
        };
        let mut entries = Vec::new();
        for entry in read_dir(directory).map_err(unread)? {
            let Some(left) = self.left.checked_sub(1) else {
                return Err(Some(format!(
                    "it reads more than {MAX_ENTRIES} entries, too many to check for symlinks that point outside the workspace"
                )));
            };
            self.left = left;
            entries.push(entry.map_err(unread)?);
        }
        Ok(entries)
    }

    /// Looks at an entry by its name, which has to be text.
    fn entry(&mut self, path: &Path, look: impl FnOnce(&mut Self, &str) -> Option<String>) -> Option<String> {
        match path.to_str() {
            Some(text) => look(self, text),
            None => Some(format!("cannot resolve `{}`: its name is not valid UTF-8", path.display())),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    One,
    All,
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[', '(', '{', '\\'])
}

/// Whether a name may match a pattern, by what is before its first wildcard and after its last one.
fn may_match(name: &OsStr, pattern: &str) -> bool {
    let name = name.as_encoded_bytes();
    let start = pattern.split(['*', '?', '[', '(', '{', '\\', '+', '@', '!']).next().unwrap_or_default();
    // What is behind a bracket may be within it.
    let end = if pattern.contains(['[', '(', '{', '\\']) { "" } else { pattern.rsplit(['*', '?']).next().unwrap_or_default() };
    name.starts_with(start.as_bytes()) && name.ends_with(end.as_bytes())
}

/// Whether commands are given a file of options of `rg`.
fn is_configured(settings: &Settings) -> bool {
    let own = std::env::vars_os().filter(|(name, _)| name == RG_OPTIONS);
    command_environment(own, &settings.environment, &settings.secret_names, &|_| false).iter().any(|(name, _)| name == RG_OPTIONS)
}
