//! Prompts in the conversation, and the rewinds that can be redone.

use crate::protocol::{Message, MessageId, RewindTarget, Rewound, TaskId};

/// Prompt in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub message_id: MessageId,
    pub task_id: TaskId,
    /// First non-blank line of the prompt.
    pub line: String,
}

/// Effect that a rewind has on the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptRewind<'r> {
    /// Nothing changed.
    None,
    /// Files were restored; the conversation is unchanged.
    Files,
    /// The conversation now ends before the message `from`, and `prompts` were removed from it.
    Cut { from: Option<&'r MessageId>, prompts: Vec<Prompt> },
    /// The previous rewind was undone. `prompts` is the number of prompts that were restored.
    Redone { prompts: usize },
}

/// Prompts in the conversation, and the rewinds since the last prompt.
#[derive(Debug, Default)]
pub(crate) struct PromptHistory {
    /// Prompts, oldest first.
    pub prompts: Vec<Prompt>,
    /// Prompts removed by each rewind that can still be undone, latest last.
    undoable: Vec<Vec<Prompt>>,
}

impl PromptHistory {
    /// Adds a prompt. Earlier rewinds can then no longer be undone.
    pub(crate) fn add(&mut self, prompt: &Message) {
        self.undoable.clear();
        let line = prompt.typed_text().lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned();
        self.prompts.push(Prompt { message_id: prompt.message_id.clone(), task_id: prompt.task_id.clone(), line });
    }

    pub(crate) fn apply<'r>(&mut self, from: Option<&'r MessageId>, rewound: &Rewound) -> PromptRewind<'r> {
        if rewound.target == RewindTarget::Redo {
            if !rewound.scope.conversation() && rewound.restored == 0 {
                return PromptRewind::None;
            }
            let Some(gone) = self.undoable.pop() else { return PromptRewind::None };
            let prompts = gone.len();
            self.prompts.extend(gone);
            return PromptRewind::Redone { prompts };
        }
        if from.is_none() && rewound.restored == 0 {
            return PromptRewind::None;
        }
        let conversation = rewound.scope.conversation();
        let place = from.filter(|_| conversation).map(|from| self.prompt_index(from, &rewound.target));
        let prompts = self.prompts.split_off(place.unwrap_or(self.prompts.len()));
        self.undoable.push(prompts.clone());
        if conversation { PromptRewind::Cut { from, prompts } } else { PromptRewind::Files }
    }

    /// Returns the index of the first prompt to remove. A rewind to a step within a task preserves that task's
    /// prompt.
    fn prompt_index(&self, from: &MessageId, target: &RewindTarget) -> usize {
        let of_message = self.prompts.iter().position(|prompt| prompt.message_id == *from);
        let of_task = || match target {
            RewindTarget::Before { task_id, .. } => {
                self.prompts.iter().position(|prompt| prompt.task_id == *task_id).map(|place| place + 1)
            }
            RewindTarget::Last | RewindTarget::Redo => None,
        };
        of_message.or_else(of_task).unwrap_or(self.prompts.len())
    }
}
