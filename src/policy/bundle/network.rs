//! The `Network.Http` capability, which determines the hosts that requests may be sent to.

use super::reader::{BundleError, BundleTable, SpannedText};
use crate::policy::url::{HostPattern, PrivateHost};

#[derive(Debug, Clone, Default)]
pub struct HttpCapability {
    pub line: usize,
    /// Allowed hosts. `None` allows every public host; an empty list allows none.
    pub allowed: Option<Vec<HostPattern>>,
    pub allowed_line: usize,
    pub blocked: Vec<HostPattern>,
    /// Allowed hosts that are not publicly reachable.
    pub private: Vec<PrivateHost>,
    pub requires_approval: bool,
    pub approval_line: usize,
    pub approval_rule: Option<String>,
}

impl HttpCapability {
    pub fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&["allowed_domains", "blocked_domains", "allowed_private_hosts", "requires_approval", "approval_rule"])?;
        Ok(Self {
            line: section.line(),
            allowed: list(section, "allowed_domains", HostPattern::parse)?,
            allowed_line: section.line_number("allowed_domains").unwrap_or_else(|| section.line()),
            blocked: list(section, "blocked_domains", HostPattern::parse)?.unwrap_or_default(),
            private: list(section, "allowed_private_hosts", PrivateHost::parse)?.unwrap_or_default(),
            requires_approval: section.switch("requires_approval")?.unwrap_or(false),
            approval_line: section.line_number("requires_approval").unwrap_or_else(|| section.line()),
            approval_rule: section.text("approval_rule")?.map(|text| text.text),
        })
    }
}

/// Reads a list of hosts or host patterns, parsing each item with `parse`.
pub(super) fn list<T>(
    section: &BundleTable<'_>,
    key: &str,
    parse: fn(&str, usize) -> Result<T, String>,
) -> Result<Option<Vec<T>>, BundleError> {
    let one = |text: SpannedText| {
        parse(&text.text, section.source.line(&text.span))
            .map_err(|reason| section.source.error(&text.span, format!("`{key}`: {reason}")))
    };
    section.texts(key)?.map(|texts| texts.into_iter().map(one).collect()).transpose()
}
