//! Outcome of a call's hooks, together with the model's original arguments.

use crate::protocol::{CallArguments, CallHooks, ToolResult};

/// Outcome of a call's hooks.
#[derive(Debug)]
pub(super) struct HookedCall {
    pub hooks: CallHooks,
    /// Arguments as originally written by the model.
    pub requested: CallArguments,
}

impl HookedCall {
    /// Adds the hooks' notes for the model to the result.
    pub(super) fn annotate(&self, result: &mut ToolResult) {
        if let Some(note) = self.hooks.note() {
            let gap = if result.output_text.is_empty() { "" } else { "\n" };
            let note = note.trim_end();
            result.output_text = format!("{note}{gap}{}", result.output_text);
        }
    }
}
