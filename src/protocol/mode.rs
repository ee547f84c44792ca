//! Approval modes.

use serde::{Deserialize, Serialize};

/// Approval modes, ordered from the strictest to the most permissive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Tools cannot write, and the shell is read-only.
    Plan,
    /// The policy decides which actions need approval.
    #[default]
    Ask,
    /// Workspace writes that would require approval are allowed.
    AutoEdit,
    /// Low- and medium-risk actions that would require approval are allowed.
    Auto,
}

impl Mode {
    /// All modes, from the strictest to the most permissive.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::AutoEdit, Self::Auto];

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::AutoEdit => "auto-edit",
            Self::Auto => "auto",
        }
    }
}
