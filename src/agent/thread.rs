//! Thread of a session, and the selection of messages that fit into a request.

mod packed;
#[cfg(test)]
mod tests;

use super::limits::WINDOW_FILL_PERCENT;
use crate::protocol::{Message, MessageId, Part, Role, StepId, TaskId};
use packed::PackedMessage;
use std::sync::Arc;

/// Message sent to the model after its response reached the output limit. Not written by the user.
pub(crate) const CUT: &str = "[The response was cut off by the output limit. Continue exactly where it stopped.]";
/// Message sent to the model after its provider paused a long turn.
pub(crate) const GO_ON: &str = "[Continue.]";
/// Message sent to the model after the user interrupted its response.
pub(crate) const INTERRUPTED: &str = "[The user interrupted your response here.]";
/// Wording of `CUT` and `GO_ON` in sessions recorded by earlier versions.
const EARLIER: [&str; 2] = ["[The answer was cut by the output limit. Go on exactly where it stopped.]", "[Go on.]"];

/// Messages that are sent to the model, which are shared with the requests, and messages that are no longer sent.
#[derive(Debug, Default, Clone)]
pub(crate) struct Thread {
    messages: Vec<Arc<Message>>,
    /// Estimated number of tokens in the messages.
    tokens: u64,
    /// Ranges removed from the front of the thread, latest last.
    folds: Vec<RemovedRange>,
    /// Number of messages dropped without a summary.
    dropped: u64,
    /// First message as it is sent, if it starts with a marker about dropped messages.
    marked: Option<Arc<Message>>,
}

/// Range of messages removed from the front of the thread.
#[derive(Debug, Clone)]
struct RemovedRange {
    removed: PackedMessage,
    /// Number of messages that replace the removed ones.
    standing: usize,
    /// Number of messages dropped without a summary before this range was removed.
    dropped: u64,
    summary: bool,
}

/// Planned extent of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompactionPoint {
    /// End of the summarized range (exclusive).
    pub index: usize,
    /// User messages for the running task within that range, which are preserved.
    pub verbatim: Vec<MessageId>,
    /// Number of tokens that will no longer be sent, not counting the summary.
    pub freed: u64,
}

impl CompactionPoint {
    /// Returns the number of messages that will be summarized.
    pub(crate) fn summarized_count(&self) -> usize {
        self.index - self.verbatim.len()
    }
}

impl Thread {
    pub(crate) fn push(&mut self, message: Message) {
        self.tokens += message.token_count;
        self.messages.push(Arc::new(message));
    }

    pub(crate) fn last(&self) -> Option<&Message> {
        self.messages.last().map(Arc::as_ref)
    }

    /// Modifies the last message.
    pub(crate) fn amend_last(&mut self, change: impl FnOnce(&mut Message)) {
        let Some(last) = self.messages.last_mut() else { return };
        let mut amended = Message::clone(last);
        change(&mut amended);
        // The message gets a new ID, so data cached under the old ID is not used for it.
        amended.message_id = MessageId::new(format!("{}+", last.message_id));
        amended.token_count = super::context::estimate(&amended.content);
        self.tokens = self.tokens.saturating_sub(last.token_count) + amended.token_count;
        *last = Arc::new(amended);
        self.mark();
    }

    /// Returns the IDs of all messages ever added to the thread, including those that are no longer sent.
    #[cfg(test)]
    pub(crate) fn all_ids(&mut self) -> Vec<MessageId> {
        for fold in std::mem::take(&mut self.folds).into_iter().rev() {
            self.messages.splice(..fold.standing, fold.removed.open().unwrap_or_default());
        }
        self.messages.iter().map(|message| message.message_id.clone()).collect()
    }

    /// Returns the messages that are currently sent.
    pub(crate) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns the estimated number of tokens. A provider's count may differ.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    pub(crate) fn has_summary(&self) -> bool {
        self.folds.iter().any(|fold| fold.summary)
    }

    /// Returns the summary at the start of the thread, if any.
    pub(crate) fn summary(&self) -> Option<&Message> {
        self.messages.first().filter(|_| self.has_summary()).map(Arc::as_ref)
    }

    /// Returns the messages for the next request.
    pub(crate) fn window(&self) -> Vec<Arc<Message>> {
        let mut window = self.messages.clone();
        if let (Some(first), Some(marked)) = (window.first_mut(), &self.marked) {
            *first = Arc::clone(marked);
        }
        window
    }

    /// Drops the oldest messages if the thread has more than `budget` tokens, until it has at most
    /// `WINDOW_FILL_PERCENT` of that budget. Returns the total number of dropped messages if more were dropped.
    ///
    /// A summary and the user's latest request are never dropped, and neither are messages that have not been sent
    /// yet. A response is never separated from the results of its calls.
    pub(crate) fn fit(&mut self, budget: u64) -> Option<u64> {
        if self.tokens <= budget {
            return None;
        }
        let goal = budget * WINDOW_FILL_PERCENT / 100;
        let first = usize::from(self.has_summary());
        let task = self.last().map(|message| &message.task_id);
        let asked = |message: &Arc<Message>| is_prompt(message) && Some(&message.task_id) == task;
        let request = self.messages.iter().skip(first).position(asked).map(|at| at + first);
        let stay: Vec<usize> = (0..first).chain(request).collect();
        let (mut tail, mut start) = (self.tokens, 0);
        for (index, message) in self.messages.iter().enumerate().take(self.latest() + 1) {
            start = index;
            let heads: u64 = stay.iter().filter(|at| **at < index).map(|at| self.messages[*at].token_count).sum();
            if message.role != Role::Tool && tail + heads <= goal {
                break;
            }
            tail -= message.token_count;
        }
        let mut heads: Vec<usize> = stay.into_iter().filter(|at| *at < start).collect();
        if heads.is_empty() && self.messages[start].role != Role::User {
            heads.extend(self.messages[..start].iter().rposition(|message| message.role == Role::User));
        }
        let removed = start.saturating_sub(heads.len()) as u64;
        if removed == 0 {
            return None;
        }
        let heads: Vec<_> = heads.iter().map(|&at| Arc::clone(&self.messages[at])).collect();
        self.fold(start, heads, false);
        self.dropped += removed;
        self.mark();
        Some(self.dropped)
    }

    /// Returns the newest messages before `index` that fit into `budget`, for use in a summary request. If older
    /// messages are left out, a marker precedes the remaining ones.
    pub(crate) fn messages_before(&self, index: usize, budget: u64) -> Vec<Arc<Message>> {
        let mut window = self.window();
        window.truncate(index);
        let mut tokens: u64 = window.iter().map(|message| message.token_count).sum();
        let mut start = 0;
        while start < window.len() && (tokens > budget || (start > 0 && window[start].role == Role::Tool)) {
            tokens -= window[start].token_count;
            start += 1;
        }
        let mut window = window.split_off(start);
        if start > 0
            && let Some(first) = window.first_mut()
        {
            let marked = with_cut_marker(first, start as u64 + self.dropped);
            if first.role == Role::User {
                *first = Arc::new(marked);
            } else {
                let text = marked.content.into_iter().take(1).collect();
                let message_id = MessageId::new(format!("{}-", first.message_id));
                let marker = Message { message_id, role: Role::User, content: text, token_count: 0, ..first.as_ref().clone() };
                window.insert(0, Arc::new(marker));
            }
        }
        window
    }

    /// Plans a compaction that preserves about `keep` tokens of the newest messages and the user's messages for
    /// `task`. Returns `None` if there is nothing to summarize.
    pub(crate) fn plan_compaction(&self, keep: u64, task: Option<&TaskId>) -> Option<CompactionPoint> {
        let latest = self.latest();
        let (mut index, mut tail) = (latest, 0);
        for (at, message) in self.messages.iter().enumerate().rev() {
            tail += message.token_count;
            if tail > keep && at < latest {
                break;
            }
            if message.role != Role::Tool {
                index = at.min(latest);
            }
        }
        let older = self.messages.get(..index)?;
        let summary = usize::from(self.has_summary()).min(index);
        let mut said: Vec<&Arc<Message>> =
            older.iter().skip(summary).filter(|message| is_prompt(message) && Some(&message.task_id) == task).collect();
        // The request itself is preserved regardless of its size. Messages added to it are preserved if they fit.
        let mut room = keep;
        let request = said.first().map(|message| message.message_id.clone());
        said.reverse();
        said.retain(|message| {
            let fits = message.token_count <= room;
            room = if fits { room - message.token_count } else { 0 };
            fits || request.as_ref() == Some(&message.message_id)
        });
        said.reverse();
        let verbatim: Vec<MessageId> = said.iter().map(|message| message.message_id.clone()).collect();
        let kept: u64 = said.iter().map(|message| message.token_count).sum();
        let of_older: u64 = older.iter().map(|message| message.token_count).sum();
        let cut = CompactionPoint { index, verbatim, freed: of_older - kept };
        (cut.summarized_count() > summary).then_some(cut)
    }

    /// Replaces the messages up to and including `until` with a summary, except for the `verbatim` messages. Returns
    /// whether anything changed.
    pub(crate) fn compact(&mut self, until: &MessageId, verbatim: &[MessageId], summary: Message) -> bool {
        if summary.content.is_empty() || self.messages.first().is_some_and(|first| first.message_id == summary.message_id) {
            return false;
        }
        let named = self.messages.iter().position(|message| message.message_id == *until);
        // If the record of this message is missing, the summary extends to the last message before it. IDs are
        // numbered, so the order is known.
        let older = |message: &Arc<Message>| number(&message.message_id) <= number(until);
        let first = usize::from(self.has_summary());
        let place = named.or_else(|| self.messages.iter().skip(first).rposition(older).map(|at| at + first));
        let end = match place {
            Some(place) => place + 1 + self.messages[place + 1..].iter().take_while(|message| message.role == Role::Tool).count(),
            None if self.messages.is_empty() => return false,
            // All messages summarized here were already dropped. The new summary includes any earlier one.
            None => first,
        };
        let stays = |message: &&Arc<Message>| message.role == Role::User && verbatim.contains(&message.message_id);
        let heads =
            std::iter::once(Arc::new(summary)).chain(self.messages[..end].iter().filter(stays).cloned()).collect::<Vec<_>>();
        self.fold(end, heads, true);
        self.dropped = 0;
        self.mark();
        true
    }

    /// Undoes the last compaction by restoring the messages that its summary replaced, including those dropped since
    /// then. Returns whether there was a summary to undo.
    pub(crate) fn undo(&mut self) -> bool {
        let Some(last) = self.folds.iter().rposition(|fold| fold.summary) else { return false };
        let opened: Option<Vec<_>> = self.folds[last..].iter().map(|fold| fold.removed.open()).collect();
        let Some(opened) = opened else { return false };
        for (fold, removed) in self.folds.drain(last..).zip(opened).collect::<Vec<_>>().into_iter().rev() {
            let standing = fold.standing.min(self.messages.len());
            self.messages.splice(..standing, removed);
            self.dropped = fold.dropped;
        }
        self.tokens = self.messages.iter().map(|message| message.token_count).sum();
        self.mark();
        true
    }

    /// Removes the given message and all later ones, restoring messages removed by a summary or a cut if necessary.
    /// Returns the number of removed messages, or `None` if the thread does not contain the message.
    pub(crate) fn truncate_from(&mut self, from: &MessageId) -> Option<u64> {
        loop {
            let standing = self.folds.last().map_or(0, |fold| fold.standing);
            let found = self.messages.iter().position(|message| message.message_id == *from);
            // A summary may have replaced messages after this one.
            if let Some(place) = found.filter(|place| *place >= standing) {
                let gone = self.messages.split_off(place).len() as u64;
                self.tokens = self.messages.iter().map(|message| message.token_count).sum();
                self.mark();
                return Some(gone);
            }
            let fold = self.folds.pop()?;
            let removed = fold.removed.open()?;
            let standing = fold.standing.min(self.messages.len());
            self.messages.splice(..standing, removed);
            self.dropped = fold.dropped;
        }
    }

    /// Returns the ID of the message that contains a step's response.
    pub(crate) fn response_id(&self, step: &StepId) -> Option<MessageId> {
        let of_it = |message: &&Arc<Message>| message.role == Role::Assistant && message.step_id.as_ref() == Some(step);
        let name = |message: &Arc<Message>| message.message_id.clone();
        let packed = || {
            let opened = self.folds.iter().filter_map(|fold| fold.removed.open());
            opened.flatten().find(|message| of_it(&message)).map(|message| name(&message))
        };
        self.messages.iter().find(of_it).map(name).or_else(packed)
    }

    /// Returns the index of the newest message or, if that message contains tool results, of the response that
    /// requested them.
    fn latest(&self) -> usize {
        self.messages.iter().rposition(|message| message.role != Role::Tool).unwrap_or(0)
    }

    fn fold(&mut self, end: usize, heads: Vec<Arc<Message>>, summary: bool) {
        let standing = heads.len();
        let removed: Vec<_> = self.messages.splice(..end, heads).collect();
        self.messages.shrink_to(self.messages.len() * 2);
        self.folds.push(RemovedRange { removed: PackedMessage::new(removed), standing, dropped: self.dropped, summary });
        self.tokens = self.messages.iter().map(|message| message.token_count).sum();
    }

    fn mark(&mut self) {
        let first = self.messages.first().filter(|_| self.dropped > 0);
        self.marked = first.map(|first| Arc::new(with_cut_marker(first, self.dropped)));
    }
}

/// Returns whether the message was written by the user.
pub(crate) fn is_prompt(message: &Message) -> bool {
    message.role == Role::User
        && ![CUT, GO_ON, INTERRUPTED].contains(&message.typed_text())
        && !EARLIER.contains(&message.typed_text())
}

/// Returns whether the message merely marks an interruption.
pub(crate) fn is_interruption(message: &Message) -> bool {
    message.role == Role::User && matches!(message.content.as_slice(), [Part::Text { text }] if text == INTERRUPTED)
}

/// Returns the number contained in an ID, or 0 if there is none.
fn number(id: &MessageId) -> u64 {
    let digits = id.as_str().trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

/// Returns the message with a marker about dropped messages inserted before its own text.
fn with_cut_marker(message: &Message, dropped: u64) -> Message {
    let mut content = vec![Part::Text { text: format!("[Earlier conversation truncated — {dropped} messages removed]\n\n") }];
    content.extend(message.content.iter().cloned());
    // The message gets a new ID, so data cached under the old ID is not used for it.
    let message_id = MessageId::new(format!("{}+{dropped}", message.message_id));
    Message { message_id, content, ..message.clone() }
}
