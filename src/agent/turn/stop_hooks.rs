//! Hooks that run when the model has finished a task; they can make the model continue.

use super::io::Effect;
use super::turn_context::TurnContext;
use crate::agent::limits::STOP_HOOK_BLOCKS;
use crate::ports::{Durability, HookOccasion};
use crate::protocol::{EventHooks, HookEvent};

/// Hooks that run when the model has finished.
#[derive(Debug, Default)]
pub(super) struct StopHooks {
    /// Ticket of the running hooks.
    pending: Option<u64>,
    /// Number of times that hooks made the model continue in this task.
    blocks: u32,
}

impl StopHooks {
    /// Resets the count when a task begins.
    pub(crate) fn begin_task(&mut self) {
        *self = Self::default();
    }

    /// Runs the hooks after this response. Returns whether there are any.
    pub(crate) fn begin(&mut self, response: String, cx: &mut TurnContext) -> bool {
        if !cx.options.hooks.contains(HookEvent::Stop) {
            return false;
        }
        if self.blocks == STOP_HOOK_BLOCKS {
            cx.out.notice(format!(
                "the hooks made the model continue {STOP_HOOK_BLOCKS} times; the task ends without running them again"
            ));
            return false;
        }
        let ticket = cx.numbers.next_ticket();
        self.pending = Some(ticket);
        let occasion = HookOccasion::Stop { response, repeated: self.blocks > 0 };
        // The response is saved before a hook takes its time.
        cx.out.commit(Durability::Process);
        cx.out.effect(Effect::Hook { ticket, occasion });
        true
    }

    /// Returns whether this ticket belongs to the running hooks.
    pub(crate) fn finish(&mut self, ticket: u64) -> bool {
        self.pending.take_if(|pending| *pending == ticket).is_some()
    }

    /// Stops the hooks. Returns whether any ran.
    pub(crate) fn cancel(&mut self, cx: &mut TurnContext) -> bool {
        let is_running = self.pending.take().is_some();
        if is_running {
            cx.out.effect(Effect::InterruptTools);
        }
        is_running
    }

    /// Returns the message with which the model continues, if a hook requests that.
    pub(crate) fn settle(&mut self, outcome: EventHooks, cx: &mut TurnContext) -> Option<String> {
        for notice in outcome.notices {
            cx.out.notice(notice);
        }
        let (hook, reason) = outcome.block?;
        self.blocks += 1;
        let context: Vec<String> =
            outcome.context.into_iter().map(|(hook, text)| format!("\n[From the hook {hook}]\n{text}")).collect();
        let context = context.concat();
        cx.out.notice(format!("the hook {hook} makes the model continue: {reason}"));
        Some(format!("[From the hook {hook}]\n{reason}{context}"))
    }
}
