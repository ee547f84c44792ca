//! Changes: the effect of each record on its session, in the order of the journal.

use super::{CallChange, Expense, ModelChoice, OpenCall, PromptRewind};
use crate::ports::{GoalChange, ServiceSession, TaskEnd};
use crate::protocol::{
    AssumedPrice, BudgetLimit, CallId, Compaction, Failure, Message, MessageId, Mode, QueuedMessage, RewindScope, RewindTarget,
    Rewound, StepId, StopReason, TaskId, ToolCall,
};
use std::path::PathBuf;

/// Outcome of one record.
#[derive(Debug)]
pub(crate) struct AppliedRecord<'r> {
    /// Text of a response that was cut off before this record, and the reason.
    pub interrupted: Option<(String, &'r str)>,
    /// Calls of the step that this record ends, with or without results.
    pub closed: Vec<OpenCall>,
    pub change: Change<'r>,
}

/// The change made by a record.
#[derive(Debug)]
pub(crate) enum Change<'r> {
    /// No visible change.
    None,
    /// No change, because the journal already has this message.
    Repeated,
    TaskStarted {
        prompt: &'r Message,
        max_steps: u32,
    },
    /// A message that the user added to the running task.
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
    /// A request without a response in the conversation.
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
        /// Number of tokens before the compaction; absent if the journal has no compaction to undo.
        tokens: Option<u64>,
    },
    Truncated {
        tokens: u64,
        removed: u64,
    },
    ModelChosen {
        choice: ModelChoice,
        /// The previous choice, if there was one.
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
    /// A user command was started.
    UserCommandStarted {
        task_id: &'r TaskId,
        step_id: &'r StepId,
        call: &'r ToolCall,
        line: &'r str,
        shared: bool,
        /// Whether the command is the check of the goal.
        check: bool,
    },
    UserCommandEnded {
        /// Absent if the start is not in the journal.
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
    /// A record written by another version.
    Unreadable,
}

/// Purpose for which the tokens of a request without a response to the user are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payer<'r> {
    FailedRequest,
    /// A request from an MCP server with this name.
    Server(&'r str),
    /// A review alongside the session.
    Review,
}

impl<'r> Change<'r> {
    /// Returns the message that this change adds to the conversation. A response without content adds none.
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
