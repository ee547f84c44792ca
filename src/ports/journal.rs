//! Journal: intents before they are executed, and their results.

use super::{BoxFuture, SavedTail};
use crate::protocol::{
    Action, Approval, ApprovalId, AssumedPrice, BudgetLimit, CallHooks, CallId, Compaction, CompactionTrigger, Decision, Effort,
    Failure, Goal, GoalReason, GrantRule, GrantScope, Message, MessageId, Mode, PlaceChange, PolicyLayer, Proposal,
    QueuedMessage, Resolution, RewindScope, RewindTarget, Rewound, SandboxAccess, SessionId, StepId, StopReason, TaskId,
    ToolCall, ToolResult, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Record in the journal of a session. Only `session::SessionState` interprets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Record {
    TaskStarted {
        prompt: Message,
        max_steps: u32,
    },
    /// All queued messages at this time.
    Queue {
        prompts: Vec<QueuedMessage>,
    },
    /// Messages sent while the task was running. They follow the results of the step.
    Steered {
        message: Message,
    },
    StepStarted {
        task_id: TaskId,
        step_id: StepId,
        step_count: u32,
    },
    /// Text of a response that is still arriving, since the last such record of this step.
    PartialAnswer {
        step_id: StepId,
        text: String,
    },
    /// The text received so far is discarded.
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
        /// Cost in US dollars, if the price was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Whether some counts are estimated because the provider did not report them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// A request ended without a response, at this cost.
    Wasted {
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Whether some counts are estimated because the provider did not report them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
        /// Model that was used, if it was not the current model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A summary replaces the messages up to this one.
    Compacted {
        /// Last message that the summary replaces.
        until: MessageId,
        /// Message with the summary.
        message: Message,
        compaction: Compaction,
        /// Messages in the replaced range that remain: the user's messages for the running task.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        verbatim: Vec<MessageId>,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Whether some counts are estimated because the provider did not report them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    CompactionUndone,
    /// Compaction starts.
    CompactionStarted {
        trigger: CompactionTrigger,
    },
    /// Compaction ended without a summary.
    CompactionGivenUp,
    /// The oldest messages are no longer sent, so that the remaining messages fit this estimated number of tokens.
    Truncated {
        tokens: u64,
        removed: u64,
    },
    /// The model changed.
    ModelChosen {
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
    },
    BudgetSet {
        limit: BudgetLimit,
    },
    /// Requests to this model are counted at an assumed price, because its price is unknown.
    PriceAssumed {
        model: String,
        price: AssumedPrice,
    },
    /// The hooks before a call ran. If they rewrote it, it is planned and judged with these arguments.
    Hooked {
        tool_call_id: CallId,
        hooks: CallHooks,
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
    /// The files of a call had changed before it ran. Nothing was written, and the call is planned again for the
    /// current files.
    Renewed {
        tool_call_id: CallId,
    },
    /// The effects of a command were not applied, because files had changed since it ran. The user decides whether it
    /// runs again.
    Conflicted {
        tool_call_id: CallId,
        /// Changed files, for the user.
        reason: String,
    },
    /// The policy denied the call.
    Refused {
        tool_call_id: CallId,
        rule: String,
        reason: String,
    },
    /// A rule was saved to the user's policy files.
    RuleSaved {
        rules: Vec<GrantRule>,
        scope: GrantScope,
        /// Rule names, as in verdicts: `mine-here:14`.
        names: Vec<String>,
    },
    RuleRemoved {
        rules: Vec<GrantRule>,
        scope: GrantScope,
    },
    /// The user approved a plan. Its actions are allowed until the task ends, as far as a plan may cover them. A record
    /// without actions ends the mandate of an earlier plan.
    MandateSet {
        /// Digest of the plan that was shown; absent if the mandate ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// Actions that were shown as allowed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        actions: Vec<Action>,
        /// Actions of the plan that still need approval.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        asks: Vec<Action>,
    },
    /// A command starts in a preview; nothing is applied.
    PreviewStarted {
        tool_call_id: CallId,
        /// Whether the preview started without approval; only its effects need approval then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unasked: bool,
        /// Hosts that rules let the command reach.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<SandboxAccess>,
    },
    /// A command that ran in a layer without approval has ended. Nothing is applied yet.
    LayerEnded {
        tool_call_id: CallId,
        /// Exit status: `exit 0`, `killed after 300 s`.
        ended: String,
        output: String,
        /// Number of paths that would change.
        paths: u64,
        /// Digest of all effects and the output.
        digest: String,
    },
    /// Changes of a preview that will be applied without approval.
    Previewed {
        tool_call_id: CallId,
        proposal: Option<Proposal>,
    },
    /// A server or an agent requested a response from the model, which is not part of the thread.
    Sampled {
        server: String,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// A review sent a request, which is not part of the thread or of a task.
    Reviewed {
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Whether some counts are estimated because the provider did not report them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// The preview no longer exists; the call is planned and judged again.
    PreviewDropped {
        tool_call_id: CallId,
    },
    /// The call starts. From here on, its effect may have happened.
    Started {
        tool_call_id: CallId,
        rule: String,
        /// State of the changed paths before and after.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        places: Vec<PlaceChange>,
        /// Note for the model about the user's changes to the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<String>,
        /// Command that runs instead, if the user edited the line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<EditedCommand>,
    },
    Finished {
        result: ToolResult,
        latency_ms: u64,
    },
    /// The sandbox blocked the command. aye asks the user whether to run it again with that access.
    KeptFrom {
        result: ToolResult,
        latency_ms: u64,
    },
    /// The user's choice for a call with an unknown outcome.
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
    /// The user stopped the task. It ends when the running calls have ended, even if the process exits first.
    Stopping {
        task_id: TaskId,
    },
    Paused {
        failure: Failure,
    },
    Continued,
    /// The session was imported from a checkpoint without records. Contains all data except the conversation, and
    /// grants no permissions.
    #[serde(rename_all = "camelCase")]
    Imported {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy_bundle_version: Option<String>,
        /// Completed steps of the last task.
        step_count: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_cursor: Option<StepId>,
    },
    /// A rewind or redo starts. It did not complete unless `Rewound` follows.
    RewindStarted {
        rewind_id: String,
        target: RewindTarget,
        scope: RewindScope,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        overwrite: Vec<PathBuf>,
    },
    /// A rewind completed. If `from` is given, the conversation now ends before that message.
    Rewound {
        rewind_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<MessageId>,
        rewound: Rewound,
    },
    /// The user runs a command. The command's call has the same records as a call by the model. `shared`: the model
    /// sees it.
    OwnStarted {
        task_id: TaskId,
        step_id: StepId,
        call: ToolCall,
        shared: bool,
        /// Whether the command is the check of the goal.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        check: bool,
    },
    /// The user's command ended, successfully or not.
    OwnEnded {
        task_id: TaskId,
        /// Text that the model receives with the next message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
        /// Whether a task that was paused before is still paused.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waits: bool,
    },
    /// The goal was set or changed. Its tasks and checks have their own records.
    GoalChanged {
        change: GoalChange,
    },
    /// Policy bundles and mode in effect from this record on.
    PolicyInForce {
        layers: Vec<PolicyLayer>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        /// True if the user chose the mode for this session, with `/mode` or `--mode`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_mode_chosen: bool,
    },
    /// The session was registered with the session service of an organisation.
    Registered {
        session: Box<ServiceSession>,
    },
    /// Record written by another version of aye. Its text stays in the store.
    #[serde(other)]
    Unreadable,
}

/// Session of a session service under which one of aye's sessions is registered. It grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceSession {
    /// Address of the service.
    pub url: String,
    /// Session of aye that was registered. A fork has the record, but not the ID.
    pub registered_id: SessionId,
    /// ID that the service uses.
    pub session_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_bundle_version: Option<String>,
    /// All flags as the service sent them, including those that aye does not know.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_flags: BTreeMap<String, Value>,
}

/// Command as edited by the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EditedCommand {
    /// One-line summary: `$ cargo test`.
    pub summary: String,
    pub actions: Vec<Action>,
}

/// Change to the goal of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum GoalChange {
    Set {
        goal: Goal,
        /// Cost of the session in US dollars up to now, for requests with a known price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_before: Option<f64>,
    },
    CheckReplaced {
        check: String,
    },
    /// The check ran and did not exit with 0.
    CheckFailed {
        /// Outcome: `exit 101`.
        ended: String,
        /// End of its output, with secrets removed.
        output: String,
        /// Digest of the output, ignoring numbers.
        digest: String,
        /// Digest of the changed files.
        files_digest: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_check_files: Vec<String>,
        elapsed_ms: u64,
    },
    /// The goal is paused until the user acts.
    Paused {
        reason: GoalReason,
        explanation: String,
        elapsed_ms: u64,
    },
    Continued,
    Ended {
        reason: GoalReason,
        explanation: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_check_files: Vec<String>,
        elapsed_ms: u64,
    },
}

impl GoalChange {
    /// Returns the outcome, as a sentence for the user.
    pub(crate) fn explanation(&self) -> Option<&str> {
        match self {
            Self::Paused { explanation, .. } | Self::Ended { explanation, .. } => Some(explanation),
            Self::Set { .. } | Self::CheckReplaced { .. } | Self::CheckFailed { .. } | Self::Continued => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(crate) enum TaskEnd {
    Completed,
    Failed { failure: Failure },
    Cancelled,
}

/// Kind of crash that a commit must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// Death of the process.
    Process,
    /// Loss of power.
    Power,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot save this session ({message})")]
pub(crate) struct JournalError {
    /// Reason, for display in parentheses: `disk full, 0 B free in /home/me`.
    pub message: String,
    /// Whether another process owns the session now, so that this process must stop.
    pub lost: bool,
}

/// Journal of one session.
pub(crate) trait Journal: Send + Sync {
    /// Appends either all `records` or none. The records are committed when this returns `Ok`.
    fn append(&self, records: Vec<Record>, durability: Durability) -> BoxFuture<'_, Result<(), JournalError>>;
    /// Returns true if unsaved work is forbidden, so that the user cannot continue without saving.
    fn must_save(&self) -> bool {
        false
    }
    /// Replaces the saved output of a running command. The write is queued in order with all other calls and need not
    /// be awaited. The outcome of the call removes the saved output.
    fn save_tail(&self, call: CallId, tail: SavedTail) -> BoxFuture<'_, Result<(), JournalError>> {
        let _ = (call, tail);
        Box::pin(std::future::ready(Ok(())))
    }
    /// Saves the text that the user has typed but not sent.
    fn save_draft(&self, text: String) -> BoxFuture<'_, Result<(), JournalError>>;
}
