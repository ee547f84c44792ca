//! Events: the single stream that a front end receives.

use super::{
    AgentEvent, Approval, ApprovalId, Artifact, Budget, CallArguments, CallId, ChangedFiles, Compaction, CompactionTrigger,
    ContextUse, Decision, Effects, EffectsProgress, Effort, Elicitation, ElicitationOutcome, Failure, FailureKind, GoalState,
    HostResponse, ListedModel, Mode, ModelFacts, PlannedStep, PolicyLayer, Proposal, QueuedMessage, Redaction, RequestedList,
    RewindPlan, RewindPoint, Rewound, RuleInfo, RunningCommand, SandboxTier, ServerStatus, SessionId, SessionStatus, StepId,
    StopReason, TaskId, TaskState, ToolError, ToolStatus, ToolUse, Usage, WorkspaceId,
};
use serde::{Deserialize, Serialize};

/// Text shown in place of a rule for a call that the user approved.
pub const APPROVED_BY_YOU: &str = "approved by you";
/// Rule name of effects that were applied without an approval.
pub const APPLIED_UNASKED: &str = "effects";
/// Reason for a denial without a user who can approve.
pub const NO_USER: &str = "no user can approve this call";
/// Start of the reason for a denial by the approval service.
pub const DENIED_BY_SERVICE: &str = "denied by the approval service";
/// Rule name of a call that the approval service approved.
pub const APPROVED_BY_SERVICE: &str = "approved by the approval service";
/// Start of the notice about a rule that was saved to a file.
pub const RULE_SAVED: &str = "always allowed ";
/// Start of the notice about a rule that applies until aye exits.
pub const RULE_UNTIL_QUIT: &str = "allowed until aye quits: ";
/// Start of the notice about a compaction that did not take place.
pub const NOT_COMPACTED: &str = "not compacted";
/// Start of a notice about a compaction that is still running.
pub const COMPACTION_IS: &str = "compaction is ";
/// Rule name of a command that the user allowed to run outside the sandbox.
pub const APPROVED_UNSANDBOXED: &str = "approved by you, outside the sandbox";

/// End of a command's summary, if the command ran outside the sandbox.
pub const OUTSIDE_SANDBOX: &str = ", outside the sandbox";

/// Event with its IDs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub workspace_id: WorkspaceId,
    pub session_id: SessionId,
    #[serde(default)]
    pub task_id: Option<TaskId>,
    #[serde(default)]
    pub step_id: Option<StepId>,
    pub timestamp: jiff::Timestamp,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Failed request that is retried after a delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedRequest {
    pub attempt: u32,
    pub max_attempts: u32,
    pub delay_ms: u64,
    /// Delay that the provider requested, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_ms: Option<u64>,
    pub kind: FailureKind,
    pub message: String,
    /// Usage that the provider reported for the failed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether usage and cost are estimated from the received text because the provider did not report them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Request ID of the failed request at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Kind of event. Serialized as `eventType` and `payload`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "eventType", content = "payload", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EventKind {
    SessionStarted {
        model: String,
        mode: Mode,
        workspace: String,
        resumed: bool,
        /// Known facts about the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        facts: Option<ModelFacts>,
    },
    /// The state of the session or its task changed.
    StateChanged {
        session_status: SessionStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskState>,
    },
    /// Text that was typed but not sent when the process ended.
    DraftRestored {
        text: String,
    },
    TaskStarted {
        prompt: String,
        max_steps: u32,
    },
    /// All queued messages. Sent whenever the queue changes.
    QueueChanged {
        waiting: Vec<QueuedMessage>,
    },
    /// Messages that were sent while the task was running and are now delivered to the model.
    Steered {
        text: String,
    },
    StepStarted {
        step_count: u32,
    },
    LlmRequestStarted {
        model: String,
        estimated_input_tokens: u64,
    },
    TextChunk {
        text: String,
    },
    ReasoningChunk {
        text: String,
    },
    /// The arguments of a call are arriving. No call runs before the response is complete.
    ToolCallProgress {
        tool_name: String,
        bytes: u64,
    },
    LlmRequestCompleted {
        model: String,
        #[serde(flatten)]
        usage: Usage,
        latency_ms: u64,
        stop_reason: StopReason,
        /// Cost in US dollars, if the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Cost of the session so far, if all prices are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_cost_usd: Option<f64>,
        /// Whether tokens and cost are partly estimated, because the provider did not report all tokens.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// A request by a review that runs alongside the session ended. It counts toward the totals of the session, but is
    /// not part of its conversation.
    ReviewSpent {
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Cost of the session so far, if all prices are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_cost_usd: Option<f64>,
        /// Whether tokens and cost are partly estimated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// An agent started, started a call or ended, or one of its requests ended.
    Agent(AgentEvent),
    /// The request is retried after a delay. A partial response, if any, is discarded.
    LlmRetry(FailedRequest),
    /// The response so far is discarded. It remains visible, marked as discarded. Not sent when the user interrupts a
    /// response.
    AnswerDiscarded {
        reason: String,
    },
    ToolRequested {
        tool_call_id: CallId,
        tool_name: String,
        capability: Option<String>,
        arguments: CallArguments,
        /// One-line summary: `Read src/main.rs`, `$ cargo test`.
        summary: String,
    },
    /// The user runs a command; the events of its call follow. `shared`: the model sees it with the next message.
    OwnCommandStarted {
        tool_call_id: CallId,
        line: String,
        shared: bool,
        /// Whether the command is the check of the goal.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        check: bool,
    },
    /// The user's command ended. `shared`: the model will see it, because it ran.
    OwnCommandEnded {
        tool_call_id: CallId,
        shared: bool,
    },
    ApprovalRequested(Approval),
    /// A command runs in a preview. An approval request follows if its effects need approval.
    PreviewStarted {
        /// Approval that requested the preview; absent if the policy runs the preview before
        /// asking.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_id: Option<ApprovalId>,
        tool_call_id: CallId,
    },
    ApprovalResolved {
        approval_id: ApprovalId,
        tool_call_id: CallId,
        #[serde(flatten)]
        decision: Decision,
        latency_ms: u64,
    },
    /// The files of a pending approval no longer match the proposal (`outdated`), or match again. The files are checked
    /// again before anything is written.
    ApprovalOutdated {
        approval_id: ApprovalId,
        tool_call_id: CallId,
        outdated: bool,
    },
    /// The time limit passed without a decision. The call is denied.
    ApprovalTimeout {
        approval_id: ApprovalId,
        tool_call_id: CallId,
    },
    /// The call is running.
    ToolStarted {
        tool_call_id: CallId,
        rule: String,
        /// Summary of the call that runs, if the user edited the command line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Effects of a command that ran in a copy, if they are applied without approval. The command's output is not
        /// included.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effects: Option<Box<Effects>>,
        /// Reason why the command needed no approval. Sent only for the first such command of a session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Output of a running command, as it arrives. The front end must neutralize escape sequences.
    ToolOutputChunk {
        tool_call_id: CallId,
        text: String,
    },
    /// aye lists or applies the changes of a command that ran in a copy. Sent at most ten times a second if this takes
    /// longer than a second, and when the last of at least 1,000 files is prepared or applied. These events can be
    /// dropped, including the last one.
    EffectsProgress {
        tool_call_id: CallId,
        #[serde(flatten)]
        progress: EffectsProgress,
    },
    ToolCompleted {
        tool_call_id: CallId,
        tool_name: String,
        status: ToolStatus,
        latency_ms: u64,
        output_text: String,
        error: Option<ToolError>,
        /// Applied change, for display in the transcript.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proposal: Option<Proposal>,
        /// Parts of the output that were hidden from the model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redactions: Vec<Redaction>,
        /// Artifacts with the complete output.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifact_uris: Vec<String>,
    },
    /// A crash left this call without an outcome. `aye serve` tells the model so; the UI asks the user how to resolve
    /// it.
    ToolInterrupted {
        tool_call_id: CallId,
        tool_name: String,
        summary: String,
        known: String,
        /// Last saved output of the command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_output: Option<String>,
        /// Minimum run time of the command in milliseconds when that output was saved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ran_ms: Option<u64>,
    },
    StepCompleted {
        step_count: u32,
    },
    StepLimitApproaching {
        step_count: u32,
        max_steps: u32,
    },
    /// The list of steps of the task, as maintained by the model. Sent whenever it changes; empty once a new task
    /// starts.
    PlannedStepsChanged {
        steps: Vec<PlannedStep>,
    },
    /// The goal of the session was set, or its state changed.
    GoalChanged(GoalState),
    /// Policy bundles and tools in effect. Sent at the start and whenever they change.
    PolicyInForce {
        layers: Vec<PolicyLayer>,
        /// Name in the status row.
        name: String,
        /// Names of the tools offered to the model.
        #[serde(default)]
        tools: Vec<String>,
        /// Description of the change; absent at the start of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A changed policy file is invalid. The last valid version remains in effect.
    PolicyRejected {
        message: String,
    },
    /// Sandbox for subsequent commands.
    SandboxInForce {
        tier: SandboxTier,
        /// Status row text: `sandbox on · net off`.
        words: String,
        /// Missing features of this system, if any, with instructions to install them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing: Option<String>,
    },
    /// All shell sessions and background commands. Sent whenever the list changes.
    CommandsRunning {
        commands: Vec<RunningCommand>,
    },
    /// State of all configured MCP servers. Sent whenever it changes.
    ServersChanged {
        servers: Vec<ServerStatus>,
    },
    /// An MCP server requests input from the user, or the model asks a question. In `aye serve`, `AnswerQuestion`
    /// answers questions from the model.
    ElicitationRequested(Elicitation),
    /// The input request was answered or withdrawn.
    ElicitationEnded {
        elicitation_id: String,
        /// Outcome, without the entered values.
        outcome: ElicitationOutcome,
    },
    /// Artifacts of this session, oldest first.
    ArtifactsListed {
        artifacts: Vec<Artifact>,
    },
    /// Content of an artifact; start and end only if it is long.
    ArtifactRead {
        artifact: Artifact,
        text: String,
    },
    /// Proposed text of a file, with secrets removed.
    ProposedShown {
        approval_id: ApprovalId,
        file: usize,
        text: String,
    },
    /// Changed files. Sent on request, and at the end of a session whose front end does not request them.
    ChangedFiles(ChangedFiles),
    /// Prompts that can be rewound to, newest last.
    RewindPointsListed {
        points: Vec<RewindPoint>,
        /// Whether the last rewind can be undone.
        can_redo: bool,
    },
    RewindPlanned(RewindPlan),
    Rewound(Rewound),
    /// Older events of the session, which precede all events shown so far.
    HistoryLoaded {
        events: Vec<Event>,
        /// Position of the first of these events; absent at the start of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<i64>,
    },
    /// Result of a `HostRequest`.
    LookedUp(HostResponse),
    /// Totals of a resumed session, including events that are not shown.
    HistorySummed(HistorySum),
    PolicyExpired {
        message: String,
    },
    ModeChanged {
        mode: Mode,
    },
    /// Another model is in use, or aye has new information about the current one.
    ModelChanged {
        facts: ModelFacts,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
        /// Sentence for the user.
        message: String,
    },
    ModelsListed {
        models: Vec<ListedModel>,
        /// Providers that could not be queried, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    },
    /// aye requests a summary of the conversation from the model; the task continues afterwards.
    CompactionStarted {
        trigger: CompactionTrigger,
        messages: u64,
        tokens: u64,
    },
    ContextCompacted(Compaction),
    /// A summary was removed, and the messages that it replaced were restored.
    CompactionUndone {
        tokens: u64,
    },
    /// The oldest messages are no longer sent, and no summary replaces them.
    ContextTruncated {
        removed: u64,
    },
    ContextShown(ContextUse),
    ListShown(RequestedList),
    /// Budgets and their usage, on request and whenever one is set.
    BudgetShown {
        budgets: Vec<Budget>,
    },
    /// 80 % of a budget is used.
    BudgetApproaching {
        budget: Budget,
    },
    TaskCompleted {
        text: String,
        usage: Usage,
        cost_usd: Option<f64>,
        step_count: u32,
    },
    TaskFailed {
        #[serde(flatten)]
        failure: Failure,
        step_count: u32,
    },
    /// A hook blocked the prompt: nothing was sent, and no task started. The prompt becomes the draft again.
    PromptBlocked {
        /// The hook: its file, event and number.
        hook: String,
        /// Reason given by the hook; empty if it gave none.
        reason: String,
        #[serde(flatten)]
        failure: Failure,
    },
    /// The user interrupted the task. The partial text of the last response remains in the conversation, and aye
    /// informs the model about the interruption. The stop reason of that response is `cancelled`.
    TaskCancelled {
        step_count: u32,
    },
    /// The session is saved and idle until it is resumed. Also the last event of a session that ends with an open task.
    SessionPaused {
        failure: Failure,
    },
    /// Saving failed, and the session continues although a crash would lose it; or everything is saved again.
    SavingChanged {
        saved: bool,
        message: String,
    },
    /// Result of `Command::AskRule`.
    RuleTold {
        approval_id: ApprovalId,
        #[serde(flatten)]
        told: RuleInfo,
    },
    /// Message for the user that belongs to no task. After `CreateSession` and `ResumeSession`, it reports findings
    /// from opening the store, such as damage and recovered data.
    Notice {
        message: String,
    },
    /// The session has ended without an open task.
    SessionCompleted {
        task_count: u32,
        total_tokens: u64,
        /// Cost of the whole session, if all prices are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        duration_ms: u64,
        /// Tool statistics of the whole session, including earlier processes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<ToolUse>,
    },
}

/// Totals of a whole journal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistorySum {
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether the totals are partly estimated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    pub task_usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub task_estimated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUse>,
}

impl EventKind {
    /// Returns whether the task waits for the user.
    pub fn is_over(&self) -> bool {
        matches!(
            self,
            Self::TaskCompleted { .. }
                | Self::TaskFailed { .. }
                | Self::PromptBlocked { .. }
                | Self::TaskCancelled { .. }
                | Self::SessionPaused { .. }
        )
    }

    /// Returns the ID of the approval to which the event belongs.
    pub fn approval_id_mut(&mut self) -> Option<&mut ApprovalId> {
        match self {
            Self::ApprovalRequested(approval) => Some(&mut approval.approval_id),
            Self::PreviewStarted { approval_id, .. } => approval_id.as_mut(),
            Self::ApprovalResolved { approval_id, .. }
            | Self::ApprovalOutdated { approval_id, .. }
            | Self::ApprovalTimeout { approval_id, .. }
            | Self::ProposedShown { approval_id, .. }
            | Self::RuleTold { approval_id, .. } => Some(approval_id),
            _ => None,
        }
    }
}
