//! Selection of the parts of a command, each with the rule that decided it.

use super::{Body, Dialog, Pager, Question};

impl Dialog {
    /// Selects the next or previous part and scrolls to it. Returns whether there are parts.
    pub fn mark_part(&mut self, forward: bool) -> bool {
        let width = self.seen_width;
        let Body::Command { command, laid } = &mut self.body else { return false };
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
        if first < self.scroll {
            self.scroll = first;
        } else if first + count > self.scroll + self.shown {
            self.scroll = (first + count).saturating_sub(self.shown.max(1)).min(first);
        }
        true
    }

    pub fn has_parts(&self) -> bool {
        matches!(&self.body, Body::Command { command, .. } if !command.parts.is_empty())
    }

    pub fn marked_part(&self) -> Option<usize> {
        match &self.body {
            Body::Command { command, .. } => command.marked,
            Body::Edit { .. } | Body::Words { .. } => None,
        }
    }

    /// Opens the rule that decided the selected part. Returns whether one is selected.
    pub(super) fn open_rule(&mut self) -> bool {
        let (Question::Approval(approval), Some(part)) = (&self.question, self.marked_part()) else { return false };
        self.front = Pager::rule_of(approval, part).and_then(Pager::panel).map(Box::new);
        self.front.is_some()
    }
}
