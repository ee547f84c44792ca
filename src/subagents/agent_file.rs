//! Files that may define an agent, and their formats.

use super::definition::AgentOrigin;
use std::path::Path;

/// Format of the agent files in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentFormat {
    /// Markdown with front matter.
    Markdown,
    Toml,
}

/// File that may define an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentFile {
    /// Display path, such as `.claude/agents/reviewer.md`.
    pub shown: String,
    /// File content, or the reason why the file cannot be used.
    pub content: Result<Vec<u8>, String>,
    pub origin: AgentOrigin,
}

impl AgentFormat {
    /// Returns the file extension for this format.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Toml => "toml",
        }
    }

    /// Returns the format that matches a file name's extension, if any.
    pub(crate) fn of_file(name: &str) -> Option<Self> {
        let extension = Path::new(name).extension()?;
        [Self::Markdown, Self::Toml].into_iter().find(|format| extension == format.extension())
    }
}
