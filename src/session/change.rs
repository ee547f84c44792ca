//! Changes that records make to a session, in journal order.

use super::{CallChange, Expense, ModelChoice, OpenCall, PromptRewind};
use crate::ports::{GoalChange, ServiceSession, TaskEnd};
use crate::protocol::{
    AssumedPrice, BudgetLimit, CallId, Compaction, Failure, Message, MessageId, Mode, QueuedMessage, RewindScope, RewindTarget,
    Rewound, StepId, StopReason, TaskId, ToolCall,
};
use std::path::PathBuf;

/// Result of applying a record.
#[derive(Debug)]
pub(crate) struct AppliedRecord<'r> {
    /// Text of a response that was cut off before this record, with the reason.
    pub interrupted: Option<(String, &'r str)>,
    /// Calls in the step that this record ends, with or without results.
    pub closed: Vec<OpenCall>,
    pub change: Change<'r>,
}

/// Change that a record makes to a session.
#[derive(Debug)]
pub(crate) enum Change<'r> {
    /// Nothing visible changed.
    None,
    /// Nothing changed, because the journal already contains this message.
    Repeated,
    TaskStarted {
        prompt: &'r Message,
        max_steps: u32,
    },
    /// The user added a message to the running task.
    Steered {
        message: &'r Message,
    },
    StepStarted {
        task_id: &'r TaskId,
        step_id: &'r StepId,
        step_count: u32,
    },
    Answered {
        message: &'r Message,
        stop_reason: StopReason,
        latency_ms: u64,
        model: &'r str,
        spent: Expense,
    },
    StepCompleted {
        message: &'r Message,
        step_count: u32,
    },
    TaskEnded {
        end: &'r TaskEnd,
        step_count: u32,
    },
    /// The user stopped the task.
    Stopping,
    Paused {
        failure: &'r Failure,
    },
    Continued,
    /// A request was paid for but added no response to the conversation.
    Spent {
        spent: Expense,
        payer: Payer<'r>,
    },
    Compacted {
        until: &'r MessageId,
        message: &'r Message,
        verbatim: &'r [MessageId],
        compaction: &'r Compaction,
        spent: Expense,
    },
    CompactionUndone {
        /// Number of tokens before the compaction; `None` if the journal contains no compaction to undo.
        tokens: Option<u64>,
    },
    Truncated {
        tokens: u64,
        removed: u64,
    },
    ModelChosen {
        choice: ModelChoice,
        /// Previous model choice, if any.
        before: Option<ModelChoice>,
    },
    BudgetSet {
        limit: &'r BudgetLimit,
    },
    PriceAssumed {
        model: &'r str,
        price: AssumedPrice,
    },
    QueueChanged {
        prompts: &'r [QueuedMessage],
    },
    Call {
        tool_call_id: &'r CallId,
        change: CallChange<'r>,
    },
    RewindStarted {
        rewind_id: &'r str,
        target: &'r RewindTarget,
        scope: RewindScope,
        overwrite: &'r [PathBuf],
    },
    Rewound {
        rewind_id: &'r str,
        from: Option<&'r MessageId>,
        rewound: &'r Rewound,
        effect: PromptRewind<'r>,
    },
    /// The user started a command.
    UserCommandStarted {
        task_id: &'r TaskId,
        step_id: &'r StepId,
        call: &'r ToolCall,
        line: &'r str,
        shared: bool,
        /// Whether the command is the goal's check.
        check: bool,
    },
    UserCommandEnded {
        /// Call ID; `None` if the journal does not contain the start of the command.
        tool_call_id: Option<CallId>,
        /// Text that aye sends to the model with the next prompt.
        shared: Option<&'r str>,
    },
    GoalChanged {
        change: &'r GoalChange,
    },
    PolicyChanged {
        mode: Option<Mode>,
    },
    Imported {
        step_count: u32,
    },
    /// The session was registered with a session service.
    Registered {
        session: &'r ServiceSession,
    },
    /// The record was written by another version of aye.
    Unreadable,
}

/// Purpose of a request that produced no response for the user. The request's tokens are counted towards this
/// purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payer<'r> {
    FailedRequest,
    /// Request from the named MCP server.
    Server(&'r str),
    /// Review that runs alongside the session.
    Review,
}

impl<'r> Change<'r> {
    /// Returns the message that this change adds to the conversation, if any. Responses without content add none.
    pub(crate) fn message(&self) -> Option<&'r Message> {
        match self {
            Self::TaskStarted { prompt: message, .. } | Self::Steered { message } | Self::StepCompleted { message, .. } => {
                Some(message)
            }
            Self::Answered { message, .. } => Some(*message).filter(|message| !message.content.is_empty()),
            _ => None,
        }
    }
}
