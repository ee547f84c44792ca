//! Selection of a command part, used to show the rule that decided it.

use super::{Body, Dialog, Pager};

/// Selects the next or previous command part and scrolls to it. Returns `false` if there are no parts.
pub(crate) fn mark_part(panel: &mut Dialog, forward: bool) -> bool {
    let width = panel.view.width;
    let Body::Command { command, laid } = &mut panel.body else { return false };
    let order = command.order();
    let Some(last) = order.len().checked_sub(1) else { return false };
    let at = command.marked.and_then(|marked| order.iter().position(|part| *part == marked));
    let next = match (at, forward) {
        (None, _) => 0,
        (Some(at), true) => {
            if at == last {
                0
            } else {
                at + 1
            }
        }
        (Some(at), false) => at.checked_sub(1).unwrap_or(last),
    };
    command.marked = order.get(next).copied();
    laid.borrow_mut().take();
    let rows = command.rows(width);
    let of_part = |row: &super::command::Row| row.part() == command.marked;
    let (first, count) = (rows.iter().position(of_part).unwrap_or(0), rows.iter().filter(|row| of_part(row)).count());
    if first < panel.view.top {
        panel.view.top = first;
    } else if first + count > panel.view.top + panel.view.shown {
        panel.view.top = (first + count).saturating_sub(panel.view.shown.max(1)).min(first);
    }
    true
}

/// Opens the page about the rule that decided the selected command part. Returns `false` if no part is selected.
pub(super) fn open_rule(panel: &mut Dialog) -> bool {
    let (Some(approval), Some(part)) = (panel.asked_approval(), panel.body.marked_part()) else { return false };
    let rule = Pager::for_rule(approval, part).and_then(Pager::panel);
    panel.front = rule.map(Box::new);
    panel.front.is_some()
}

impl Body {
    /// Returns whether the dialog is about a command with selectable parts.
    pub(crate) fn has_parts(&self) -> bool {
        matches!(self, Self::Command { command, .. } if !command.parts.is_empty())
    }

    /// Returns the index of the selected command part, if any.
    pub(crate) fn marked_part(&self) -> Option<usize> {
        match self {
            Self::Command { command, .. } => command.marked,
            Self::Edit { .. } | Self::Words { .. } => None,
        }
    }
}
