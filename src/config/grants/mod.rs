//! The person's saved rules: read, added and taken away, with all else in their file left as it is.

mod edit;
mod file;
#[cfg(test)]
mod tests;

pub use edit::{Added, added, list, removed};
pub use file::{change, lock, read};

use crate::protocol::GrantRule;
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// What the reason of a saved rule begins with; rules that a person wrote by hand say something else.
pub const REASON: &str = "allowed by you on ";

/// A rule as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub line: usize,
    pub rule: GrantRule,
    pub reason: String,
    pub expires_at: Option<Timestamp>,
}

impl Kept {
    /// The day it was saved; `None` for a rule that a person wrote.
    pub fn since(&self) -> Option<&str> {
        self.reason.strip_prefix(REASON)
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// Where the rules of one project stand.
pub fn project_file(config_dir: &Path, workspace: &Path) -> PathBuf {
    projects(config_dir).join(super::trust::directory_name(workspace)).join("policy.toml")
}

/// Where the rules for all projects stand.
pub fn user_file(config_dir: &Path) -> PathBuf {
    config_dir.join("policy.toml")
}

fn projects(config_dir: &Path) -> PathBuf {
    config_dir.join("projects")
}

/// Which directory the rules of a project file are for.
#[derive(serde::Serialize, serde::Deserialize)]
struct Owner {
    directory: String,
}

/// Says beside the rules of a project which directory they are for: the name of their own directory does not tell.
pub fn note_directory(file: &Path, workspace: &Path) -> std::io::Result<()> {
    let path = file.with_file_name("project.toml");
    let owner = Owner { directory: workspace.to_string_lossy().into_owned() };
    let text = toml::to_string(&owner).map_err(std::io::Error::other)?;
    if std::fs::read_to_string(&path).is_ok_and(|kept| kept == text) {
        return Ok(());
    }
    file::create(&path, text.as_bytes(), file::Existing::Replace)
}

/// All project files there are, with the directory each is for where that is known.
pub fn project_files(config_dir: &Path) -> Vec<(PathBuf, Option<String>)> {
    let Ok(entries) = std::fs::read_dir(projects(config_dir)) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path().join("policy.toml")))
        .filter(|file| file.is_file())
        .map(|file| (file.clone(), directory_of(&file)))
        .collect();
    found.sort();
    found
}

fn directory_of(file: &Path) -> Option<String> {
    ["project.toml", "trust.toml"].into_iter().find_map(|name| {
        let text = std::fs::read_to_string(file.with_file_name(name)).ok()?;
        toml::from_str::<Owner>(&text).ok().map(|owner| owner.directory)
    })
}
