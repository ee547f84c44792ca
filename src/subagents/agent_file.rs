//! Files that may define an agent, and their formats.

use super::definition::AgentOrigin;
use std::path::Path;

/// Format of the files in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentFormat {
    /// Markdown with front matter.
    Markdown,
    Toml,
}

/// A file that may define an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentFile {
    /// Path for display: `.claude/agents/reviewer.md`.
    pub shown: String,
    /// The content, or the reason why it cannot be used.
    pub content: Result<Vec<u8>, String>,
    pub origin: AgentOrigin,
}

impl AgentFormat {
    /// Returns the extension of the files.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Toml => "toml",
        }
    }

    /// Returns the format of a file, based on its extension.
    pub(crate) fn of_file(name: &str) -> Option<Self> {
        let extension = Path::new(name).extension()?;
        [Self::Markdown, Self::Toml].into_iter().find(|format| extension == format.extension())
    }
}
