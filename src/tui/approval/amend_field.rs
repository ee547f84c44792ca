//! Text field in which the user edits a proposal.

use crate::tui::composer::Lines;

#[derive(Debug)]
pub(crate) struct AmendField {
    pub lines: Lines,
    pub what: AmendTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AmendTarget {
    Hunk,
    Command,
    Plan,
}
