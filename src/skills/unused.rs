//! Files of skills and agents that are not used, each with the reason.

use super::fault::Fault;
use serde::Serialize;

/// A file that is not used because of its errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct BrokenFile {
    pub file: String,
    pub faults: Vec<Fault>,
}

/// A file that is not used because another one with the same name takes precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HiddenFile {
    pub name: String,
    pub file: String,
    /// The file that is used.
    pub used_file: String,
}

/// Returns a message about broken files, for the start of a session. `kind`: `skill` or `agent`.
pub(crate) fn broken_notice(broken: &[BrokenFile], kind: &str) -> Option<String> {
    let first = broken.first()?;
    let fault = first.faults.first().map(|fault| fault.with_file(&first.file)).unwrap_or_default();
    let more = match broken.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("ignored the {kind} `{}`{more}: {fault}; `aye {kind}s check` lists all errors", first.file))
}
