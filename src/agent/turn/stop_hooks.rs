//! Stop hooks, which run when the model has finished a task and can make it continue.

use super::io::Effect;
use super::turn_context::TurnContext;
use crate::agent::limits::STOP_HOOK_BLOCKS;
use crate::ports::{Durability, HookTrigger};
use crate::protocol::{EventHooks, HookEvent};

/// Hooks that run when the model has finished.
#[derive(Debug, Default)]
pub(super) struct StopHooks {
    /// Ticket of the hooks that are currently running.
    pending: Option<u64>,
    /// Number of times that hooks have made the model continue in this task.
    blocks: u32,
}

/// Input to the stop hooks.
#[derive(Debug)]
pub(super) enum StopHookInput {
    TaskBegun,
    /// The model has finished with this response.
    Finished {
        response: String,
    },
    /// The hooks have run.
    Ran(EventHooks),
    Cancelled,
}

/// Output of the stop hooks.
#[derive(Debug)]
pub(super) enum StopHookOutput {
    /// Hooks are running. The task ends afterwards unless a hook makes it continue.
    Running,
    /// The model must continue with this message.
    Continued(String),
    /// The running hooks were stopped.
    Stopped,
}

impl StopHooks {
    /// Handles an input. If this returns `None`, the task can end.
    pub(crate) fn handle(&mut self, input: StopHookInput, cx: &mut TurnContext) -> Option<StopHookOutput> {
        match input {
            StopHookInput::TaskBegun => {
                *self = Self::default();
                None
            }
            StopHookInput::Finished { response } => self.begin(response, cx).then_some(StopHookOutput::Running),
            StopHookInput::Ran(outcome) => {
                self.pending = None;
                self.settle(outcome, cx).map(StopHookOutput::Continued)
            }
            StopHookInput::Cancelled => self.cancel(cx).then_some(StopHookOutput::Stopped),
        }
    }

    /// Returns whether a ticket belongs to the running hooks.
    pub(crate) fn are_pending(&self, ticket: u64) -> bool {
        self.pending == Some(ticket)
    }

    /// Starts the hooks for this response. Returns whether any are running.
    fn begin(&mut self, response: String, cx: &mut TurnContext) -> bool {
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
        let occasion = HookTrigger::Stop { response, repeated: self.blocks > 0 };
        // The response is saved before the hooks run, because they may take a long time.
        cx.out.commit(Durability::Process);
        cx.out.effect(Effect::Hook { ticket, occasion });
        true
    }

    /// Stops the hooks. Returns whether any were running.
    fn cancel(&mut self, cx: &mut TurnContext) -> bool {
        let is_running = self.pending.take().is_some();
        if is_running {
            cx.out.effect(Effect::InterruptTools);
        }
        is_running
    }

    /// Returns the message with which the model must continue, if a hook requests this.
    fn settle(&mut self, outcome: EventHooks, cx: &mut TurnContext) -> Option<String> {
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
