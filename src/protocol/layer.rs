//! Policy layers (bundles in effect), as shown to users and recorded in journals.

use serde::{Deserialize, Serialize};

/// Policy bundle that is in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyLayer {
    /// Origin of the bundle: `built-in`, `user`, `policy`, `managed` or `project`.
    pub scope: String,
    /// Version that the bundle's author assigned, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<jiff::Timestamp>,
    /// Maximum number of input tokens per request, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Entries for `/policy`, one for everything that the bundle allows, asks about or denies. They are neither sent nor
    /// recorded.
    #[serde(skip)]
    pub rules: Vec<String>,
}

impl PolicyLayer {
    /// Returns the version of the policy as a whole, which is that of the first bundle with a version.
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
