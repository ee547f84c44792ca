//! One prompt of an editor, from its request to its response.

use super::rpc::{AUTH_REQUIRED, INTERNAL, Reply};
use super::slash::AwaitedEvent;
use crate::protocol::{Event, EventKind, Failure, FailureKind, StopReason as ModelStop, TaskId};
use agent_client_protocol::v1::schema::StopReason;
use agent_client_protocol::{Error, RequestCancellation};
use serde_json::json;

pub(crate) struct Turn {
    pub reply: Reply,
    /// The task of the prompt, once it has started.
    task: Option<TaskId>,
    /// True if the prompt continues the previous task, whatever its ID.
    goes_on: bool,
    /// The event that a slash command waits for.
    pub waits: Option<AwaitedEvent>,
    pub cancelled: bool,
    /// The stop reason of the last response of the model.
    stop: ModelStop,
}

/// The state of a prompt after an event.
pub(crate) enum Ends {
    No,
    With(StopReason),
    Failed(Error),
}

impl Turn {
    pub(crate) fn task(reply: Reply) -> Self {
        Self { reply, task: None, goes_on: false, waits: None, cancelled: false, stop: ModelStop::EndTurn }
    }

    pub(crate) fn own(reply: Reply, waits: AwaitedEvent) -> Self {
        Self { waits: Some(waits), ..Self::task(reply) }
    }

    pub(crate) fn going_on(reply: Reply) -> Self {
        Self { goes_on: true, ..Self::task(reply) }
    }

    /// Returns a token that is cancelled when the editor cancels the request.
    pub(crate) fn cancellation(&self) -> Option<RequestCancellation> {
        (!self.cancelled).then(|| self.reply.cancellation())
    }

    fn is_of(&self, event: &Event) -> bool {
        self.goes_on || self.task.is_some() && self.task == event.task_id
    }
}

/// Returns whether an event ends the prompt.
pub(crate) fn ends(turn: &mut Turn, event: &Event) -> Ends {
    match &event.kind {
        EventKind::TaskStarted { .. } if turn.task.is_none() && turn.waits.is_none() => turn.task.clone_from(&event.task_id),
        EventKind::LlmRequestCompleted { stop_reason, .. } => turn.stop = *stop_reason,
        // This was requested together with the cancellation: a prompt that has not started by now never will.
        EventKind::BudgetShown { .. } if turn.cancelled && turn.task.is_none() => return Ends::With(StopReason::Cancelled),
        // There was nothing to continue.
        EventKind::Notice { .. } if turn.goes_on && event.task_id.is_none() => return Ends::With(StopReason::EndTurn),
        // The prompt started nothing: the session stays paused.
        EventKind::SessionPaused { failure } if turn.task.is_none() && turn.waits.is_none() && !turn.goes_on => {
            return if turn.cancelled { Ends::With(StopReason::Cancelled) } else { failed(failure) };
        }
        kind if turn.is_of(event) && kind.is_over() => return over(turn, kind),
        _ => {}
    }
    Ends::No
}

fn over(turn: &Turn, kind: &EventKind) -> Ends {
    if turn.cancelled {
        return Ends::With(StopReason::Cancelled);
    }
    match kind {
        EventKind::TaskFailed { failure, .. } | EventKind::SessionPaused { failure } => failed(failure),
        EventKind::TaskCancelled { .. } => Ends::With(StopReason::Cancelled),
        _ => Ends::With(match turn.stop {
            ModelStop::MaxTokens | ModelStop::ContextWindowExceeded => StopReason::MaxTokens,
            ModelStop::Refusal | ModelStop::ContentFilter => StopReason::Refusal,
            _ => StopReason::EndTurn,
        }),
    }
}

fn failed(failure: &Failure) -> Ends {
    let code = match failure.kind {
        FailureKind::MaxStepsExceeded | FailureKind::BudgetExceeded => return Ends::With(StopReason::MaxTurnRequests),
        FailureKind::ContextTooLong => return Ends::With(StopReason::MaxTokens),
        FailureKind::GuardrailBlocked => return Ends::With(StopReason::Refusal),
        FailureKind::Authentication => AUTH_REQUIRED,
        _ => INTERNAL,
    };
    let Failure { kind, retryable, hint, remedy, .. } = failure;
    let data = json!({"kind": kind, "retryable": retryable, "hint": hint, "remedy": remedy});
    Ends::Failed(Error::new(code, failure.problem().one_line()).data(data))
}
