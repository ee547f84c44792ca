//! Changes: what each record of a journal made of its session, in the order of the journal.

use super::{ModelChoice, OpenCall, Prompt, Spent};
use crate::ports::{Edited, TaskEnd};
use crate::protocol::{
    Action, Approval, BudgetLimit, CallId, Compaction, Decision, Failure, Message, MessageId, Mode, Proposal, Resolution,
    RewindScope, RewindTarget, Rewound, StepId, StopReason, TaskId, ToolCall, ToolResult, Waiting,
};
use std::path::PathBuf;

/// The outcome of one record.
#[derive(Debug)]
pub struct Applied<'r> {
    /// The text of an answer that broke off before this record, and why.
    pub interrupted: Option<(String, &'r str)>,
    /// The calls of a step that this record ends, with or without a result.
    pub closed: Vec<OpenCall>,
    pub change: Change<'r>,
}

/// What a record changed.
#[derive(Debug)]
pub enum Change<'r> {
    /// Nothing that a view shows.
    None,
    /// Nothing: the journal has its message already.
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
        spent: Spent,
    },
    StepCompleted {
        message: &'r Message,
        step_count: u32,
    },
    TaskEnded {
        end: &'r TaskEnd,
        step_count: u32,
    },
    /// The user stops the task.
    Stopping,
    Paused {
        failure: &'r Failure,
    },
    Continued,
    /// A request that left no answer in the conversation.
    Spent {
        spent: Spent,
        payer: Payer<'r>,
    },
    Compacted {
        until: &'r MessageId,
        message: &'r Message,
        verbatim: &'r [MessageId],
        compaction: &'r Compaction,
        spent: Spent,
    },
    CompactionUndone {
        /// Tokens before the compaction; absent where the journal has none to undo.
        tokens: Option<u64>,
    },
    Truncated {
        tokens: u64,
        removed: u64,
    },
    ModelChosen {
        choice: ModelChoice,
        /// The choice before it, where there was one.
        before: Option<ModelChoice>,
    },
    BudgetSet {
        limit: &'r BudgetLimit,
    },
    QueueChanged {
        prompts: &'r [Waiting],
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
        effect: RewindEffect<'r>,
    },
    /// A command that the user runs.
    UserCommandStarted {
        task_id: &'r TaskId,
        step_id: &'r StepId,
        call: &'r ToolCall,
        line: &'r str,
        shared: bool,
    },
    UserCommandEnded {
        /// Absent where its start is not in the journal.
        tool_call_id: Option<CallId>,
        /// What the model is told with the next prompt.
        shared: Option<&'r str>,
    },
    PolicyChanged {
        mode: Option<Mode>,
    },
    Imported {
        step_count: u32,
    },
    /// Written by another version.
    Unreadable,
}

/// Who used tokens without an answer to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payer<'r> {
    FailedRequest,
    /// A request of an MCP server of this name.
    Server(&'r str),
}

/// What a record changed about a call.
#[derive(Debug)]
pub enum CallChange<'r> {
    Planned {
        call: &'r ToolCall,
        summary: &'r str,
        actions: &'r [Action],
        proposal: Option<&'r Proposal>,
        changes: bool,
    },
    Asked {
        approval: &'r Approval,
    },
    Decided {
        decision: &'r Decision,
    },
    /// The policy denied it.
    Refused {
        rule: &'r str,
        reason: &'r str,
    },
    /// It is planned again, because its files changed.
    Renewed,
    PreviewStarted,
    LayerEnded,
    Previewed {
        proposal: Option<&'r Proposal>,
    },
    PreviewDropped,
    Started {
        rule: &'r str,
        edited: Option<&'r Edited>,
    },
    /// It ran, and the sandbox blocked something.
    Blocked,
    Finished {
        result: &'r ToolResult,
        latency_ms: u64,
        /// What it changed, as it was shown last; absent where it failed.
        proposal: Option<Proposal>,
    },
    /// The user's answer about a call whose outcome is unknown.
    Resolved {
        resolution: Resolution,
    },
}

/// What a rewind made of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewindEffect<'r> {
    /// Nothing was put back.
    None,
    /// Files went back; the conversation stays.
    Files,
    /// The conversation ends before this message; these prompts are not in it any more.
    Cut { from: Option<&'r MessageId>, prompts: Vec<Prompt> },
    /// The rewind before this one is undone; so many prompts are in the conversation again.
    Redone { prompts: usize },
}

impl<'r> Change<'r> {
    /// The message that this adds to the conversation. An answer without content adds none.
    pub fn message(&self) -> Option<&'r Message> {
        match self {
            Self::TaskStarted { prompt: message, .. } | Self::Steered { message } | Self::StepCompleted { message, .. } => {
                Some(message)
            }
            Self::Answered { message, .. } => Some(*message).filter(|message| !message.content.is_empty()),
            _ => None,
        }
    }
}
