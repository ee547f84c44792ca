//! "Always allow": what could be kept of a question, where it would stand, and what the person chose.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A rule a person writes is never longer.
const LINE_BYTES: usize = 4096;

/// A rule that allows something, as it would stand in a policy file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GrantRule {
    /// A simple command: exactly these words, or all that begins with them.
    Command { words: Vec<String>, exact: bool },
    /// A custom tool with exactly this content.
    Tool { name: String, fingerprint: String },
    /// A tool of an MCP server, `SERVER/TOOL`, with exactly this description and schema.
    ServerTool { name: String, fingerprint: String },
    /// Writing what these patterns reach.
    Write { paths: Vec<String> },
    /// A directory outside the workspace that sandboxed commands of a project may read.
    Readable { path: String },
}

impl GrantRule {
    /// The capability whose rules it joins.
    pub fn capability(&self) -> &'static str {
        match self {
            Self::Command { .. } | Self::Readable { .. } => "Shell.Exec",
            Self::Tool { .. } => "Tool.Custom",
            Self::ServerTool { .. } => "Mcp.Invoke",
            Self::Write { .. } => "File.Write",
        }
    }

    /// The keys that say what it reaches, each as it stands in a file.
    pub fn keys(&self) -> Vec<String> {
        let list = |words: &[String]| toml::Value::from(words.to_vec()).to_string();
        match self {
            Self::Command { words, exact: true } => vec![format!("command = {}", list(words)), "exact = true".to_owned()],
            Self::Command { words, exact: false } => vec![format!("command = {}", list(words))],
            Self::Tool { name, fingerprint } | Self::ServerTool { name, fingerprint } => {
                vec![
                    format!("tools = {}", list(std::slice::from_ref(name))),
                    format!("fingerprint = {}", toml::Value::from(fingerprint.as_str())),
                ]
            }
            Self::Write { paths } => vec![format!("paths = {}", list(paths))],
            Self::Readable { path } => vec![format!("readable_paths = {}", list(std::slice::from_ref(path)))],
        }
    }
}

impl GrantRule {
    /// Rules as they are shown on one line: `command = ["cargo", "test"], exact = true`, with `;` between several.
    pub fn of_line(line: &str) -> Result<Vec<Self>, String> {
        if line.len() > LINE_BYTES || line.chars().any(char::is_control) {
            return Err("a rule must be one short line".to_owned());
        }
        pieces(line).into_iter().map(Self::of_piece).collect()
    }

    fn of_piece(piece: &str) -> Result<Self, String> {
        let expected =
            "expected `command = [\"cargo\", \"test\"]`, with `, exact = true` for these words only, or `paths = [\"…\"]`";
        let table = toml::from_str::<toml::Table>(&format!("rule = {{ {piece} }}"));
        let wrong = |error: &dyn fmt::Display| format!("`{}` is not a rule: {error}; {expected}", piece.trim());
        let table = table.map_err(|error| wrong(&error.message().trim()))?;
        let Some(toml::Value::Table(mut rule)) = table.get("rule").cloned() else { return Err(wrong(&"no keys")) };
        let texts = |value: &toml::Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let mut list = |key: &str| rule.remove(key).map(|value| texts(&value).filter(|texts| !texts.is_empty()));
        let found = match (list("command"), list("paths")) {
            (Some(Some(words)), None) => match rule.remove("exact") {
                None => Self::Command { words, exact: false },
                Some(toml::Value::Boolean(exact)) => Self::Command { words, exact },
                Some(_) => return Err(wrong(&"`exact` must be true or false")),
            },
            (None, Some(Some(paths))) => Self::Write { paths },
            _ => return Err(wrong(&"a list of quoted strings is missing")),
        };
        match rule.keys().next() {
            None => Ok(found),
            Some(key) => Err(wrong(&format!("`{key}` is not allowed here"))),
        }
    }
}

/// What stands between the `;` that are not within quotes.
fn pieces(line: &str) -> Vec<&str> {
    let (mut pieces, mut from, mut quote, mut escaped) = (Vec::new(), 0, None, false);
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (Some('"'), _) if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, ';') => {
                pieces.push(&line[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&line[from..]);
    pieces
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
    /// In the person's own words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub written: bool,
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
    /// Why it is not offered for a scope, whatever the files say.
    pub fn refuses(&self, scope: GrantScope) -> Option<&'static str> {
        let is_readable = self.rules.iter().any(|rule| matches!(rule, GrantRule::Readable { .. }));
        (is_readable && scope != GrantScope::Project)
            .then_some("a directory can be made readable for one run or for one project only")
    }

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

/// What is asked about a rule before it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum RuleAsked {
    /// Whether it may be kept as the person wrote it, on one line.
    Written { rule: String },
    /// Which of the last commands this offer would have let through.
    Reach { offer: usize },
}

/// What is said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum RuleTold {
    /// It may: it is one more offer, in this place.
    Offered { offer: Offer, at: usize },
    /// It may not, and why.
    Refused { message: String },
    /// These, of so many.
    Reaches { offer: usize, of: usize, lines: Vec<String> },
}
