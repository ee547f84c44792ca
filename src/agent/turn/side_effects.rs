//! What a call is for who wants to go back: a command, and what of it no file tells of.

use crate::policy;
use crate::protocol::Action;

const COMMAND_CHARS: usize = 120;

/// What a call is for the list of points: a command in a line, and what of it lasts.
#[derive(Debug, Default, Clone)]
pub(super) struct SideEffects {
    pub command: Option<String>,
    pub lasting: Option<String>,
}

pub(super) fn ran(actions: &[Action], summary: &str, changes: bool) -> SideEffects {
    let mut ran = SideEffects::default();
    let short = || summary.chars().take(COMMAND_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    for action in actions.iter().filter(|_| changes) {
        let lasting = match action {
            Action::Exec { command, .. } => {
                ran.command = Some(short());
                policy::lasting(command)
            }
            Action::Named { .. } | Action::Custom { .. } => {
                ran.command = Some(short());
                None
            }
            Action::Fetch { method, .. } if method != "GET" && method != "HEAD" => Some("used the network"),
            Action::Upload { .. } => Some("sent a file elsewhere"),
            Action::Invoke { .. } => Some("called an MCP tool"),
            Action::Read { .. } | Action::Write { .. } | Action::Delete { .. } | Action::Fetch { .. } | Action::Open { .. } => {
                None
            }
        };
        if let Some(what) = lasting {
            ran.lasting = Some(format!("`{}` {what}: its effects elsewhere stay", short()));
        }
    }
    ran
}
