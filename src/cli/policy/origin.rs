//! Locates a rule in its policy file and returns its text.

use crate::host::policy_layers::{Policy, policy_bytes};
use crate::policy::quote_entry;
use std::path::{Path, PathBuf};

/// Content of the policy files in effect.
pub(crate) struct Origins {
    files: Vec<(String, PathBuf, String)>,
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
            // The name of a rule is `user:0`. Only the part before the line number is used.
            let scope = layer.scope.rule(0).split(':').next().unwrap_or_default().to_owned();
            Some((scope, file, String::from_utf8_lossy(&text).into_owned()))
        });
        Self { files: files.collect() }
    }

    /// Finds a rule by the name used in verdicts, such as `user:31`.
    pub(crate) fn find(&self, rule: &str) -> Option<RuleLocation> {
        let (scope, line) = rule.split_once(':')?;
        let line: usize = line.parse().ok()?;
        let (_, file, text) = self.files.iter().find(|(known, ..)| known == scope)?;
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
