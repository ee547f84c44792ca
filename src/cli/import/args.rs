//! `aye import`: clap definition and checked action.

use crate::host::other_agents::Agent;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Agent to import settings from
    #[arg(value_name = "AGENT", value_enum)]
    pub agent: AgentArg,
    /// Show what would be imported, without writing anything
    #[arg(long, conflicts_with = "yes")]
    pub plan: bool,
    /// Import without asking
    ///
    /// Rules that allow something are not imported from an untrusted project.
    #[arg(long)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentArg {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
}

/// Mode of the import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Shows the plan without importing anything.
    Plan,
    /// Imports if the user confirms the plan.
    Ask,
    /// Imports without confirmation.
    Yes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportRequest {
    pub agent: Agent,
    pub form: Form,
    pub json: bool,
}

impl ImportArgs {
    pub(crate) fn check(self) -> ImportRequest {
        let agent = match self.agent {
            AgentArg::Claude => Agent::Claude,
            AgentArg::Codex => Agent::Codex,
            AgentArg::Gemini => Agent::Gemini,
            AgentArg::Opencode => Agent::OpenCode,
        };
        let form = match (self.plan, self.yes) {
            (true, _) => Form::Plan,
            (false, true) => Form::Yes,
            (false, false) => Form::Ask,
        };
        ImportRequest { agent, form, json: self.json }
    }
}
