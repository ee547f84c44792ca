//! Events that a session sends to its front end as a single stream.

use super::{
    AgentEvent, Approval, ApprovalId, Artifact, Budget, CallArguments, CallId, ChangedFiles, CommandEnd, Compaction,
    CompactionTrigger, ContextUse, Decision, Effects, EffectsProgress, Effort, Elicitation, ElicitationOutcome, Failure,
    FailureKind, GoalState, HostResponse, ListedModel, Mode, ModelFacts, PlannedStep, PolicyLayer, Proposal, QueuedMessage,
    Redaction, RequestedList, RewindPlan, RewindPoint, Rewound, RuleInfo, RunningCommand, SandboxTier, ServerStatus, SessionId,
    SessionStatus, StepId, StopReason, TaskId, TaskState, ToolError, ToolStatus, ToolUse, Usage, WorkspaceId,
};
use serde::{Deserialize, Serialize};

/// Text shown in place of a rule name for a call that the user approved.
pub const APPROVED_BY_YOU: &str = "approved by you";
/// Rule name of effects that were applied without an approval.
pub const APPLIED_UNASKED: &str = "effects";
/// Rule name shown for a call that the approval service approved.
pub const APPROVED_BY_SERVICE: &str = "approved by the approval service";
/// Rule name shown for a command that the user allowed to run outside the sandbox.
pub const APPROVED_UNSANDBOXED: &str = "approved by you, outside the sandbox";

/// Suffix of a command summary if the command ran outside the sandbox. A command can end in the same text, so only
/// `Proposal::unsandboxed` says how it runs.
pub const OUTSIDE_SANDBOX: &str = ", outside the sandbox";
/// Suffix of a command summary if the command runs in the background. A command can end in the same text, so only
/// `Proposal::background` says how it runs.
pub const IN_BACKGROUND: &str = " (in the background)";

/// Session event with the IDs of the session, task and step that it concerns.
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

/// Failed request that will be retried after a delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedRequest {
    pub attempt: u32,
    pub max_attempts: u32,
    pub delay_ms: u64,
    /// Delay requested by the provider, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_ms: Option<u64>,
    pub kind: FailureKind,
    pub message: String,
    /// Usage that the provider reported for the failed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether usage and cost are estimated from the text received, because the provider did not report them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// ID that the provider assigned to the failed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Event type and payload, serialized as `eventType` and `payload`.
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
    /// Text that had been typed but not sent when an earlier process ended.
    DraftRestored {
        text: String,
    },
    TaskStarted {
        prompt: String,
        max_steps: u32,
    },
    /// All queued messages, sent whenever the queue changes.
    QueueChanged {
        waiting: Vec<QueuedMessage>,
    },
    /// Messages that the user sent during the task are being delivered to the model.
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
    /// The arguments of a tool call are arriving. No call runs before the response is complete.
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
        /// Cost in US dollars. Absent if the price is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Cost of the session so far. Absent if any price is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_cost_usd: Option<f64>,
        /// Whether some of the tokens or the cost are estimated, because the provider did not report all token counts.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// A request made by a review that runs alongside the session ended. It counts toward the session totals but is not
    /// part of the conversation.
    ReviewSpent {
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Cost of the session so far. Absent if any price is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_cost_usd: Option<f64>,
        /// Whether some of the tokens or the cost are estimated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// An agent started, made a tool call or ended, or one of its requests ended.
    Agent(AgentEvent),
    /// A request failed and will be retried after a delay. Any partial response is discarded.
    LlmRetry(FailedRequest),
    /// The response received so far is discarded. It remains visible but is marked as discarded. Not sent when the user
    /// interrupts a response.
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
    /// The user runs a command, and the events of its call follow. If `shared` is set, the model sees the command with
    /// the next message.
    OwnCommandStarted {
        tool_call_id: CallId,
        line: String,
        shared: bool,
        /// Whether the command is the goal's check.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        check: bool,
    },
    /// The user's command ended. If `shared` is set, the command ran and the model will see it.
    OwnCommandEnded {
        tool_call_id: CallId,
        shared: bool,
    },
    ApprovalRequested(Approval),
    /// A command is running in a preview. An approval request follows if its effects need approval.
    PreviewStarted {
        /// Approval from which the preview was requested. Absent if the policy starts the preview before asking for
        /// approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_id: Option<ApprovalId>,
        tool_call_id: CallId,
    },
    ApprovalResolved {
        approval_id: ApprovalId,
        tool_call_id: CallId,
        /// The decision. A denial says in `deniedBy` who or what denied the call (`user`, `service`, `timeout`, `cancel`,
        /// `nobody`, `policy` or `agent_end`), and in `reason` why.
        #[serde(flatten)]
        decision: Decision,
        latency_ms: u64,
    },
    /// The files of a pending approval no longer match the proposal (`outdated`), or match it again. In either case,
    /// they are checked once more before anything is written.
    ApprovalOutdated {
        approval_id: ApprovalId,
        tool_call_id: CallId,
        outdated: bool,
    },
    /// An approval timed out without a decision, so the call is denied.
    ApprovalTimeout {
        approval_id: ApprovalId,
        tool_call_id: CallId,
    },
    /// The tool call started running.
    ToolStarted {
        tool_call_id: CallId,
        rule: String,
        /// Summary of the call that actually runs, if the user edited the command line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Effects of a command that ran in a copy of the workspace, if they are applied without approval. The
        /// command's output is not included.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effects: Option<Box<Effects>>,
        /// Reason why the command needed no approval. Sent only for the first such command in a session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Output of a running command, sent as it arrives. The front end must neutralize escape sequences.
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
        /// Change that was applied, for display in the transcript.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proposal: Option<Proposal>,
        /// Secrets in the output that were hidden from the model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redactions: Vec<Redaction>,
        /// Artifacts that contain the complete output.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifact_uris: Vec<String>,
        /// How the command ended, if the call ran one in the foreground.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<CommandEnd>,
    },
    /// A crash left this call without a known outcome. `aye serve` informs the model about the crash; the terminal UI
    /// asks the user what to do with the call.
    ToolInterrupted {
        tool_call_id: CallId,
        tool_name: String,
        summary: String,
        known: String,
        /// Last output of the command that was saved before the crash.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_output: Option<String>,
        /// Time in milliseconds for which the command had been running when that output was saved; it may have run for
        /// longer.
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
    /// Planned steps of the task, as maintained by the model. Sent whenever they change. The list is empty when a new
    /// task starts.
    PlannedStepsChanged {
        steps: Vec<PlannedStep>,
    },
    /// The session's goal was set, or its state changed.
    GoalChanged(GoalState),
    /// Policy bundles and tools in effect. Sent when the session starts and whenever they change.
    PolicyInForce {
        layers: Vec<PolicyLayer>,
        /// Policy name shown in the status row.
        name: String,
        /// Names of the tools offered to the model.
        #[serde(default)]
        tools: Vec<String>,
        /// Description of the change. Absent when the session starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A changed policy file is invalid, so its last valid version remains in effect.
    PolicyRejected {
        message: String,
    },
    /// Sandbox that applies to subsequent commands.
    SandboxInForce {
        tier: SandboxTier,
        /// Text for the status row, such as `sandbox on · net off`.
        words: String,
        /// Sandbox features that this system lacks, if any, with instructions to install them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing: Option<String>,
    },
    /// All shell sessions and background commands. Sent whenever one of them starts, ends or changes state.
    CommandsRunning {
        commands: Vec<RunningCommand>,
    },
    /// States of all configured MCP servers. Sent whenever one of them changes.
    ServersChanged {
        servers: Vec<ServerStatus>,
    },
    /// An MCP server requests input from the user, or the model asks a question. Clients of `aye serve` answer the
    /// model's questions with `AnswerQuestion`.
    ElicitationRequested(Elicitation),
    /// An input request was answered or withdrawn.
    ElicitationEnded {
        elicitation_id: String,
        /// How the request ended, without the values entered.
        outcome: ElicitationOutcome,
    },
    /// Artifacts of this session, oldest first.
    ArtifactsListed {
        artifacts: Vec<Artifact>,
    },
    /// Content of an artifact. If it is long, only the start and the end are included.
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
    /// Changed files. Sent on request, and also at the end of a session if its front end does not request them.
    ChangedFiles(ChangedFiles),
    /// Prompts to which the session can be rewound, newest last.
    RewindPointsListed {
        points: Vec<RewindPoint>,
        /// Whether the last rewind can be undone.
        can_redo: bool,
    },
    RewindPlanned(RewindPlan),
    Rewound(Rewound),
    /// Older session events, which precede all events shown so far.
    HistoryLoaded {
        events: Vec<Event>,
        /// Journal position of the first of these events. Absent if the session has no earlier events.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<i64>,
    },
    /// Result of a `HostRequest`.
    LookedUp(HostResponse),
    /// Totals of a resumed session, which include the events that are not shown.
    HistorySummed(HistorySum),
    PolicyExpired {
        message: String,
    },
    ModeChanged {
        mode: Mode,
    },
    /// The session switched to another model, or aye has new information about the current one.
    ModelChanged {
        facts: ModelFacts,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
        /// Sentence describing the change for the user.
        message: String,
    },
    ModelsListed {
        models: Vec<ListedModel>,
        /// Providers that could not be queried, with the reason for each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    },
    /// aye asks the model to summarize the conversation. The task continues afterwards.
    CompactionStarted {
        trigger: CompactionTrigger,
        messages: u64,
        tokens: u64,
    },
    ContextCompacted(Compaction),
    /// A compaction was undone: its summary was removed, and the messages that it had replaced were restored.
    CompactionUndone {
        tokens: u64,
    },
    /// The oldest messages are no longer sent to the model, and no summary replaces them.
    ContextTruncated {
        removed: u64,
    },
    ContextShown(ContextUse),
    ListShown(RequestedList),
    /// Budgets and their usage. Sent on request and whenever a budget is set.
    BudgetShown {
        budgets: Vec<Budget>,
    },
    /// 80 % of a budget has been used.
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
    /// A hook blocked the prompt, so nothing was sent and no task started. The prompt is restored as the draft.
    PromptBlocked {
        /// The blocking hook, identified by its file, event and number.
        hook: String,
        /// Reason given by the hook, or empty if it gave none.
        reason: String,
        #[serde(flatten)]
        failure: Failure,
    },
    /// The user interrupted the task. The partial text of the last response, whose stop reason is `cancelled`, remains
    /// in the conversation, and aye informs the model about the interruption.
    TaskCancelled {
        step_count: u32,
    },
    /// The session is saved and idle until it is resumed. This is also the last event of a session that ends with an
    /// open task.
    SessionPaused {
        failure: Failure,
    },
    /// Saving failed and the session continues with records that a crash would lose, or all records have been saved
    /// again.
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
    /// Message for the user that is not associated with a task. After `CreateSession` and `ResumeSession`, it reports
    /// problems found when the store was opened, such as damage and recovered data.
    Notice {
        message: String,
        /// Subject of the message, if front ends treat it specially.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<NoticeKind>,
    },
    /// The session ended with no open task.
    SessionCompleted {
        task_count: u32,
        total_tokens: u64,
        /// Cost of the whole session. Absent if any price is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        duration_ms: u64,
        /// Tool statistics for the whole session, including earlier processes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<ToolUse>,
    },
}

/// Subject of a notice that front ends treat specially, for example by adding the command that undoes what it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A rule was saved.
    RuleSaved,
    /// A rule was added that applies only until aye exits.
    RuleUntilQuit,
    /// A compaction was not performed.
    NotCompacted,
    /// A compaction is in progress.
    CompactionRunning,
}

/// Usage and cost totals of a whole journal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistorySum {
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether some of the totals are estimated.
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
    /// Creates a notice that front ends only show.
    pub fn notice(message: impl Into<String>) -> Self {
        Self::Notice { message: message.into(), kind: None }
    }

    /// Returns whether the event ends or pauses the task, after which the session waits for the user.
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

    /// Returns a mutable reference to the ID of the approval that the event concerns.
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
