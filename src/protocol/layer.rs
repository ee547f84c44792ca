//! Policy layers, as shown to users and recorded in journals.

use serde::{Deserialize, Serialize};

/// One policy bundle in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyLayer {
    /// `built-in`, `user`, `policy`, `managed`, `project`.
    pub scope: String,
    /// Version of the bundle, as set by its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<jiff::Timestamp>,
    /// Maximum input tokens of a request, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl PolicyLayer {
    /// Returns the combined version of these layers: the version of the first bundle that has one.
    pub fn combined_version(layers: &[Self]) -> Option<String> {
        layers.iter().find_map(|layer| layer.bundle_version.clone())
    }
}

impl std::fmt::Display for PolicyLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.scope)?;
        self.bundle_version.iter().try_for_each(|version| write!(f, " (bundle {version})"))
    }
}
