//! Session status in lists: idle, running, waiting or paused.

use serde::Serialize;

/// Session status set by the last record that changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SessionActivity {
    /// No task is open.
    Idle,
    Running,
    /// An approval is pending.
    Waiting,
    Paused,
}

impl SessionActivity {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
        }
    }

    /// Returns the status with the given name, or `Idle` if the name is unknown.
    pub(crate) fn parse(text: &str) -> Self {
        [Self::Running, Self::Waiting, Self::Paused].into_iter().find(|status| status.as_str() == text).unwrap_or(Self::Idle)
    }
}
