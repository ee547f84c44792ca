//! Handling of a provider's guardrail blocks. The task fails, and the next request informs the model of the block so
//! that it tries another approach.
//!
//! The note exists only in the thread and is derived from the record of the task's end. It is inserted after the text
//! of the next prompt or, if the same task continues, after the last result. All providers accept text in these
//! positions.

use super::super::context::estimate;
use super::super::limits::BLOCKED_CHARS;
use super::super::thread::Thread;
use crate::ports::TaskEnd;
use crate::protocol::{FailureKind, Message, Part, Role};

/// Guardrail message that ended the last task, sent to the model with the next request.
#[derive(Debug, Default)]
pub(super) struct GuardrailNote(Option<String>);

impl GuardrailNote {
    /// If a guardrail ended the task, stores its message until the next request.
    pub(crate) fn on_task_end(&mut self, end: &TaskEnd) {
        self.0 = match end {
            TaskEnd::Failed { failure } if failure.kind == FailureKind::GuardrailBlocked => {
                Some(failure.message.chars().take(BLOCKED_CHARS).collect())
            }
            TaskEnd::Completed | TaskEnd::Failed { .. } | TaskEnd::Cancelled => None,
        };
    }

    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }

    /// Adds the note to the next prompt as stored in the thread.
    pub(crate) fn add_to_prompt(&mut self, mut prompt: Message) -> Message {
        if let Some(why) = self.0.take() {
            insert_after_prompt(&mut prompt, &guardrail_text(&why));
            prompt.token_count = estimate(&prompt.content);
        }
        prompt
    }

    /// Adds the note to the last message when the same task continues.
    pub(crate) fn add_to_thread(&mut self, thread: &mut Thread) {
        let Some(why) = self.0.take() else { return };
        let note = guardrail_text(&why);
        thread.amend_last(|message| match (message.role, message.content.last_mut()) {
            // The model's own text is never changed.
            (Role::Assistant, _) => {}
            (Role::User | Role::Tool, Some(Part::ToolResult(result))) => {
                result.output_text = format!("{}\n\n{note}", result.output_text);
            }
            (Role::User | Role::Tool, _) => insert_after_prompt(message, &note),
        });
    }
}

/// Inserts the note after the typed text, which remains the first part of the message.
pub(super) fn insert_after_prompt(message: &mut Message, note: &str) {
    let place = message.content.len().min(1);
    message.content.insert(place, Part::Text { text: format!("\n\n{note}") });
}

fn guardrail_text(why: &str) -> String {
    let why = why.strip_prefix("LLM_GUARDRAIL_BLOCKED: ").unwrap_or(why);
    format!(
        "[LLM_GUARDRAIL_BLOCKED: the last attempt was blocked before it completed: {why}. Do not repeat it; try another way, or say \
         what cannot be done.]"
    )
}
