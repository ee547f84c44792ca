//! Prompts, from the user's message to the start of their task. They are queued, checked by hooks, and joined with
//! the content of the files they mention.

use super::io::InputTime;
use super::mentions::MentionReader;
use super::prompt_hooks::{PromptHooks, PromptVerdict};
use super::prompt_queue::PromptQueue;
use super::turn_context::TurnContext;
use crate::ports::Plan;
use crate::protocol::{EventHooks, Failure, Part, QueuedMessage, ToolError, ToolResult};

/// A session's prompts that have not become tasks yet.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    queue: PromptQueue,
    hooks: PromptHooks,
    mentions: MentionReader,
}

/// Input to the prompts.
#[derive(Debug)]
pub(super) enum PromptInput {
    /// The user sent a message. A steering message waits for the next step, and any other message for the end of the
    /// task.
    Queued {
        text: String,
        steer: bool,
    },
    /// The user edited a queued message.
    Edited {
        id: u64,
        text: String,
    },
    /// A prompt is to become a task once its hooks have run and the files that it mentions have been read.
    Begun {
        text: String,
    },
    /// The next queued message is to become a task.
    NextDue,
    /// The hooks with this ticket have run.
    Hooked {
        ticket: u64,
        outcome: EventHooks,
    },
    MentionsPlanned {
        ticket: u64,
        plans: Vec<Result<Plan, ToolError>>,
    },
    MentionsRead {
        ticket: u64,
        results: Vec<ToolResult>,
    },
    /// Queued messages no longer steer a task.
    SteeringEnded,
    /// A message cannot be sent and is returned to the draft.
    Returned {
        text: String,
    },
    /// The user stopped the work and does not want the queued messages to run.
    AllReturned,
    /// The preparation of a prompt is to be stopped.
    Cancelled,
    /// The journal contains the queue.
    QueueRestored(Vec<QueuedMessage>),
}

/// Output of the prompts.
#[derive(Debug)]
pub(super) enum PromptOutput {
    /// A task with this prompt can start. `attached` is content shown to the model together with the prompt.
    Ready { text: String, attached: Vec<Part> },
    /// The user removed the prompt, so the next one can start.
    Removed,
    /// No messages are queued.
    NoneQueued,
    /// A hook blocked the prompt.
    Blocked { hook: String, reason: String, failure: Failure },
    /// The preparation of a prompt was stopped.
    Cancelled,
}

impl Prompts {
    /// Handles an input.
    pub(crate) fn handle(&mut self, input: PromptInput, cx: &mut TurnContext, at: InputTime) -> Option<PromptOutput> {
        match input {
            PromptInput::Queued { text, steer } => self.queue.add(text, steer, &mut cx.out),
            PromptInput::Edited { id, text } => self.queue.edit(id, text, &mut cx.out),
            PromptInput::Begun { text } => return self.begin(text, cx, at),
            PromptInput::NextDue => {
                return match self.queue.take_next(&mut cx.out) {
                    Some(text) => self.begin(text, cx, at),
                    None => Some(PromptOutput::NoneQueued),
                };
            }
            PromptInput::Hooked { ticket, outcome } => return self.on_hooked(ticket, outcome, cx, at),
            PromptInput::MentionsPlanned { ticket, plans } => return self.on_mentions_planned(ticket, plans, cx, at),
            PromptInput::MentionsRead { ticket, results } => return self.on_mentions_read(ticket, results, cx, at),
            PromptInput::SteeringEnded => self.queue.stop_steering(&mut cx.out),
            PromptInput::Returned { text } => self.queue.return_to_draft(text, &mut cx.out),
            PromptInput::AllReturned => self.queue.return_all_to_draft(&mut cx.out),
            PromptInput::Cancelled => {
                let was_preparing = self.hooks.cancel(cx) || self.mentions.cancel();
                return was_preparing.then_some(PromptOutput::Cancelled);
            }
            PromptInput::QueueRestored(prompts) => self.queue.restore(prompts),
        }
        None
    }

    /// Removes all steering messages and returns them joined into one.
    pub(crate) fn poll_steering(&mut self, cx: &mut TurnContext) -> Option<String> {
        self.queue.take_steering(&mut cx.out)
    }

    /// Removes and returns the context that hooks added to the prompt that is now starting.
    pub(crate) fn poll_context(&mut self) -> Vec<Part> {
        self.hooks.take_context()
    }

    /// Sets the servers whose resources prompts may mention.
    pub(crate) fn set_servers(&mut self, names: Vec<String>) {
        self.mentions.set_servers(names);
    }

    pub(crate) fn queue(&self) -> &PromptQueue {
        &self.queue
    }

    /// Returns whether a prompt is waiting for its hooks or for the files that it mentions.
    pub(crate) fn is_preparing(&self) -> bool {
        self.mentions.is_reading() || self.hooks.is_running()
    }

    fn begin(&mut self, text: String, cx: &mut TurnContext, at: InputTime) -> Option<PromptOutput> {
        if self.hooks.run_before_prompt(cx) {
            let id = self.queue.add_first(text.clone(), &mut cx.out);
            self.hooks.begin(id, text, cx);
            return None;
        }
        self.read_mentions(text, cx, at)
    }

    /// Continues once a prompt's hooks have run, unless the prompt was removed in the meantime.
    fn on_hooked(&mut self, ticket: u64, outcome: EventHooks, cx: &mut TurnContext, at: InputTime) -> Option<PromptOutput> {
        let hooked = self.hooks.finish(ticket)?;
        let Some(text) = self.queue.take(hooked.id, &mut cx.out) else { return Some(PromptOutput::Removed) };
        if text != hooked.text {
            // The user edited the text in the meantime.
            return self.begin(text, cx, at);
        }
        match self.hooks.settle(outcome, cx) {
            PromptVerdict::Start => self.read_mentions(text, cx, at),
            PromptVerdict::Block { hook, reason, failure } => {
                self.queue.return_to_draft(text, &mut cx.out);
                Some(PromptOutput::Blocked { hook, reason, failure })
            }
        }
    }

    fn read_mentions(&mut self, text: String, cx: &mut TurnContext, at: InputTime) -> Option<PromptOutput> {
        let named = self.mentions.find(&text);
        if named.is_empty() {
            return Some(PromptOutput::Ready { text, attached: Vec::new() });
        }
        let id = self.queue.add_first(text, &mut cx.out);
        if self.mentions.begin(id, named, &mut cx.out) {
            return None;
        }
        self.on_mentions_planned(id, Vec::new(), cx, at)
    }

    fn on_mentions_planned(
        &mut self,
        ticket: u64,
        plans: Vec<Result<Plan, ToolError>>,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Option<PromptOutput> {
        let is_empty = self.mentions.on_plans(ticket, plans, cx, at);
        if is_empty { self.on_mentions_read(ticket, Vec::new(), cx, at) } else { None }
    }

    /// Continues with the content of the mentioned files, unless the user removed the prompt in the meantime.
    fn on_mentions_read(
        &mut self,
        ticket: u64,
        results: Vec<ToolResult>,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Option<PromptOutput> {
        let prompt = self.mentions.finish(ticket)?;
        let Some(text) = self.queue.take(ticket, &mut cx.out) else { return Some(PromptOutput::Removed) };
        if !prompt.has_mentions(&self.mentions.find(&text)) {
            // The user edited the text in the meantime, and it now mentions other files.
            return self.begin(text, cx, at);
        }
        let attached = prompt.attachments(results, cx);
        Some(PromptOutput::Ready { text, attached })
    }
}
