//! What goes into the machine and what comes out of it.

use super::{Grant, PolicyChange, RuleFileResult, Sampled};
use crate::policy::{Permit, PreviewPermit};
use crate::ports::{Delta, Durability, FileRewind, FilesRewound, ModelError, ModelRequest, Plan, Record, Since};
use crate::protocol::{
    Action, Amendment, ApprovalId, CallId, Command, EventKind, Failure, KeyText, ModelFacts, Outside, RewindPlan, RewindPoint,
    StepId, TaskId, ToolCall, ToolError, ToolResult,
};
use jiff::Timestamp;

/// When an input arrives; `jitter` is a random number in 0..1.
#[derive(Debug, Clone, Copy)]
pub struct InputTime {
    pub now: Timestamp,
    pub jitter: f64,
}

/// What a prompt names of a server.
#[derive(Debug)]
pub struct Resource {
    pub server: String,
    pub uri: String,
    /// Why the person is asked before it is read.
    pub asks: Option<String>,
}

/// What planning a call came to.
#[derive(Debug)]
pub struct Planned {
    pub index: usize,
    /// What the call would touch by its arguments alone, whatever its plan found; empty where they name nothing, or where it is known.
    pub scope: Vec<Action>,
    pub plan: Result<Plan, ToolError>,
}

/// What happened.
#[derive(Debug)]
pub enum Input {
    Command(Command),
    Delta(Delta),
    ModelFailed(ModelError),
    Planned(Vec<Planned>),
    /// What became of `Effect::Preview`, by its ticket.
    Previewed {
        index: usize,
        ticket: u64,
        outcome: Result<Plan, ToolError>,
    },
    ToolOutput {
        index: usize,
        text: String,
    },
    ToolFinished {
        index: usize,
        result: ToolResult,
        latency_ms: u64,
    },
    /// What a question would change is not on disk any more as its plan found it, or is so again.
    Outdated {
        approval_id: ApprovalId,
        outdated: bool,
    },
    /// The policy's files changed.
    PolicyChanged(Box<PolicyChange>),
    /// The person's files were changed or read.
    RuleFiles(RuleFileResult),
    /// A wait asked for by `Effect::Wake` is over.
    Woken {
        ticket: u64,
    },
    /// What became of `Effect::OpenModel`, or what a server told of the model that is asked.
    ModelOpened(Result<ModelFacts, Failure>),
    /// What became of `Effect::PlanMentions`, in the order of its calls.
    MentionsPlanned {
        ticket: u64,
        plans: Vec<Result<Plan, ToolError>>,
    },
    MentionsRead {
        ticket: u64,
        results: Vec<ToolResult>,
    },
    /// A server asked the model something of its own.
    Sampled(Sampled),
    /// What became of `Effect::Rewind`.
    FilesRewound {
        number: u32,
        outcome: Result<FilesRewound, String>,
    },
}

/// What to do.
#[derive(Debug)]
pub enum Effect {
    Commit(Vec<Record>, Durability),
    Emit {
        task_id: Option<TaskId>,
        step_id: Option<StepId>,
        kind: EventKind,
    },
    Request(ModelRequest),
    StopModel,
    Plan(Vec<(usize, ToolCall)>),
    /// Plans a call again with something opened for it, and as the person had it; answered as `Plan` is.
    PlanOpened {
        index: usize,
        call: ToolCall,
        opens: Vec<Outside>,
        amendments: Vec<Amendment>,
    },
    /// Plans what was asked about as the person has it; answered as `Plan` is.
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
    /// Nobody waits for this preview any more.
    StopPreview {
        ticket: u64,
    },
    Run {
        index: usize,
        plan: Plan,
        permit: Permit,
        /// Bytes of output that the conversation has room for.
        most_bytes: usize,
    },
    KillTools,
    /// A running command goes on in the background; without an id, the one that runs longest.
    Background {
        tool_call_id: Option<CallId>,
    },
    StopCommand {
        id: String,
    },
    Remember {
        grant: Grant,
        until: Option<Timestamp>,
    },
    Forget(Grant),
    ListGrants,
    /// What this offer of a question would have let through is to be said.
    Recent {
        approval_id: ApprovalId,
        offer: usize,
    },
    Wake {
        after_ms: u64,
        ticket: u64,
    },
    SaveDraft(String),
    /// Plans the reading of files that a prompt names.
    PlanMentions {
        ticket: u64,
        calls: Vec<ToolCall>,
    },
    ReadMentions {
        ticket: u64,
        runs: Vec<(Plan, Permit)>,
        /// What servers are to hand over, each by its server and address; their results come behind the others.
        resources: Vec<Resource>,
    },
    /// Ask this model from now on; answered by `Input::ModelOpened`.
    OpenModel {
        /// Saved before the model is opened.
        key: Option<KeyText>,
        name: String,
    },
    /// Ask the one that was opened from now on.
    UseModel {
        name: String,
    },
    ListModels {
        ask: bool,
    },
    ReloadPolicy,
    /// Fills in what each task changed, and tells it.
    TellRewindPoints {
        points: Vec<RewindPoint>,
        can_redo: bool,
    },
    /// Fills in what would become of files, and tells it.
    PlanRewind {
        plan: RewindPlan,
        since: Option<Since>,
    },
    Rewind(FileRewind),
    End,
}
