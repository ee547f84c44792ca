//! Reading of a program's output line by line, with limits on length and nesting.

use super::prune;
use crate::mcp::limits::{MESSAGE_BYTES, MESSAGE_DEPTH};
use crate::text::{BoundedLine, LineSplitter};
use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

/// Reader that returns only complete lines. A line that is too long breaks the connection, because there is no telling
/// where the next message starts.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    splitter: LineSplitter,
    /// Message being read, including its line break.
    line: Vec<u8>,
    /// Number of bytes of the complete line that have already been returned. `None` while the line is incomplete.
    handed: Option<usize>,
    /// Callback that is passed the reason when the program is cut off.
    cut_off: Box<dyn Fn(&str) + Send>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R, cut_off: impl Fn(&str) + Send + 'static) -> Self {
        let from = BufReader::with_capacity(64 * 1024, from);
        let splitter = LineSplitter::new(MESSAGE_BYTES);
        Self { from, splitter, line: Vec::new(), handed: None, cut_off: Box::new(cut_off) }
    }

    fn poll_line(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let found = ready!(Pin::new(&mut self.from).poll_fill_buf(cx))?;
            if found.is_empty() {
                // A partial line is not a message.
                self.line.clear();
                return Poll::Ready(Ok(()));
            }
            let mut rest = found;
            let line = self.splitter.take_line(&mut rest);
            let taken = found.len() - rest.len();
            Pin::new(&mut self.from).consume(taken);
            if self.splitter.is_too_long() || line == Some(BoundedLine::TooLong) {
                let reason =
                    format!("the server sent a line of more than {} MB and was disconnected", MESSAGE_BYTES / (1024 * 1024));
                (self.cut_off)(&reason);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, reason)));
            }
            // Skip greetings and log lines between messages.
            let Some(BoundedLine::Whole(line)) = line.filter(is_message) else { continue };
            self.line = line;
            if let Cow::Owned(text) = String::from_utf8_lossy(&self.line) {
                self.line = text.into_bytes();
            }
            if let Cow::Owned(shallow) = prune(&self.line, MESSAGE_DEPTH) {
                self.line = shallow;
            }
            self.line.push(b'\n');
            return Poll::Ready(Ok(()));
        }
    }
}

fn is_message(line: &BoundedLine) -> bool {
    matches!(line, BoundedLine::Whole(bytes) if bytes.trim_ascii_start().starts_with(b"{"))
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let handed = if let Some(handed) = this.handed {
            handed
        } else {
            ready!(this.poll_line(cx))?;
            0
        };
        let count = into.remaining().min(this.line.len() - handed);
        into.put_slice(&this.line[handed..handed + count]);
        this.handed = Some(handed + count);
        if handed + count == this.line.len() {
            this.line = Vec::new();
            this.handed = None;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    async fn read(text: &[u8], limit: usize) -> (Vec<u8>, Option<io::Error>) {
        let mut lines = Lines::new(text, |_| {});
        lines.splitter = LineSplitter::new(limit);
        let mut all = Vec::new();
        let error = lines.read_to_end(&mut all).await.err();
        (all, error)
    }

    #[tokio::test]
    async fn complete_messages_pass_unchanged_and_other_or_partial_lines_are_dropped() {
        let (all, error) = read(b"ready!\n{\"a\":1}\n\n[]\n {\"b\":2}\n{\"half\"", 100).await;
        assert_eq!((all.as_slice(), error.is_none()), (b"{\"a\":1}\n {\"b\":2}\n".as_slice(), true));
    }

    #[tokio::test]
    async fn an_unterminated_line_is_an_error_and_is_not_buffered() {
        let (all, error) = read(&[b'x'; 5000], 1000).await;
        assert!(all.is_empty() && error.is_some());
    }
}
