//! The thread as JSON, each message written once and kept for the next request.

use super::ids::Ids;
use super::images;
use super::thread_repair::Exchange;
use crate::ports::ModelRequest;
use crate::protocol::{CallId, Message, Role};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

/// One message in a provider's words; empty when the provider has none for it.
#[derive(Debug)]
pub(super) struct Fragment {
    message: Arc<Message>,
    /// Of the message, beside it: a request goes through thousands of them.
    pub role: Role,
    pub json: Vec<u8>,
    split: OnceCell<usize>,
}

impl Fragment {
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Where its second part begins, as `find` has it; looked for once.
    pub fn split(&self, find: impl FnOnce(&[u8]) -> usize) -> usize {
        *self.split.get_or_init(|| find(&self.json))
    }
}

/// A message as the thread has it, and how far its fragments go.
#[derive(Debug)]
struct Source {
    message: Arc<Message>,
    /// Which of its images are in it.
    shown: Vec<bool>,
    /// The fragments until and with its own.
    end: usize,
    /// The ids its calls go by.
    ids: Vec<CallId>,
}

impl Source {
    fn is_of(&self, message: &Arc<Message>, request: &ModelRequest) -> bool {
        // Where no image is in it, none has to be looked for: requests are of thousands of messages.
        (Arc::ptr_eq(&self.message, message) || self.message == *message)
            && (self.shown.is_empty() || self.shown == images::shown_of(message, request))
    }
}

/// What else than the messages their JSON depends on; when it changes, all of them are written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub ids: Ids,
    pub version: u32,
}

impl Default for Form {
    fn default() -> Self {
        Self { ids: Ids::Any, version: 0 }
    }
}

/// The fragments of the last request; what a thread has in common with it is not written again.
///
/// Whatever the messages are, the fragments are of a thread that holds together: each call has its result right after it, each
/// result its call, and no two calls have one id.
#[derive(Debug, Default)]
pub(super) struct Thread {
    form: Form,
    sources: Vec<Source>,
    fragments: Vec<Fragment>,
    taken: HashSet<CallId>,
    /// Whose own parts go back to it; where nobody is named, all parts are as they are to go.
    origin: Option<Arc<str>>,
}

impl Thread {
    /// The thread that one provider is told.
    pub fn told_to(origin: &str) -> Self {
        Self { origin: Some(origin.into()), ..Self::default() }
    }

    /// All messages are written anew for the next request.
    pub fn forget(&mut self) {
        *self = Self { origin: self.origin.take(), ..Self::default() };
    }

    /// The fragments of the messages of `request`, in order; `write` is called for those that are new, each with the answer that its
    /// results are for.
    pub fn update(
        &mut self,
        request: &ModelRequest,
        write: impl Fn(&Message, Option<&Message>, &ModelRequest, &mut Vec<u8>),
    ) -> &[Fragment] {
        self.update_as(Form::default(), request, write)
    }

    pub fn update_as(
        &mut self,
        form: Form,
        request: &ModelRequest,
        write: impl Fn(&Message, Option<&Message>, &ModelRequest, &mut Vec<u8>),
    ) -> &[Fragment] {
        if self.form != form {
            self.forget();
            self.form = form;
        }
        let messages = &request.messages;
        let same = |(source, message): &(&Source, &Arc<Message>)| source.is_of(message, request);
        let mut common = self.sources.iter().zip(messages).take_while(same).count();
        // What follows may belong to the last calls, so those are gone through again.
        while common > 0 && self.sources[common - 1].message.role != Role::Assistant {
            common -= 1;
        }
        common = common.saturating_sub(1);
        for id in self.sources.drain(common..).flat_map(|source| source.ids) {
            self.taken.remove(&id);
        }
        let kept = self.sources.last().map_or(0, |source| source.end);
        // Most of what is gone through again comes out as it was.
        let mut old = self.fragments.split_off(kept).into_iter().peekable();
        let mut add = |fragments: &mut Vec<Fragment>, message: Arc<Message>, answer: Option<&Message>| {
            if let Some(fragment) = old.next_if(|fragment| fragment.message == message)
                && images::shown_of(&message, request).is_empty()
            {
                fragments.push(fragment);
                return;
            }
            let mut json = Vec::new();
            write(&message, answer, request, &mut json);
            json.shrink_to_fit();
            fragments.push(Fragment { role: message.role, message, json, split: OnceCell::new() });
        };
        let mut exchange = Exchange::new(form.ids, self.origin.clone());
        for message in &messages[common..] {
            if message.role == Role::Assistant
                && let Some(missing) = exchange.missing()
            {
                add(&mut self.fragments, missing, exchange.answered());
                if let Some(before) = self.sources.last_mut() {
                    before.end = self.fragments.len();
                }
            }
            let (fitted, ids) = exchange.take(message, &mut self.taken);
            add(&mut self.fragments, fitted, exchange.answered());
            let (shown, end) = (images::shown_of(message, request), self.fragments.len());
            self.sources.push(Source { message: Arc::clone(message), shown, end, ids });
        }
        if let Some(missing) = exchange.missing() {
            add(&mut self.fragments, missing, exchange.answered());
        }
        &self.fragments
    }
}
