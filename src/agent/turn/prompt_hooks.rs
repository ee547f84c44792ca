//! Prompts that are waiting for their hooks, which can block a prompt or add context for the model.

use super::io::Effect;
use super::turn_context::TurnContext;
use crate::ports::HookTrigger;
use crate::protocol::{EventHooks, Failure, FailureKind, HookEvent, Part};

/// State of prompt hooks. A prompt stays in the queue until it becomes a task, so it is not lost in a crash.
#[derive(Debug, Default)]
pub(super) struct PromptHooks {
    pending: Option<PendingHooks>,
    /// Whether the session-start hooks ran with an earlier prompt and the model received their context.
    has_started: bool,
    /// Whether the hooks let the prompt start but it has not started yet.
    may_start: bool,
    /// Context that the hooks add to the next prompt.
    context: Vec<Part>,
}

/// Hooks running for a prompt.
#[derive(Debug)]
pub(super) struct PendingHooks {
    ticket: u64,
    /// ID of the queued prompt.
    pub id: u64,
    /// Text that was passed to the hooks.
    pub text: String,
}

/// The hooks' verdict on a prompt.
pub(super) enum PromptVerdict {
    Start,
    Block { hook: String, reason: String, failure: Failure },
}

impl PromptHooks {
    /// Returns whether hooks have to run before a prompt starts.
    pub(crate) fn run_before_prompt(&self, cx: &TurnContext) -> bool {
        let hooks = cx.options.hooks;
        hooks.contains(HookEvent::UserPromptSubmit) || !self.has_started && hooks.contains(HookEvent::SessionStart)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.pending.is_some()
    }

    /// Runs the hooks for the queued prompt with this ID.
    pub(crate) fn begin(&mut self, id: u64, text: String, cx: &mut TurnContext) {
        let occasion = HookTrigger::Prompt { text: text.clone(), first: !self.has_started, resumed: cx.numbers.tasks() > 0 };
        self.context.clear();
        self.may_start = false;
        let ticket = cx.numbers.next_ticket();
        self.pending = Some(PendingHooks { ticket, id, text });
        cx.out.effect(Effect::Hook { ticket, occasion });
    }

    /// Stops the hooks. Returns whether any were running.
    pub(crate) fn cancel(&mut self, cx: &mut TurnContext) -> bool {
        let is_running = self.pending.take().is_some();
        if is_running {
            cx.out.effect(Effect::InterruptTools);
        }
        is_running
    }

    /// Returns the prompt whose hooks have the given ticket, and marks those hooks as finished.
    pub(crate) fn finish(&mut self, ticket: u64) -> Option<PendingHooks> {
        self.pending.take_if(|pending| pending.ticket == ticket)
    }

    /// Applies the outcome of the hooks and returns their verdict.
    pub(crate) fn settle(&mut self, outcome: EventHooks, cx: &mut TurnContext) -> PromptVerdict {
        for notice in outcome.notices {
            cx.out.notice(notice);
        }
        if let Some((hook, reason)) = outcome.block {
            let message = format!("the hook {hook} blocked your prompt: {reason}");
            let hint = "the prompt was not sent; edit it, or change the hook";
            let failure = Failure::new(FailureKind::GuardrailBlocked, message, hint);
            return PromptVerdict::Block { hook, reason, failure };
        }
        let part = |(hook, text): (String, String)| Part::Text { text: format!("\n\n[From the hook {hook}]\n{text}") };
        self.context = outcome.context.into_iter().map(part).collect();
        self.may_start = true;
        PromptVerdict::Start
    }

    /// Removes and returns the context that hooks added to the prompt that is now starting.
    pub(crate) fn take_context(&mut self) -> Vec<Part> {
        self.has_started |= std::mem::take(&mut self.may_start);
        std::mem::take(&mut self.context)
    }
}
