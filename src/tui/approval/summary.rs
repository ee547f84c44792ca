//! Short form of a dialog for the list and the row of pending dialogs: its name and risk.

use super::disk_state::Staleness;
use super::{Dialog, Question};
use crate::protocol::Risk;
use crate::text;
use crate::tui::theme::Token;

/// Returns a short name of the dialog.
pub(crate) fn name(panel: &Dialog) -> String {
    match &panel.question {
        Question::Approval(approval) => match (&approval.command, panel.body.line_counts()) {
            (Some(command), _) => match &approval.agent {
                Some(agent) => format!("Agent {}: $ {}", text::reveal_line(&agent.name), text::reveal_name(&command.line)),
                None => format!("$ {}", text::reveal_name(&command.line)),
            },
            (None, Some(counts)) => format!("{} {counts}", panel.title),
            (None, None) => panel.title.clone(),
        },
        Question::Keep(_)
        | Question::Reading(_)
        | Question::Interrupted { .. }
        | Question::Trust(_)
        | Question::Mode(_)
        | Question::Goal(_)
        | Question::Held(_)
        | Question::Setup(_)
        | Question::Asking(_)
        | Question::Price(_)
        | Question::Forget(_)
        | Question::Rewind(_) => panel.title.clone(),
    }
}

pub(crate) fn is_command(panel: &Dialog) -> bool {
    matches!(&panel.question, Question::Approval(approval) if approval.command.is_some())
}

/// Returns the name, with the information that the user needs to decide it together with others.
pub(crate) fn full_name(panel: &Dialog) -> String {
    match &panel.question {
        Question::Approval(_) if !is_command(panel) && panel.unseen() > 0 => {
            format!("{}: not read yet; enter opens it", name(panel))
        }
        _ => name(panel),
    }
}

/// Returns the reason why the dialog must be decided individually, if any.
pub(crate) fn individual_reason(panel: &Dialog) -> Option<String> {
    let Question::Approval(_) = &panel.question else {
        return Some("this approval must be reviewed individually; enter opens it".to_owned());
    };
    if panel.changed_on_disk || !matches!(panel.disk, Staleness::AsShown) {
        return Some("changed on disk, and the updated diff was not shown; enter opens it".to_owned());
    }
    match (panel.critical, panel.risk) {
        (true, _) => Some("critical risk must be reviewed individually; enter opens it".to_owned()),
        (false, Some(Risk::High)) => Some("high risk must be reviewed individually; enter opens it".to_owned()),
        (false, Some(Risk::Low | Risk::Medium) | None) => None,
    }
}

pub(crate) fn risk_token(panel: &Dialog) -> Token {
    match (panel.critical, panel.risk) {
        (true, _) => Token::Critical,
        (false, Some(Risk::High)) => Token::Danger,
        (false, Some(Risk::Medium)) => Token::Warn,
        (false, Some(Risk::Low) | None) => Token::Muted,
    }
}
