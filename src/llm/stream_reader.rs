//! Reading of streamed responses. The first chunk is forwarded immediately, later chunks in batches, and the end again
//! without delay.

use super::arguments::enforce_limit;
use super::deltas::Deltas;
use super::error::{ErrorContext, is_refusal};
use super::limits::{EVENT_VALUES, PARTS, RESPONSE_BYTES, SAME_EVENT_BYTES, SAME_EVENTS, SMALL_EVENT_BYTES, TEXT_BYTES};
use super::opaque_parts;
use super::sse::{Events, SseError, SseEvent};
use crate::ports::{Completion, Delta, ModelError};
use crate::protocol::{CallId, Part, ToolCall, Usage, value_count};
use futures_util::StreamExt;
use futures_util::stream::ReadyChunks;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Maximum number of events to process at once if they are already available.
const BATCH: usize = 256;
/// Minimum time between batches. This groups the chunks of a fast response into few batches, without noticeably
/// delaying a slow one.
const PAUSE: Duration = Duration::from_millis(4);
/// How long to wait for the usage after a response that is complete but has no end marker.
const GRACE: Duration = Duration::from_secs(5);
/// Multiple of the idle timeout for which keep-alive events alone are tolerated. This is long enough for hidden
/// reasoning, but not unlimited.
const QUIET_IDLES: u32 = 8;
/// Size in bytes below which an event can be recognized as a ping.
const MAX_PING_BYTES: usize = 64;
/// How long to wait for the end of the body, which must be read for the connection to be reusable.
const DRAIN: Duration = Duration::from_secs(1);

/// How far a response has progressed after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    /// The response is complete, and only its usage may still follow.
    Whole,
    /// The end marker arrived.
    End,
}

/// Assembles a response from its events.
pub(super) trait ResponseAssembler: Send {
    fn event(&mut self, event: &SseEvent, deltas: &mut Deltas) -> Result<Progress, ModelError>;
    /// Returns the completed response. Called after the last event.
    fn complete(&mut self) -> Completion;
    /// Parses the body of a server that does not stream. Returns `None` if it is not a response of this API.
    fn parse_whole_body(&mut self, _body: &[u8], _deltas: &mut Deltas) -> Option<Result<(), ModelError>> {
        None
    }
    /// Returns the number of parts received so far.
    fn part_count(&self) -> usize;
    /// Returns the usage reported so far, for use if the response is cut off.
    fn usage_so_far(&self) -> Option<Usage> {
        None
    }
}

/// Receives a response.
pub(super) struct Listener {
    speaker: ErrorContext,
    batches: ReadyChunks<Events>,
    answer: Box<dyn ResponseAssembler>,
    deltas: Deltas,
    progress: Progress,
    body_ended: bool,
    hand_on_at: Instant,
    /// Maximum time for which keep-alive events may arrive without any content.
    quiet: Duration,
    quiet_until: Instant,
    /// Time until which to wait for the usage of a complete response.
    whole_until: Option<Instant>,
    /// Whether any event has arrived.
    spoken: bool,
    last: String,
    /// Number of times in a row that the last event with content has been repeated.
    same: usize,
    /// Total size in bytes of the events received so far.
    event_bytes: usize,
}

enum ReadEvent {
    Batch(Vec<Result<SseEvent, SseError>>),
    Silence,
    /// Nothing but keep-alive events arrived within the time limit.
    Mute,
    BodyEnd,
}

impl Listener {
    /// Creates a reader. `idle` is the maximum time to wait for data from the server.
    pub(crate) fn new(speaker: ErrorContext, events: Events, answer: Box<dyn ResponseAssembler>, idle: Duration) -> Self {
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
            event_bytes: 0,
        }
    }

    /// Removes the pending deltas and returns them.
    pub(crate) fn take(&mut self) -> Vec<Delta> {
        self.deltas.take()
    }

    pub(crate) fn at_end(&self) -> bool {
        self.body_ended || self.progress == Progress::End
    }

    /// Reads until there are deltas to forward or the response ends. Deltas that precede an error can still be taken.
    pub(crate) async fn listen(&mut self) -> Result<(), ModelError> {
        while !self.at_end() {
            match self.next_event().await {
                ReadEvent::Batch(batch) => self.read(batch).map_err(|error| self.with_usage(error))?,
                ReadEvent::Silence => break,
                ReadEvent::Mute => return Err(self.with_usage(self.speaker.no_content(self.quiet.as_secs()))),
                ReadEvent::BodyEnd => self.body_ended = true,
            }
            if !self.deltas.is_empty() && Instant::now() >= self.hand_on_at {
                break;
            }
        }
        self.hand_on_at = Instant::now() + PAUSE;
        Ok(())
    }

    /// Returns the complete response, or an error if it is incomplete.
    pub(crate) fn finish(mut self) -> Result<Completion, ModelError> {
        let usage = self.answer.usage_so_far().map(with_cached_tokens);
        let mut completion = self.answer.complete();
        completion.usage = with_cached_tokens(completion.usage);
        completion.content = with_ids(without_repeats(completion.content));
        enforce_limit(&mut completion.content);
        opaque_parts::mark(&mut completion.content, &self.speaker.origin());
        match self.progress {
            Progress::More if !self.spoken => Err(self.speaker.empty_body()),
            Progress::More => Err(ModelError { usage, ..self.speaker.missing_end() }),
            Progress::Whole => Ok(completion),
            Progress::End => {
                drain(self.batches.into_inner());
                Ok(completion)
            }
        }
    }

    /// Adds the usage reported so far to an error.
    fn with_usage(&self, error: ModelError) -> ModelError {
        ModelError { usage: error.usage.or_else(|| self.answer.usage_so_far()).map(with_cached_tokens), ..error }
    }

    async fn next_event(&mut self) -> ReadEvent {
        let next = self.batches.next();
        let (until, otherwise) = match (self.deltas.is_empty(), self.whole_until) {
            (true, Some(until)) => (until, ReadEvent::BodyEnd),
            (true, None) => (self.quiet_until, ReadEvent::Mute),
            (false, _) => (self.hand_on_at, ReadEvent::Silence),
        };
        match timeout_at(until, next).await {
            Ok(batch) => batch.map_or(ReadEvent::BodyEnd, ReadEvent::Batch),
            Err(_) => otherwise,
        }
    }

    fn read(&mut self, batch: Vec<Result<SseEvent, SseError>>) -> Result<(), ModelError> {
        // All events of a batch arrived together. Reading the clock for each event would cost as much as parsing the
        // event.
        let now = Instant::now();
        for event in batch {
            self.spoken = true;
            match event {
                Ok(event) => {
                    self.event_bytes += event.data.len();
                    self.check_values(event.data.as_bytes())?;
                    let added = self.deltas.added;
                    let progress = self.answer.event(&event, &mut self.deltas)?;
                    let added = self.deltas.added != added;
                    // A complete response remains complete, whatever follows it.
                    if progress != Progress::More {
                        self.progress = progress;
                        self.whole_until.get_or_insert(now + GRACE);
                    }
                    if self.is_news(event, added) || !self.deltas.is_empty() {
                        self.quiet_until = now + self.quiet;
                    }
                    self.check_limits()?;
                }
                // An error after the complete response does not affect it.
                Err(_) if self.progress == Progress::Whole => self.body_ended = true,
                Err(SseError::NotEvents(body)) if !is_refusal(&body) => {
                    self.check_values(&body)?;
                    let Some(read) = self.answer.parse_whole_body(&body, &mut self.deltas) else {
                        return Err(self.speaker.interrupted_stream(SseError::NotEvents(body)));
                    };
                    read?;
                    self.progress = Progress::Whole;
                    self.body_ended = true;
                }
                Err(error) => return Err(self.speaker.interrupted_stream(error)),
            }
            if self.at_end() {
                break;
            }
        }
        Ok(())
    }

    /// Returns an error if the server has exceeded a limit.
    fn check_limits(&self) -> Result<(), ModelError> {
        let over = if self.deltas.text_bytes > TEXT_BYTES {
            format!("more than {} MiB of text", TEXT_BYTES >> 20)
        } else if self.event_bytes > RESPONSE_BYTES {
            format!("more than {} MiB of events", RESPONSE_BYTES >> 20)
        } else if self.answer.part_count() > PARTS {
            format!("more than {PARTS} calls and other parts")
        } else if self.same > SAME_EVENTS {
            format!("the same event {SAME_EVENTS} times in a row")
        } else {
            return Ok(());
        };
        Err(self.speaker.over_limit(&over))
    }

    /// Returns an error if the JSON contains too many values, because parsed values take many times the memory of their
    /// text.
    fn check_values(&self, json: &[u8]) -> Result<(), ModelError> {
        if json.len() > SMALL_EVENT_BYTES && value_count(json) > EVENT_VALUES {
            return Err(self.speaker.over_limit(&format!("more than {EVENT_VALUES} values in one event")));
        }
        Ok(())
    }

    /// Returns whether an event is more than a keep-alive, which has a special name or repeats the previous event.
    /// `added` is whether the event contained part of the response.
    fn is_news(&mut self, event: SseEvent, added: bool) -> bool {
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

/// Corrects the usage reported by servers that do not count cached tokens as input.
fn with_cached_tokens(usage: Usage) -> Usage {
    let kept = usage.cache_read_tokens.saturating_add(usage.cache_write_tokens);
    let input_tokens = if kept > usage.input_tokens { usage.input_tokens.saturating_add(kept) } else { usage.input_tokens };
    Usage { input_tokens, ..usage }
}

/// Removes duplicate calls from a response, which would otherwise be run twice.
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

/// Assigns IDs to calls that have none.
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

/// Reads the rest of the body in the background. If it were dropped instead, the connection would be closed.
fn drain(mut events: Events) {
    tokio::spawn(async move {
        let _ = timeout(DRAIN, async { while events.next().await.is_some() {} }).await;
    });
}
