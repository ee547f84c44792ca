//! Skill origins.

use serde::Serialize;

/// Owner of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    Project,
    User,
    Plugin,
}
