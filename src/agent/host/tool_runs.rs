//! Runs calls in the background. Their outcomes become inputs for the turn machine.

use super::call_context::CallContext;
use super::call_timeout::{CallTimeout, outcome, with_timeout};
use super::nested_instructions::NestedInstructions;
use super::output_tail::OutputTail;
use crate::agent::limits::CHANNEL_DEPTH;
use crate::agent::turn::{Input, SamplingUsage};
use crate::policy::Permit;
use crate::ports::{Plan, RunContext, SavedTail};
use crate::protocol::{Action, CallId};
use std::collections::HashMap;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The session's running calls.
pub(super) struct ToolRuns {
    /// Running calls, by their index in the response.
    runs: HashMap<usize, ToolRun>,
    instructions: NestedInstructions,
}

struct ToolRun {
    id: CallId,
    /// Whether the call is a command, which can be moved to the background.
    is_command: bool,
    since: Instant,
    background: CancellationToken,
    tail: OutputTail,
}

/// Call to run.
pub(super) struct RunRequest {
    pub index: usize,
    pub plan: Plan,
    pub permit: Permit,
    pub max_bytes: usize,
    /// Token that must be cancelled before the call may start.
    pub after: Option<CancellationToken>,
}

impl ToolRuns {
    pub(crate) fn new(instructions: NestedInstructions) -> Self {
        Self { runs: HashMap::new(), instructions }
    }

    pub(crate) fn start(&mut self, context: &CallContext, request: RunRequest) {
        let RunRequest { index, plan, permit, max_bytes, after } = request;
        let (router, inputs) = (context.router(), context.inputs());
        let (redactor, instructions) = (context.redactor(), self.instructions.clone());
        let (id, name) = (plan.call.tool_call_id.clone(), plan.tool_name.clone());
        let patience = CallTimeout::for_plan(&plan);
        // When the user interrupts, file changes run to completion and all other calls end.
        let killed = if must_finish(&plan) { context.kill_token() } else { context.interrupt_token() };
        let (kill, interrupt) = (context.kill_token().child_token(), context.interrupt_token().child_token());
        let stop = kill.clone();
        let background = CancellationToken::new();
        let (since, is_command) = (Instant::now(), plan.timeout_seconds > 0);
        let tail = OutputTail::new();
        self.runs.insert(index, ToolRun { id: id.clone(), is_command, since, background: background.clone(), tail });
        let relay = context.output(index, stop.clone());
        let progress = context.progress(id.clone(), stop.clone());
        let (hooks, hooked, stopped) = (router.hooks(), plan.call.clone(), context.interrupt_token());
        let ran_before = plan.hook_runs.is_some();
        tokio::spawn(async move {
            let (output, chunks) = mpsc::channel(CHANNEL_DEPTH);
            let work = tokio::spawn(async move {
                let actions = plan.actions.clone();
                if let Some(after) = after {
                    tokio::select! {
                        () = after.cancelled() => {}
                        () = kill.cancelled() => {}
                    }
                }
                let context = RunContext { tool_call_id: None, output, progress, kill, interrupt, background, max_bytes };
                let result = router.run(plan, permit, context).await;
                instructions.add(result, &actions, &redactor)
            });
            let done = async move {
                relay.forward(chunks).await;
                work.await
            };
            let done = with_timeout(done, patience, &killed, &stop).await;
            let late = stop.is_cancelled() && !killed.is_cancelled();
            // An abandoned call is signalled to end.
            stop.cancel();
            let mut result = outcome(done, (id, name), patience, late);
            if let Some(hooks) = hooks.filter(|_| result.error.is_none()) {
                result = hooks.after_call(hooked, result, (ran_before, stopped)).await;
            }
            let latency_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            if let Some(used) = result.used.take() {
                let _ = inputs.send(Input::Sampled(SamplingUsage::by_tool(&result.tool_name, *used, latency_ms))).await;
            }
            let _ = inputs.send(Input::ToolFinished { index, result, latency_ms }).await;
        });
    }

    /// Removes a call that has finished.
    pub(crate) fn remove(&mut self, index: usize) {
        self.runs.remove(&index);
    }

    /// Moves the command with the given ID to the background or, without an ID, the command that has been running
    /// longest. Returns whether there was such a command.
    pub(crate) fn move_to_background(&self, id: Option<&CallId>) -> bool {
        let with_id = |id: &CallId| self.runs.values().find(|run| run.is_command && run.id == *id);
        let longest = || {
            let is_in_front = |run: &&ToolRun| run.is_command && !run.background.is_cancelled();
            self.runs.values().filter(is_in_front).min_by_key(|run| run.since)
        };
        let run = id.map_or_else(longest, with_id);
        if let Some(run) = run {
            run.background.cancel();
        }
        run.is_some()
    }

    pub(crate) fn add_output(&mut self, index: usize, text: &str) {
        if let Some(run) = self.runs.get_mut(&index) {
            run.tail.add(text);
        }
    }

    /// Returns the time at which a command's output is next due to be saved.
    pub(crate) fn tail_due(&self) -> Option<tokio::time::Instant> {
        self.runs.values().filter(|run| run.is_command).map(|run| run.tail.due()).min()
    }

    /// Returns the latest output of the commands whose save is due, and schedules their next save.
    pub(crate) fn take_due_tails(&mut self) -> Vec<(CallId, SavedTail)> {
        let now = tokio::time::Instant::now();
        let due = self.runs.values_mut().filter(|run| run.is_command && run.tail.due() <= now);
        let tails = due.map(|run| {
            let ran_ms = u64::try_from(run.since.elapsed().as_millis()).unwrap_or(u64::MAX);
            (run.id.clone(), SavedTail { text: run.tail.take(now), ran_ms })
        });
        tails.collect()
    }

    /// Allows instructions to be delivered again. Called when the model's context no longer contains them.
    pub(crate) fn forget_instructions(&self) {
        self.instructions.forget();
    }
}

/// Returns whether the call changes files. Such a call is never interrupted halfway.
pub(super) fn must_finish(plan: &Plan) -> bool {
    let of_files = |action: &Action| matches!(action, Action::Read { .. } | Action::Write { .. } | Action::Delete { .. });
    plan.effects.is_some() || (plan.changes && plan.timeout_seconds == 0 && plan.actions.iter().all(of_files))
}
