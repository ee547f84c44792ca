//! Text tool settings, which apply in addition to the policy.

/// Restrictions on the text tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTools {
    pub enabled: bool,
    /// Permitted file extensions, in lower case and without dots. If empty, all extensions are permitted.
    pub allowed_extensions: Vec<String>,
    pub max_file_size: Option<u64>,
    pub allow_create: bool,
    pub allow_delete: bool,
}

impl Default for TextTools {
    /// Returns settings that add no restrictions to those of the policy.
    fn default() -> Self {
        Self { enabled: true, allowed_extensions: Vec::new(), max_file_size: None, allow_create: true, allow_delete: true }
    }
}
