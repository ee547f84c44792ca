//! `aye agents …`: clap definition and checked action.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsSub {
    /// List agents, including unused definitions
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show an agent: its file, tools, model and instructions
    Show {
        /// Name of the agent, as shown by `aye agents list`
        name: String,
    },
    /// Check agents for errors
    ///
    /// Without PATH, checks the agents of this project and your own. The exit code is 1 if there is an error.
    Check {
        /// Agent file, or a folder of agents
        path: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentsAction {
    List { json: bool },
    Show { name: String },
    Check { path: Option<PathBuf>, json: bool },
}

impl AgentsSub {
    pub(crate) fn check(self) -> AgentsAction {
        match self {
            Self::List { json } => AgentsAction::List { json },
            Self::Show { name } => AgentsAction::Show { name },
            Self::Check { path, json } => AgentsAction::Check { path, json },
        }
    }
}
