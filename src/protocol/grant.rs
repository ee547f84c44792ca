//! "Always allow": the rules that can be saved with an approval, their locations, and the user's choice.

use super::FileDiffs;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum length in bytes of a rule written by the user.
const LINE_BYTES: usize = 4096;

/// Rule that allows actions, as it appears in policy files.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GrantRule {
    /// A simple command.
    Command(CommandRule),
    /// A custom tool, with exactly this content.
    Tool { name: String, fingerprint: String },
    /// An MCP server tool, named `SERVER/TOOL`, with exactly this description and schema.
    ServerTool { name: String, fingerprint: String },
    /// A back-end tool with exactly this description and schema.
    BackendTool { name: String, fingerprint: String },
    /// Writing to paths that match these patterns.
    Write { paths: Vec<String> },
    /// Directory outside the workspace that the project's sandboxed commands may read.
    Readable { path: String },
}

/// Rule for a simple command, as it appears in policy files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CommandRule {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Whether the rule matches only exactly these words. Otherwise, it matches every command that begins with them.
    pub exact: bool,
    /// Whether the rule waives approval only if the command runs in a copy of the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sandboxed: bool,
    /// Whether the rule allows `git commit` with any message after these words, but with no other arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub message: bool,
    /// Hosts that the command may contact without approval when it runs in a copy, such as `index.example.com:443`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

impl CommandRule {
    /// Returns a rule that matches exactly these words.
    pub fn exact(words: Vec<String>) -> Self {
        Self { words, exact: true, ..Self::default() }
    }

    /// Returns a rule that matches every command that begins with these words.
    pub fn with_prefix(words: Vec<String>) -> Self {
        Self { words, ..Self::default() }
    }

    fn keys(&self) -> Vec<String> {
        let mut keys = vec![format!("command = {}", list(&self.words))];
        keys.extend(self.exact.then(|| "exact = true".to_owned()));
        keys.extend(self.message.then(|| "args = \"message\"".to_owned()));
        keys.extend(self.sandboxed.then(|| "sandboxed = true".to_owned()));
        keys.extend((!self.hosts.is_empty()).then(|| format!("hosts = {}", list(&self.hosts))));
        keys
    }

    /// Returns examples to save with the rule: commands that it matches, and commands that it does not. Both lists are
    /// empty for a rule with exact words, because the words are already the example.
    pub fn examples(&self) -> (Vec<String>, Vec<String>) {
        let plain =
            |word: &String| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
        if !self.words.iter().all(plain) {
            return Default::default();
        }
        let line = self.words.join(" ");
        let with = |rest: &str| format!("{line} {rest}");
        if self.message {
            (vec![with("-m x")], vec![with("--no-verify -m x"), with("--amend -m x")])
        } else if self.sandboxed && !self.exact && self.hosts.is_empty() {
            let flag = if self.words[0].starts_with("python") { "-c" } else { "-e" };
            (vec![line.clone()], vec![format!("{} {flag} x", self.words[0])])
        } else {
            Default::default()
        }
    }
}

/// Escapes invisible characters and those that control a terminal.
fn escape(name: &str) -> String {
    name.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"")
}

/// Formats words as a TOML array.
fn list(words: &[String]) -> String {
    toml::Value::from(words.to_vec()).to_string()
}

impl GrantRule {
    /// Returns the policy capability to which the rule applies.
    pub fn capability(&self) -> &'static str {
        match self {
            Self::Command(_) | Self::Readable { .. } => "Shell.Exec",
            Self::Tool { .. } => "Tool.Custom",
            Self::ServerTool { .. } => "Mcp.Invoke",
            Self::BackendTool { .. } => "BackendTool.Invoke",
            Self::Write { .. } => "File.Write",
        }
    }

    /// Returns the key-value pairs that define what the rule matches, as written in a policy file.
    pub fn keys(&self) -> Vec<String> {
        match self {
            Self::Command(rule) => rule.keys(),
            Self::Tool { name, fingerprint }
            | Self::ServerTool { name, fingerprint }
            | Self::BackendTool { name, fingerprint } => {
                vec![
                    format!("tools = {}", list(std::slice::from_ref(name))),
                    format!("fingerprint = {}", toml::Value::from(fingerprint.as_str())),
                ]
            }
            Self::Write { paths } => vec![format!("paths = {}", list(paths))],
            Self::Readable { path } => vec![format!("readable_paths = {}", list(std::slice::from_ref(path)))],
        }
    }

    /// Describes the calls that the rule allows: ``every command that begins with `make` ``.
    pub fn describe(&self) -> String {
        let quoted = |names: &[String]| names.iter().map(|name| format!("`{}`", escape(name))).collect::<Vec<_>>().join(", ");
        match self {
            Self::Command(CommandRule { words, exact, sandboxed, message, hosts }) => {
                let is_plain =
                    |word: &String| !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"');
                let words = words.iter().map(|word| if is_plain(word) { word.clone() } else { format!("{word:?}") });
                let line = words.collect::<Vec<_>>().join(" ");
                let what = match (message, exact) {
                    (true, _) => format!("`{line}` with any message (-m, --message), and no other option"),
                    (false, true) => format!("exactly `{line}`"),
                    (false, false) => format!("every command that begins with `{line}`"),
                };
                let how = match (sandboxed, hosts.is_empty()) {
                    (_, false) => {
                        format!(", in a copy that reaches only {}; changes to files still need approval", quoted(hosts))
                    }
                    (true, true) => ", in a copy without network; changes to files still need approval".to_owned(),
                    (false, true) => String::new(),
                };
                format!("{what}{how}")
            }
            Self::Write { paths } => {
                let relative = |path: &String| path.strip_prefix("${workspace}/").unwrap_or(path).to_owned();
                format!("changes to {}", quoted(&paths.iter().map(relative).collect::<Vec<_>>()))
            }
            Self::Tool { name, .. } => format!("the tool `{}`, until its definition changes", escape(name)),
            Self::ServerTool { name, .. } => format!("the MCP tool `{}`, until its definition changes", escape(name)),
            Self::BackendTool { name, .. } => format!("the back-end tool `{}`, until its definition changes", escape(name)),
            Self::Readable { path } => {
                format!("every command in this project may read `{}` and its contents, except credentials", escape(path))
            }
        }
    }
}

impl GrantRule {
    /// Parses rules from a single line, such as `command = ["cargo", "test"], exact = true`. Several rules are
    /// separated by `;`.
    pub fn parse_line(line: &str) -> Result<Vec<Self>, String> {
        if line.len() > LINE_BYTES || line.chars().any(char::is_control) {
            return Err("a rule must be one short line".to_owned());
        }
        pieces(line).into_iter().map(Self::parse_one).collect()
    }

    fn parse_one(piece: &str) -> Result<Self, String> {
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
            (Some(Some(words)), None) => {
                let hosts = match list("hosts") {
                    None => Vec::new(),
                    Some(Some(hosts)) => hosts,
                    Some(None) => return Err(wrong(&"`hosts` must be a list of quoted strings")),
                };
                let mut switch = |key: &str| match rule.remove(key) {
                    None => Ok(false),
                    Some(toml::Value::Boolean(value)) => Ok(value),
                    Some(_) => Err(wrong(&format!("`{key}` must be true or false"))),
                };
                let (exact, sandboxed) = (switch("exact")?, switch("sandboxed")?);
                let message = match rule.remove("args") {
                    None => false,
                    Some(toml::Value::String(args)) if args == "message" => true,
                    Some(_) => return Err(wrong(&"`args` must be \"message\"")),
                };
                Self::Command(CommandRule { words, exact, sandboxed, message, hosts })
            }
            (None, Some(Some(paths))) => Self::Write { paths },
            _ => return Err(wrong(&"a list of quoted strings is missing")),
        };
        match rule.keys().next() {
            None => Ok(found),
            Some(key) => Err(wrong(&format!("`{key}` is not allowed here"))),
        }
    }
}

/// Splits a line at every `;` that is not inside quotes.
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

/// Scope of a saved rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// Until aye exits. The rule is stored in memory only.
    #[default]
    Session,
    /// For this user, in this project.
    Project,
    /// For this user, in all projects.
    Everywhere,
}

/// Rules that "always allow" offers with an approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantOptions {
    /// Offers, ordered from the narrowest to the broadest. Empty if no rule may be saved.
    pub offers: Vec<GrantOption>,
    /// Reasons why no rule may be saved, one for each affected command: `rm -rf x deletes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<String>,
    /// Available expiry choices, each as a number of days and the resulting time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<(u32, Timestamp)>,
}

impl GrantOptions {
    /// Removes the offers that cannot be saved to a file, and marks the remaining offers as file-only.
    #[must_use]
    pub fn only_in_files(mut self) -> Self {
        self.offers.retain(|offer| offer.memory_only.is_none());
        self.offers.iter_mut().for_each(|offer| offer.file_only = true);
        self
    }

    /// If copies of the workspace are unavailable, removes the offers whose rule applies only in such a copy. `reason`
    /// explains to the user why copies are unavailable.
    #[must_use]
    pub fn without_copies(mut self, reason: &str) -> Self {
        let needs_copy =
            |offer: &GrantOption| offer.rules.iter().any(|rule| matches!(rule, GrantRule::Command(rule) if rule.sandboxed));
        let count = self.offers.len();
        self.offers.retain(|offer| !needs_copy(offer));
        if self.offers.is_empty() && count > 0 {
            self.never
                .push(format!("a rule for interpreters and task runners applies only in a copy of the workspace, but {reason}"));
        }
        self
    }
}

/// Single offer, with one rule for each command that requires approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantOption {
    /// Rules to save for this run or for this project.
    pub rules: Vec<GrantRule>,
    /// Rules to save for all projects.
    pub everywhere: Vec<GrantRule>,
    /// Whether the user wrote the rules.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub written: bool,
    /// Reason why the rules cannot be saved to a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_only: Option<String>,
    /// Whether the rules can be saved only to a file. This applies to calls made by an agent, which has its own
    /// session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub file_only: bool,
    /// Scopes in which approval is still required, because this system has no sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks_still: Vec<GrantScope>,
    /// Locations in policy files at which the rules would be saved. Filled in before the offer is sent to the front
    /// end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<RulePlace>,
}

impl GrantOption {
    /// Returns the reason why this offer cannot be saved with a scope, other than problems with the policy files.
    pub fn refuses(&self, scope: GrantScope) -> Option<&'static str> {
        if self.file_only && scope == GrantScope::Session {
            return Some("a rule for an agent's call can only be saved for this project or for all projects");
        }
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

/// Location at which a rule would be saved in a policy file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RulePlace {
    pub scope: GrantScope,
    /// Path as shown to the user: `~/.config/aye/policy.toml`.
    pub file: String,
    pub line: usize,
    /// Diff that saving the rule would apply to the policy file.
    pub diff: FileDiffs,
    /// Note for the user, such as that the file is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Reason why no rule can be saved to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The user's choice for "always allow".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantChoice {
    #[serde(default)]
    pub scope: GrantScope,
    /// Index of the offer that the user chose.
    #[serde(default)]
    pub offer: usize,
    /// Expiry time. If absent, the rule never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Query about a rule that has not been saved yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum RuleQuery {
    /// Check whether a rule that the user wrote may be saved.
    Written { rule: String },
    /// List recent commands that the offer would have allowed.
    Reach { offer: usize },
}

/// Response to a query about a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum RuleInfo {
    /// The rule may be saved. It is inserted into the offers at index `at`.
    Offered { offer: GrantOption, at: usize },
    /// The rule may not be saved. `message` gives the reason.
    Refused { message: String },
    /// Recent commands that the offer would have allowed. `of` is the number of commands that were checked.
    Reaches { offer: usize, of: usize, lines: Vec<String> },
}
