//! Sends the output of a running command as progress notifications. The output is redacted, and the rate is limited by
//! how fast the client reads.

use crate::policy::redact::{Redactor, Stream};
use crate::text::clean;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Minimum interval between two notifications.
const PAUSE: Duration = Duration::from_millis(250);
/// Maximum size, in bytes, of the text in a notification. The text is the end of the output produced since the last
/// notification.
const MESSAGE_BYTES: usize = 2 << 10;

/// Sends progress notifications until the command closes its output or the client disconnects. The last output is part
/// of the call's result.
pub(crate) async fn send_progress(
    mut chunks: mpsc::Receiver<String>,
    redactor: Arc<Redactor>,
    peer: Peer<RoleServer>,
    token: ProgressToken,
) {
    let mut stream = Stream::new(redactor);
    let (mut printed, mut since) = (0_u64, String::new());
    let mut next = Instant::now();
    loop {
        tokio::select! {
            chunk = chunks.recv() => match chunk {
                Some(chunk) => {
                    printed += chunk.len() as u64;
                    since.push_str(&stream.push(&chunk));
                    keep_end(&mut since);
                }
                None => return,
            },
            () = sleep_until(next), if !since.trim().is_empty() => {
                let message = clean(&std::mem::take(&mut since)).trim_end().to_owned();
                let told = ProgressNotificationParam::new(token.clone(), printed as f64).with_message(message);
                if peer.notify_progress(told).await.is_err() {
                    return;
                }
                next = Instant::now() + PAUSE;
            }
        }
    }
}

fn keep_end(text: &mut String) {
    if let Some(over) = text.len().checked_sub(MESSAGE_BYTES) {
        let from = (over..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        text.drain(..from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_progress_messages_keep_their_end_at_a_character_boundary() {
        let mut text = "ä".repeat(MESSAGE_BYTES);
        text.push('z');
        keep_end(&mut text);
        assert!(text.len() <= MESSAGE_BYTES && text.ends_with("äz"), "{} bytes", text.len());
    }
}
