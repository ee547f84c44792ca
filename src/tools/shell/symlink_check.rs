//! Detects symlinks that lead outside the workspace. If there is no sandbox to hide their targets, a line is checked
//! before a rule can allow it.
//!
//! Changes made between this check and the run are not detected. Only the sandbox can prevent them.

use crate::policy::{Follows, Operand, entered, operands};
use crate::sys::path::{PathError, resolve};
use crate::sys::process::command_environment;
use crate::tools::settings::ToolSettings;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{DirEntry, read_dir};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Maximum number of directory entries to examine for one line.
const MAX_ENTRIES: usize = 50_000;
/// Variable that specifies an options file for `rg`, which may contain `--follow`.
const RG_OPTIONS: &str = "RIPGREP_CONFIG_PATH";

/// Returns the reason why a line that a rule allows needs approval after all, if there is one: because of a symlink,
/// one of its programs or the directory to which it changes may be outside the workspace. With a sandbox, only the
/// directory is checked. Performs blocking I/O.
pub(in crate::tools) fn escaping_link_reason(line: &str, cwd: &Path, settings: &ToolSettings) -> Option<String> {
    let Some(entered) = entered(line) else { return escaping_operand_reason(line, cwd, settings) };
    let name = &entered.directory.text;
    match resolve(&entered.path(), cwd, settings.home.as_deref()) {
        Ok(found) if found.through_links && !(settings.paths.may_follow)(&found.real) => {
            Some(format!("`{name}` goes through a symlink to `{}`", found.real.display()))
        }
        Ok(found) => escaping_operand_reason(entered.rest, &found.real, settings),
        // Changing the directory fails, and nothing else runs.
        Err(_) => None,
    }
}

fn escaping_operand_reason(line: &str, cwd: &Path, settings: &ToolSettings) -> Option<String> {
    if settings.command.sandbox.tier.is_enforcing() {
        return None;
    }
    let operands = match operands(line) {
        Ok(operands) => operands,
        Err(why) => return Some(format!("{why}, and symlinks there may point outside the workspace")),
    };
    let mut look = LinkSearch { settings, cwd, left: MAX_ENTRIES, seen: HashSet::new() };
    operands.iter().find_map(|operand| look.operand(operand))
}

struct LinkSearch<'a> {
    settings: &'a ToolSettings,
    cwd: &'a Path,
    /// Number of entries that may still be examined.
    left: usize,
    /// Directories that have already been searched.
    seen: HashSet<PathBuf>,
}

impl LinkSearch<'_> {
    fn operand(&mut self, operand: &Operand) -> Option<String> {
        let follows = match operand.follows {
            Follows::TreeIfConfigured if is_configured(self.settings) => Follows::Tree,
            Follows::TreeIfConfigured => Follows::Nothing,
            follows => follows,
        };
        if !operand.is_glob {
            return self.check_path(&operand.path, follows);
        }
        let names: Vec<&str> = operand.path.split('/').collect();
        let first = names.iter().position(|name| is_pattern(name)).unwrap_or(names.len());
        let start = match names[..first].join("/") {
            start if start.is_empty() && operand.path.starts_with('/') => "/".to_owned(),
            start if start.is_empty() => ".".to_owned(),
            start => start,
        };
        let found = resolve(&start, self.cwd, self.settings.home.as_deref());
        match self.check_path(&start, Follows::Nothing) {
            Some(why) => Some(why),
            None => self.matches(&found.ok()?.real, &names[first..], follows),
        }
    }

    /// Checks a path, along with the symlinks that are followed from there.
    fn check_path(&mut self, path: &str, follows: Follows) -> Option<String> {
        if let Some(why) = self.escape_problem(path) {
            return Some(why);
        }
        let real = resolve(path, self.cwd, self.settings.home.as_deref()).ok()?.real;
        match follows {
            Follows::Nothing | Follows::TreeIfConfigured => None,
            Follows::Entries => self.walk(real, LinkDepth::One),
            Follows::Tree => self.walk(real, LinkDepth::All),
        }
    }

    /// Returns a description of the problem if a symlink in the path leads outside the readable paths.
    fn escape_problem(&self, path: &str) -> Option<String> {
        let shown = path.strip_prefix(&format!("{}/", self.cwd.display())).unwrap_or(path);
        match resolve(path, self.cwd, self.settings.home.as_deref()) {
            // The policy checked only the text of the path.
            Ok(found) if !found.through_links => None,
            Ok(found) if (self.settings.paths.may_follow)(&found.real) => None,
            Ok(found) => Some(format!("`{shown}` goes through a symlink to `{}`", found.real.display())),
            // The kernel refuses such paths as well.
            Err(
                PathError::Empty | PathError::TooLong | PathError::Loop(_) | PathError::NotADirectory(_) | PathError::Denied(_),
            ) => None,
            Err(error) => Some(format!("cannot resolve `{shown}`: {error}")),
        }
    }

    /// Checks every path that a glob may match for symlinks that lead outside the readable paths. Only the start and
    /// the end of each name are compared with the pattern, so all paths that the shell would match are included.
    fn matches(&mut self, directory: &Path, names: &[&str], follows: Follows) -> Option<String> {
        let Some((name, rest)) = names.split_first() else {
            return self.entry(directory, |look, text| look.check_path(text, follows));
        };
        if !is_pattern(name) {
            return self.matches(&directory.join(name), rest, follows);
        }
        if name.contains("**") {
            return self.walk(directory.to_owned(), LinkDepth::All);
        }
        let entries = match self.entries(directory) {
            Ok(entries) => entries,
            Err(why) => return why,
        };
        entries.into_iter().filter(|entry| may_match(&entry.file_name(), name)).find_map(|entry| {
            let path = entry.path();
            let is_link = entry.file_type().map_or(true, |kind| kind.is_symlink());
            let out = if is_link { self.entry(&path, |look, text| look.escape_problem(text)) } else { None };
            out.or_else(|| self.matches(&path, rest, follows))
        })
    }

    /// Checks every symlink in a directory, or in a whole tree including the targets of symlinks.
    fn walk(&mut self, start: PathBuf, depth: LinkDepth) -> Option<String> {
        let mut waiting = vec![start];
        while let Some(directory) = waiting.pop() {
            if !self.seen.insert(directory.clone()) && depth == LinkDepth::All {
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
                    if let Some(why) = self.entry(&path, |look, text| look.escape_problem(text)) {
                        return Some(why);
                    }
                    waiting.extend(path.canonicalize().ok().filter(|_| depth == LinkDepth::All));
                } else if kind.is_dir() && depth == LinkDepth::All {
                    waiting.push(path);
                }
            }
        }
        None
    }

    /// Returns the entries of a directory. If the directory does not exist or is unreadable, the error is `None`.
    /// Otherwise, the error is the reason why the directory cannot be checked.
    fn entries(&mut self, directory: &Path) -> Result<Vec<DirEntry>, Option<String>> {
        let unread = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => None,
            _ => Some(format!("cannot read `{}`: {error}", directory.display())),
        };
        let mut entries = Vec::new();
        for entry in read_dir(directory).map_err(unread)? {
            let Some(left) = self.left.checked_sub(1) else {
                return Err(Some(format!(
                    "the line reads more than {MAX_ENTRIES} entries, too many to check for symlinks that point outside the workspace"
                )));
            };
            self.left = left;
            entries.push(entry.map_err(unread)?);
        }
        Ok(entries)
    }

    /// Checks an entry by its path, which must be valid UTF-8.
    fn entry(&mut self, path: &Path, look: impl FnOnce(&mut Self, &str) -> Option<String>) -> Option<String> {
        match path.to_str() {
            Some(text) => look(self, text),
            None => Some(format!("cannot resolve `{}`: its name is not valid UTF-8", path.display())),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkDepth {
    One,
    All,
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[', '(', '{', '\\'])
}

/// Returns whether a name may match a pattern, going only by the text before the first and after the last wildcard.
fn may_match(name: &OsStr, pattern: &str) -> bool {
    let name = name.as_encoded_bytes();
    let start = pattern.split(['*', '?', '[', '(', '{', '\\', '+', '@', '!']).next().unwrap_or_default();
    // Text after a bracket may still be inside it.
    let end = if pattern.contains(['[', '(', '{', '\\']) { "" } else { pattern.rsplit(['*', '?']).next().unwrap_or_default() };
    name.starts_with(start.as_bytes()) && name.ends_with(end.as_bytes())
}

/// Returns whether the environment of commands specifies an options file for `rg`.
fn is_configured(settings: &ToolSettings) -> bool {
    let own = std::env::vars_os().filter(|(name, _)| name == RG_OPTIONS);
    command_environment(own, &settings.command.environment, &settings.command.secret_names, &|_| false)
        .iter()
        .any(|(name, _)| name == RG_OPTIONS)
}
