//! The thread as JSON, each message written once and kept for the next request.

use crate::protocol::Message;
use std::sync::Arc;

/// One message in a provider's words; empty when the provider has none for it.
#[derive(Debug)]
pub(super) struct Fragment {
    message: Arc<Message>,
    pub json: Vec<u8>,
}

impl Fragment {
    pub fn message(&self) -> &Message {
        &self.message
    }

    fn is_of(&self, message: &Arc<Message>) -> bool {
        Arc::ptr_eq(&self.message, message) || self.message == *message
    }
}

/// The fragments of the last request; what a thread has in common with it is not written again.
#[derive(Debug, Default)]
pub(super) struct Thread {
    fragments: Vec<Fragment>,
}

impl Thread {
    /// The fragments of `messages`, in order; `write` is called for those that are new.
    pub fn update(&mut self, messages: &[Arc<Message>], write: impl Fn(&Message, &mut Vec<u8>)) -> &[Fragment] {
        let common = self.fragments.iter().zip(messages).take_while(|(fragment, message)| fragment.is_of(message)).count();
        self.fragments.truncate(common);
        for message in &messages[common..] {
            let mut json = Vec::new();
            write(message, &mut json);
            json.shrink_to_fit();
            self.fragments.push(Fragment { message: Arc::clone(message), json });
        }
        &self.fragments
    }
}
