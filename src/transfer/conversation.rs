//! Messages of a conversation, including those that a summary replaces in requests, but without those that a rewind
//! removed.

use crate::protocol::Message;
use crate::session::{Change, PromptRewind};

/// A view of a session's changes.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// Messages before each rewind that can be reversed; `None` if the rewind did not change them.
    rewound: Vec<Option<Vec<Message>>>,
}

impl Conversation {
    pub(crate) fn add(&mut self, change: &Change<'_>) {
        match change {
            Change::TaskStarted { .. } => self.rewound.clear(),
            Change::Rewound { effect, .. } => self.rewind(effect),
            _ => {}
        }
        self.messages.extend(change.message().cloned());
    }

    fn rewind(&mut self, effect: &PromptRewind<'_>) {
        match effect {
            PromptRewind::None => {}
            PromptRewind::Files => self.rewound.push(None),
            PromptRewind::Cut { from, .. } => {
                self.rewound.push(Some(self.messages.clone()));
                let place = from.and_then(|from| self.messages.iter().position(|message| message.message_id == *from));
                self.messages.truncate(place.unwrap_or(self.messages.len()));
            }
            PromptRewind::Redone { .. } => {
                if let Some(Some(messages)) = self.rewound.pop() {
                    self.messages = messages;
                }
            }
        }
    }
}
