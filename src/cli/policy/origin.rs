//! Locates a rule in its policy file and returns its text.

use crate::host::policy_layers::{Policy, policy_bytes};
use crate::policy::{RuleId, Scope, quote_entry};
use std::path::{Path, PathBuf};

/// Content of the policy files in effect.
pub(crate) struct Origins {
    files: Vec<(Scope, PathBuf, String)>,
}

/// Location of a rule in a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleLocation {
    pub file: PathBuf,
    pub line: usize,
    /// Text of the line, or the first lines of the table.
    pub source: Vec<String>,
}

impl Origins {
    pub(crate) fn from_policy(policy: &Policy) -> Self {
        let files = policy.layers.iter().filter_map(|layer| {
            let file = layer.file.clone()?;
            let text = policy_bytes(&file).ok().flatten().unwrap_or_default();
            Some((layer.scope, file, String::from_utf8_lossy(&text).into_owned()))
        });
        Self { files: files.collect() }
    }

    /// Finds a rule by the name used in verdicts, such as `user:31`.
    pub(crate) fn find(&self, rule: &str) -> Option<RuleLocation> {
        let RuleId { scope, line } = RuleId::from_name(rule)?;
        let line = line?;
        let (_, file, text) = self.files.iter().find(|(known, ..)| *known == scope)?;
        Some(RuleLocation { file: file.clone(), line, source: quote_entry(text, line) })
    }
}

impl RuleLocation {
    pub(crate) fn location(&self) -> String {
        format_location(&self.file, self.line)
    }
}

pub(crate) fn format_location(file: &Path, line: usize) -> String {
    format!("{}:{line}", file.display())
}
