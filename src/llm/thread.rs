//! The thread as JSON, each message written once and kept for the next request.

use super::images;
use crate::ports::ModelRequest;
use crate::protocol::Message;
use std::sync::Arc;

/// One message in a provider's words; empty when the provider has none for it.
#[derive(Debug)]
pub(super) struct Fragment {
    message: Arc<Message>,
    /// Which of its images are in it.
    shown: Vec<bool>,
    pub json: Vec<u8>,
}

impl Fragment {
    pub fn message(&self) -> &Message {
        &self.message
    }

    fn is_of(&self, message: &Arc<Message>, request: &ModelRequest) -> bool {
        (Arc::ptr_eq(&self.message, message) || self.message == *message) && self.shown == images::shown_of(message, request)
    }
}

/// The fragments of the last request; what a thread has in common with it is not written again.
#[derive(Debug, Default)]
pub(super) struct Thread {
    fragments: Vec<Fragment>,
}

impl Thread {
    /// The fragments of the messages of `request`, in order; `write` is called for those that are new.
    pub fn update(&mut self, request: &ModelRequest, write: impl Fn(&Message, &ModelRequest, &mut Vec<u8>)) -> &[Fragment] {
        let messages = &request.messages;
        let same = |(fragment, message): &(&Fragment, &Arc<Message>)| fragment.is_of(message, request);
        let common = self.fragments.iter().zip(messages).take_while(same).count();
        self.fragments.truncate(common);
        for message in &messages[common..] {
            let mut json = Vec::new();
            write(message, request, &mut json);
            json.shrink_to_fit();
            self.fragments.push(Fragment { message: Arc::clone(message), shown: images::shown_of(message, request), json });
        }
        &self.fragments
    }
}
