//! Events: the one stream that a front end receives.

use super::{
    Approval, ApprovalId, Arguments, Artifact, Budget, CallId, ChangedFiles, Compaction, CompactionTrigger, ContextUse, Decision,
    Effort, Elicitation, ElicitationOutcome, Failure, FailureKind, ListedModel, LookedUp, Mode, ModelFacts, PolicyLayer,
    Proposal, Redaction, RewindPlan, RewindPoint, Rewound, RuleTold, RunningCommand, SandboxTier, ServerStatus, SessionId,
    SessionStatus, StepId, StopReason, TaskId, TaskState, ToolError, ToolStatus, ToolUse, Usage, Waiting, WorkspaceId,
};
use serde::{Deserialize, Serialize};

/// In the place of a rule, where the person said yes to this very call.
pub const APPROVED_BY_YOU: &str = "approved by you";

/// One event with the chain of ids it belongs to.
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

/// What happened. Serialised as `eventType` and `payload`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "eventType", content = "payload", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EventKind {
    SessionStarted {
        model: String,
        mode: Mode,
        workspace: String,
        resumed: bool,
        /// What is known of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        facts: Option<ModelFacts>,
    },
    /// Every change of what the session and its task do.
    StateChanged {
        session_status: SessionStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskState>,
    },
    /// What the person typed and had not sent when the process ended.
    DraftRestored {
        text: String,
    },
    TaskStarted {
        prompt: String,
        max_steps: u32,
    },
    /// All messages that wait, whenever the list changes.
    QueueChanged {
        waiting: Vec<Waiting>,
    },
    /// What the person said while the task ran, now that the model is told.
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
    /// Arguments of a call arrive; no call runs before the whole answer is there.
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
        /// What it cost, where the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// What the session cost until now, where all prices were known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_cost_usd: Option<f64>,
        /// The provider did not count it all: tokens and cost are estimated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// The request is sent again after a wait; the partial answer, if any, is discarded.
    LlmRetry {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        /// What the provider asked for, where it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_ms: Option<u64>,
        kind: FailureKind,
        message: String,
        /// What the provider says that the request that failed used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The provider did not say: usage and cost are estimated from what came.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
        /// What the provider calls the request that failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// The answer that streamed until now does not count; it stays visible, marked so.
    AnswerDiscarded {
        reason: String,
    },
    ToolRequested {
        tool_call_id: CallId,
        tool_name: String,
        capability: Option<String>,
        arguments: Arguments,
        /// One line for people: `Read src/main.rs`, `$ cargo test`.
        summary: String,
    },
    /// The person runs a command of their own; the events of its call follow. `shared`: the model is told of it with what is said next.
    OwnCommandStarted {
        tool_call_id: CallId,
        line: String,
        shared: bool,
    },
    /// It is over. `shared`: the model will be told, because it ran.
    OwnCommandEnded {
        tool_call_id: CallId,
        shared: bool,
    },
    ApprovalRequested(Approval),
    /// A command runs in its view; a question about its effects follows, where they need one.
    PreviewStarted {
        /// The question it was asked for in; none where the policy wants it before any question.
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
    /// While the question waits: what it would change is not on disk any more as it was shown (`outdated`), or is so again. Before
    /// anything is written it is looked at once more, whatever was told.
    ApprovalOutdated {
        approval_id: ApprovalId,
        tool_call_id: CallId,
        outdated: bool,
    },
    /// Nobody answered in time: it counts as a no.
    ApprovalTimeout {
        approval_id: ApprovalId,
        tool_call_id: CallId,
    },
    /// The call runs now.
    ToolStarted {
        tool_call_id: CallId,
        rule: String,
        /// What runs, where the person wrote another line than was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// Output of a running command, as it comes, escape sequences neutralised by the front end.
    ToolOutputChunk {
        tool_call_id: CallId,
        text: String,
    },
    ToolCompleted {
        tool_call_id: CallId,
        tool_name: String,
        status: ToolStatus,
        latency_ms: u64,
        output_text: String,
        error: Option<ToolError>,
        /// What was applied, for the transcript's card.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proposal: Option<Proposal>,
        /// What the model was not shown of the output.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redactions: Vec<Redaction>,
        /// What is kept whole of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifact_uris: Vec<String>,
    },
    /// A crash left this call without an outcome; it waits for `Command::Resolve`.
    ToolInterrupted {
        tool_call_id: CallId,
        tool_name: String,
        summary: String,
        known: String,
        /// The end of what a command had printed, as far as it was kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_output: Option<String>,
        /// How long it had run when that was kept, at least.
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
    /// The bundles that decide from now on, and the tools: at the start and when they change.
    PolicyInForce {
        layers: Vec<PolicyLayer>,
        /// What the status row calls them.
        name: String,
        /// The names of the tools that the model is offered under them.
        #[serde(default)]
        tools: Vec<String>,
        /// What changed; nothing at the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A policy file was changed and cannot be taken: the last good one stays in force.
    PolicyRejected {
        message: String,
    },
    /// What holds commands from now on.
    SandboxInForce {
        tier: SandboxTier,
        /// For the status row: `sandbox on · net off`.
        words: String,
        /// What is missing on this system and how to get it, where something is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing: Option<String>,
    },
    /// All sessions and commands in the background, whenever the list changes.
    CommandsRunning {
        commands: Vec<RunningCommand>,
    },
    /// Where all configured MCP servers stand, whenever that changes.
    ServersChanged {
        servers: Vec<ServerStatus>,
    },
    /// A server asks the person something; answered by `Command::AnswerElicitation`.
    ElicitationRequested(Elicitation),
    /// It was answered, or nobody waits for the answer any more.
    ElicitationEnded {
        elicitation_id: String,
        /// Without what was filled in.
        outcome: ElicitationOutcome,
    },
    /// What this session kept whole, the oldest first.
    ArtifactsListed {
        artifacts: Vec<Artifact>,
    },
    /// What one of them holds; of a long one the start and the end.
    ArtifactRead {
        artifact: Artifact,
        text: String,
    },
    /// What the text of a file would be, without what is secret in it.
    ProposedShown {
        approval_id: ApprovalId,
        file: usize,
        text: String,
    },
    /// What changed, when it was asked for; without a front end that asks, at the end of the session.
    ChangedFiles(ChangedFiles),
    /// The prompts that can be gone back to, the newest last.
    RewindPointsListed {
        points: Vec<RewindPoint>,
        /// There is a rewind to take back.
        can_redo: bool,
    },
    RewindPlanned(RewindPlan),
    Rewound(Rewound),
    /// An older part of the session, as it was told then; it stands before all that is shown.
    HistoryLoaded {
        events: Vec<Event>,
        /// Where the part before it ends, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<i64>,
    },
    /// What stands around the session, as it was asked for.
    LookedUp(LookedUp),
    /// What all of a resumed session came to, also where only its end is shown.
    HistorySummed(HistorySum),
    PolicyExpired {
        message: String,
    },
    ModeChanged {
        mode: Mode,
    },
    /// Another model answers from now on, or more is known of the one that does.
    ModelChanged {
        facts: ModelFacts,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
        /// For the person, in a sentence.
        message: String,
    },
    ModelsListed {
        models: Vec<ListedModel>,
        /// What could not be asked, and why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    },
    /// The model is asked for a summary of what was said; the task goes on after it.
    CompactionStarted {
        trigger: CompactionTrigger,
        messages: u64,
        tokens: u64,
    },
    ContextCompacted(Compaction),
    /// What stood in the place of messages is gone, and they are back.
    CompactionUndone {
        tokens: u64,
    },
    /// The oldest messages are no longer sent, nothing stands in their place.
    ContextTruncated {
        removed: u64,
    },
    ContextShown(ContextUse),
    /// What may be used up and what is, when it was asked for or set.
    BudgetShown {
        budgets: Vec<Budget>,
    },
    /// 80 % of it are used.
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
    TaskCancelled {
        step_count: u32,
    },
    /// Everything is saved, and nothing happens until the session is resumed. Also the last event of a session that ends while its
    /// task is open: it can be resumed later.
    SessionPaused {
        failure: Failure,
    },
    /// The session goes on although nothing of it can be saved, and a crash would lose it; or all of it is saved again.
    SavingChanged {
        saved: bool,
        message: String,
    },
    /// The answer to `Command::AskRule`.
    RuleTold {
        approval_id: ApprovalId,
        #[serde(flatten)]
        told: RuleTold,
    },
    /// A sentence for the user that belongs to no task. After `CreateSession` and `ResumeSession`: what the opening found, such as a
    /// damaged store and how much of it was saved.
    Notice {
        message: String,
    },
    /// The session has ended, and no task of it is open.
    SessionCompleted {
        task_count: u32,
        total_tokens: u64,
        /// What the whole session cost, where all prices were known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        duration_ms: u64,
        /// How the tools did in the whole session, also before it was resumed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<ToolUse>,
    },
}

/// Sums over a whole journal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistorySum {
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Some of it is estimated.
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
    /// Whether nothing more comes of the task without the person.
    pub fn is_over(&self) -> bool {
        matches!(
            self,
            Self::TaskCompleted { .. } | Self::TaskFailed { .. } | Self::TaskCancelled { .. } | Self::SessionPaused { .. }
        )
    }
}
