//! Reader of one streamed response: it hands on the first chunk at once, the rest in portions, the end without delay.

use super::arguments::{values, within_limit};
use super::deltas::Deltas;
use super::error::{Speaker, is_refusal};
use super::limits::{EVENT_VALUES, PARTS, RESPONSE_BYTES, SAME_EVENT_BYTES, SAME_EVENTS, SMALL_EVENT_BYTES, TEXT_BYTES};
use super::opaque_parts;
use super::sse::{Event, Events, SseError};
use crate::ports::{Completion, Delta, ModelError};
use crate::protocol::{CallId, Part, ToolCall, Usage};
use futures_util::StreamExt;
use futures_util::stream::ReadyChunks;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Events taken in one go when they are there already.
const BATCH: usize = 256;
/// Between two portions; a fast answer comes in few of them, a slow one is not held up noticeably.
const PAUSE: Duration = Duration::from_millis(4);
/// How long an answer that is whole but has no end marker is listened to, for its usage.
const GRACE: Duration = Duration::from_secs(5);
/// A server that only says that it lives is listened to for so many times the silence it may keep: long enough for a model that
/// thinks where nobody sees it, and not for ever.
const QUIET_IDLES: u32 = 8;
/// An event with less in it may be a ping by what it says.
const MAX_PING_BYTES: usize = 64;
/// How long the end of the body is awaited, so that the connection can be used again.
const DRAIN: Duration = Duration::from_secs(1);

/// How far an answer is after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    /// The answer is whole; only its usage may follow.
    Whole,
    /// The end marker.
    End,
}

/// Puts an answer together from its events.
pub(super) trait Answer: Send {
    fn event(&mut self, event: &Event, deltas: &mut Deltas) -> Result<Progress, ModelError>;
    /// No more events come.
    fn complete(&mut self) -> Completion;
    /// The body of a server that does not stream; `None` when it is no answer of this dialect.
    fn whole(&mut self, _body: &[u8], _deltas: &mut Deltas) -> Option<Result<(), ModelError>> {
        None
    }
    /// How many parts it has until now.
    fn parts(&self) -> usize;
    /// What the provider has said of the cost until now; asked of an answer that breaks off.
    fn usage_so_far(&self) -> Option<Usage> {
        None
    }
}

/// Lives as long as one answer streams.
pub(super) struct Listener {
    speaker: Speaker,
    batches: ReadyChunks<Events>,
    answer: Box<dyn Answer>,
    deltas: Deltas,
    progress: Progress,
    body_ended: bool,
    hand_on_at: Instant,
    /// Signs of life without a word are listened to until then.
    quiet: Duration,
    quiet_until: Instant,
    /// A whole answer is listened to until then.
    whole_until: Option<Instant>,
    /// Whether there was any event.
    spoken: bool,
    last: String,
    /// How often the last event came, one after the other, each time with a piece of the response.
    same: usize,
    /// Bytes of events until now.
    heard: usize,
}

enum Heard {
    Batch(Vec<Result<Event, SseError>>),
    Silence,
    /// Signs of life, for too long.
    Mute,
    BodyEnd,
}

impl Listener {
    /// `idle`: how long the server may send nothing at all.
    pub fn new(speaker: Speaker, events: Events, answer: Box<dyn Answer>, idle: Duration) -> Self {
        let quiet = idle.saturating_mul(QUIET_IDLES);
        Self {
            speaker,
            batches: events.ready_chunks(BATCH),
            answer,
            deltas: Deltas::default(),
            progress: Progress::More,
            body_ended: false,
            hand_on_at: Instant::now(),
            quiet,
            quiet_until: Instant::now() + quiet,
            whole_until: None,
            spoken: false,
            last: String::new(),
            same: 0,
            heard: 0,
        }
    }

    /// What is ready to be handed on.
    pub fn take(&mut self) -> Vec<Delta> {
        self.deltas.take()
    }

    pub fn at_end(&self) -> bool {
        self.body_ended || self.progress == Progress::End
    }

    /// Listens until there is something to hand on, or until the end. What came before an error can be taken as well.
    pub async fn listen(&mut self) -> Result<(), ModelError> {
        while !self.at_end() {
            match self.hear().await {
                Heard::Batch(batch) => self.read(batch).map_err(|error| self.counted(error))?,
                Heard::Silence => break,
                Heard::Mute => return Err(self.counted(self.speaker.mute(self.quiet.as_secs()))),
                Heard::BodyEnd => self.body_ended = true,
            }
            if !self.deltas.is_empty() && Instant::now() >= self.hand_on_at {
                break;
            }
        }
        self.hand_on_at = Instant::now() + PAUSE;
        Ok(())
    }

    /// The answer, once the end is reached.
    pub fn finish(mut self) -> Result<Completion, ModelError> {
        let usage = self.answer.usage_so_far().map(whole);
        let mut completion = self.answer.complete();
        completion.usage = whole(completion.usage);
        completion.content = with_ids(without_repeats(completion.content));
        within_limit(&mut completion.content);
        opaque_parts::mark(&mut completion.content, &self.speaker.origin());
        match self.progress {
            Progress::More if !self.spoken => Err(self.speaker.empty()),
            Progress::More => Err(ModelError { usage, ..self.speaker.cut() }),
            Progress::Whole => Ok(completion),
            Progress::End => {
                drain(self.batches.into_inner());
                Ok(completion)
            }
        }
    }

    /// A failure costs what the stream told before it.
    fn counted(&self, error: ModelError) -> ModelError {
        ModelError { usage: error.usage.or_else(|| self.answer.usage_so_far()).map(whole), ..error }
    }

    async fn hear(&mut self) -> Heard {
        let next = self.batches.next();
        let (until, otherwise) = match (self.deltas.is_empty(), self.whole_until) {
            (true, Some(until)) => (until, Heard::BodyEnd),
            (true, None) => (self.quiet_until, Heard::Mute),
            (false, _) => (self.hand_on_at, Heard::Silence),
        };
        match timeout_at(until, next).await {
            Ok(heard) => heard.map_or(Heard::BodyEnd, Heard::Batch),
            Err(_) => otherwise,
        }
    }

    fn read(&mut self, batch: Vec<Result<Event, SseError>>) -> Result<(), ModelError> {
        // All of a batch came at once, and the clock costs as much as reading an event.
        let now = Instant::now();
        for event in batch {
            self.spoken = true;
            match event {
                Ok(event) => {
                    self.heard += event.data.len();
                    self.check_values(event.data.as_bytes())?;
                    let added = self.deltas.added;
                    let progress = self.answer.event(&event, &mut self.deltas)?;
                    let added = self.deltas.added != added;
                    // A whole answer stays whole whatever follows.
                    if progress != Progress::More {
                        self.progress = progress;
                        self.whole_until.get_or_insert(now + GRACE);
                    }
                    if self.is_news(event, added) || !self.deltas.is_empty() {
                        self.quiet_until = now + self.quiet;
                    }
                    self.check_limits()?;
                }
                // What breaks after the answer is whole takes nothing from it.
                Err(_) if self.progress == Progress::Whole => self.body_ended = true,
                Err(SseError::NotEvents(body)) if !is_refusal(&body) => {
                    self.check_values(&body)?;
                    let Some(read) = self.answer.whole(&body, &mut self.deltas) else {
                        return Err(self.speaker.broken(SseError::NotEvents(body)));
                    };
                    read?;
                    self.progress = Progress::Whole;
                    self.body_ended = true;
                }
                Err(error) => return Err(self.speaker.broken(error)),
            }
            if self.at_end() {
                break;
            }
        }
        Ok(())
    }

    /// A server that goes on and on is cut off.
    fn check_limits(&self) -> Result<(), ModelError> {
        let over = if self.deltas.said > TEXT_BYTES {
            format!("more than {} MiB of text", TEXT_BYTES >> 20)
        } else if self.heard > RESPONSE_BYTES {
            format!("more than {} MiB of events", RESPONSE_BYTES >> 20)
        } else if self.answer.parts() > PARTS {
            format!("more than {PARTS} calls and other parts")
        } else if self.same > SAME_EVENTS {
            format!("the same event {SAME_EVENTS} times in a row")
        } else {
            return Ok(());
        };
        Err(self.speaker.endless(&over))
    }

    /// Values take many times their text in memory.
    fn check_values(&self, json: &[u8]) -> Result<(), ModelError> {
        if json.len() > SMALL_EVENT_BYTES && values(json) > EVENT_VALUES {
            return Err(self.speaker.endless(&format!("more than {EVENT_VALUES} values in one event")));
        }
        Ok(())
    }

    /// Whether an event is more than a sign of life: those have names of their own, or say the same again. `added`: it had a piece of
    /// the response.
    fn is_news(&mut self, event: Event, added: bool) -> bool {
        let alive = event.name.as_deref().is_some_and(|name| matches!(name, "ping" | "keepalive" | "keep-alive" | "heartbeat"));
        if alive || event.data.trim().is_empty() {
            return false;
        }
        if event.data == self.last {
            self.same += usize::from(added);
            return false;
        }
        self.same = 0;
        let ping = event.data.len() < MAX_PING_BYTES && event.data.contains("\"ping\"");
        self.last = if event.data.len() < SAME_EVENT_BYTES { event.data } else { String::new() };
        !ping
    }
}

/// A server that counts what it had kept beside its input says of both what it says of one.
fn whole(usage: Usage) -> Usage {
    let kept = usage.cache_read_tokens.saturating_add(usage.cache_write_tokens);
    let input_tokens = if kept > usage.input_tokens { usage.input_tokens.saturating_add(kept) } else { usage.input_tokens };
    Usage { input_tokens, ..usage }
}

/// A call that an answer has twice, name, arguments and all, is one call: it would be run twice.
fn without_repeats(mut content: Vec<Part>) -> Vec<Part> {
    let mut known: HashMap<CallId, Vec<ToolCall>> = HashMap::new();
    content.retain(|part| {
        let Part::ToolCall(call) = part else { return true };
        if call.tool_call_id.as_str().is_empty() {
            return true;
        }
        let alike = known.entry(call.tool_call_id.clone()).or_default();
        let is_new = !alike.contains(call);
        if is_new {
            alike.push(call.clone());
        }
        is_new
    });
    content
}

/// Calls that a server left without an id get one.
fn with_ids(mut content: Vec<Part>) -> Vec<Part> {
    let made_up = uuid::Uuid::new_v4().simple().to_string();
    for (at, part) in content.iter_mut().enumerate() {
        if let Part::ToolCall(call) = part
            && call.tool_call_id.as_str().trim().is_empty()
        {
            call.tool_call_id = CallId::new(format!("call_{}_{at}", &made_up[..16]));
        }
    }
    content
}

/// Reads what little is left in the background: a body that is dropped before its end closes its connection.
fn drain(mut events: Events) {
    tokio::spawn(async move {
        let _ = timeout(DRAIN, async { while events.next().await.is_some() {} }).await;
    });
}
