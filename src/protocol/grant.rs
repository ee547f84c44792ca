//! "Always allow": what could be kept of a question, where it would stand, and what the person chose.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A rule that allows something, as it would stand in a policy file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GrantRule {
    /// A simple command: exactly these words, or all that begins with them.
    Command { words: Vec<String>, exact: bool },
    /// A custom tool with exactly this content.
    Tool { name: String, fingerprint: String },
    /// Writing what these patterns reach.
    Write { paths: Vec<String> },
}

impl GrantRule {
    /// The capability whose rules it joins.
    pub fn capability(&self) -> &'static str {
        match self {
            Self::Command { .. } => "Shell.Exec",
            Self::Tool { .. } => "Tool.Custom",
            Self::Write { .. } => "File.Write",
        }
    }

    /// The keys that say what it reaches, each as it stands in a file.
    pub fn keys(&self) -> Vec<String> {
        let list = |words: &[String]| toml::Value::from(words.to_vec()).to_string();
        match self {
            Self::Command { words, exact: true } => vec![format!("command = {}", list(words)), "exact = true".to_owned()],
            Self::Command { words, exact: false } => vec![format!("command = {}", list(words))],
            Self::Tool { name, fingerprint } => {
                vec![
                    format!("tools = {}", list(std::slice::from_ref(name))),
                    format!("fingerprint = {}", toml::Value::from(fingerprint.as_str())),
                ]
            }
            Self::Write { paths } => vec![format!("paths = {}", list(paths))],
        }
    }
}

impl fmt::Display for GrantRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.keys().join(", "))
    }
}

/// How far a grant reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// Until aye quits; in memory only.
    #[default]
    Session,
    /// In this project, for this person.
    Project,
    /// In every project of this person.
    Everywhere,
}

/// What "always allow" offers for a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Always {
    /// From the narrowest to the widest; none where nothing may be kept.
    pub offers: Vec<Offer>,
    /// Why it may not be kept, part by part: `rm -rf x deletes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<String>,
    /// The days and ends that may be set instead of for good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<(u32, Timestamp)>,
}

/// One way to keep it: a rule for each part that asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// What is kept, for this run and in this project.
    pub rules: Vec<GrantRule>,
    /// The same where it has to be said otherwise for all projects.
    pub everywhere: Vec<GrantRule>,
    /// Why it cannot stand in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_only: Option<String>,
    /// Where it would be asked about all the same as long as nothing can hold a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks_still: Vec<GrantScope>,
    /// Where it would stand, filled in by whoever knows the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<RulePlace>,
}

impl Offer {
    pub fn rules_for(&self, scope: GrantScope) -> &[GrantRule] {
        match scope {
            GrantScope::Session | GrantScope::Project => &self.rules,
            GrantScope::Everywhere => &self.everywhere,
        }
    }
}

/// Where a rule would stand in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RulePlace {
    pub scope: GrantScope,
    /// As people write it: `~/.config/aye/policy.toml`.
    pub file: String,
    pub line: usize,
    /// What would change in the file.
    pub diff: String,
    /// What the person should know: that the file is new, for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why nothing can be kept there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// What the person chose of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remember {
    #[serde(default)]
    pub scope: GrantScope,
    /// Which of the offers.
    #[serde(default)]
    pub offer: usize,
    /// Until when; for good where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}
