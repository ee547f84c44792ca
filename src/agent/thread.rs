//! The thread of a session, and the part of it that fits a request.

use super::limits::{BYTES_PER_TOKEN, IMAGE_MOST_TOKENS, MESSAGE_OVERHEAD_TOKENS, PIXELS_PER_TOKEN, WINDOW_FILL_PERCENT};
use crate::protocol::{Arguments, Message, MessageId, Part, Role};
use std::sync::Arc;

/// All messages, shared with the requests made of them.
#[derive(Debug, Default)]
pub struct Thread {
    messages: Vec<Arc<Message>>,
    /// Requests start at this message; what stands before it fell out of the window.
    start: usize,
    /// Tokens from `start` on.
    tokens: u64,
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
        amended.token_count = estimate(&amended.content);
        self.tokens = self.tokens.saturating_sub(last.token_count) + amended.token_count;
        *last = Arc::new(amended);
    }

    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The messages of the next request, at most `budget` tokens of them.
    ///
    /// When they do not fit, the oldest fall out and a marker says how many. The request of the running task stays,
    /// and an answer is never parted from the results of its calls.
    pub fn window(&mut self, budget: u64) -> Vec<Arc<Message>> {
        if self.tokens > budget {
            self.cut(budget * WINDOW_FILL_PERCENT / 100);
        }
        if self.start == 0 {
            return self.messages.clone();
        }
        let tail = &self.messages[self.start..];
        let request = self.messages[..self.start].iter().rfind(|message| message.role == Role::User);
        let request = if tail.first().is_some_and(|message| message.role == Role::User) { None } else { request };
        let dropped = self.start - usize::from(request.is_some());
        let mut window = Vec::with_capacity(tail.len() + 1);
        let (opening, rest) = match request {
            Some(request) => (request, tail),
            None => (&tail[0], &tail[1..]),
        };
        window.push(Arc::new(marked(opening, dropped)));
        window.extend(rest.iter().cloned());
        window
    }

    /// Moves `start` so that at most `goal` tokens follow; it stands on a prompt or an answer, never on results.
    fn cut(&mut self, goal: u64) {
        let last = self.messages.len().saturating_sub(1);
        let mut tokens = self.tokens;
        let mut start = self.start;
        while start < last && (tokens > goal || self.messages[start].role == Role::Tool) {
            tokens -= self.messages[start].token_count;
            start += 1;
        }
        while start > self.start && self.messages[start].role == Role::Tool {
            start -= 1;
            tokens += self.messages[start].token_count;
        }
        self.start = start;
        self.tokens = tokens;
    }
}

/// The opening message of a cut thread, with the marker before its own text.
fn marked(message: &Message, dropped: usize) -> Message {
    let mut content = vec![Part::Text { text: format!("[Earlier conversation truncated — {dropped} messages removed]") }];
    content.extend(message.content.iter().cloned());
    // Another id: what providers keep by id must not mistake it for the unmarked one.
    let message_id = MessageId::new(format!("{}+{dropped}", message.message_id));
    Message { message_id, content, ..message.clone() }
}

/// Tokens a message is taken to cost until a provider counts.
pub fn estimate(content: &[Part]) -> u64 {
    let bytes: usize = content
        .iter()
        .map(|part| match part {
            Part::Text { text } | Part::Reasoning { text, .. } => text.len(),
            Part::ToolCall(call) => {
                call.tool_name.len()
                    + match &call.arguments {
                        Arguments::Object(map) => map
                            .iter()
                            .map(|(key, value)| key.len() + 4 + value.as_str().map_or_else(|| value.to_string().len(), str::len))
                            .sum(),
                        Arguments::Malformed(text) => text.len(),
                    }
            }
            Part::ToolResult(result) => {
                result.output_text.len() + result.error.as_ref().map_or(0, |error| error.message.len() + 20)
            }
            Part::Image(_) => 0,
        })
        .sum();
    let images = content.iter().flat_map(|part| match part {
        Part::ToolResult(result) => result.images.as_slice(),
        Part::Image(image) => std::slice::from_ref(image),
        Part::Text { .. } | Part::Reasoning { .. } | Part::ToolCall(_) => &[],
    });
    let pixels = images.map(|image| u64::from(image.width) * u64::from(image.height));
    let of_images: u64 = pixels.map(|pixels| (pixels / PIXELS_PER_TOKEN).min(IMAGE_MOST_TOKENS)).sum();
    (bytes / BYTES_PER_TOKEN) as u64 + of_images + MESSAGE_OVERHEAD_TOKENS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::TaskId;

    fn thread(roles: &[(Role, u64)]) -> Thread {
        let mut thread = Thread::default();
        for (index, (role, token_count)) in roles.iter().enumerate() {
            thread.push(Message {
                message_id: MessageId::new(format!("msg_{index}")),
                role: *role,
                content: vec![Part::Text { text: format!("{index}") }],
                token_count: *token_count,
                task_id: TaskId::new("task_001"),
                step_id: None,
                timestamp: jiff::Timestamp::UNIX_EPOCH,
            });
        }
        thread
    }

    fn window(thread: &mut Thread, budget: u64) -> Vec<String> {
        thread.window(budget).iter().map(|message| message.text()).collect()
    }

    use Role::{Assistant, Tool, User};

    #[test]
    fn an_image_costs_by_its_size_and_only_so_much() {
        let image = |width, height| crate::protocol::Image {
            uri: "artifact:1".to_owned(),
            media_type: "image/png".to_owned(),
            width,
            height,
            bytes: 1,
        };
        let result = |images| {
            let result = crate::protocol::ToolResult::succeeded(crate::protocol::CallId::new("c"), "ReadFile", "");
            estimate(&[Part::ToolResult(crate::protocol::ToolResult { images, ..result })])
        };
        assert_eq!(result(vec![image(750, 2)]) - result(Vec::new()), 2);
        assert_eq!(result(vec![image(8_000, 8_000), image(75, 10)]) - result(Vec::new()), IMAGE_MOST_TOKENS + 1);
    }

    #[test]
    fn a_thread_that_fits_is_sent_whole() {
        let mut thread = thread(&[(User, 10), (Assistant, 10), (Tool, 10), (Assistant, 10)]);
        assert_eq!(window(&mut thread, 100), ["0", "1", "2", "3"]);
    }

    #[test]
    fn the_oldest_fall_out_but_the_request_of_the_task_stays() {
        let mut thread = thread(&[(User, 10), (Assistant, 40), (Tool, 40), (Assistant, 10), (Tool, 10), (Assistant, 5)]);
        assert_eq!(window(&mut thread, 60), ["[Earlier conversation truncated — 2 messages removed]0", "3", "4", "5"]);
    }

    #[test]
    fn an_answer_is_never_parted_from_its_results() {
        for budget in 1..140 {
            let mut thread = thread(&[
                (User, 10),
                (Assistant, 20),
                (Tool, 30),
                (Assistant, 20),
                (Tool, 30),
                (User, 10),
                (Assistant, 5),
                (Tool, 5),
            ]);
            let window = thread.window(budget);
            assert_eq!(window[0].role, User, "budget {budget}");
            for pair in window.windows(2) {
                assert!(pair[1].role != Tool || pair[0].role == Assistant, "budget {budget}: results without their answer");
            }
        }
    }
}
