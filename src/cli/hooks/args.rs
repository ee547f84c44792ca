//! `aye hooks …`: clap definition and checked action.

use crate::protocol::HookEvent;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum HooksSub {
    /// List hooks, including those that would not run
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run the hooks for an event, and print their decisions
    ///
    /// Nothing else runs: the call is neither planned nor executed.
    Test {
        /// Event, such as PreToolUse
        #[arg(value_parser = event)]
        event: HookEvent,
        /// Use this tool for the call
        #[arg(long, value_name = "NAME", default_value = "Bash")]
        tool: String,
        /// Use these arguments, a JSON object
        #[arg(long, value_name = "JSON", default_value = "{}")]
        args: String,
        /// Use this text as prompt, response, result or notification
        #[arg(long, value_name = "TEXT", default_value = "")]
        text: String,
        /// Use this agent for SubagentStart and SubagentStop
        #[arg(long, value_name = "NAME", default_value = "explore")]
        agent: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Pin your own hooks with their current content, so that they run
    Pin,
}

/// Parses the name of an event.
fn event(name: &str) -> Result<HookEvent, String> {
    HookEvent::from_name(name).ok_or_else(|| format!("expected one of {}", HookEvent::ALL.map(HookEvent::as_str).join(", ")))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HooksAction {
    List { json: bool },
    Test { event: HookEvent, call: (String, String), text: String, agent: String, json: bool },
    Pin,
}

impl HooksSub {
    pub(crate) fn check(self) -> HooksAction {
        match self {
            Self::List { json } => HooksAction::List { json },
            Self::Test { event, tool, args, text, agent, json } => {
                HooksAction::Test { event, call: (tool, args), text, agent, json }
            }
            Self::Pin => HooksAction::Pin,
        }
    }
}
