//! Side effects of calls, listed with the rewind points: commands, and effects that are not visible in files.

use crate::policy;
use crate::protocol::Action;

const COMMAND_CHARS: usize = 120;

/// Side effects of a call: its command as a single line, and its lasting effects.
#[derive(Debug, Default, Clone)]
pub(super) struct SideEffects {
    pub command: Option<String>,
    pub lasting: Option<String>,
}

pub(super) fn side_effects_of(actions: &[Action], summary: &str, changes: bool) -> SideEffects {
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
            Action::Upload { .. } => Some("uploaded a file"),
            Action::Invoke { .. } => Some("called an MCP tool"),
            Action::Read { .. }
            | Action::Write { .. }
            | Action::Delete { .. }
            | Action::Fetch { .. }
            | Action::Search { .. }
            | Action::Open { .. } => None,
        };
        if let Some(what) = lasting {
            ran.lasting = Some(format!("`{}` {what}; a rewind cannot undo this", short()));
        }
    }
    ran
}
