//! Instructions for parts of a project. They are delivered with the first tool result that concerns the part.

use crate::policy::redact::Redactor;
use crate::ports::{InstructionSource, Instructions};
use crate::protocol::{Action, Place, ToolResult, ToolStatus};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Tracks the instructions that the model has already received. Cheap to clone.
#[derive(Clone)]
pub(super) struct NestedInstructions {
    guidance: Option<Arc<dyn InstructionSource>>,
    delivered: Arc<Mutex<HashSet<PathBuf>>>,
}

impl NestedInstructions {
    pub(crate) fn new(guidance: Option<Arc<dyn InstructionSource>>) -> Self {
        Self { guidance, delivered: Arc::default() }
    }

    /// Forgets the instructions delivered so far. Called when the model's context no longer contains them.
    pub(crate) fn forget(&self) {
        self.delivered.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Adds the instructions that apply to these files to the result of a call that read or changed them. Reads from
    /// disk.
    pub(crate) fn add(&self, mut result: ToolResult, actions: &[Action], redactor: &Redactor) -> ToolResult {
        let Some(guidance) = self.guidance.as_ref().filter(|_| result.status == ToolStatus::Succeeded) else { return result };
        for action in actions {
            let (Action::Read { target } | Action::Write { target }) = action else { continue };
            if !matches!(target.place, Place::File { .. } | Place::Missing) {
                continue;
            }
            for Instructions { file, part, text } in guidance.instructions_for(&target.real) {
                // A call that reads the instruction file itself has already returned its content.
                let own = file == target.real;
                if self.delivered.lock().unwrap_or_else(PoisonError::into_inner).insert(file.clone()) && !own {
                    let text = redactor.redact(text.trim_end()).text;
                    // Writing to a string cannot fail.
                    let _ = write!(result.output_text, "\n\n[Project instructions for {part}, from {}]\n{text}", file.display());
                }
            }
        }
        result
    }
}
