//! Framing of messages, with limits on their size and rate. Each message is preceded by a header that contains its
//! length in bytes.

use super::limits::{HEADER_BYTES, MESSAGE_BYTES, RATE_BYTES, RATE_MESSAGES, RATE_PERIOD};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::time::Instant;

/// Returns a message with a header prepended.
pub(super) fn frame(body: &[u8]) -> Vec<u8> {
    let mut framed = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    framed.extend_from_slice(body);
    framed
}

/// Reads messages. After an error, it is not possible to find the start of the next message.
pub(super) struct MessageReader<R> {
    from: BufReader<R>,
    /// Start of the current rate limit period.
    since: Instant,
    bytes: usize,
    messages: usize,
}

impl<R: tokio::io::AsyncRead + Unpin> MessageReader<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from: BufReader::with_capacity(64 << 10, from), since: Instant::now(), bytes: 0, messages: 0 }
    }

    /// Reads the next message. Returns `None` at the end of the output.
    ///
    /// # Errors
    ///
    /// Returns an error if the output is not a valid message or exceeds a limit on size or rate.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        let Some(length) = read_header(&mut self.from).await? else { return Ok(None) };
        self.count(length)?;
        let mut body = Vec::new();
        let read = (&mut self.from).take(length as u64).read_to_end(&mut body).await;
        match read {
            Ok(count) if count == length => Ok(Some(body)),
            Ok(_) => Err("the output ended in the middle of a message".to_owned()),
            Err(error) => Err(format!("the output cannot be read: {error}")),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), String> {
        if self.since.elapsed() > RATE_PERIOD {
            (self.since, self.bytes, self.messages) = (Instant::now(), 0, 0);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.messages += 1;
        let seconds = RATE_PERIOD.as_secs();
        if self.bytes > RATE_BYTES {
            return Err(format!("the server sent more than {} MB in {seconds} s", RATE_BYTES >> 20));
        }
        if self.messages > RATE_MESSAGES {
            return Err(format!("the server sent more than {RATE_MESSAGES} messages in {seconds} s"));
        }
        Ok(())
    }
}

/// Reads a header. Returns the length of the message that follows, or `None` at the end of the output.
async fn read_header(from: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<usize>, String> {
    let (mut length, mut left) = (None, HEADER_BYTES);
    loop {
        let mut line = Vec::new();
        let read = (&mut *from).take(left as u64).read_until(b'\n', &mut line).await;
        let count = read.map_err(|error| format!("the output cannot be read: {error}"))?;
        if count == 0 && left == HEADER_BYTES {
            return Ok(None);
        }
        left -= count;
        if !line.ends_with(b"\n") {
            return Err(if left == 0 {
                format!("the server sent a header of more than {HEADER_BYTES} bytes")
            } else {
                "the output ended in the middle of a message".to_owned()
            });
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            return length.map(Some).ok_or_else(|| "the server sent a message without a length".to_owned());
        }
        let text = std::str::from_utf8(line).unwrap_or_default();
        let Some((name, value)) = text.split_once(':') else {
            return Err("the server wrote text that is not a message of the Language Server Protocol".to_owned());
        };
        if name.trim().eq_ignore_ascii_case("Content-Length") {
            length = match value.trim().parse::<usize>() {
                Ok(bytes) if bytes <= MESSAGE_BYTES => Some(bytes),
                Ok(_) => return Err(format!("the server sent a message of more than {} MB", MESSAGE_BYTES >> 20)),
                Err(_) => return Err("the server sent a message with an invalid length".to_owned()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> (Vec<String>, Option<String>) {
        let mut reader = MessageReader::new(bytes);
        let mut all = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(body)) => all.push(String::from_utf8_lossy(&body).into_owned()),
                Ok(None) => return (all, None),
                Err(error) => return (all, Some(error)),
            }
        }
    }

    #[tokio::test]
    async fn messages_are_read_with_any_headers_in_any_case() {
        let mut bytes = frame(b"{\"a\":1}");
        bytes.extend(b"content-length:2\r\nContent-Type: x; charset=utf-8\r\n\r\n{}");
        assert_eq!(read(&bytes).await, (vec!["{\"a\":1}".to_owned(), "{}".to_owned()], None));
    }

    #[tokio::test]
    async fn invalid_output_is_an_error_with_the_reason() {
        for (bytes, said) in [
            (b"Listening on port 1\n\n".to_vec(), "not a message"),
            (b"X: 1\r\n\r\n{}".to_vec(), "without a length"),
            (b"Content-Length: -5\r\n\r\n{}".to_vec(), "invalid length"),
            (b"Content-Length: 99999999999999999999999\r\n\r\n{}".to_vec(), "invalid length"),
            (b"Content-Length: 1000000000\r\n\r\n{}".to_vec(), "more than 4 MB"),
            (b"Content-Length: 5\r\n\r\n{}".to_vec(), "in the middle"),
            (b"Content-Le".to_vec(), "in the middle"),
            (vec![b'x'; 100_000], "header of more than 4096 bytes"),
        ] {
            let (all, error) = read(&bytes).await;
            assert!(all.is_empty() && error.as_ref().is_some_and(|error| error.contains(said)), "{said}: {error:?}");
        }
    }

    #[tokio::test]
    async fn too_many_messages_or_bytes_in_a_period_are_an_error() {
        let (all, error) = read(&frame(b"{}").repeat(RATE_MESSAGES + 10)).await;
        assert_eq!(all.len(), RATE_MESSAGES);
        assert!(error.is_some_and(|error| error.contains("10000 messages")));
        let (all, error) = read(&frame(&vec![b' '; MESSAGE_BYTES]).repeat(9)).await;
        assert_eq!(all.len(), 8);
        assert!(error.is_some_and(|error| error.contains("32 MB")));
    }
}
