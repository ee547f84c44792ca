//! Messages of a conversation. Messages that a summary replaces in requests are included, but messages removed by a
//! rewind are not.

use crate::protocol::Message;
use crate::session::{Change, PromptRewind};

/// Conversation built from a session's changes.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// Messages in chronological order.
    pub messages: Vec<Message>,
    /// Messages before each rewind that can still be undone; `None` for a rewind that did not change the messages.
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
