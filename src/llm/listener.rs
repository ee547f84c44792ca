//! When what streams in is handed on: the first piece at once, the rest in portions, the end without delay.

use super::deltas::Deltas;
use super::fault::Speaker;
use super::sse::{Event, Events, SseError};
use crate::ports::{Completion, Delta, ModelError};
use crate::protocol::Usage;
use futures_util::StreamExt;
use futures_util::stream::ReadyChunks;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Events taken in one go when they are there already.
const BATCH: usize = 256;
/// Between two portions; a fast answer comes in few of them, a slow one is not held up noticeably.
const PAUSE: Duration = Duration::from_millis(4);
/// How long an answer that is whole but has no end marker is listened to, for its usage.
const GRACE: Duration = Duration::from_secs(5);
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
}

enum Heard {
    Batch(Vec<Result<Event, SseError>>),
    Silence,
    BodyEnd,
}

impl Listener {
    pub fn new(speaker: Speaker, events: Events, answer: Box<dyn Answer>) -> Self {
        Self {
            speaker,
            batches: events.ready_chunks(BATCH),
            answer,
            deltas: Deltas::default(),
            progress: Progress::More,
            body_ended: false,
            hand_on_at: Instant::now(),
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
        let usage = self.answer.usage_so_far();
        let completion = self.answer.complete();
        match self.progress {
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
        ModelError { usage: error.usage.or_else(|| self.answer.usage_so_far()), ..error }
    }

    async fn hear(&mut self) -> Heard {
        let next = self.batches.next();
        let heard = match (self.deltas.is_empty(), self.progress) {
            (true, Progress::Whole) => timeout(GRACE, next).await.unwrap_or(None),
            (true, Progress::More | Progress::End) => next.await,
            (false, _) => match timeout_at(self.hand_on_at, next).await {
                Ok(heard) => heard,
                Err(_) => return Heard::Silence,
            },
        };
        heard.map_or(Heard::BodyEnd, Heard::Batch)
    }

    fn read(&mut self, batch: Vec<Result<Event, SseError>>) -> Result<(), ModelError> {
        for event in batch {
            match event {
                Ok(event) => {
                    let now = self.answer.event(&event, &mut self.deltas)?;
                    // A whole answer stays whole whatever follows.
                    if now != Progress::More {
                        self.progress = now;
                    }
                }
                // What breaks after the answer is whole takes nothing from it.
                Err(_) if self.progress == Progress::Whole => self.body_ended = true,
                Err(error) => return Err(self.speaker.broken(error)),
            }
            if self.at_end() {
                break;
            }
        }
        Ok(())
    }
}

/// Reads what little is left in the background: a body that is dropped before its end closes its connection.
fn drain(mut events: Events) {
    tokio::spawn(async move {
        let _ = timeout(DRAIN, async { while events.next().await.is_some() {} }).await;
    });
}
