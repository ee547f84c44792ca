//! Binary event streams from AWS, which consist of messages with two checksums, each of which contains a model event.

use super::limits::{EVENT_BYTES, OTHER_BYTES};
use super::sse::{Events, SseError, SseEvent};
use crate::sys::http::HttpError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use serde::Deserialize;
use serde_json::json;

/// Size in bytes of the two length fields and the checksum that follows them.
const PRELUDE: usize = 12;
/// Size in bytes of a message that has neither headers nor a payload.
const FRAME: usize = 16;
const TEXT: u8 = 7;
const BYTES: u8 = 6;

/// Decodes `body` into events.
pub(super) fn events(body: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static) -> Events {
    let decoder = EventDecoder { body: body.fuse().boxed(), buffer: Vec::new(), failed: false };
    let events = stream::unfold(decoder, |mut decoder| async move { decoder.next().await.map(|event| (event, decoder)) });
    // The reader may poll the stream again after its end.
    events.fuse().boxed()
}

struct EventDecoder {
    body: BoxStream<'static, Result<Bytes, HttpError>>,
    buffer: Vec<u8>,
    failed: bool,
}

/// Result of trying to decode the next message in the buffer.
enum Step {
    Event(SseEvent),
    /// A message that is not part of the response.
    Other,
    /// The message is not completely in the buffer yet.
    Incomplete,
}

/// Values of the headers that indicate the kind of a message.
#[derive(Debug, Default, PartialEq, Eq)]
struct Kind {
    message: String,
    event: String,
    exception: String,
    error_code: String,
    error_message: String,
}

#[derive(Deserialize)]
struct Chunk {
    bytes: String,
}

#[derive(Deserialize, Default)]
struct Exception {
    #[serde(default, alias = "Message")]
    message: String,
}

impl EventDecoder {
    async fn next(&mut self) -> Option<Result<SseEvent, SseError>> {
        while !self.failed {
            match self.message() {
                Ok(Step::Event(event)) => return Some(Ok(event)),
                Ok(Step::Other) => continue,
                Ok(Step::Incomplete) => {}
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
            match self.body.next().await {
                Some(Ok(bytes)) => self.buffer.extend_from_slice(&bytes),
                Some(Err(error)) => {
                    self.failed = true;
                    return Some(Err(error.into()));
                }
                None => return self.end_error().map(Err),
            }
        }
        None
    }

    /// Takes the next complete message out of the buffer and decodes it.
    fn message(&mut self) -> Result<Step, SseError> {
        let Some(total) = number(&self.buffer, 0) else { return Ok(Step::Incomplete) };
        if self.is_other() {
            return if self.buffer.len() > OTHER_BYTES { Err(self.unexpected_error()) } else { Ok(Step::Incomplete) };
        }
        if total > EVENT_BYTES {
            return Err(SseError::TooLarge);
        }
        if total < FRAME {
            return Err(SseError::Damaged);
        }
        if self.buffer.len() < total {
            return Ok(Step::Incomplete);
        }
        let message: Vec<u8> = self.buffer.drain(..total).collect();
        Ok(read(&message)?.map_or(Step::Other, Step::Event))
    }

    /// Returns whether the body is plain text instead of messages, whose first byte is always close to zero.
    fn is_other(&self) -> bool {
        matches!(self.buffer.first(), Some(b'{' | b'[' | b'<' | b' ' | b'\n'))
    }

    fn unexpected_error(&mut self) -> SseError {
        let mut body = std::mem::take(&mut self.buffer);
        body.truncate(OTHER_BYTES);
        SseError::NotEvents(body.into())
    }

    /// Returns the error to report when the body ends. Returns `None` if the body consists of messages, even if it ends
    /// in the middle of one.
    fn end_error(&mut self) -> Option<SseError> {
        self.failed = true;
        if self.is_other() { Some(self.unexpected_error()) } else { None }
    }
}

/// Decodes a single message. Returns `None` if it is not part of the response.
fn read(message: &[u8]) -> Result<Option<SseEvent>, SseError> {
    let field = |at: usize| number(message, at).ok_or(SseError::Damaged);
    let end = message.len() - 4;
    if checksum(&message[..PRELUDE - 4]) != field(PRELUDE - 4)? || checksum(&message[..end]) != field(end)? {
        return Err(SseError::Damaged);
    }
    let payload_at = PRELUDE + field(4)?;
    let headers = message.get(PRELUDE..payload_at.min(end)).filter(|_| payload_at <= end).ok_or(SseError::Damaged)?;
    let payload = &message[payload_at..end];
    let kind = kind(headers).ok_or(SseError::Damaged)?;
    let data = match kind.message.as_str() {
        "event" if kind.event == "chunk" => {
            let chunk: Chunk = serde_json::from_slice(payload).map_err(|_| SseError::Damaged)?;
            let bytes = STANDARD.decode(chunk.bytes).map_err(|_| SseError::Damaged)?;
            String::from_utf8(bytes).map_err(|_| SseError::NotText)?
        }
        "exception" => {
            let exception: Exception = serde_json::from_slice(payload).unwrap_or_default();
            error(&kind.exception, &exception.message)
        }
        "error" => error(&kind.error_code, &kind.error_message),
        _ => return Ok(None),
    };
    Ok(Some(SseEvent { name: None, data, unfinished: false }))
}

/// Formats an error as a Messages API event.
fn error(code: &str, message: &str) -> String {
    let kind = if code == "validationException" { "invalid_request_error" } else { code };
    let message = if message.is_empty() { code } else { message };
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

/// Parses the headers that have string values and skips all others.
fn kind(mut rest: &[u8]) -> Option<Kind> {
    let mut kind = Kind::default();
    while let Some((length, after)) = rest.split_first() {
        let (name, after) = after.split_at_checked(usize::from(*length))?;
        let (value_kind, after) = after.split_first()?;
        let fixed = match *value_kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            9 => 16,
            BYTES | TEXT => {
                let (length, after) = after.split_at_checked(2)?;
                let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
                let (value, after) = after.split_at_checked(length)?;
                if *value_kind == TEXT {
                    kind.set(name, std::str::from_utf8(value).ok()?);
                }
                rest = after;
                continue;
            }
            _ => return None,
        };
        rest = after.split_at_checked(fixed)?.1;
    }
    Some(kind)
}

impl Kind {
    fn set(&mut self, name: &[u8], value: &str) {
        let field = match name {
            b":message-type" => &mut self.message,
            b":event-type" => &mut self.event,
            b":exception-type" => &mut self.exception,
            b":error-code" => &mut self.error_code,
            b":error-message" => &mut self.error_message,
            _ => return,
        };
        value.clone_into(field);
    }
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let field: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(field)).ok()
}

fn checksum(bytes: &[u8]) -> usize {
    crc32fast::hash(bytes) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a message with these headers and this payload, as AWS sends it.
    fn framed(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in headers {
            block.push(u8::try_from(name.len()).unwrap());
            block.extend_from_slice(name.as_bytes());
            block.push(TEXT);
            block.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
            block.extend_from_slice(value.as_bytes());
        }
        let word = |number: usize| u32::try_from(number).unwrap().to_be_bytes();
        let mut message = word(FRAME + block.len() + payload.len()).to_vec();
        message.extend_from_slice(&word(block.len()));
        message.extend_from_slice(&word(checksum(&message)));
        message.extend_from_slice(&block);
        message.extend_from_slice(payload);
        message.extend_from_slice(&word(checksum(&message)));
        message
    }

    /// Encodes a message that contains a model event.
    fn chunk(event: &str) -> Vec<u8> {
        let payload = json!({"bytes": STANDARD.encode(event), "p": "abcdef"}).to_string();
        let headers = [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")];
        framed(&headers, payload.as_bytes())
    }

    async fn read_all(body: Vec<u8>, piece: usize) -> Vec<Result<String, SseError>> {
        let pieces: Vec<_> = body.chunks(piece).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        events(stream::iter(pieces)).map(|event| event.map(|event| event.data)).collect().await
    }

    #[tokio::test]
    async fn events_are_decoded_from_chunks_of_any_size() {
        let other = framed(&[(":event-type", "initial-response"), (":message-type", "event")], b"{}");
        let body = [chunk("{\"a\":1}"), other, chunk("{\"b\":2}")].concat();
        for piece in [1, 7, body.len()] {
            let read = read_all(body.clone(), piece).await;
            assert_eq!(read, [Ok("{\"a\":1}".to_owned()), Ok("{\"b\":2}".to_owned())], "{piece}");
        }
    }

    #[tokio::test]
    async fn every_flipped_bit_is_detected() {
        let whole = chunk("{\"a\":1}");
        for at in 0..whole.len() {
            let mut body = whole.clone();
            body[at] ^= 1;
            let read = read_all(body, whole.len()).await;
            assert!(!matches!(read.as_slice(), [Ok(_), ..]), "byte {at}: {read:?}");
        }
    }

    #[tokio::test]
    async fn truncated_messages_produce_no_event() {
        let mut body = chunk("{\"a\":1}");
        body.pop();
        assert_eq!(read_all(body, 5).await, []);
    }

    #[tokio::test]
    async fn exceptions_are_converted_to_model_errors() {
        let exception = framed(
            &[(":exception-type", "throttlingException"), (":message-type", "exception")],
            b"{\"message\":\"Too many tokens\"}",
        );
        let error = framed(&[(":error-code", "internal"), (":error-message", "oops"), (":message-type", "error")], b"");
        let read = read_all([exception, error].concat(), 9).await;
        let expected = [
            "{\"type\":\"error\",\"error\":{\"type\":\"throttlingException\",\"message\":\"Too many tokens\"}}",
            "{\"type\":\"error\",\"error\":{\"type\":\"internal\",\"message\":\"oops\"}}",
        ];
        assert_eq!(read, expected.map(|text| Ok(text.to_owned())));
    }

    #[tokio::test]
    async fn a_body_that_is_not_an_event_stream_is_kept_for_the_error() {
        let body = b"{\"message\":\"denied\"}".to_vec();
        assert_eq!(read_all(body.clone(), 4).await, [Err(SseError::NotEvents(body.into()))]);
        let large = [0x7f, 0xff, 0xff, 0xff, 0, 0].to_vec();
        assert_eq!(read_all(large, 6).await, [Err(SseError::TooLarge)]);
    }
}
