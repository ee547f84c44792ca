//! Path rules, such as `[[capabilities."File.Write".rules]]`.

use super::path_patterns::patterns;
use super::reader::{BundleError, BundleTable};
use super::rule::{RuleDecision, decision, examples};
use crate::policy::paths::Pattern;
use jiff::Timestamp;

/// A rule for file paths.
#[derive(Debug, Clone)]
pub struct FileRule {
    pub line: usize,
    pub decision: RuleDecision,
    pub reason: String,
    pub expires_at: Option<Timestamp>,
    pub paths: Vec<Pattern>,
    /// Example paths that the rule must match or must not match, each with its line.
    pub matches: Vec<(String, usize)>,
    pub not_matches: Vec<(String, usize)>,
}

impl FileRule {
    pub fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&["paths", "decision", "reason", "match", "not_match", "expires_at"])?;
        let Some(paths) = patterns(section, "paths")?.filter(|paths| !paths.is_empty()) else {
            return Err(section
                .source
                .error(&section.span, "the rule has no `paths`; expected an array such as [\"${workspace}/docs\"]"));
        };
        Ok(Self {
            line: section.line(),
            decision: decision(section)?,
            reason: section.text("reason")?.map(|text| text.text).unwrap_or_default(),
            expires_at: section.timestamp("expires_at")?,
            paths,
            matches: examples(section, "match")?,
            not_matches: examples(section, "not_match")?,
        })
    }
}
