//! Short forms of a dialog, such as its name and risk, for the list and the bar of pending dialogs.

use super::Dialog;
use crate::protocol::Risk;
use crate::tui::theme::Token;

pub(crate) fn name(panel: &Dialog) -> String {
    panel.kind.name(&panel.title, panel.body.line_counts().as_deref())
}

pub(crate) fn is_command(panel: &Dialog) -> bool {
    panel.asked_approval().is_some_and(|approval| approval.command.is_some())
}

/// Returns a dialog's name. Unless the dialog is about a command, the name says if the dialog has not been read to the
/// end.
pub(crate) fn full_name(panel: &Dialog) -> String {
    if panel.is_card() && !is_command(panel) && panel.unseen() > 0 {
        return format!("{}: not read yet; enter opens it", name(panel));
    }
    name(panel)
}

/// Returns the reason why the dialog must be reviewed individually, or `None` if it can be decided together with
/// others.
pub(crate) fn individual_reason(panel: &Dialog) -> Option<String> {
    let Some(prompt) = panel.kind.prompt() else {
        return Some("this approval must be reviewed individually; enter opens it".to_owned());
    };
    if prompt.disk.is_outdated() {
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
