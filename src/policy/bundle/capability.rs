//! Capability tables of a bundle.

use super::file_rule::FileRule;
use super::path_patterns::patterns;
use super::reader::{BundleError, BundleTable};
use super::rule::{ProgramPattern, Rule};
use super::sandbox_terms::Terms;
use crate::policy::paths::Pattern;

/// A `File.Read`, `File.Write` or `File.Delete` table.
#[derive(Debug, Clone, Default)]
pub struct FileCapability {
    pub line: usize,
    /// Allowed paths. `None` allows every path; an empty list allows none.
    pub allowed: Option<Vec<Pattern>>,
    pub allowed_line: usize,
    pub blocked: Vec<Pattern>,
    /// Protected paths to which this bundle permits access, at high risk.
    pub unprotected: Vec<Pattern>,
    pub max_file_size_bytes: Option<u64>,
    pub requires_approval: bool,
    pub approval_line: usize,
    pub approval_rule: Option<String>,
    pub rules: Vec<FileRule>,
}

/// The `Shell.Exec` table.
#[derive(Debug, Clone, Default)]
pub struct ShellCapability {
    pub requires_approval: bool,
    pub approval_line: usize,
    pub approval_rule: Option<String>,
    pub blocked: Vec<ProgramPattern>,
    pub allowed: Option<Vec<ProgramPattern>>,
    pub allowed_line: usize,
    pub rules: Vec<Rule>,
    pub terms: Terms,
}

impl FileCapability {
    pub fn read(section: &BundleTable<'_>, writes: bool) -> Result<Self, BundleError> {
        let mut known =
            vec!["allowed_paths", "blocked_paths", "max_file_size_bytes", "requires_approval", "approval_rule", "rules"];
        if writes {
            known.push("unprotected_paths");
        }
        section.only(&known)?;
        Ok(Self {
            line: section.line(),
            allowed: patterns(section, "allowed_paths")?,
            allowed_line: section.line_number("allowed_paths").unwrap_or_default(),
            blocked: patterns(section, "blocked_paths")?.unwrap_or_default(),
            unprotected: if writes { patterns(section, "unprotected_paths")?.unwrap_or_default() } else { Vec::new() },
            max_file_size_bytes: section.number("max_file_size_bytes")?,
            requires_approval: section.switch("requires_approval")?.unwrap_or(false),
            approval_line: section.line_number("requires_approval").unwrap_or_else(|| section.line()),
            approval_rule: section.text("approval_rule")?.map(|text| text.text),
            rules: section.sections("rules")?.iter().map(FileRule::read).collect::<Result<_, _>>()?,
        })
    }
}

impl ShellCapability {
    pub fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        let mut known = vec!["requires_approval", "approval_rule", "blocked_commands", "allowed_commands", "rules"];
        known.extend(Terms::KEYS);
        section.only(&known)?;
        Ok(Self {
            requires_approval: section.switch("requires_approval")?.unwrap_or(false),
            approval_line: section.line_number("requires_approval").unwrap_or_else(|| section.line()),
            approval_rule: section.text("approval_rule")?.map(|text| text.text),
            blocked: ProgramPattern::list(section, "blocked_commands")?.unwrap_or_default(),
            allowed: ProgramPattern::list(section, "allowed_commands")?,
            allowed_line: section.line_number("allowed_commands").unwrap_or_default(),
            rules: section.sections("rules")?.iter().map(Rule::read).collect::<Result<_, _>>()?,
            terms: Terms::read(section)?,
        })
    }
}

/// The `Workspace.Upload` table.
#[derive(Debug, Clone)]
pub struct Upload {
    pub line: usize,
    pub requires_approval: bool,
    pub approval_rule: Option<String>,
    pub max_file_size_bytes: Option<u64>,
}

impl Upload {
    pub fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&["requires_approval", "approval_rule", "max_file_size_bytes"])?;
        Ok(Self {
            line: section.line(),
            requires_approval: section.switch("requires_approval")?.unwrap_or(false),
            approval_rule: section.text("approval_rule")?.map(|text| text.text),
            max_file_size_bytes: section.number("max_file_size_bytes")?,
        })
    }
}
