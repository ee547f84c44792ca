//! Handling of a prompt, from the editor's request to the response.

use super::rpc::{AUTH_REQUIRED, INTERNAL, Reply};
use super::slash::AwaitedEvent;
use crate::protocol::{Event, EventKind, Failure, FailureKind, StopReason as ModelStop, TaskId};
use agent_client_protocol::v1::schema::StopReason;
use agent_client_protocol::{Error, RequestCancellation};
use serde_json::json;

pub(crate) struct Turn {
    pub reply: Reply,
    /// Task started by the prompt, once it has started.
    task: Option<TaskId>,
    /// Whether the prompt continues a previous task, in which case the task ID is not checked.
    goes_on: bool,
    /// Whether the prompt ends when the goal does, rather than when the task does.
    is_goal: bool,
    /// Event that a slash command is waiting for.
    pub waits: Option<AwaitedEvent>,
    pub cancelled: bool,
    /// Reason why the model's last response stopped.
    stop: ModelStop,
}

/// Whether and how an event ended a prompt.
pub(crate) enum TurnEnd {
    No,
    With(StopReason),
    Failed(Error),
}

impl Turn {
    pub(crate) fn task(reply: Reply) -> Self {
        Self { reply, task: None, goes_on: false, is_goal: false, waits: None, cancelled: false, stop: ModelStop::EndTurn }
    }

    pub(crate) fn for_command(reply: Reply, waits: AwaitedEvent) -> Self {
        Self { waits: Some(waits), ..Self::task(reply) }
    }

    pub(crate) fn for_goal(reply: Reply) -> Self {
        Self { goes_on: true, is_goal: true, ..Self::task(reply) }
    }

    pub(crate) fn continuing(reply: Reply) -> Self {
        Self { goes_on: true, ..Self::task(reply) }
    }

    /// Returns a token that is cancelled when the editor cancels the request. Returns `None` if it has already been
    /// cancelled.
    pub(crate) fn cancellation(&self) -> Option<RequestCancellation> {
        (!self.cancelled).then(|| self.reply.cancellation())
    }

    fn is_of(&self, event: &Event) -> bool {
        self.goes_on || self.task.is_some() && self.task == event.task_id
    }
}

/// Determines whether and how an event ends the prompt.
pub(crate) fn end_of_turn(turn: &mut Turn, event: &Event) -> TurnEnd {
    match &event.kind {
        EventKind::TaskStarted { .. } if turn.task.is_none() && turn.waits.is_none() => turn.task.clone_from(&event.task_id),
        EventKind::LlmRequestCompleted { stop_reason, .. } => turn.stop = *stop_reason,
        // The budget was requested together with the cancellation. A prompt that has not started by now never will.
        EventKind::BudgetShown { .. } if turn.cancelled && turn.task.is_none() => return TurnEnd::With(StopReason::Cancelled),
        // There was no task to continue.
        EventKind::Notice { .. } if turn.goes_on && !turn.is_goal && event.task_id.is_none() => {
            return TurnEnd::With(StopReason::EndTurn);
        }
        // The prompt started nothing.
        EventKind::PromptBlocked { failure, .. } if turn.task.is_none() && !turn.goes_on => {
            return if turn.cancelled { TurnEnd::With(StopReason::Cancelled) } else { failure_end(failure) };
        }
        // The prompt started no task, so the session remains paused.
        EventKind::SessionPaused { failure } if turn.task.is_none() && turn.waits.is_none() && !turn.goes_on => {
            return if turn.cancelled { TurnEnd::With(StopReason::Cancelled) } else { failure_end(failure) };
        }
        EventKind::GoalChanged(goal) if turn.is_goal && !goal.is_running() => {
            return TurnEnd::With(if turn.cancelled { StopReason::Cancelled } else { StopReason::EndTurn });
        }
        // The check of the goal follows.
        EventKind::TaskCompleted { .. } if turn.is_goal => {}
        kind if turn.is_of(event) && kind.is_over() => return end_of_command(turn, kind),
        _ => {}
    }
    TurnEnd::No
}

fn end_of_command(turn: &Turn, kind: &EventKind) -> TurnEnd {
    if turn.cancelled {
        return TurnEnd::With(StopReason::Cancelled);
    }
    match kind {
        EventKind::TaskFailed { failure, .. }
        | EventKind::PromptBlocked { failure, .. }
        | EventKind::SessionPaused { failure } => failure_end(failure),
        EventKind::TaskCancelled { .. } => TurnEnd::With(StopReason::Cancelled),
        _ => TurnEnd::With(match turn.stop {
            ModelStop::MaxTokens | ModelStop::ContextWindowExceeded => StopReason::MaxTokens,
            ModelStop::Refusal | ModelStop::ContentFilter => StopReason::Refusal,
            _ => StopReason::EndTurn,
        }),
    }
}

fn failure_end(failure: &Failure) -> TurnEnd {
    let code = match failure.kind {
        FailureKind::MaxStepsExceeded | FailureKind::BudgetExceeded => return TurnEnd::With(StopReason::MaxTurnRequests),
        FailureKind::ContextTooLong => return TurnEnd::With(StopReason::MaxTokens),
        FailureKind::GuardrailBlocked => return TurnEnd::With(StopReason::Refusal),
        FailureKind::Authentication => AUTH_REQUIRED,
        _ => INTERNAL,
    };
    let Failure { kind, retryable, hint, remedy, .. } = failure;
    let data = json!({"kind": kind, "retryable": retryable, "hint": hint, "remedy": remedy});
    TurnEnd::Failed(Error::new(code, failure.problem().one_line()).data(data))
}
