//! The user's saved rules: reading, adding and removing them while preserving the rest of the policy file.

mod edit;
mod file;
mod restriction;
#[cfg(test)]
mod tests;

pub(crate) use edit::{EditedRules, RuleWithExamples, add_rules, add_rules_with_examples, list, remove_rules, with_server};
pub(crate) use file::{change, lock, read};
pub(crate) use restriction::{Restriction, RestrictionSubject, add_restrictions, with_blocked_domains, with_disabled_tools};

use crate::protocol::GrantRule;
use crate::sys::file::Existing;
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// Start of a saved rule's reason, which distinguishes the rule from one that was written by hand.
pub(crate) const REASON: &str = "allowed by you on ";

/// Rule that was found in a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedRule {
    pub line: usize,
    pub rule: GrantRule,
    pub reason: String,
    pub expires_at: Option<Timestamp>,
}

impl SavedRule {
    /// Returns the date on which the rule was saved, or `None` if it was written by hand.
    pub(crate) fn saved_on(&self) -> Option<&str> {
        self.reason.strip_prefix(REASON)
    }

    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// Returns the path of the policy file that contains the rules saved for a project.
pub(crate) fn project_file(config_dir: &Path, workspace: &Path) -> PathBuf {
    projects(config_dir).join(super::trust::directory_name(workspace)).join("policy.toml")
}

/// Returns the path of the policy file that contains the rules saved for all projects.
pub(crate) fn user_file(config_dir: &Path) -> PathBuf {
    config_dir.join("policy.toml")
}

fn projects(config_dir: &Path) -> PathBuf {
    config_dir.join("projects")
}

/// Project directory to which the rules in a project's policy file apply.
#[derive(serde::Serialize, serde::Deserialize)]
struct RulesDirectory {
    directory: String,
}

/// Records the directory to which a project's rules apply. The name of the folder that contains the rules includes only
/// a hash of that directory.
pub(crate) fn note_directory(file: &Path, workspace: &Path) -> std::io::Result<()> {
    let path = file.with_file_name("project.toml");
    let owner = RulesDirectory { directory: workspace.to_string_lossy().into_owned() };
    let text = toml::to_string(&owner).map_err(std::io::Error::other)?;
    if std::fs::read_to_string(&path).is_ok_and(|kept| kept == text) {
        return Ok(());
    }
    file::create(&path, text.as_bytes(), Existing::Replace)
}

/// Returns the policy files of all projects, each with its project directory if that is known.
pub(crate) fn project_files(config_dir: &Path) -> Vec<(PathBuf, Option<String>)> {
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
        toml::from_str::<RulesDirectory>(&text).ok().map(|owner| owner.directory)
    })
}
