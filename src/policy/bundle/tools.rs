//! Bundle rules that match tools by name, for MCP tools and for disabled tools.

use super::reader::{BundleError, BundleTable, SpannedText};
use super::rule::{RuleDecision, decision};
use crate::policy::shell::pattern;
use crate::protocol::BACKEND_SERVER;
use jiff::Timestamp;

/// Keys of `Mcp.Invoke` for the allowed tools and for the servers that may send prompts to the model.
pub(crate) const SERVER_TOOLS: &str = "allowed_tools";
const SAMPLING: &str = "allow_sampling";

/// A pattern for tool names, which may contain the wildcards `*` and `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    pub text: String,
    pub line: usize,
}

impl ToolPattern {
    /// Returns whether the pattern matches a name. Case-sensitive, so an allow rule cannot match a tool whose name
    /// differs only in case.
    pub fn names(&self, name: &str) -> bool {
        pattern::matches(&self.text, name)
    }

    /// Returns whether the pattern matches a name. Ignores case, so a different capitalization cannot evade a deny
    /// rule.
    pub fn hits(&self, name: &str) -> bool {
        pattern::matches(&self.text.to_lowercase(), &name.to_lowercase())
    }
}

/// The `Mcp.Invoke` table.
#[derive(Debug, Clone, Default)]
pub struct McpCapability {
    pub line: usize,
    /// `SERVER/TOOL` patterns of allowed tools. Both `None` and an empty list allow nothing.
    pub allowed: Option<Vec<ToolPattern>>,
    pub allowed_line: usize,
    /// Patterns for the servers that may send prompts to the session's model. Both `None` and an empty list allow no
    /// server.
    pub sampling: Option<Vec<ToolPattern>>,
    pub requires_approval: bool,
    pub approval_line: usize,
    pub approval_rule: Option<String>,
    pub rules: Vec<ToolRule>,
}

/// A rule in `[[capabilities."Mcp.Invoke".rules]]`.
#[derive(Debug, Clone)]
pub struct ToolRule {
    pub line: usize,
    pub tools: Vec<ToolPattern>,
    pub decision: RuleDecision,
    pub reason: String,
    /// Fingerprint of the tool's description and schema. An allow rule with a fingerprint applies only while the tool's
    /// fingerprint is the same.
    pub fingerprint: Option<String>,
    pub expires_at: Option<Timestamp>,
}

impl McpCapability {
    pub fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&[SERVER_TOOLS, SAMPLING, "requires_approval", "approval_rule", "rules"])?;
        Ok(Self {
            line: section.line(),
            allowed: tool_patterns(section, SERVER_TOOLS)?,
            allowed_line: section.line_number(SERVER_TOOLS).unwrap_or_else(|| section.line()),
            sampling: tool_patterns(section, SAMPLING)?,
            requires_approval: section.switch("requires_approval")?.unwrap_or(false),
            approval_line: section.line_number("requires_approval").unwrap_or_else(|| section.line()),
            approval_rule: section.text("approval_rule")?.map(|text| text.text),
            rules: section.sections("rules")?.iter().map(ToolRule::read).collect::<Result<_, _>>()?,
        })
    }
}

/// Keys of `BackendTool.Invoke` that list the allowed tools: aye's own spelling and that of policy services.
const BACKEND_TOOLS: [&str; 2] = ["allowed_tool_names", "allowedToolNames"];

impl McpCapability {
    /// Reads `BackendTool.Invoke`, in which patterns are tool names without a server.
    pub fn read_backend(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        let [own, other] = BACKEND_TOOLS;
        section.only(&[own, other, "requires_approval", "approval_rule", "rules"])?;
        let key = if section.line_number(other).is_some() { other } else { own };
        if key == other && section.line_number(own).is_some() {
            let message = format!("`{own}` and `{other}` are the same key; keep one of them");
            return Err(section.source.error(&section.span, message));
        }
        let of_server = |mut pattern: ToolPattern| {
            pattern.text = format!("{BACKEND_SERVER}/{}", pattern.text);
            pattern
        };
        let rules = section.sections("rules")?.iter().map(ToolRule::read).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            line: section.line(),
            allowed: tool_patterns(section, key)?.map(|patterns| patterns.into_iter().map(of_server).collect()),
            allowed_line: section.line_number(key).unwrap_or_else(|| section.line()),
            sampling: None,
            requires_approval: section.switch("requires_approval")?.unwrap_or(false),
            approval_line: section.line_number("requires_approval").unwrap_or_else(|| section.line()),
            approval_rule: section.text("approval_rule")?.map(|text| text.text),
            rules: rules
                .into_iter()
                .map(|rule| ToolRule { tools: rule.tools.into_iter().map(of_server).collect(), ..rule })
                .collect(),
        })
    }
}

impl ToolRule {
    fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&["tools", "decision", "reason", "fingerprint", "expires_at"])?;
        let Some(tools) = tool_patterns(section, "tools")?.filter(|tools| !tools.is_empty()) else {
            return Err(section.source.error(&section.span, "the rule has no `tools`; expected an array such as [\"docs/*\"]"));
        };
        let decision = decision(section)?;
        let fingerprint = section.text("fingerprint")?;
        if let Some(fingerprint) = fingerprint.as_ref().filter(|text| decision != RuleDecision::Allow || text.text.is_empty()) {
            let message = "`fingerprint` is allowed only in an allow rule, and must be the one aye shows for the tool";
            return Err(section.source.error(&fingerprint.span, message));
        }
        Ok(Self {
            line: section.line(),
            tools,
            decision,
            reason: section.text("reason")?.map(|text| text.text).unwrap_or_default(),
            fingerprint: fingerprint.map(|text| text.text),
            expires_at: section.timestamp("expires_at")?,
        })
    }

    pub fn applies_to(&self, name: &str) -> bool {
        self.tools.iter().any(|pattern| match self.decision {
            RuleDecision::Allow => pattern.names(name),
            RuleDecision::Ask | RuleDecision::Deny => pattern.hits(name),
        })
    }
}

/// Reads `Tool.Custom`, which contains only rules. Custom tools are granted by `Shell.Exec`, but each one needs
/// approval until a rule allows it.
pub(crate) fn custom_rules(section: &BundleTable<'_>) -> Result<Vec<ToolRule>, BundleError> {
    section.only(&["rules"])?;
    section.sections("rules")?.iter().map(ToolRule::read).collect()
}

/// Reads a list of tool name patterns.
pub(crate) fn tool_patterns(section: &BundleTable<'_>, key: &str) -> Result<Option<Vec<ToolPattern>>, BundleError> {
    let one = |text: SpannedText| {
        if text.text.trim().is_empty() {
            return Err(section
                .source
                .error(&text.span, format!("`{key}` contains an empty name; expected a tool or a pattern")));
        }
        Ok(ToolPattern { line: section.source.line(&text.span), text: text.text })
    };
    section.texts(key)?.map(|texts| texts.into_iter().map(one).collect()).transpose()
}
