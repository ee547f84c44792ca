//! The thread of a session, and the part of it that fits a request.

mod packed;
#[cfg(test)]
mod tests;

use super::limits::WINDOW_FILL_PERCENT;
use crate::protocol::{Message, MessageId, Part, Role, StepId, TaskId};
use packed::Packed;
use std::sync::Arc;

/// What a model is told when its answer was cut by its own output limit; no word of the person.
pub const CUT: &str = "[The answer was cut by the output limit. Go on exactly where it stopped.]";
/// What it is told where its provider paused a long turn.
const GO_ON: &str = "[Go on.]";

/// The messages that are sent, shared with the requests made of them, and what no longer is.
#[derive(Debug, Default, Clone)]
pub struct Thread {
    messages: Vec<Arc<Message>>,
    /// Their tokens, as estimated.
    tokens: u64,
    /// What was taken out at the front, the latest last.
    folds: Vec<RemovedRange>,
    /// How many messages fell out with nothing in their place.
    dropped: u64,
    /// The first message as it is sent, where it says that others fell out.
    marked: Option<Arc<Message>>,
}

/// Messages that were taken out at the front.
#[derive(Debug, Clone)]
struct RemovedRange {
    removed: Packed,
    /// How many messages stood in their place then.
    standing: usize,
    /// What had fallen out before.
    dropped: u64,
    summary: bool,
}

/// What a summary would stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionPoint {
    /// The messages before this one.
    pub index: usize,
    /// Of them, what the person said for the task that runs: it stays as it is.
    pub verbatim: Vec<MessageId>,
    /// Tokens that are no longer sent, but for those of the summary.
    pub freed: u64,
}

impl CompactionPoint {
    /// How many messages the summary stands for.
    pub fn summarised(&self) -> usize {
        self.index - self.verbatim.len()
    }
}

impl Thread {
    pub fn push(&mut self, message: Message) {
        self.tokens += message.token_count;
        self.messages.push(Arc::new(message));
    }

    pub fn last(&self) -> Option<&Message> {
        self.messages.last().map(Arc::as_ref)
    }

    /// Adds to what was said last.
    pub fn amend_last(&mut self, change: impl FnOnce(&mut Message)) {
        let Some(last) = self.messages.last_mut() else { return };
        let mut amended = Message::clone(last);
        change(&mut amended);
        // Another id: what providers keep by id must not mistake it for the one before.
        amended.message_id = MessageId::new(format!("{}+", last.message_id));
        amended.token_count = super::context::estimate(&amended.content);
        self.tokens = self.tokens.saturating_sub(last.token_count) + amended.token_count;
        *last = Arc::new(amended);
        self.mark();
    }

    /// All that was ever said, whatever stands in its place.
    #[cfg(test)]
    pub fn everything(&mut self) -> Vec<MessageId> {
        for fold in std::mem::take(&mut self.folds).into_iter().rev() {
            self.messages.splice(..fold.standing, fold.removed.open().unwrap_or_default());
        }
        self.messages.iter().map(|message| message.message_id.clone()).collect()
    }

    /// Those that are sent.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// As estimated; a provider may count otherwise.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    pub fn has_summary(&self) -> bool {
        self.folds.iter().any(|fold| fold.summary)
    }

    /// The summary that stands first, if one does.
    pub fn summary(&self) -> Option<&Message> {
        self.messages.first().filter(|_| self.has_summary()).map(Arc::as_ref)
    }

    /// The messages of the next request.
    pub fn window(&self) -> Vec<Arc<Message>> {
        let mut window = self.messages.clone();
        if let (Some(first), Some(marked)) = (window.first_mut(), &self.marked) {
            *first = Arc::clone(marked);
        }
        window
    }

    /// Where the messages have more than `budget` tokens, the oldest fall out. Says how many have by now, where more did.
    ///
    /// A summary stays, and the latest request of the person; an answer is never parted from the results of its calls, and what
    /// the model has not seen yet is sent whatever it takes.
    pub fn fit(&mut self, budget: u64) -> Option<u64> {
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

    /// The first messages as they are sent to be summed up: of those before `index` the newest that fit, after a marker where
    /// others do not.
    pub fn opening(&self, index: usize, budget: u64) -> Vec<Arc<Message>> {
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
            let marked = marked(first, start as u64 + self.dropped);
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

    /// What a summary would stand for so that about `keep` tokens of the newest messages stay as they are; what the person said
    /// for `task` stays too. `None` where nothing is left for it.
    pub fn cut(&self, keep: u64, task: Option<&TaskId>) -> Option<CompactionPoint> {
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
        // The request itself stays whatever it takes; of what was added to it, what fits.
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
        (cut.summarised() > summary).then_some(cut)
    }

    /// Puts a summary in the place of the messages up to `until`; `verbatim` of them stay. Whether anything changed.
    pub fn compact(&mut self, until: &MessageId, verbatim: &[MessageId], summary: Message) -> bool {
        if summary.content.is_empty() || self.messages.first().is_some_and(|first| first.message_id == summary.message_id) {
            return false;
        }
        let named = self.messages.iter().position(|message| message.message_id == *until);
        // Where a record is missing, what came before it is meant: ids are counted.
        let older = |message: &Arc<Message>| number(&message.message_id) <= number(until);
        let first = usize::from(self.has_summary());
        let place = named.or_else(|| self.messages.iter().skip(first).rposition(older).map(|at| at + first));
        let end = match place {
            Some(place) => place + 1 + self.messages[place + 1..].iter().take_while(|message| message.role == Role::Tool).count(),
            None if self.messages.is_empty() => return false,
            // All that it stands for fell out before; a summary of before that is part of it.
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

    /// Takes the last summary back: the messages it stood for are here again, also those that fell out since. Whether there was one.
    pub fn undo(&mut self) -> bool {
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

    /// Cuts this message off and all that was said after it, whatever stands in their place; says how many those are.
    pub fn cut_off(&mut self, from: &MessageId) -> Option<u64> {
        loop {
            let standing = self.folds.last().map_or(0, |fold| fold.standing);
            let found = self.messages.iter().position(|message| message.message_id == *from);
            // What stands in the place of others may say what was said after it.
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

    /// The answer of a step.
    pub fn answer_of(&self, step: &StepId) -> Option<MessageId> {
        let of_it = |message: &&Arc<Message>| message.role == Role::Assistant && message.step_id.as_ref() == Some(step);
        let name = |message: &Arc<Message>| message.message_id.clone();
        let packed = || {
            let opened = self.folds.iter().filter_map(|fold| fold.removed.open());
            opened.flatten().find(|message| of_it(&message)).map(|message| name(&message))
        };
        self.messages.iter().find(of_it).map(name).or_else(packed)
    }

    /// Where the newest message stands, with the answer it gives results to.
    fn latest(&self) -> usize {
        self.messages.iter().rposition(|message| message.role != Role::Tool).unwrap_or(0)
    }

    fn fold(&mut self, end: usize, heads: Vec<Arc<Message>>, summary: bool) {
        let standing = heads.len();
        let removed: Vec<_> = self.messages.splice(..end, heads).collect();
        self.messages.shrink_to(self.messages.len() * 2);
        self.folds.push(RemovedRange { removed: Packed::new(removed), standing, dropped: self.dropped, summary });
        self.tokens = self.messages.iter().map(|message| message.token_count).sum();
    }

    fn mark(&mut self) {
        let first = self.messages.first().filter(|_| self.dropped > 0);
        self.marked = first.map(|first| Arc::new(marked(first, self.dropped)));
    }
}

/// Whether the person said it.
pub fn is_prompt(message: &Message) -> bool {
    message.role == Role::User && !matches!(message.content.as_slice(), [Part::Text { text }] if text == CUT || text == GO_ON)
}

/// Ids are counted.
fn number(id: &MessageId) -> u64 {
    let digits = id.as_str().trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

/// A message with the marker before its own text.
fn marked(message: &Message, dropped: u64) -> Message {
    let mut content = vec![Part::Text { text: format!("[Earlier conversation truncated — {dropped} messages removed]\n\n") }];
    content.extend(message.content.iter().cloned());
    // Another id: what providers keep by id must not mistake it for the unmarked one.
    let message_id = MessageId::new(format!("{}+{dropped}", message.message_id));
    Message { message_id, content, ..message.clone() }
}
