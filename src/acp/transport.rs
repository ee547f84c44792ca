//! Line-based transport that carries one message per line in each direction, within limits.

use crate::text::{self, LineSplitter};
use agent_client_protocol::{RawJsonRpcMessage, TransportFrame};
use futures_channel::mpsc::UnboundedSender;
use futures_util::{Stream, StreamExt as _};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Maximum size of a line in bytes. It leaves room for several base64-encoded images and files.
const LINE_BYTES: usize = 32 << 20;
/// Maximum number of bytes to read at a time.
const PIECE_BYTES: usize = 8 << 10;
/// Maximum number of lines received but not yet parsed.
const LINES_IN: usize = 2;
/// Maximum number of messages received but not yet handled.
const MESSAGES_IN: usize = 16;
const LINES_OUT: usize = 16;
/// Interval at which to check whether more messages can be accepted.
const INTERVAL: Duration = Duration::from_millis(2);
/// Time after which an editor that has stopped reading is considered disconnected.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of updates waiting to be written.
pub(crate) const UPDATES_OUT: usize = 128;

const UPDATE: &str = "session/update";
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// Destination to which received messages are forwarded.
pub(crate) type To = UnboundedSender<TransportFrame>;

/// Receiver for input lines and sender for output, each connected to a pipe.
pub(crate) struct Pipes {
    pub lines: mpsc::Receiver<Line>,
    pub out: mpsc::Sender<String>,
    /// Completes once all output has been written or the reader has disconnected.
    pub written: tokio::sync::oneshot::Receiver<()>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Text(String),
    TooLong,
    NotUtf8,
}

/// Starts threads for reading and writing, because operations on pipes may block.
pub(crate) fn open(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Pipes {
    let (read, lines) = mpsc::channel(LINES_IN);
    let (out, mut write) = mpsc::channel::<String>(LINES_OUT);
    let (done, written) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        read_lines(input, LINE_BYTES, |line| read.blocking_send(line).is_ok());
    });
    std::thread::spawn(move || {
        let mut output = output;
        while let Some(mut line) = write.blocking_recv() {
            line.push('\n');
            if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
                break;
            }
        }
        drop(write);
        let _ = done.send(());
    });
    Pipes { lines, out, written }
}

/// Reads input and passes each line to `take`, until the input ends or `take` returns `false`.
fn read_lines(mut input: impl Read, max_bytes: usize, mut take: impl FnMut(Line) -> bool) {
    let mut splitter = LineSplitter::new(max_bytes);
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let mut piece = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => &buffer[..count],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        while !piece.is_empty() {
            if splitter.take_line(&mut piece).is_some_and(|line| !take(line.into())) {
                return;
            }
        }
    }
    if let Some(line) = splitter.finish() {
        take(line.into());
    }
}

impl From<text::BoundedLine> for Line {
    fn from(line: text::BoundedLine) -> Self {
        match line {
            text::BoundedLine::Whole(bytes) => String::from_utf8(bytes).map_or(Self::NotUtf8, Self::Text),
            text::BoundedLine::TooLong => Self::TooLong,
        }
    }
}

/// Forwards received messages until the input ends. Invalid messages are answered with an error that does not repeat
/// their content.
pub(crate) async fn forward_messages(mut lines: mpsc::Receiver<Line>, to: To, out: mpsc::Sender<String>) -> To {
    while let Some(line) = lines.recv().await {
        let refused = match line {
            Line::Text(text) if text.trim().is_empty() => continue,
            Line::Text(text) => match TransportFrame::parse_json(&text) {
                TransportFrame::Malformed { .. } => error_response(&text),
                frame => {
                    while to.len() >= MESSAGES_IN {
                        sleep(INTERVAL).await;
                    }
                    if to.unbounded_send(frame).is_err() {
                        return to;
                    }
                    continue;
                }
            },
            Line::TooLong => {
                Some(refusal(&Value::Null, INVALID_REQUEST, &format!("the message is larger than {} MB", LINE_BYTES >> 20)))
            }
            Line::NotUtf8 => Some(refusal(&Value::Null, PARSE_ERROR, "the message is not UTF-8 text")),
        };
        if let Some(refused) = refused
            && out.send(refused).await.is_err()
        {
            return to;
        }
    }
    to
}

/// Returns the error response to an invalid message. Returns `None` if the message is itself a response, because two
/// programs could otherwise exchange errors forever.
fn error_response(text: &str) -> Option<String> {
    match serde_json::from_str::<Value>(text) {
        Err(_) => Some(refusal(&Value::Null, PARSE_ERROR, "the line is not JSON; expected one JSON-RPC message per line")),
        Ok(value) if value.get("method").is_none() && (value.get("result").is_some() || value.get("error").is_some()) => None,
        Ok(value) => {
            let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or(Value::Null);
            Some(refusal(&id, INVALID_REQUEST, "not a JSON-RPC 2.0 request, notification or response"))
        }
    }
}

fn refusal(id: &Value, code: i32, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
}

/// Writes messages until there are no more or the reader disconnects.
pub(crate) async fn write_messages(
    mut from: impl Stream<Item = TransportFrame> + Unpin,
    out: mpsc::Sender<String>,
    room: Arc<Semaphore>,
    gone: CancellationToken,
) {
    while let Some(frame) = from.next().await {
        let is_update = matches!(
            &frame,
            TransportFrame::Single(RawJsonRpcMessage::Notification(notification)) if &*notification.method == UPDATE
        );
        let Ok(line) = frame.to_json() else { continue };
        if !matches!(timeout(TIMEOUT, out.send(line)).await, Ok(Ok(()))) {
            break;
        }
        if is_update {
            room.add_permits(1);
        }
    }
    // Wake tasks that wait for capacity. They receive an error.
    room.close();
    gone.cancel();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_invalid_lines_are_reported_and_reading_continues() {
        let text = [b"one\n\n".as_slice(), &[b'x'; 40], b"\n\xff\xfe\nlast"].concat();
        let mut lines = Vec::new();
        read_lines(&text[..], 10, |line| {
            lines.push(line);
            true
        });
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(lines, [text("one"), text(""), Line::TooLong, Line::NotUtf8, text("last")]);
    }

    #[test]
    fn invalid_messages_are_answered_with_their_id_and_without_their_content() {
        let code = |text: &str| {
            let said: Value = serde_json::from_str(&error_response(text).unwrap()).unwrap();
            assert!(!said.to_string().contains("secret"), "{said}");
            (said["id"].clone(), said["error"]["code"].as_i64().unwrap())
        };
        assert_eq!(code("{secret"), (Value::Null, -32700));
        assert_eq!(code(r#"[{"secret": 1}]"#), (Value::Null, -32600));
        assert_eq!(code(r#"{"id": 7, "method": 3, "x": "secret"}"#), (json!(7), -32600));
        assert_eq!(error_response(r#"{"id": 7, "result": 1, "error": 2}"#), None);
    }
}
