//! Approval modes.

use serde::{Deserialize, Serialize};

/// Modes, ordered from the strictest to the most permissive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// No tool may write; the shell is read-only.
    Plan,
    /// The policy decides.
    #[default]
    Ask,
    /// Writes in the workspace that would require approval are allowed.
    AutoEdit,
    /// Actions of low or medium risk that would require approval are allowed.
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
