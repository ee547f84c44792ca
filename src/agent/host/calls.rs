//! Calls of the host: planned and run in the background, with their outcomes as inputs.

use super::Host;
use super::call_timeout::{CallTimeout, in_time, outcome};
use super::output_tails::Printed;
use super::room::Room;
use crate::agent::limits::CHANNEL_DEPTH;
use crate::agent::turn::{Input, Planned};
use crate::policy::Permit;
use crate::policy::redact::{Redactor, Stream};
use crate::ports::{Plan, RunContext};
use crate::protocol::{Action, Amendment, CallId, ErrorCode, Outside, ToolCall, ToolError};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// Running calls by their index in the response.
pub(super) type Runs = HashMap<usize, Running>;

pub(super) struct Running {
    pub id: CallId,
    /// Whether the call is a command, which can move to the background.
    pub is_command: bool,
    pub since: Instant,
    pub background: CancellationToken,
    pub printed: Printed,
}

impl Host {
    /// Kills the running calls, but none that start later.
    pub(super) fn kill_tools(&mut self) {
        std::mem::replace(&mut self.kill, CancellationToken::new()).cancel();
        self.interrupt = self.kill.child_token();
    }

    /// Interrupts the running calls, except for changes of files.
    pub(super) fn interrupt_tools(&mut self) {
        std::mem::replace(&mut self.interrupt, self.kill.child_token()).cancel();
    }

    pub(super) fn plan(&self, calls: Vec<(usize, ToolCall)>) {
        let (inputs, router) = (self.inputs.clone(), self.router.clone());
        let plans = calls.into_iter().map(|(index, call)| {
            let (router, names, same) = (router.clone(), router.clone(), call.clone());
            let plan = self.planned(async move { router.plan(call).await });
            let (killed, nobody) = (self.interrupt.clone(), CancellationToken::new());
            async move {
                let plan = plan.await;
                // A plan that changes something lists everything it touches.
                let scope = if plan.as_ref().is_ok_and(|plan| plan.changes) {
                    Vec::new()
                } else {
                    let scope = tokio::spawn(async move { names.scope(same).await });
                    let scope = in_time(scope, CallTimeout::Short, &killed, &nobody).await;
                    scope.ok().and_then(Result::ok).unwrap_or_default()
                };
                Planned { index, scope, plan }
            }
        });
        let plans = futures_util::future::join_all(plans.collect::<Vec<_>>());
        tokio::spawn(async move {
            let _ = inputs.send(Input::Planned(plans.await)).await;
        });
    }

    pub(super) fn plan_opened(&self, index: usize, call: ToolCall, opens: Vec<Outside>, amendments: Vec<Amendment>) {
        let router = self.router.clone();
        self.plan_one(index, async move {
            let mut plan = if opens.is_empty() { router.plan(call).await? } else { router.plan_opened(call, opens).await? };
            for amendment in amendments {
                plan = router.amend(plan, amendment).await?;
            }
            Ok(plan)
        });
    }

    pub(super) fn amend(&self, index: usize, plan: Plan, amendment: Amendment) {
        let router = self.router.clone();
        self.plan_one(index, async move { router.amend(plan, amendment).await });
    }

    fn plan_one(&self, index: usize, work: impl Future<Output = Result<Plan, ToolError>> + Send + 'static) {
        let inputs = self.inputs.clone();
        let plan = self.planned(work);
        tokio::spawn(async move {
            let planned = Planned { index, scope: Vec::new(), plan: plan.await };
            let _ = inputs.send(Input::Planned(vec![planned])).await;
        });
    }

    /// Spawns planning. It only reads, so it is abandoned on a timeout, and a panic becomes an ordinary error.
    pub(super) fn planned<T>(&self, work: T) -> impl Future<Output = Result<Plan, ToolError>> + use<T>
    where
        T: Future<Output = Result<Plan, ToolError>> + Send + 'static,
    {
        let (killed, work) = (self.interrupt.clone(), tokio::spawn(work));
        async move {
            let planned = in_time(work, CallTimeout::Short, &killed, &CancellationToken::new()).await;
            planned.map_or_else(|up| Err(up.error()), |done| done.unwrap_or_else(unplanned))
        }
    }

    /// Removes a call from the running ones when it ends.
    pub(super) fn note_end(&mut self, input: &Input) {
        match input {
            Input::ToolFinished { index, .. } => drop(self.runs.remove(index)),
            Input::Previewed { ticket, .. } => self.previews.ended(*ticket),
            _ => {}
        }
    }

    pub(super) fn run(&mut self, index: usize, plan: Plan, permit: Permit, most_bytes: usize) {
        let (router, inputs) = (self.router.clone(), self.inputs.clone());
        let (redactor, guides, room) = (self.redactor.clone(), self.guides.clone(), self.room.clone());
        let (id, name) = (plan.call.tool_call_id.clone(), plan.tool_name.clone());
        let patience = CallTimeout::with(&plan);
        // A change of files finishes when the user interrupts; all else ends.
        let killed = if finishes(&plan) { self.kill.clone() } else { self.interrupt.clone() };
        let (kill, interrupt) = (self.kill.child_token(), self.interrupt.child_token());
        let stop = kill.clone();
        let background = CancellationToken::new();
        let (since, is_command) = (Instant::now(), plan.timeout_seconds > 0);
        let printed = Printed::new();
        // Directory access that is saved for the project is saved before the command runs again, so that later commands have it too.
        let saved = if plan.opens.is_empty() { None } else { Some(self.rules.saved()) };
        self.runs.insert(index, Running { id: id.clone(), is_command, since, background: background.clone(), printed });
        tokio::spawn(async move {
            let (output, chunks) = mpsc::channel(CHANNEL_DEPTH);
            let hidden = redactor.clone();
            let work = tokio::spawn(async move {
                let actions = plan.actions.clone();
                if let Some(saved) = saved {
                    tokio::select! {
                        () = saved.cancelled() => {}
                        () = kill.cancelled() => {}
                    }
                }
                let context = RunContext { tool_call_id: None, output, kill, interrupt, background, most_bytes };
                let result = router.run(plan, permit, context).await;
                guides.add(result, &actions, &hidden)
            });
            let told = inputs.clone();
            let stopped = stop.clone();
            let done = async move {
                tell(chunks, redactor, index, &told, (room, stopped)).await;
                work.await
            };
            let done = in_time(done, patience, &killed, &stop).await;
            let late = stop.is_cancelled() && !killed.is_cancelled();
            // An abandoned call is told to end.
            stop.cancel();
            let result = outcome(done, (id, name), patience, late);
            let latency_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            let _ = inputs.send(Input::ToolFinished { index, result, latency_ms }).await;
        });
    }
}

/// Returns whether the call changes files; such a call is never left half done.
pub(super) fn finishes(plan: &Plan) -> bool {
    let of_files = |action: &Action| matches!(action, Action::Read { .. } | Action::Write { .. } | Action::Delete { .. });
    plan.effects.is_some() || (plan.changes && plan.timeout_seconds == 0 && plan.actions.iter().all(of_files))
}

/// Forwards the output of a command, without secrets, until it ends.
pub(super) async fn tell(
    mut chunks: mpsc::Receiver<String>,
    redactor: Arc<Redactor>,
    index: usize,
    inputs: &mpsc::Sender<Input>,
    (mut room, stopped): (Room, CancellationToken),
) {
    let mut stream = Stream::new(redactor);
    while let Some(text) = chunks.recv().await {
        let text = stream.push(&text);
        if !text.is_empty() {
            tokio::select! {
                () = room.wait() => {}
                // The result does not wait for the front end.
                () = stopped.cancelled() => {}
            }
            let _ = inputs.send(Input::ToolOutput { index, text }).await;
        }
    }
    let text = stream.finish();
    if !text.is_empty() {
        let _ = inputs.send(Input::ToolOutput { index, text }).await;
    }
}

fn unplanned(error: JoinError) -> Result<Plan, ToolError> {
    tracing::error!(task = %error.id(), "a tool panicked while planning");
    Err(ToolError::new(ErrorCode::ToolExecutionFailed, "the tool crashed before it changed anything. Try another way."))
}
