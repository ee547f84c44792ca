//! What a provider's guardrail blocked: the task fails, and the model is told with the next request, so that it takes another way.
//!
//! The note is in the thread alone and follows from the record of the task's end. It stands after the words of the next prompt, or
//! after the last result where the same task goes on: every provider takes text there.

use super::super::limits::BLOCKED_CHARS;
use super::TurnMachine;
use crate::ports::TaskEnd;
use crate::protocol::{FailureKind, Message, Part, Role};

impl TurnMachine {
    /// A task ended; whether a guardrail ended it counts until the next request.
    pub(super) fn note_blocked(&mut self, end: &TaskEnd) {
        self.blocked = match end {
            TaskEnd::Failed { failure } if failure.kind == FailureKind::GuardrailBlocked => {
                Some(failure.message.chars().take(BLOCKED_CHARS).collect())
            }
            TaskEnd::Completed | TaskEnd::Failed { .. } | TaskEnd::Cancelled => None,
        };
    }

    /// The prompt with the note in it, for the thread.
    pub(super) fn told_of_block(&mut self, mut prompt: Message) -> Message {
        if let Some(why) = self.blocked.take() {
            after_the_words(&mut prompt, &note(&why));
            prompt.token_count = super::estimate(&prompt.content);
        }
        prompt
    }

    /// The same task goes on: the note joins what was said last.
    pub(super) fn tell_of_block(&mut self) {
        let Some(why) = self.blocked.take() else { return };
        let note = note(&why);
        self.thread.amend_last(|message| match (message.role, message.content.last_mut()) {
            // Its own words stay its own.
            (Role::Assistant, _) => {}
            (Role::User | Role::Tool, Some(Part::ToolResult(result))) => {
                result.output_text = format!("{}\n\n{note}", result.output_text);
            }
            (Role::User | Role::Tool, _) => after_the_words(message, &note),
        });
    }
}

/// The first part stays what was typed.
pub(super) fn after_the_words(message: &mut Message, note: &str) {
    let place = message.content.len().min(1);
    message.content.insert(place, Part::Text { text: format!("\n\n{note}") });
}

fn note(why: &str) -> String {
    let why = why.strip_prefix("LLM_GUARDRAIL_BLOCKED: ").unwrap_or(why);
    format!(
        "[LLM_GUARDRAIL_BLOCKED: the last attempt was blocked before it completed: {why}. Do not repeat it; try another way, or say \
         what cannot be done.]"
    )
}
