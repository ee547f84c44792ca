//! The calls of the host: planned and run beside it, their outcomes brought back as inputs.

use super::Host;
use super::room::Room;
use super::tails::Printed;
use crate::agent::limits::{CHANGE_SECONDS, CHANNEL_DEPTH, KILL_GRACE_MS, READ_SECONDS};
use crate::agent::turn::Input;
use crate::policy::Permit;
use crate::policy::redact::{Redactor, Stream};
use crate::ports::{Plan, RunContext};
use crate::protocol::{Amendment, CallId, ErrorCode, Outside, ToolCall, ToolError, ToolResult};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// The calls that run, by their place in the answer.
pub(super) type Runs = HashMap<usize, Running>;

pub(super) struct Running {
    pub id: CallId,
    /// Whether it is a command, which may go on in the background.
    pub is_command: bool,
    pub since: Instant,
    pub background: CancellationToken,
    pub printed: Printed,
}

impl Host {
    /// What starts later is not killed with what runs now.
    pub(super) fn kill_tools(&mut self) {
        std::mem::replace(&mut self.kill, CancellationToken::new()).cancel();
    }

    pub(super) fn plan(&self, calls: Vec<(usize, ToolCall)>) {
        let (inputs, router) = (self.inputs.clone(), self.router.clone());
        let plans = calls.into_iter().map(|(index, call)| {
            let router = router.clone();
            let plan = self.planned(async move { router.plan(call).await });
            async move { (index, plan.await) }
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
            let _ = inputs.send(Input::Planned(vec![(index, plan.await)])).await;
        });
    }

    /// Planning only reads: it is given up where it takes too long, and a panic in it is an error like others.
    pub(super) fn planned<T>(&self, work: T) -> impl Future<Output = Result<Plan, ToolError>> + use<T>
    where
        T: Future<Output = Result<Plan, ToolError>> + Send + 'static,
    {
        let (killed, work) = (self.kill.clone(), tokio::spawn(work));
        async move {
            let planned = in_time(work, Patience::Short, &killed, &CancellationToken::new()).await;
            planned.map_or_else(|up| Err(up.error()), |done| done.unwrap_or_else(unplanned))
        }
    }

    /// What runs is known as long as it runs.
    pub(super) fn note_end(&mut self, input: &Input) {
        match input {
            Input::ToolFinished { index, .. } => drop(self.runs.remove(index)),
            Input::Previewed { ticket, .. } => self.previews.ended(*ticket),
            _ => {}
        }
    }

    pub(super) fn run(&mut self, index: usize, plan: Plan, permit: Permit) {
        let (router, inputs, killed) = (self.router.clone(), self.inputs.clone(), self.kill.clone());
        let (redactor, guides, room) = (self.redactor.clone(), self.guides.clone(), self.room.clone());
        let (id, name) = (plan.call.tool_call_id.clone(), plan.tool_name.clone());
        let patience = match (plan.changes, plan.timeout_seconds) {
            (false, _) => Patience::Short,
            (true, 0) => Patience::Long,
            (true, _) => Patience::Own,
        };
        let kill = killed.child_token();
        let stop = kill.clone();
        let background = CancellationToken::new();
        let (since, is_command) = (Instant::now(), plan.timeout_seconds > 0);
        let printed = Printed::new();
        self.runs.insert(index, Running { id: id.clone(), is_command, since, background: background.clone(), printed });
        tokio::spawn(async move {
            let (output, chunks) = mpsc::channel(CHANNEL_DEPTH);
            let hidden = redactor.clone();
            let work = tokio::spawn(async move {
                let actions = plan.actions.clone();
                let result = router.run(plan, permit, RunContext { tool_call_id: None, output, kill, background }).await;
                guides.add(result, &actions, &hidden)
            });
            let told = inputs.clone();
            let stopped = stop.clone();
            let done = async move {
                tell(chunks, redactor, index, &told, (room, stopped)).await;
                work.await
            };
            let result = outcome(in_time(done, patience, &killed, &stop).await, id, name, patience);
            let latency_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            let _ = inputs.send(Input::ToolFinished { index, result, latency_ms }).await;
        });
    }
}

/// Passes on what a command prints, without secrets, until it ends.
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
                // What it came to does not wait for who looks on.
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

/// How long a call is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It only reads, and is given up.
    Short,
    /// It changes files: it is told to stop, and its end is waited for.
    Long,
    /// It keeps its own time.
    Own,
}

/// Why a call is not waited for any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// It only reads, and took too long.
    Late,
    /// It only reads, and was stopped.
    Stopped,
    /// It was stopped, and did not end.
    Hangs,
}

impl GivenUp {
    pub(super) fn error(self) -> ToolError {
        match self {
            Self::Late => {
                let message =
                    format!("stopped after {READ_SECONDS} s; nothing was changed, ask for less at once or another place");
                ToolError::new(ErrorCode::ToolExecutionTimeout, message)
            }
            Self::Stopped => ToolError::new(ErrorCode::Cancelled, "stopped by the person; nothing was changed"),
            Self::Hangs => {
                let message = "stopped by the person, and it did not end: what it did, and whether it goes on, is not known; look before \
                               you repeat it";
                ToolError::new(ErrorCode::OutcomeUnknown, message)
            }
        }
    }
}

/// What came of the work. What only reads is given up once it takes too long, or was killed by the person. What changes something is
/// told to `stop` where it takes too long and waited for all the same; once it was killed, for a grace.
pub(super) async fn in_time<T>(
    work: impl Future<Output = T>,
    patience: Patience,
    killed: &CancellationToken,
    stop: &CancellationToken,
) -> Result<T, GivenUp> {
    let seconds = match patience {
        Patience::Short => Some(READ_SECONDS),
        Patience::Long => Some(CHANGE_SECONDS),
        Patience::Own => None,
    };
    let reads = patience == Patience::Short;
    let late = async {
        match seconds {
            Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            None => std::future::pending().await,
        }
        stop.cancel();
        if reads { GivenUp::Late } else { std::future::pending().await }
    };
    let killed = async {
        killed.cancelled().await;
        if reads {
            return GivenUp::Stopped;
        }
        tokio::time::sleep(Duration::from_millis(KILL_GRACE_MS)).await;
        GivenUp::Hangs
    };
    tokio::select! {
        biased;
        done = work => Ok(done),
        why = killed => Err(why),
        why = late => Err(why),
    }
}

/// The result of a call, or what is known of one that crashed or is not waited for any more.
pub(super) fn outcome(
    done: Result<Result<ToolResult, JoinError>, GivenUp>,
    id: CallId,
    name: String,
    patience: Patience,
) -> ToolResult {
    let error = match done {
        Ok(Ok(result)) => return result,
        Ok(Err(error)) => {
            tracing::error!(task = %error.id(), tool = name, "tool panicked");
            if patience == Patience::Short {
                ToolError::new(ErrorCode::ToolExecutionFailed, "the tool crashed; it changed nothing, do it in another way")
            } else {
                let message = "the tool crashed; whether it did anything is not known, look before you repeat it";
                ToolError::new(ErrorCode::OutcomeUnknown, message)
            }
        }
        Err(up) => {
            tracing::warn!(?up, tool = name, "a call was given up");
            up.error()
        }
    };
    ToolResult::refused(id, name, error)
}

fn unplanned(error: JoinError) -> Result<Plan, ToolError> {
    tracing::error!(task = %error.id(), "a tool panicked while it planned");
    Err(ToolError::new(ErrorCode::ToolExecutionFailed, "the tool crashed before it did anything; do it in another way"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_only_reads_is_given_up_and_what_changes_is_told_to_stop_and_waited_for() {
        let (nobody, stop) = (CancellationToken::new(), CancellationToken::new());
        let slow = || tokio::time::sleep(Duration::from_secs(10 * CHANGE_SECONDS));
        assert_eq!(in_time(slow(), Patience::Own, &nobody, &stop).await, Ok(()));
        assert!(!stop.is_cancelled());
        let stopped = async {
            stop.cancelled().await;
            2
        };
        assert_eq!(in_time(stopped, Patience::Long, &nobody, &stop).await, Ok(2));
        assert_eq!(in_time(slow(), Patience::Short, &nobody, &stop).await, Err(GivenUp::Late));
        assert_eq!(in_time(async { 1 }, Patience::Short, &nobody, &stop).await, Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_after_it_was_killed_is_given_up() {
        let (killed, stop) = (CancellationToken::new(), CancellationToken::new());
        killed.cancel();
        let hangs = std::future::pending::<()>;
        let ends = || tokio::time::sleep(Duration::from_millis(KILL_GRACE_MS - 1));
        for patience in [Patience::Long, Patience::Own] {
            assert_eq!(in_time(ends(), patience, &killed, &stop).await, Ok(()));
            assert_eq!(in_time(hangs(), patience, &killed, &stop).await, Err(GivenUp::Hangs));
        }
        assert_eq!(in_time(hangs(), Patience::Short, &killed, &stop).await, Err(GivenUp::Stopped));
        assert_eq!(in_time(async { 1 }, Patience::Short, &killed, &stop).await, Ok(1));
        assert_eq!(GivenUp::Hangs.error().code, ErrorCode::OutcomeUnknown);
    }
}
