//! Parsing of a response body into server-sent events. If the body contains something else, it is returned in an error.

use super::limits::{EVENT_BYTES, OTHER_BYTES};
use crate::sys::http::HttpError;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use sse_stream::SseByteStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Server-sent event that contains data.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SseEvent {
    pub name: Option<String>,
    pub data: String,
    /// Whether the body ended before this event did, in which case the event may be incomplete.
    pub unfinished: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SseError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("the response is not an event stream")]
    NotEvents(Bytes),
    #[error("an event in the response is larger than {} MiB", EVENT_BYTES >> 20)]
    TooLarge,
    #[error("the response is damaged: a checksum or a length is wrong")]
    Damaged,
    #[error("the response is not UTF-8")]
    NotText,
}

pub(super) type Events = BoxStream<'static, Result<SseEvent, SseError>>;

/// Decodes `body` into events. The last event need not be terminated by a blank line.
pub(super) fn events(body: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static) -> Events {
    stream::once(async move {
        // If the body ends before the first event, the decoder polls the body again after its end.
        let mut body = body.fuse().boxed();
        match look_ahead(&mut body).await {
            Ok(head) => frames(head, body),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    })
    .flatten()
    .boxed()
}

/// Reads until it is clear from the first line whether the body is an event stream.
async fn look_ahead(body: &mut BoxStream<'static, Result<Bytes, HttpError>>) -> Result<Bytes, SseError> {
    let mut head = Vec::new();
    loop {
        match first_line(&head) {
            FirstLine::Event => return Ok(head.into()),
            // A response without streaming is processed only as a whole.
            FirstLine::Other if is_json(&head) => match body.next().await {
                Some(Ok(_)) if head.len() > EVENT_BYTES => return Err(SseError::TooLarge),
                Some(Ok(bytes)) => head.extend_from_slice(&bytes),
                Some(Err(error)) => return Err(error.into()),
                None => return Err(SseError::NotEvents(head.into())),
            },
            FirstLine::Other if head.len() < OTHER_BYTES => match body.next().await {
                Some(Ok(bytes)) => head.extend_from_slice(&bytes),
                Some(Err(_)) | None => return Err(SseError::NotEvents(head.into())),
            },
            FirstLine::Other => {
                head.truncate(OTHER_BYTES);
                return Err(SseError::NotEvents(head.into()));
            }
            FirstLine::Unknown if head.len() > OTHER_BYTES => return Err(SseError::NotEvents(head.into())),
            FirstLine::Unknown => match body.next().await {
                Some(Ok(bytes)) => {
                    drop_blank_lines(&mut head);
                    head.extend_from_slice(&bytes);
                }
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(head.into()),
            },
        }
    }
}

/// Removes blank lines, which some servers send for a long time before the first event. An incomplete line is kept,
/// because spaces in front of a field name change its meaning. The last line break is also kept, so a byte order mark
/// that follows it is not mistaken for one at the start of the body.
fn drop_blank_lines(head: &mut Vec<u8>) {
    let line_end = head.iter().rposition(|byte| matches!(byte, b'\r' | b'\n'));
    if let Some(end) = line_end.filter(|_| head.trim_ascii().is_empty()) {
        head.drain(..end);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum FirstLine {
    Event,
    Other,
    /// Cannot be determined without more bytes.
    Unknown,
}

/// Determines whether the first line belongs to an event stream, because it is a comment or has a field name and a
/// colon, or to something else, such as HTML, JSON or plain text.
fn first_line(head: &[u8]) -> FirstLine {
    const MAX_NAME_LEN: usize = 32;
    if head.len() < BOM.len() && BOM.starts_with(head) {
        return FirstLine::Unknown;
    }
    let text = head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start();
    let name = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count();
    match text.get(name) {
        _ if name > MAX_NAME_LEN => FirstLine::Other,
        None => FirstLine::Unknown,
        Some(b':') => FirstLine::Event,
        Some(b'\r' | b'\n') if &text[..name] == b"data" => FirstLine::Event,
        Some(_) => FirstLine::Other,
    }
}

fn is_json(head: &[u8]) -> bool {
    matches!(head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start().first(), Some(b'{' | b'['))
}

fn frames(head: Bytes, body: BoxStream<'static, Result<Bytes, HttpError>>) -> Events {
    let pending = Arc::new(AtomicUsize::new(0));
    let ended = Arc::new(AtomicBool::new(false));
    let (counter, end) = (Arc::clone(&pending), Arc::clone(&ended));
    let closing = stream::once(async move {
        end.store(true, Ordering::Relaxed);
        Ok(Bytes::from_static(b"\n\n"))
    });
    let bytes = stream::iter([Ok(head)]).chain(body).chain(closing).map(move |chunk| {
        let chunk = chunk.map_err(SseError::Http)?;
        if counter.fetch_add(chunk.len(), Ordering::Relaxed) > EVENT_BYTES {
            return Err(SseError::TooLarge);
        }
        Ok(chunk)
    });
    SseByteStream::new(bytes)
        .filter_map(move |event| {
            pending.store(0, Ordering::Relaxed);
            let unfinished = ended.load(Ordering::Relaxed);
            let event = match event {
                Ok(event) => event.data.map(|data| Ok(SseEvent { name: event.event, data, unfinished })),
                Err(error) => Some(Err(reason(error))),
            };
            async move { event }
        })
        .boxed()
}

fn reason(error: sse_stream::Error) -> SseError {
    match error {
        sse_stream::Error::Body(inner) => match inner.downcast::<SseError>() {
            Ok(error) => *error,
            Err(_) => SseError::NotText,
        },
        _ => SseError::NotText,
    }
}

#[cfg(test)]
mod tests;
