//! The `Network.Search` capability, which determines whether web searches are allowed, with rules for queries and
//! domains.

use super::reader::{BundleError, BundleTable};
use super::rule::{RuleDecision, decision};
use super::tools::{ToolPattern, tool_patterns};
use crate::policy::url::{Host, HostPattern};
use jiff::Timestamp;

/// The `Network.Search` table.
#[derive(Debug, Clone)]
pub struct SearchCapability {
    pub line: usize,
    /// Whether searches that no rule allows need approval; `true` by default.
    pub requires_approval: bool,
    pub approval_line: usize,
    pub approval_rule: Option<String>,
    pub rules: Vec<SearchRule>,
}

/// A rule in `[[capabilities."Network.Search".rules]]`.
#[derive(Debug, Clone)]
pub struct SearchRule {
    pub line: usize,
    /// Query patterns, matched case-insensitively. An empty list matches every query.
    queries: Vec<ToolPattern>,
    /// Domain patterns. An empty list matches every search.
    domains: Vec<HostPattern>,
    pub decision: RuleDecision,
    pub reason: String,
    pub expires_at: Option<Timestamp>,
}

impl SearchCapability {
    pub fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&["requires_approval", "approval_rule", "rules"])?;
        Ok(Self {
            line: section.line(),
            requires_approval: section.switch("requires_approval")?.unwrap_or(true),
            approval_line: section.line_number("requires_approval").unwrap_or_else(|| section.line()),
            approval_rule: section.text("approval_rule")?.map(|text| text.text),
            rules: section.sections("rules")?.iter().map(SearchRule::read).collect::<Result<_, _>>()?,
        })
    }
}

impl SearchRule {
    fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&["queries", "domains", "decision", "reason", "expires_at"])?;
        let queries = tool_patterns(section, "queries")?.unwrap_or_default();
        let domains = super::network::list(section, "domains", HostPattern::parse)?.unwrap_or_default();
        if queries.is_empty() && domains.is_empty() {
            let message = "the rule has neither `queries` nor `domains`; expected an array such as domains = [\"docs.rs\"]";
            return Err(section.source.error(&section.span, message));
        }
        Ok(Self {
            line: section.line(),
            queries,
            domains,
            decision: decision(section)?,
            reason: section.text("reason")?.map(|text| text.text).unwrap_or_default(),
            expires_at: section.timestamp("expires_at")?,
        })
    }

    /// Returns whether the rule applies to a search. If an allow rule lists domains, it applies only to searches
    /// limited to those domains. Any other rule that lists domains applies to searches that include at least one of
    /// them.
    pub fn applies_to(&self, query: &str, hosts: &[Host]) -> bool {
        let asks = self.queries.is_empty() || self.queries.iter().any(|pattern| pattern.hits(query));
        let by = |host: &Host, covers: fn(&HostPattern, &Host) -> bool| self.domains.iter().any(|one| covers(one, host));
        let there = match self.decision {
            _ if self.domains.is_empty() => true,
            RuleDecision::Allow => !hosts.is_empty() && hosts.iter().all(|host| by(host, HostPattern::names)),
            RuleDecision::Ask | RuleDecision::Deny => hosts.iter().any(|host| by(host, HostPattern::blocks)),
        };
        asks && there
    }
}
