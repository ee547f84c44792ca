//! The journal: what is about to happen, before it happens, and what came of it.

use super::{BoxFuture, Tail};
use crate::protocol::{
    Action, Approval, ApprovalId, BudgetLimit, CallId, Compaction, CompactionTrigger, Decision, Effort, Failure, GrantRule,
    GrantScope, Message, MessageId, Mode, PlaceChange, PolicyLayer, Proposal, Resolution, RewindScope, RewindTarget, Rewound,
    StepId, StopReason, TaskId, ToolCall, ToolResult, Usage, Waiting,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One line of a session's journal. What it means for the session is known by `session::SessionState` alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Record {
    TaskStarted {
        prompt: Message,
        max_steps: u32,
    },
    /// All messages that wait, as they are now.
    Queue {
        prompts: Vec<Waiting>,
    },
    /// What the person said while the task ran; it follows the results of the step.
    Steered {
        message: Message,
    },
    StepStarted {
        task_id: TaskId,
        step_id: StepId,
        step_count: u32,
    },
    /// Text of an answer still streaming, since the last such record of this step.
    PartialAnswer {
        step_id: StepId,
        text: String,
    },
    /// What streamed until here does not count.
    AnswerDiscarded {
        step_id: StepId,
        reason: String,
    },
    Answer {
        message: Message,
        usage: Usage,
        stop_reason: StopReason,
        latency_ms: u64,
        model: String,
        /// What it cost, where the price was known then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The provider did not count it all.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// A request that gave no answer, and what it cost all the same.
    Wasted {
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The provider did not count it all.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// A summary stands in the place of the messages up to this one.
    Compacted {
        /// The last message it stands for.
        until: MessageId,
        /// The message that stands there.
        message: Message,
        compaction: Compaction,
        /// Of the messages it stands for, those that stay as they are: what the person said for the task that runs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        verbatim: Vec<MessageId>,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The provider did not count it all.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    CompactionUndone,
    /// A summary begins to be made.
    CompactionStarted {
        trigger: CompactionTrigger,
    },
    /// None comes of it.
    CompactionGivenUp,
    /// The oldest messages are no longer sent, so that the others have at most so many tokens, as they are estimated.
    Truncated {
        tokens: u64,
        removed: u64,
    },
    /// Another model is asked from here on.
    ModelChosen {
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
    },
    BudgetSet {
        limit: BudgetLimit,
    },
    /// A call was planned and judged.
    Intent {
        step_id: StepId,
        call: ToolCall,
        summary: String,
        actions: Vec<Action>,
        proposal: Option<Proposal>,
        changes: bool,
    },
    ApprovalRequested {
        approval: Approval,
    },
    Decided {
        approval_id: ApprovalId,
        tool_call_id: CallId,
        decision: Decision,
    },
    /// Its places had changed when it was to run: nothing was done, and it is planned for what stands there now.
    Renewed {
        tool_call_id: CallId,
    },
    /// The policy said no.
    Refused {
        tool_call_id: CallId,
        rule: String,
        reason: String,
    },
    /// A rule was put into the person's files.
    RuleSaved {
        rules: Vec<GrantRule>,
        scope: GrantScope,
        /// What verdicts call them: `mine-here:14`.
        names: Vec<String>,
    },
    RuleRemoved {
        rules: Vec<GrantRule>,
        scope: GrantScope,
    },
    /// A command begins to run in a view of its own: nothing of it happens.
    PreviewStarted {
        tool_call_id: CallId,
        /// Nobody was asked before: its effects are what is approved.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unasked: bool,
    },
    /// A command that ran in a layer before anybody was asked has ended there. Nothing of it has happened.
    LayerEnded {
        tool_call_id: CallId,
        /// `exit 0`, `killed after 300 s`.
        ended: String,
        output: String,
        /// How many paths would be another.
        paths: u64,
        /// Of every effect and the output.
        digest: String,
    },
    /// What it would change, where it is kept without a question.
    Previewed {
        tool_call_id: CallId,
        proposal: Option<Proposal>,
    },
    /// A server asked the model something of its own; the thread has nothing of it.
    Sampled {
        server: String,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// There is no such view any more; the call is planned and judged again.
    PreviewDropped {
        tool_call_id: CallId,
    },
    /// From here on the effect may have happened.
    Started {
        tool_call_id: CallId,
        rule: String,
        /// What stands at the places it changes, before and after.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        places: Vec<PlaceChange>,
        /// What the model is told of what the person changed before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<String>,
        /// What runs in the place of what was meant, where the person wrote another line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<Edited>,
    },
    Finished {
        result: ToolResult,
        latency_ms: u64,
    },
    /// It ran and was kept from something outside: the person is asked whether it runs once more with that opened.
    KeptFrom {
        result: ToolResult,
        latency_ms: u64,
    },
    /// What the person said about a call whose outcome was unknown.
    Resolved {
        tool_call_id: CallId,
        resolution: Resolution,
    },
    StepCompleted {
        task_id: TaskId,
        step_id: StepId,
        step_count: u32,
        message: Message,
    },
    TaskEnded {
        task_id: TaskId,
        step_count: u32,
        end: TaskEnd,
    },
    /// The person stops the task; it ends once what runs has ended, also where the process does before that.
    Stopping {
        task_id: TaskId,
    },
    Paused {
        failure: Failure,
    },
    Continued,
    /// The session came from a checkpoint without records: what that says beyond its conversation. It grants nothing.
    #[serde(rename_all = "camelCase")]
    Imported {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy_bundle_version: Option<String>,
        /// Of the last task, as far as it was completed.
        step_count: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_cursor: Option<StepId>,
    },
    /// Files and messages begin to go back, or forth again. Without `Rewound` after it, it was not done to its end.
    RewindStarted {
        rewind_id: String,
        target: RewindTarget,
        scope: RewindScope,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        overwrite: Vec<PathBuf>,
    },
    /// It is done. The conversation ends with the message before `from` where one is named.
    Rewound {
        rewind_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<MessageId>,
        rewound: Rewound,
    },
    /// The person runs a command of their own; its call has the same records as one of the model. `shared`: the model is told.
    OwnStarted {
        task_id: TaskId,
        step_id: StepId,
        call: ToolCall,
        shared: bool,
    },
    /// It is over, whatever it came to.
    OwnEnded {
        task_id: TaskId,
        /// What the model is told of it with what is said next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
        /// A task that was paused before waits on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waits: bool,
    },
    /// The bundles and the mode that decide from here on.
    PolicyInForce {
        layers: Vec<PolicyLayer>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
    },
    /// Something another version wrote; its words stay in the store.
    #[serde(other)]
    Unreadable,
}

/// A call as the person has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edited {
    /// One line for people: `$ cargo test`.
    pub summary: String,
    pub actions: Vec<Action>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TaskEnd {
    Completed,
    Failed { failure: Failure },
    Cancelled,
}

/// What a commit must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The death of the process.
    Process,
    /// The loss of power.
    Power,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot save this session ({message})")]
pub struct JournalError {
    /// Why, as it stands in parentheses: `disk full, 0 B free in /home/me`.
    pub message: String,
    /// This process has no right to the session any more: nothing it does may go on beside whoever has it.
    pub lost: bool,
}

/// The journal of one session.
pub trait Journal: Send + Sync {
    /// Committed when it returns `Ok`; all of `records` or none.
    fn append(&self, records: Vec<Record>, durability: Durability) -> BoxFuture<'_, Result<(), JournalError>>;
    /// Replaces what was kept of a running command's output. It is on its way when this returns, in the order of all other calls, and
    /// need not be waited for; the outcome of the call clears it.
    fn save_tail(&self, call: CallId, tail: Tail) -> BoxFuture<'_, Result<(), JournalError>> {
        let _ = (call, tail);
        Box::pin(std::future::ready(Ok(())))
    }
    /// Replaces what the person has typed and not sent.
    fn save_draft(&self, text: String) -> BoxFuture<'_, Result<(), JournalError>>;
}
