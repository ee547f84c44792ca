//! Policy bundle, read from a single file. Parsing is strict: an unknown key or value anywhere rejects the whole
//! bundle.

mod agents;
mod approve;
mod capabilities;
mod capability;
mod entries;
mod examples;
mod extras;
mod file_rule;
mod lint;
mod named_command;
mod network;
mod path_patterns;
mod project_limits;
mod quote;
mod reader;
mod redaction;
mod rule;
mod sandbox_terms;
mod search;
mod tools;

pub use agents::AgentLimits;
pub(crate) use approve::Unsandboxed;
pub use approve::{Approve, BuildOutputMode};
pub(crate) use capabilities::Capabilities;
pub(crate) use capability::{FileCapability, ShellCapability};
pub(crate) use entries::BundleEntry;
pub use examples::Test;
pub(crate) use extras::{ApprovalRule, ModelLimits, ServiceRisk};
pub(crate) use file_rule::FileRule;
pub use lint::{lint_narrow_grants, warnings};
pub use named_command::{ArgumentKind, NamedCommand};
pub(crate) use network::HttpCapability;
pub use quote::quote_entry;
pub use reader::BundleError;
pub(crate) use rule::{Rule, RuleDecision};
pub use sandbox_terms::{Cache, EnvironmentTerms, Network, Preview, SandboxSetting};
pub(crate) use sandbox_terms::{CommandLimits, Terms};
pub(crate) use search::{SearchCapability, SearchRule};
pub use tools::ToolPattern;
pub(crate) use tools::{McpCapability, ToolRule};

use jiff::Timestamp;
use reader::{BundleTable, Source};
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::de::DeTable;

/// Error for a bundle without a schema version.
pub(super) const MISSING_VERSION: &str = "`schema_version` is missing; expected `schema_version = 1`";
/// Maximum size of a policy file in bytes, far above that of any hand-written policy.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Parsed content of a policy file.
#[derive(Debug, Clone, Default)]
pub struct Bundle {
    /// `bundle_version`, which is shown to users.
    pub version: Option<String>,
    /// Session to which the bundle is restricted, if any.
    pub session_id: Option<String>,
    pub expires_at: Option<Timestamp>,
    /// Whether the built-in policy applies to capabilities that the file does not mention (`extends = "built-in"`).
    pub extends: bool,
    /// Whether capabilities that the file does not mention are denied, even if the file can only tighten the policy
    /// (`unlisted = "deny"`).
    pub denies_unlisted: bool,
    pub llm: ModelLimits,
    pub capabilities: Capabilities,
    /// Tools that are disabled even if a capability grants them.
    pub disabled: Vec<ToolPattern>,
    /// Commands offered as separate tools.
    pub named: Vec<NamedCommand>,
    pub approval_rules: BTreeMap<String, ApprovalRule>,
    /// Timeout of a pending approval, in seconds.
    pub approval_timeout_seconds: Option<u64>,
    /// Highest risk that the approval service may approve.
    pub service_risk: Option<ServiceRisk>,
    /// Limits on agents.
    pub agents: AgentLimits,
    /// Redactions that the bundle adds to the built-in ones.
    pub redactions: Vec<super::redact::RedactionRule>,
    /// Every entry in the bundle, as written.
    pub stated: Vec<BundleEntry>,
    widens: Vec<(usize, String)>,
    pub tests: Vec<Test>,
    /// Source text, quoted in messages.
    text: Arc<str>,
}

impl Bundle {
    /// Parses a bundle without checking the examples of its rules. `name` is the file name shown in errors.
    pub(super) fn parse_unchecked(text: &str, name: &str) -> Result<Self, BundleError> {
        let whole = |message: String| BundleError { name: name.to_owned(), line: None, message };
        if text.len() > MAX_BYTES {
            return Err(whole(format!("the file is {} bytes; the limit for a policy is {MAX_BYTES}", text.len())));
        }
        let source = Source::new(text, name);
        let table = DeTable::parse(text).map_err(|error| match error.span() {
            Some(span) => source.error(&span, error.message().to_owned()),
            None => whole(error.message().to_owned()),
        })?;
        if table.get_ref().is_empty() {
            return Err(whole("the file is empty; expected at least `schema_version = 1`".to_owned()));
        }
        let root = BundleTable { source: &source, table: table.get_ref(), span: 0..0, title: String::new() };
        Ok(Self { text: text.into(), ..Self::read(&root)? })
    }

    /// Returns the total number of `match` and `not_match` examples in the rules.
    pub fn examples(&self) -> usize {
        let Capabilities { read, write, delete, shell, .. } = &self.capabilities;
        let of_commands = shell.iter().flat_map(|shell| &shell.rules);
        let of_commands = of_commands.map(|rule| rule.matches.len() + rule.not_matches.len());
        let files = [read, write, delete].into_iter().flatten().flat_map(|files| &files.rules);
        of_commands.sum::<usize>() + files.map(|rule| rule.matches.len() + rule.not_matches.len()).sum::<usize>()
    }

    fn read(root: &BundleTable<'_>) -> Result<Self, BundleError> {
        root.only(&[
            "schema_version",
            "bundle_version",
            "expires_at",
            "session_id",
            "extends",
            "unlisted",
            "llm",
            "tools",
            "capabilities",
            "approval_rules",
            "approval",
            "named_commands",
            "tests",
            "redaction",
            "agents",
        ])?;
        match root.number("schema_version")? {
            Some(1) => {}
            Some(other) => {
                let line = root.line_number("schema_version");
                let message = format!("schema_version {other} is not supported; this version of aye supports 1");
                return Err(BundleError { name: root.source.name.to_owned(), line, message });
            }
            None => return Err(root.source.error(&(0..0), MISSING_VERSION)),
        }
        let mut bundle = Self {
            version: root.text("bundle_version")?.map(|text| text.text),
            session_id: root.text("session_id")?.map(|text| text.text),
            expires_at: root.timestamp("expires_at")?,
            extends: extends(root)?,
            denies_unlisted: root.choice("unlisted", &[("deny", ())])?.is_some(),
            ..Self::default()
        };
        if let Some(section) = root.section("llm")? {
            bundle.llm = ModelLimits::read(&section)?;
        }
        if let Some(capabilities) = root.section("capabilities")? {
            bundle.capabilities = Capabilities::read(&capabilities)?;
        }
        if let Some(section) = root.section("tools")? {
            section.only(&["disabled"])?;
            bundle.disabled = tools::tool_patterns(&section, "disabled")?.unwrap_or_default();
        }
        bundle.named = NamedCommand::read_all(root)?;
        bundle.approval_rules = extras::approval_rules(root)?;
        bundle.tests = Test::list(root)?;
        bundle.approval_timeout_seconds = extras::approval_timeout(root)?;
        bundle.service_risk = extras::service_risk(root)?;
        bundle.agents = AgentLimits::read(root)?;
        bundle.redactions = redaction::rules(root)?;
        bundle.widens = project_limits::widens(root)?;
        bundle.stated = entries::bundle_entries(root);
        Ok(bundle)
    }

    /// Returns the line number of a key, or 1 if the key is missing.
    pub fn line_number(&self, section: &str, key: &str) -> usize {
        self.stated.iter().find(|stated| stated.section == section && stated.key == key).map_or(1, |stated| stated.line)
    }

    /// Returns the entries that would loosen a policy, with their line numbers. In a project's bundle, these entries
    /// have no effect.
    pub fn widens(&self) -> &[(usize, String)] {
        &self.widens
    }

    /// Returns the text of a line in the file. If the line is a table header, also returns the first lines of the
    /// table.
    pub fn quoted(&self, line: usize) -> Vec<String> {
        quote_entry(&self.text, line)
    }
}

/// Reads `extends`, whose only valid value is `built-in`.
fn extends(root: &BundleTable<'_>) -> Result<bool, BundleError> {
    match root.text("extends")? {
        None => Ok(false),
        Some(base) if base.text == "built-in" => Ok(true),
        Some(base) => {
            let message = format!("`extends = \"{}\"` is not supported; the only value is \"built-in\"", base.text);
            Err(root.source.error(&base.span, message))
        }
    }
}

#[cfg(test)]
mod tests;
