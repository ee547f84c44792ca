//! Call timeouts, and the results of calls that are abandoned.

use crate::agent::limits::{CHANGE_SECONDS, KILL_GRACE_MS, READ_SECONDS, TREE_SECONDS};
use crate::policy::Permit;
use crate::ports::{Plan, RunContext, ToolRouter};
use crate::protocol::{Action, CallId, ErrorCode, Place, ToolCall, ToolError, ToolResult};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// Timeout that applies to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallTimeout {
    /// For calls that only read. They are abandoned on a timeout.
    Short,
    /// For calls that wait for the user. They are abandoned only when they are stopped.
    User,
    /// For calls that change files. On a timeout, they are signalled to stop and then given a short grace period.
    Change,
    /// Like `Change`, but for copying, moving or deleting a directory tree.
    Tree,
    /// For calls that enforce a timeout of their own.
    Own,
}

/// Reason why a call was abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Abandoned {
    /// A read timed out.
    Late,
    /// A file change timed out and did not end after being signalled to stop.
    LateChange { seconds: u64 },
    /// A read was stopped.
    Stopped,
    /// The call was stopped and did not end.
    Hangs,
}

impl CallTimeout {
    /// Returns the timeout that applies to a planned call.
    pub(crate) fn for_plan(plan: &Plan) -> Self {
        match (plan.changes, plan.timeout_seconds) {
            (false, _) if plan.waits_for_user => Self::User,
            (false, _) => Self::Short,
            (true, 1..) => Self::Own,
            (true, 0) if plan.actions.iter().any(is_of_tree) => Self::Tree,
            (true, 0) => Self::Change,
        }
    }

    /// Returns whether the call has no effects and can therefore be abandoned.
    fn only_reads(self) -> bool {
        matches!(self, Self::Short | Self::User)
    }

    fn seconds(self) -> Option<u64> {
        match self {
            Self::Short => Some(READ_SECONDS),
            Self::Change => Some(CHANGE_SECONDS),
            Self::Tree => Some(TREE_SECONDS),
            Self::User | Self::Own => None,
        }
    }
}

fn is_of_tree(action: &Action) -> bool {
    match action {
        Action::Read { target } | Action::Delete { target } => target.place == Place::Directory,
        _ => false,
    }
}

impl Abandoned {
    pub(crate) fn error(self) -> ToolError {
        match self {
            Self::Late => {
                let message = format!(
                    "stopped after {READ_SECONDS} s; nothing was changed. Request less per call, or use a different path."
                );
                ToolError::new(ErrorCode::ToolExecutionTimeout, message)
            }
            Self::LateChange { seconds } => {
                let message = format!(
                    "did not finish within {seconds} s and did not stop; it may still finish later. Check the result before you \
                    repeat it."
                );
                ToolError::new(ErrorCode::ToolExecutionTimeout, message)
            }
            Self::Stopped => ToolError::new(ErrorCode::Cancelled, "stopped by the user; nothing was changed"),
            Self::Hangs => {
                let message = "the user stopped the call, but it did not end; its effects are unknown, and it may still be \
                               running. Check the result before you repeat it.";
                ToolError::new(ErrorCode::OutcomeUnknown, message)
            }
        }
    }
}

/// Waits for a call to finish. A read is abandoned when it times out or is killed. A change that times out is
/// signalled through `stop`. After that signal or a kill, the change has only a grace period left.
pub(crate) async fn with_timeout<T>(
    work: impl Future<Output = T>,
    patience: CallTimeout,
    killed: &CancellationToken,
    stop: &CancellationToken,
) -> Result<T, Abandoned> {
    let reads = patience.only_reads();
    let grace = || tokio::time::sleep(Duration::from_millis(KILL_GRACE_MS));
    let late = async {
        let Some(seconds) = patience.seconds() else { return std::future::pending().await };
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        stop.cancel();
        if reads {
            return Abandoned::Late;
        }
        grace().await;
        Abandoned::LateChange { seconds }
    };
    let stopped = async {
        killed.cancelled().await;
        if reads {
            return Abandoned::Stopped;
        }
        grace().await;
        Abandoned::Hangs
    };
    tokio::select! {
        biased;
        done = work => Ok(done),
        why = stopped => Err(why),
        why = late => Err(why),
    }
}

/// Returns a call's result, or an error that describes the known state of a call that crashed or was abandoned.
/// `late` is set if aye stopped the call because it timed out.
pub(crate) fn outcome(
    done: Result<Result<ToolResult, JoinError>, Abandoned>,
    (id, name): (CallId, String),
    patience: CallTimeout,
    late: bool,
) -> ToolResult {
    let error = match done {
        Ok(Ok(result)) => return if late { mark_timed_out(result, patience) } else { result },
        Ok(Err(error)) => {
            tracing::error!(task = %error.id(), tool = name, "tool panicked");
            if patience.only_reads() {
                ToolError::new(ErrorCode::ToolExecutionFailed, "the tool crashed; nothing was changed. Try another way.")
            } else {
                let message = "the tool crashed; it is unknown whether it changed anything. Check before you repeat the call.";
                ToolError::new(ErrorCode::OutcomeUnknown, message)
            }
        }
        Err(up) => {
            tracing::warn!(?up, tool = name, "gave up on a tool call");
            up.error()
        }
    };
    ToolResult::from_error(id, name, error)
}

/// Marks a result as timed out rather than stopped by the user.
fn mark_timed_out(mut result: ToolResult, patience: CallTimeout) -> ToolResult {
    if let (Some(error), Some(seconds)) = (&mut result.error, patience.seconds())
        && error.code == ErrorCode::Cancelled
    {
        error.code = ErrorCode::ToolExecutionTimeout;
        error.message = format!("stopped after {seconds} s: {}", error.message);
    }
    result
}

/// Plans a single call outside a session, with the same timeout as within a session.
///
/// # Errors
/// Returns an error if the call cannot be planned or planning times out.
pub(crate) async fn plan_with_timeout(router: Arc<dyn ToolRouter>, call: ToolCall) -> Result<Plan, ToolError> {
    let work = tokio::spawn(async move { router.plan(call).await });
    let done = with_timeout(work, CallTimeout::Short, &CancellationToken::new(), &CancellationToken::new()).await;
    done.map_err(Abandoned::error)?.unwrap_or_else(|error| {
        tracing::error!(task = %error.id(), "a tool panicked while planning");
        Err(ToolError::new(ErrorCode::ToolExecutionFailed, "the tool crashed before it changed anything. Try another way."))
    })
}

/// Runs a single call outside a session, with the same timeout as within a session. Cancelling `context.kill` stops
/// the call.
pub(crate) async fn run(router: Arc<dyn ToolRouter>, plan: Plan, permit: Permit, context: RunContext) -> ToolResult {
    let (patience, killed) = (CallTimeout::for_plan(&plan), context.kill.clone());
    let named = (plan.call.tool_call_id.clone(), plan.tool_name.clone());
    let stop = killed.child_token();
    let context = RunContext { kill: stop.clone(), ..context };
    let work = tokio::spawn(async move { router.run(plan, permit, context).await });
    let done = with_timeout(work, patience, &killed, &stop).await;
    outcome(done, named, patience, stop.is_cancelled() && !killed.is_cancelled())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn late_reads_are_abandoned_and_late_changes_are_cancelled_and_awaited() {
        let (nobody, stop) = (CancellationToken::new(), CancellationToken::new());
        let slow = || tokio::time::sleep(Duration::from_secs(10 * TREE_SECONDS));
        assert_eq!(with_timeout(slow(), CallTimeout::Own, &nobody, &stop).await, Ok(()));
        assert!(!stop.is_cancelled());
        let stopped = async {
            stop.cancelled().await;
            2
        };
        assert_eq!(with_timeout(stopped, CallTimeout::Change, &nobody, &stop).await, Ok(2));
        let hangs = std::future::pending::<()>;
        let late = |seconds| Err(Abandoned::LateChange { seconds });
        assert_eq!(with_timeout(hangs(), CallTimeout::Change, &nobody, &stop).await, late(CHANGE_SECONDS));
        assert_eq!(with_timeout(hangs(), CallTimeout::Tree, &nobody, &stop).await, late(TREE_SECONDS));
        assert_eq!(with_timeout(slow(), CallTimeout::Short, &nobody, &stop).await, Err(Abandoned::Late));
        assert_eq!(with_timeout(async { 1 }, CallTimeout::Short, &nobody, &stop).await, Ok(1));
        assert_eq!(with_timeout(slow(), CallTimeout::User, &nobody, &stop).await, Ok(()), "a user may take as long as they want");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_after_a_kill_is_abandoned() {
        let (killed, stop) = (CancellationToken::new(), CancellationToken::new());
        killed.cancel();
        let hangs = std::future::pending::<()>;
        let ends = || tokio::time::sleep(Duration::from_millis(KILL_GRACE_MS - 1));
        for patience in [CallTimeout::Change, CallTimeout::Tree, CallTimeout::Own] {
            assert_eq!(with_timeout(ends(), patience, &killed, &stop).await, Ok(()));
            assert_eq!(with_timeout(hangs(), patience, &killed, &stop).await, Err(Abandoned::Hangs));
        }
        assert_eq!(with_timeout(hangs(), CallTimeout::Short, &killed, &stop).await, Err(Abandoned::Stopped));
        assert_eq!(with_timeout(hangs(), CallTimeout::User, &killed, &stop).await, Err(Abandoned::Stopped));
        assert_eq!(with_timeout(async { 1 }, CallTimeout::Short, &killed, &stop).await, Ok(1));
        assert_eq!(Abandoned::Hangs.error().code, ErrorCode::OutcomeUnknown);
    }

    #[test]
    fn only_calls_stopped_by_the_deadline_are_reported_as_timeouts() {
        let cancelled = || {
            let error = ToolError::new(ErrorCode::Cancelled, "nothing was changed");
            Ok(Ok(ToolResult::from_error(CallId::new("c"), "WriteFile", error)))
        };
        let code = |late| {
            let named = (CallId::new("c"), "WriteFile".to_owned());
            outcome(cancelled(), named, CallTimeout::Change, late).error.unwrap()
        };
        assert_eq!(code(false).code, ErrorCode::Cancelled);
        assert_eq!(code(true).code, ErrorCode::ToolExecutionTimeout);
        assert!(code(true).message.contains("after 30 s: nothing was changed"), "{:?}", code(true));
    }
}
