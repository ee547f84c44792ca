//! Coding agents from which settings can be imported, and where they store their settings.

use super::context::AppContext;
use crate::config::Environment;
use std::path::{Path, PathBuf};

/// Coding agent from which settings can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Claude,
    Codex,
    Gemini,
    OpenCode,
}

impl Agent {
    pub(crate) const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode];

    /// Returns the agent's name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns the agent's product name.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns the directory that contains the user's settings for this agent.
    pub(crate) fn directory(self, home: &Path, environment: &Environment) -> PathBuf {
        let set = |variable: &str| environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        match self {
            Self::Claude => set("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.join(".claude")),
            Self::Codex => set("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
            Self::Gemini => home.join(".gemini"),
            Self::OpenCode => set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("opencode"),
        }
    }

    /// Returns the name of the directory that contains a project's settings for this agent.
    pub(crate) fn project_directory(self) -> &'static str {
        match self {
            Self::Claude => ".claude",
            Self::Codex => ".codex",
            Self::Gemini => ".gemini",
            Self::OpenCode => ".opencode",
        }
    }
}

/// Returns a sentence for each agent whose settings are found on this machine.
pub(crate) fn describe_found(app: &AppContext) -> Vec<String> {
    let has_settings = |agent: &Agent| agent.directory(&app.home, &app.environment).is_dir();
    let sentence =
        |agent: Agent| format!("Found settings of {}; `aye import {}` shows what aye can import.", agent.title(), agent.name());
    Agent::ALL.into_iter().filter(has_settings).map(sentence).collect()
}
