//! The messages of a conversation, also those that a summary replaces in the requests, without those that a rewind took back.

use crate::protocol::Message;
use crate::session::{Change, RewindEffect};

/// A view over the changes of a session.
#[derive(Debug, Default)]
pub struct Conversation {
    /// In their order.
    pub messages: Vec<Message>,
    /// The messages before each rewind that can be undone; none where the rewind left them as they were.
    rewound: Vec<Option<Vec<Message>>>,
}

impl Conversation {
    pub fn add(&mut self, change: &Change<'_>) {
        match change {
            Change::TaskStarted { .. } => self.rewound.clear(),
            Change::Rewound { effect, .. } => self.rewind(effect),
            _ => {}
        }
        self.messages.extend(change.message().cloned());
    }

    fn rewind(&mut self, effect: &RewindEffect<'_>) {
        match effect {
            RewindEffect::None => {}
            RewindEffect::Files => self.rewound.push(None),
            RewindEffect::Cut { from, .. } => {
                self.rewound.push(Some(self.messages.clone()));
                let place = from.and_then(|from| self.messages.iter().position(|message| message.message_id == *from));
                self.messages.truncate(place.unwrap_or(self.messages.len()));
            }
            RewindEffect::Redone { .. } => {
                if let Some(Some(messages)) = self.rewound.pop() {
                    self.messages = messages;
                }
            }
        }
    }
}
