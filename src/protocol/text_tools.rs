//! Settings of the text tools, in addition to the policy.

/// Settings of the text tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTools {
    pub enabled: bool,
    /// Allowed extensions in lower case without dots; empty allows all.
    pub allowed_extensions: Vec<String>,
    pub max_file_size: Option<u64>,
    pub allow_create: bool,
    pub allow_delete: bool,
}

impl Default for TextTools {
    /// No restrictions beyond the policy.
    fn default() -> Self {
        Self { enabled: true, allowed_extensions: Vec::new(), max_file_size: None, allow_create: true, allow_delete: true }
    }
}
