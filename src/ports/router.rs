//! Tools: planned first, judged, then run with the permit.

use super::{
    ArtifactError, BoxFuture, CheckpointError, Doubts, FileRewind, FilesPlanned, FilesRewound, LayerRun, Since, TaskChanges,
};
use crate::policy::{Permit, PreviewPermit};
use crate::protocol::{
    Action, Amendable, Amendment, ApprovalId, Artifact, CallId, ChangedFiles, Effects, ErrorCode, Outside, PlaceChange,
    PreviewOffer, Proposal, TaskId, ToolCall, ToolDefinition, ToolError, ToolResult,
};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// What a call would touch and what it would change; nothing is written yet.
pub struct Plan {
    pub call: ToolCall,
    /// The tool's canonical name.
    pub tool_name: String,
    /// One line for people: `Edit src/main.rs`, `$ cargo test`.
    pub summary: String,
    pub actions: Vec<Action>,
    /// Present for tools that change something.
    pub proposal: Option<Proposal>,
    /// Whether running it can change anything; reads need no commit before they run.
    pub changes: bool,
    /// What stands at each place before it and after it, as far as that is known: after a crash the disk tells whether it ran.
    pub places: Vec<PlaceChange>,
    /// Files whose content it would run: a call before it may still change them.
    pub runs: Vec<PathBuf>,
    /// Whether its effects can be shown before they happen.
    pub preview: PreviewOffer,
    /// What it did in its view already; running the plan keeps that.
    pub effects: Option<Box<Effects>>,
    /// Whether it can run in a layer before anybody is asked, and what it did there.
    pub layer: LayerRun,
    /// What it opens, beyond what commands may do.
    pub opens: Vec<Outside>,
    /// For commands: seconds until it is killed.
    pub timeout_seconds: u64,
    /// What holds this very command, in words, where it is not what holds them all.
    pub sandbox: Option<String>,
    /// Why the user is asked although the policy allows it.
    pub doubts: Doubts,
    /// How the person may have it otherwise.
    pub amends: Amends,
    /// What the tool keeps between plan and run; only its own router looks inside.
    pub payload: Box<dyn Any + Send>,
}

impl Plan {
    /// Of a call that changes, to be filled in: it touches nothing yet, and asks for nothing.
    pub fn bare(call: ToolCall, tool_name: String, payload: Box<dyn Any + Send>) -> Self {
        Self {
            call,
            tool_name,
            summary: String::new(),
            actions: Vec::new(),
            proposal: None,
            changes: true,
            places: Vec::new(),
            runs: Vec::new(),
            preview: PreviewOffer::None,
            effects: None,
            layer: LayerRun::None,
            opens: Vec::new(),
            timeout_seconds: 0,
            sandbox: None,
            doubts: Doubts::default(),
            amends: Amends::default(),
            payload,
        }
    }
}

/// How a plan can be changed by the person, and how it was.
#[derive(Debug, Clone, Default)]
pub struct Amends {
    pub offer: Amendable,
    /// Of each file that is offered what its text would be, without what is secret in it.
    pub texts: Vec<String>,
    /// What the model is told of what the person changed.
    pub told: Option<String>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("call", &self.call).field("actions", &self.actions).finish_non_exhaustive()
    }
}

/// What a running tool is given.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// The call that runs; its router knows it.
    pub tool_call_id: Option<CallId>,
    /// Live output, lossy: a full channel drops the chunk, the result has it all.
    pub output: mpsc::Sender<String>,
    /// Fires when the person wants running commands killed.
    pub kill: CancellationToken,
    /// Fires when the person wants a running command to go on in the background: it comes to a result at once, and runs on.
    pub background: CancellationToken,
    /// Bytes of output that the conversation has room for; a tool tells no more, and says how to go on.
    pub most_bytes: usize,
}

/// Bytes of a call's room in the conversation that are for notes about its output, at most.
const NOTE_BYTES: usize = 1024;

impl RunContext {
    /// Bytes of output that a call may tell beside the notes about it.
    pub fn room(&self) -> usize {
        self.most_bytes - NOTE_BYTES.min(self.most_bytes / 4)
    }
}

/// Plans that are asked about, by their questions, and what they found at the places that they would change.
pub type Followed = Arc<[(ApprovalId, Vec<PlaceChange>)]>;

pub trait ToolRouter: Send + Sync {
    /// What the model may be offered, canonical names only.
    fn definitions(&self) -> Vec<ToolDefinition>;
    /// The capability a tool needs; `None` for a name nobody knows.
    fn capability(&self, tool_name: &str) -> Option<&'static str>;
    /// Reads what it must to say what would happen; writes nothing.
    fn plan(&self, call: ToolCall) -> BoxFuture<'_, Result<Plan, ToolError>>;
    /// What a call would touch by its arguments alone: nothing is opened, and it says so also where the call cannot be planned. Empty
    /// where the arguments are no arguments of the tool.
    fn scope(&self, call: ToolCall) -> BoxFuture<'_, Vec<Action>> {
        let _ = call;
        Box::pin(std::future::ready(Vec::new()))
    }
    /// The same call again, with these places opened for it. What is opened stands in the plan's `opens`, and as actions
    /// to be judged among its `actions` (a host as `Fetch`, a place as `Write`); what cannot be opened is left out.
    fn plan_opened(&self, call: ToolCall, opens: Vec<Outside>) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let _ = opens;
        self.plan(call)
    }
    /// The same call as the person has it; nothing is written. What stood at its places when it was planned is what has to stand
    /// there when it is run.
    fn amend(&self, plan: Plan, amendment: Amendment) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let _ = amendment;
        let message = format!("a call of {} cannot be edited; approve it as proposed or deny it", plan.tool_name);
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::InvalidRequest, message))))
    }
    /// Runs a command in a view of its own. What comes back is the plan that keeps what it did there; dropping that plan drops it.
    fn preview(&self, plan: Plan, permit: PreviewPermit, context: RunContext) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let _ = (permit, context);
        let message = format!("a call of {} cannot be previewed", plan.tool_name);
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::InvalidRequest, message))))
    }
    /// Does what was planned. The permit must cover the plan's actions, else `POLICY_DENIED`.
    /// What changed since the plan was made is never overwritten: `CONFLICT`.
    fn run(&self, plan: Plan, permit: Permit, context: RunContext) -> BoxFuture<'_, ToolResult>;
    /// Says of each plan in the list whether something else stands at its places than it found there: where that is so, and whenever it
    /// changes. It wakes for changes of the list and of the disk, and for nothing else; it ends when nobody has the list any more.
    fn follow(&self, plans: watch::Receiver<Followed>) -> BoxStream<'static, (ApprovalId, bool)> {
        drop(plans);
        stream::empty().boxed()
    }
    /// What this call came to is in the journal; or what a rewind came to, where none is named. Whoever is told of it is told now,
    /// and nobody waits here.
    fn journaled(&self, call: Option<&CallId>) {
        let _ = call;
    }
    /// What this session kept whole, the oldest first.
    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<Artifact>, ArtifactError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
    /// What one of them holds, as text for the person; of a long one the start and the end.
    fn read_artifact(&self, uri: &str) -> BoxFuture<'_, Result<(Artifact, String), ArtifactError>> {
        let message = format!("no artifact {uri}");
        Box::pin(std::future::ready(Err(ArtifactError { message })))
    }
    /// What runs from now on belongs to this task.
    fn began(&self, task: &TaskId) {
        let _ = task;
    }
    /// What is not as it was when the session began; with a task, when that first changed it.
    fn changed_files(&self, task: Option<TaskId>) -> BoxFuture<'_, ChangedFiles> {
        let _ = task;
        Box::pin(std::future::ready(ChangedFiles::default()))
    }
    /// What runs from now on belongs to this step of the session.
    fn stepped(&self, step: u64) {
        let _ = step;
    }
    /// What each task changed of files.
    fn task_changes(&self) -> BoxFuture<'_, Vec<TaskChanges>> {
        Box::pin(std::future::ready(Vec::new()))
    }
    /// What going back would do to files; nothing is written.
    fn plan_rewind(&self, since: Since) -> BoxFuture<'_, Result<FilesPlanned, CheckpointError>> {
        let _ = since;
        Box::pin(std::future::ready(Ok(FilesPlanned::default())))
    }
    /// Puts files back. What was begun and not done to its end is done when the same is asked for again. An error: nothing was done.
    fn rewind(&self, rewind: FileRewind) -> BoxFuture<'_, Result<FilesRewound, CheckpointError>> {
        let _ = rewind;
        Box::pin(std::future::ready(Ok(FilesRewound::default())))
    }
    /// Ends a command that goes on while the agent works, by the id the tools give it.
    fn stop_command(&self, id: &str) {
        let _ = id;
    }
    /// Ends all of them; ready once they are gone.
    fn end_commands(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
