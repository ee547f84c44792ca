//! Conversion of a thread to JSON. Each message is serialized once, and the result is cached for later requests.

use super::ids::Ids;
use super::images;
use super::thread_repair::Exchange;
use crate::ports::ModelRequest;
use crate::protocol::{CallId, Message, Role};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

/// Serialized message in a provider's format. Empty if the format cannot represent it.
#[derive(Debug)]
pub(super) struct Fragment {
    message: Arc<Message>,
    /// Role of the message. It is copied here because every request iterates over thousands of messages.
    pub role: Role,
    pub json: Vec<u8>,
    split: OnceCell<usize>,
}

impl Fragment {
    pub(crate) fn message(&self) -> &Message {
        &self.message
    }

    /// Returns the offset at which the second part of the JSON starts. It is determined by `find` and then cached.
    pub(crate) fn split(&self, find: impl FnOnce(&[u8]) -> usize) -> usize {
        *self.split.get_or_init(|| find(&self.json))
    }
}

/// Message in the thread, and which fragments belong to it.
#[derive(Debug)]
struct Source {
    message: Arc<Message>,
    /// For each image in the message, whether it is included in the request.
    shown: Vec<bool>,
    /// Index after the last of its fragments.
    end: usize,
    /// IDs of its calls, in the form in which they are sent.
    ids: Vec<CallId>,
}

impl Source {
    fn is_of(&self, message: &Arc<Message>, request: &ModelRequest) -> bool {
        // Messages without images need no comparison, and requests contain thousands of them.
        (Arc::ptr_eq(&self.message, message) || self.message == *message)
            && (self.shown.is_empty() || self.shown == images::sent_images(message, request))
    }
}

/// Settings that affect how messages are serialized. If they change, all messages are serialized again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WireSettings {
    pub ids: Ids,
    pub version: u32,
}

impl Default for WireSettings {
    fn default() -> Self {
        Self { ids: Ids::Any, version: 0 }
    }
}

/// Fragments of the last request. Messages that the next request has in common with it are not serialized again.
///
/// The fragments always form a consistent thread: each call is directly followed by its result, each result has a call,
/// and call IDs are unique.
#[derive(Debug, Default)]
pub(super) struct ThreadCache {
    form: WireSettings,
    sources: Vec<Source>,
    fragments: Vec<Fragment>,
    taken: HashSet<CallId>,
    /// Origin to which the thread is sent, which receives only its own opaque parts. If `None`, all parts are sent
    /// unchanged.
    origin: Option<Arc<str>>,
}

impl ThreadCache {
    /// Creates a cache for threads that are sent to one provider.
    pub(crate) fn for_origin(origin: &str) -> Self {
        Self { origin: Some(origin.into()), ..Self::default() }
    }

    /// Clears the cache, which makes the next request serialize all messages again.
    pub(crate) fn forget(&mut self) {
        *self = Self { origin: self.origin.take(), ..Self::default() };
    }

    /// Returns the fragments for the messages in `request`, in order. `write` is called for each new message, together
    /// with the response to whose calls the results in it belong.
    pub(crate) fn update(
        &mut self,
        request: &ModelRequest,
        write: impl Fn(&Message, Option<&Message>, &ModelRequest, &mut Vec<u8>),
    ) -> &[Fragment] {
        self.update_as(WireSettings::default(), request, write)
    }

    pub(crate) fn update_as(
        &mut self,
        form: WireSettings,
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
        // The following messages may contain results of the last calls, so they are repaired again.
        while common > 0 && self.sources[common - 1].message.role != Role::Assistant {
            common -= 1;
        }
        common = common.saturating_sub(1);
        for id in self.sources.drain(common..).flat_map(|source| source.ids) {
            self.taken.remove(&id);
        }
        let kept = self.sources.last().map_or(0, |source| source.end);
        // Most of these messages do not change.
        let mut old = self.fragments.split_off(kept).into_iter().peekable();
        let mut add = |fragments: &mut Vec<Fragment>, message: Arc<Message>, answer: Option<&Message>| {
            if let Some(fragment) = old.next_if(|fragment| fragment.message == message)
                && images::sent_images(&message, request).is_empty()
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
                && let Some(missing) = exchange.missing_results()
            {
                add(&mut self.fragments, missing, exchange.latest_response());
                if let Some(before) = self.sources.last_mut() {
                    before.end = self.fragments.len();
                }
            }
            let (fitted, ids) = exchange.repair(message, &mut self.taken);
            add(&mut self.fragments, fitted, exchange.latest_response());
            let (shown, end) = (images::sent_images(message, request), self.fragments.len());
            self.sources.push(Source { message: Arc::clone(message), shown, end, ids });
        }
        if let Some(missing) = exchange.missing_results() {
            add(&mut self.fragments, missing, exchange.latest_response());
        }
        &self.fragments
    }
}
