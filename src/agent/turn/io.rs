//! Inputs and effects of the turn machine.

use super::policy::PolicyChange;
use super::rule_files::{RuleFileResult, RuleGrant};
use super::sampling::SamplingUsage;
use crate::policy::{Permit, PreviewPermit};
use crate::ports::{
    Delta, Durability, FileRewind, FileRewindResult, HookTrigger, ModelError, ModelRequest, Plan, Record, RewindStart,
};
use crate::protocol::{
    Action, Amendment, ApprovalId, CallHooks, CallId, ChangedFiles, Command, EffectsProgress, EventHooks, EventKind, Failure,
    ModelFacts, RewindPlan, RewindPoint, SandboxAccess, SecretString, StepId, TaskId, ToolCall, ToolError, ToolResult,
};
use crate::session::Expense;
use jiff::Timestamp;

/// Time of an input. `jitter` is a random number in 0..1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InputTime {
    pub now: Timestamp,
    pub jitter: f64,
}

impl InputTime {
    /// Returns the number of milliseconds since `then`, or 0 if the clock was set back.
    pub(crate) fn millis_since(self, then: Timestamp) -> u64 {
        u64::try_from(self.now.as_millisecond() - then.as_millisecond()).unwrap_or(0)
    }
}

/// Server resource mentioned in a prompt.
#[derive(Debug)]
pub(crate) struct Resource {
    pub server: String,
    pub uri: String,
    /// Reason why reading the resource requires approval; `None` if it does not.
    pub asks: Option<String>,
}

/// Result of planning a call.
#[derive(Debug)]
pub(crate) struct PlanResult {
    pub index: usize,
    /// Actions derived from the arguments alone. Empty if the arguments name nothing or the plan lists all actions.
    pub scope: Vec<Action>,
    pub plan: Result<Plan, ToolError>,
}

/// Input to the turn machine.
#[derive(Debug)]
pub(crate) enum Input {
    Command(Command),
    Delta(Delta),
    ModelFailed(ModelError),
    Planned(Vec<PlanResult>),
    /// Result of `Effect::HookCalls`, with the index of each call.
    CallsHooked(Vec<(usize, CallHooks)>),
    /// Result of `Effect::Hook`.
    Hooked {
        ticket: u64,
        outcome: EventHooks,
    },
    /// Result of `Effect::Preview`, with its ticket.
    Previewed {
        index: usize,
        ticket: u64,
        outcome: Result<Plan, ToolError>,
    },
    ToolOutput {
        index: usize,
        text: String,
    },
    EffectsProgress {
        tool_call_id: CallId,
        progress: EffectsProgress,
    },
    ToolFinished {
        index: usize,
        result: ToolResult,
        latency_ms: u64,
    },
    /// A proposal's files no longer match its plan, or match it again.
    Outdated {
        approval_id: ApprovalId,
        outdated: bool,
    },
    /// The policy changed.
    PolicyChanged(Box<PolicyChange>),
    /// The user's policy files were changed or read.
    RuleFiles(RuleFileResult),
    /// The delay of an `Effect::Wake` has elapsed.
    Woken {
        ticket: u64,
    },
    /// Result of `Effect::OpenModel`, or facts that a server reported about the current model.
    ModelOpened(Result<ModelFacts, Failure>),
    /// The summary model was opened, or its server reported facts about it.
    SummaryModelKnown(ModelFacts),
    /// Result of `Effect::PlanMentions`, in the order of its calls.
    MentionsPlanned {
        ticket: u64,
        plans: Vec<Result<Plan, ToolError>>,
    },
    MentionsRead {
        ticket: u64,
        results: Vec<ToolResult>,
    },
    /// A server or a tool used the model.
    Sampled(SamplingUsage),
    /// A review that runs alongside the conversation used the model.
    Reviewed(Expense),
    /// An agent started by one of the session's calls used the model.
    AgentSpent(Expense),
    /// Result of `Effect::ListChanges`. `changes` is `None` if the changes are unknown. `scripts` is the content of the
    /// scripts that the check mentions.
    ChangesListed {
        ticket: u64,
        changes: Option<ChangedFiles>,
        scripts: String,
    },
    /// Result of `Effect::Rewind`.
    FilesRewound {
        number: u32,
        outcome: Result<FileRewindResult, String>,
    },
}

/// Effect to be performed by the host.
#[derive(Debug)]
pub(crate) enum Effect {
    Commit(Vec<Record>, Durability),
    Emit {
        task_id: Option<TaskId>,
        step_id: Option<StepId>,
        kind: EventKind,
    },
    Request(ModelRequest),
    /// Sends a request to the summary model.
    RequestSummary(ModelRequest),
    StopModel,
    Plan(Vec<(usize, ToolCall)>),
    /// Runs the pre-call hooks of calls that have not been planned yet.
    HookCalls(Vec<(usize, ToolCall)>),
    /// Runs the hooks for an event that they may block or add context to.
    Hook {
        ticket: u64,
        occasion: HookTrigger,
    },
    /// Plans a call again with additional access and the user's amendments. The result is the same as for `Plan`.
    PlanOpened {
        index: usize,
        call: ToolCall,
        opens: Vec<SandboxAccess>,
        amendments: Vec<Amendment>,
    },
    /// Plans an approval's proposal again with an amendment applied. The result is the same as for `Plan`.
    Amend {
        index: usize,
        plan: Plan,
        amendment: Amendment,
    },
    Preview {
        index: usize,
        plan: Plan,
        permit: PreviewPermit,
        ticket: u64,
    },
    /// Reopens the layer in which a call of an earlier process ran, provided its effects still have the given digest.
    /// The result is the same as for `Preview`.
    ReopenLayer {
        index: usize,
        call: ToolCall,
        digest: String,
        ticket: u64,
    },
    /// Stops a preview that is no longer needed.
    StopPreview {
        ticket: u64,
    },
    Run {
        index: usize,
        plan: Plan,
        permit: Permit,
        /// Maximum size of the output in the conversation, in bytes.
        max_bytes: usize,
    },
    /// Interrupts all running calls except file changes, which run to completion.
    InterruptTools,
    KillTools,
    /// Moves the given command to the background or, without an ID, the command that has been running longest.
    Background {
        tool_call_id: Option<CallId>,
    },
    StopCommand {
        id: String,
    },
    Remember {
        grant: RuleGrant,
        until: Option<Timestamp>,
    },
    Forget(RuleGrant),
    ListGrants,
    /// Finds the recent commands, to determine which of them the offered rule would have allowed.
    Recent {
        approval_id: ApprovalId,
        offer: usize,
    },
    Wake {
        after_ms: u64,
        ticket: u64,
    },
    SaveDraft(String),
    /// Lists the files that differ from their state before the given task first changed them, and reads the scripts
    /// that the goal's check mentions.
    ListChanges {
        ticket: u64,
        since: Option<TaskId>,
        check: String,
    },
    /// Plans the calls that read the files mentioned in a prompt.
    PlanMentions {
        ticket: u64,
        calls: Vec<ToolCall>,
    },
    ReadMentions {
        ticket: u64,
        runs: Vec<(Plan, Permit)>,
        /// Server resources to read. Their results follow those of the files.
        resources: Vec<Resource>,
    },
    /// Opens the named model. The result is `Input::ModelOpened`.
    OpenModel {
        /// API key to save before the model is opened, if any.
        key: Option<SecretString>,
        name: String,
    },
    /// Uses the opened model from now on.
    UseModel {
        name: String,
    },
    ListModels {
        ask: bool,
    },
    ReloadPolicy,
    /// Adds each task's file changes to the rewind points and emits the event.
    TellRewindPoints {
        points: Vec<RewindPoint>,
        can_redo: bool,
    },
    /// Adds the effects on files to the rewind plan and emits the event.
    PlanRewind {
        plan: RewindPlan,
        since: Option<RewindStart>,
    },
    Rewind(FileRewind),
    End,
}
