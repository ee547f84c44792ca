//! Skill and agent files that are not used, each with the reason.

use super::fault::Fault;
use serde::Serialize;

/// File that cannot be used because it contains errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct BrokenFile {
    pub file: String,
    pub faults: Vec<Fault>,
}

/// File that is not used because another one with the same name takes precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HiddenFile {
    pub name: String,
    pub file: String,
    /// File that takes precedence.
    pub used_file: String,
}

/// Returns a message about broken files to show when a session starts. `kind` is `skill` or `agent`.
pub(crate) fn broken_notice(broken: &[BrokenFile], kind: &str) -> Option<String> {
    let first = broken.first()?;
    let fault = first.faults.first().map(|fault| fault.with_file(&first.file)).unwrap_or_default();
    let more = match broken.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("ignored the {kind} `{}`{more}: {fault}; `aye {kind}s check` lists all errors", first.file))
}
