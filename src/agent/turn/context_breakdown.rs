//! Breakdown of the context window's content for the user.

use super::super::context::{TokenCounts, estimate_tokens, image_tokens, images, part_bytes, tool_tokens};
use super::super::limits::MESSAGE_OVERHEAD_TOKENS;
use super::super::thread::Thread;
use super::options::AgentOptions;
use crate::protocol::{ContextShare, Message, Part, Role};

/// Heading that introduces instructions in the system prompt.
const INSTRUCTIONS: &str = "\n## Instructions from ";

/// Estimated number of tokens, and number of items.
#[derive(Default, Clone, Copy)]
struct Sum {
    tokens: u64,
    count: u64,
}

impl Sum {
    fn add(&mut self, tokens: u64) {
        self.tokens += tokens;
        self.count += 1;
    }
}

#[derive(Default)]
struct Sums {
    summary: Sum,
    said: Sum,
    answers: Sum,
    reasoning: Sum,
    calls: Sum,
    results: Sum,
    images: Sum,
}

impl Sums {
    fn add_message(&mut self, message: &Message) {
        let overhead = match message.role {
            Role::User => &mut self.said,
            Role::Assistant => &mut self.answers,
            Role::Tool => &mut self.results,
        };
        overhead.tokens += MESSAGE_OVERHEAD_TOKENS;
        if message.role == Role::User {
            overhead.count += 1;
        }
        for part in &message.content {
            let tokens = estimate_tokens(part_bytes(part));
            match part {
                Part::Text { .. } if message.role == Role::Assistant => self.answers.add(tokens),
                Part::Text { .. } => self.said.tokens += tokens,
                Part::Reasoning { .. } => self.reasoning.add(tokens),
                Part::ToolCall(_) => self.calls.add(tokens),
                Part::ToolResult(_) => self.results.add(tokens),
                Part::Image(_) => {}
            }
            for _ in images(part) {
                self.images.count += 1;
            }
            self.images.tokens += image_tokens(part);
        }
    }
}

/// Returns how the context window is shared between kinds of content. Empty shares are omitted.
pub(super) fn shares(thread: &Thread, counting: &TokenCounts, options: &AgentOptions) -> Vec<ContextShare> {
    let mut sums = Sums::default();
    let mut messages = thread.messages().iter();
    if let Some(summary) = thread.summary() {
        sums.summary.add(summary.token_count);
        messages.next();
    }
    messages.for_each(|message| sums.add_message(message));
    let (own, instructions) = options.system.split_once(INSTRUCTIONS).unwrap_or((&options.system, ""));
    let files = instructions.matches(INSTRUCTIONS).count() as u64 + u64::from(!instructions.is_empty());
    let share = |share: &str, sum: Sum| ContextShare {
        name: share.to_owned(),
        tokens: counting.to_model_tokens(&options.model.name, sum.tokens),
        count: sum.count,
    };
    let tools = Sum { tokens: tool_tokens(&options.tools.definitions), count: options.tools.definitions.len() as u64 };
    let shares = [
        ("system prompt", Sum { tokens: estimate_tokens(own.len()), count: 1 }),
        ("instructions", Sum { tokens: estimate_tokens(instructions.len()), count: files }),
        ("tools", tools),
        ("summary", sums.summary),
        ("your messages", sums.said),
        ("responses", sums.answers),
        ("reasoning", sums.reasoning),
        ("tool calls", sums.calls),
        ("tool results", sums.results),
        ("images", sums.images),
    ];
    shares.into_iter().filter(|(_, sum)| sum.tokens > 0).map(|(name, sum)| share(name, sum)).collect()
}
