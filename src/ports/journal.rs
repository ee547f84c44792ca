//! Session journal, which records each intent before it is carried out, and its result.

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

/// Record in a session's journal. Only `session::SessionState` interprets records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Record {
    TaskStarted {
        prompt: Message,
        max_steps: u32,
    },
    /// The full message queue at this point.
    Queue {
        prompts: Vec<QueuedMessage>,
    },
    /// A message was sent while the task was running. It follows the step's results.
    Steered {
        message: Message,
    },
    StepStarted {
        task_id: TaskId,
        step_id: StepId,
        step_count: u32,
    },
    /// Streamed response text received since the last record of this kind in the step.
    PartialAnswer {
        step_id: StepId,
        text: String,
    },
    /// The text received so far was discarded.
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
        /// Cost in US dollars, if the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Whether some counts are estimated because the provider did not report them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// A request ended without a response but had a cost.
    Wasted {
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Whether some counts are estimated because the provider did not report them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
        /// Model that received the request, if it was not the current model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A summary replaced all messages up to `until`.
    Compacted {
        /// Last message that the summary replaces.
        until: MessageId,
        /// Message that contains the summary.
        message: Message,
        compaction: Compaction,
        /// Messages within the replaced range that are still sent: the user's messages about the running task.
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
    /// A compaction started.
    CompactionStarted {
        trigger: CompactionTrigger,
    },
    /// A compaction ended without producing a summary.
    CompactionGivenUp,
    /// The oldest messages are no longer sent, so the remaining ones fit into this estimated number of tokens.
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
    /// Requests to this model are counted at an assumed price, because its actual price is unknown.
    PriceAssumed {
        model: String,
        price: AssumedPrice,
    },
    /// The pre-call hooks ran. If they rewrote the arguments, the call is planned and judged with the new arguments.
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
    /// Files that the call uses changed before it ran. Nothing was written, and the call is planned again based on
    /// the current files.
    Renewed {
        tool_call_id: CallId,
    },
    /// The effects of a command were not applied because files had changed since the command ran. The user decides
    /// whether to run it again.
    Conflicted {
        tool_call_id: CallId,
        /// Description of the changed files, for the user.
        reason: String,
    },
    /// The policy denied a call.
    Refused {
        tool_call_id: CallId,
        rule: String,
        reason: String,
    },
    /// Rules were saved to one of the user's policy files.
    RuleSaved {
        rules: Vec<GrantRule>,
        scope: GrantScope,
        /// Rule names as shown in verdicts, such as `mine-here:14`.
        names: Vec<String>,
    },
    RuleRemoved {
        rules: Vec<GrantRule>,
        scope: GrantScope,
    },
    /// The user approved a plan. Its actions are allowed until the task ends, within the limits that the policy sets
    /// for plans. A record without actions revokes the mandate of an earlier plan.
    MandateSet {
        /// Digest of the plan that was shown; `None` if the mandate is revoked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// Actions that the approval prompt listed as allowed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        actions: Vec<Action>,
        /// Actions in the plan that still need approval.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        asks: Vec<Action>,
    },
    /// A command started in a preview. None of its changes have been applied.
    PreviewStarted {
        tool_call_id: CallId,
        /// Whether the preview started without approval, in which case only its effects may need approval.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unasked: bool,
        /// Hosts that rules allow the command to connect to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<SandboxAccess>,
    },
    /// A command that ran in a layer without approval ended. None of its changes have been applied yet.
    LayerEnded {
        tool_call_id: CallId,
        /// Exit status, such as `exit 0` or `killed after 300 s`.
        ended: String,
        output: String,
        /// Number of paths that applying the effects would change.
        paths: u64,
        /// Digest of all effects and the output.
        digest: String,
    },
    /// A preview produced changes that will be applied without approval.
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
    /// A review sent a request to a model. The request belongs neither to the thread nor to a task.
    Reviewed {
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Whether some counts are estimated because the provider did not report them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// The preview no longer exists. The call is planned and judged again.
    PreviewDropped {
        tool_call_id: CallId,
    },
    /// A call started. From this point on, it may have had effects.
    Started {
        tool_call_id: CallId,
        rule: String,
        /// States of the changed paths before and after the call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        places: Vec<PlaceChange>,
        /// Note that tells the model how the user changed the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<String>,
        /// Command that runs instead of the proposed one, if the user edited the command line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<EditedCommand>,
    },
    Finished {
        result: ToolResult,
        latency_ms: u64,
    },
    /// The sandbox blocked access during a command. aye asks the user whether to run the command again with that
    /// access.
    KeptFrom {
        result: ToolResult,
        latency_ms: u64,
    },
    /// The user chose how to proceed with a call whose outcome is unknown.
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
    /// The user stopped the task. It ends once the running calls have ended, even if the process exits first.
    Stopping {
        task_id: TaskId,
    },
    Paused {
        failure: Failure,
    },
    Continued,
    /// The session was imported from a checkpoint that has no records. This record contains all data except the
    /// conversation, and grants no permissions.
    #[serde(rename_all = "camelCase")]
    Imported {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy_bundle_version: Option<String>,
        /// Number of steps completed in the last task.
        step_count: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_cursor: Option<StepId>,
    },
    /// A rewind or redo started. It did not complete unless a `Rewound` record follows.
    RewindStarted {
        rewind_id: String,
        target: RewindTarget,
        scope: RewindScope,
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::protocol::path_text::list")]
        overwrite: Vec<PathBuf>,
    },
    /// A rewind completed. If `from` is set, the conversation now ends before that message.
    Rewound {
        rewind_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<MessageId>,
        rewound: Rewound,
    },
    /// The user ran a command. Its call has the same records as a call from the model. `shared` says whether the
    /// model sees the command.
    OwnStarted {
        task_id: TaskId,
        step_id: StepId,
        call: ToolCall,
        shared: bool,
        /// Whether the command is the goal's check.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        check: bool,
    },
    /// The user's command ended, successfully or not.
    OwnEnded {
        task_id: TaskId,
        /// Text sent to the model with the next message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
        /// Whether a task that was paused before the command is still paused.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waits: bool,
    },
    /// The goal was set or changed. Tasks and checks that belong to the goal have their own records.
    GoalChanged {
        change: GoalChange,
    },
    /// The policy bundles and the mode changed. They are in effect from this record on.
    PolicyInForce {
        layers: Vec<PolicyLayer>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        /// Mode that the user last chose for this session, with `/mode` or `--mode`. `mode` can be stricter.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chosen_mode: Option<Mode>,
    },
    /// The session was registered with an organisation's session service.
    Registered {
        session: Box<ServiceSession>,
    },
    /// Record written by another version of aye. Its text is preserved in the store.
    #[serde(other)]
    Unreadable,
}

/// Registration of an aye session with a session service. It grants no permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceSession {
    /// Service URL.
    pub url: String,
    /// ID of the aye session that was registered. A fork copies this record but has a different ID.
    pub registered_id: SessionId,
    /// Session ID assigned by the service.
    pub session_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_bundle_version: Option<String>,
    /// All feature flags sent by the service, including flags unknown to aye.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_flags: BTreeMap<String, Value>,
}

/// Command as edited by the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EditedCommand {
    /// One-line summary, such as `$ cargo test`.
    pub summary: String,
    pub actions: Vec<Action>,
}

/// Change to a session's goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum GoalChange {
    Set {
        goal: Goal,
        /// Session cost in US dollars before the goal was set, counting only requests with a known price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_before: Option<f64>,
    },
    CheckReplaced {
        check: String,
    },
    /// The check ran but did not exit with status 0.
    CheckFailed {
        /// Exit status, such as `exit 101`.
        ended: String,
        /// End of the check's output, with secrets redacted.
        output: String,
        /// Digest of the output, with numbers ignored.
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
    /// Returns a sentence that explains to the user why the goal was paused or ended, or `None` for other changes.
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

/// Kind of failure that a commit must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// Process crash.
    Process,
    /// Power loss.
    Power,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot save this session ({message})")]
pub(crate) struct JournalError {
    /// Reason, for display in parentheses, such as `disk full, 0 B free in /home/me`.
    pub message: String,
    /// Whether another process has taken over the session, which means that this process must stop.
    pub lost: bool,
    /// Instruction to the user, if the failure has nothing to do with the disk.
    pub hint: Option<&'static str>,
}

/// Journal of a single session.
pub(crate) trait Journal: Send + Sync {
    /// Appends either all `records` or none. If this returns `Ok`, the records are committed.
    fn append(&self, records: Vec<Record>, durability: Durability) -> BoxFuture<'_, Result<(), JournalError>>;
    /// Returns whether the session must stop if its journal cannot be written, even if the user wants to continue.
    fn must_save(&self) -> bool {
        false
    }
    /// Replaces the saved output of a running command. The write is queued in order with all other journal calls, so
    /// the caller need not await it. Recording the call's outcome removes the saved output.
    fn save_tail(&self, call: CallId, tail: SavedTail) -> BoxFuture<'_, Result<(), JournalError>> {
        let _ = (call, tail);
        Box::pin(std::future::ready(Ok(())))
    }
    /// Saves text that the user has typed but not yet sent.
    fn save_draft(&self, text: String) -> BoxFuture<'_, Result<(), JournalError>>;
}
