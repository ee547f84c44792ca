//! Modes: how much runs without approval.

use serde::{Deserialize, Serialize};

/// From the strictest to the laxest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// No writes by any tool, the shell only reads.
    Plan,
    /// As the bundle says.
    #[default]
    Ask,
    /// Writes in the workspace that would ask are allowed.
    AutoEdit,
    /// What would ask at low or medium risk is allowed.
    Auto,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::AutoEdit => "auto-edit",
            Self::Auto => "auto",
        }
    }
}
