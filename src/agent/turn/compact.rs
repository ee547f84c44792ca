//! Room in the window: a summary in the place of older messages, and what fills it.

use super::{Machine, Moment};
use crate::protocol::{ContextUse, EventKind};

impl Machine {
    pub(super) fn compact(&mut self, _focus: Option<String>, _at: Moment) {
        self.show_context();
    }

    pub(super) fn undo_compaction(&mut self) {
        self.show_context();
    }

    pub(super) fn show_context(&mut self) {
        self.emit(EventKind::ContextShown(ContextUse {
            model: self.options.model.name.clone(),
            window: self.options.model.context_window,
            reserved: self.options.max_output_tokens,
            shares: Vec::new(),
            counted: 0,
            compactable: 0,
            compacts_at_percent: None,
        }));
    }
}
