//! Tool interface: calls are planned, judged, and then run with a permit.

use super::{
    ArtifactError, BoxFuture, CheckpointError, FileRewind, FileRewindPlan, FileRewindResult, Hooks, Plan, ProgressSender,
    RewindStart, SearchEngine, TaskChangeCounts,
};
use crate::policy::{Permit, PreviewPermit};
use crate::protocol::{
    Action, Amendment, ApprovalId, Artifact, CallId, ChangedFiles, Command, ErrorCode, LanguageServerStatus, PlaceChange,
    SandboxAccess, SessionId, TaskId, ToolCall, ToolDefinition, ToolError, ToolResult,
};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Context of a running tool.
#[derive(Debug, Clone)]
pub(crate) struct RunContext {
    /// ID of the running call.
    pub tool_call_id: Option<CallId>,
    /// Live output. Chunks are dropped if the channel is full; the result is always complete.
    pub output: mpsc::Sender<String>,
    /// Receives the progress of reading or applying the effects of a command.
    pub progress: ProgressSender,
    /// Fires when the call must be killed.
    pub kill: CancellationToken,
    /// Fires when the user interrupts the task, and together with `kill`. Commands receive `SIGINT` and are killed 2 s
    /// later; calls that wait or only read end. File changes ignore it and finish.
    pub interrupt: CancellationToken,
    /// Fires when the user moves a command to the background. The call returns a result immediately, and the command
    /// keeps running.
    pub background: CancellationToken,
    /// Maximum size in bytes of output that fits the conversation. A tool never returns more, and its result describes
    /// how to continue.
    pub max_bytes: usize,
}

/// Number of bytes of a call's output limit that are reserved for notes.
const NOTE_BYTES: usize = 1024;

impl RunContext {
    /// Returns a context whose output is discarded and whose call cannot be interrupted.
    pub(crate) fn detached() -> Self {
        let (output, _unwatched) = mpsc::channel(1);
        Self {
            tool_call_id: None,
            output,
            progress: ProgressSender::default(),
            kill: CancellationToken::new(),
            interrupt: CancellationToken::new(),
            background: CancellationToken::new(),
            max_bytes: usize::MAX,
        }
    }

    /// Returns the bytes available for output in addition to the notes.
    pub(crate) fn output_limit(&self) -> usize {
        self.max_bytes - NOTE_BYTES.min(self.max_bytes / 4)
    }
}

/// Plans that wait for approval, with the state of the paths that they would change.
pub(crate) type PendingPlans = Arc<[(ApprovalId, Vec<PlaceChange>)]>;

pub(crate) trait ToolRouter: Send + Sync {
    /// Returns all tools that may be offered to the model, by canonical name.
    fn definitions(&self) -> Vec<ToolDefinition>;
    /// Returns the capability that a tool requires; `None` for an unknown name.
    fn capability(&self, tool_name: &str) -> Option<&'static str>;
    /// Plans a call. May read files, but writes nothing.
    fn plan(&self, call: ToolCall) -> BoxFuture<'_, Result<Plan, ToolError>>;
    /// Returns the actions of a call, derived from its arguments without opening files, so that it works even if
    /// planning fails. Empty if the arguments are invalid.
    fn scope(&self, call: ToolCall) -> BoxFuture<'_, Vec<Action>> {
        let _ = call;
        Box::pin(std::future::ready(Vec::new()))
    }
    /// Plans a call again with this access. The plan lists granted access in `opens` and, for judgement, in `actions`
    /// (a host as `Fetch`, a path as `Write`). Access that cannot be granted is omitted.
    fn plan_with_access(&self, call: ToolCall, opens: Vec<SandboxAccess>) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let _ = opens;
        self.plan(call)
    }
    /// Applies the user's changes to a plan without writing anything. Fails if paths have changed since the call was
    /// planned.
    fn amend(&self, plan: Plan, amendment: Amendment) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let _ = amendment;
        let message = format!("calls to {} cannot be edited; approve the call as proposed or deny it", plan.tool_name);
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::InvalidRequest, message))))
    }
    /// Runs a command in a preview. Running the returned plan applies its changes; dropping that plan discards them.
    fn preview(&self, plan: Plan, permit: PreviewPermit, context: RunContext) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let _ = (permit, context);
        let message = format!("calls to {} cannot be previewed", plan.tool_name);
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::InvalidRequest, message))))
    }
    /// Opens the layer of a call that ended in an earlier process, if its effects still have this digest. Returns a
    /// plan like `preview` does. Nothing runs; on an error, the layer is discarded.
    fn reopen_layer(&self, call: ToolCall, digest: String) -> BoxFuture<'_, Result<Plan, ToolError>> {
        drop(digest);
        let message = format!("calls to {} have no layer", call.tool_name);
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::InvalidRequest, message))))
    }
    /// Runs a plan. Fails with `POLICY_DENIED` unless the permit covers its actions. Paths that changed since planning
    /// are never overwritten; the error is `CONFLICT`.
    fn run(&self, plan: Plan, permit: Permit, context: RunContext) -> BoxFuture<'_, ToolResult>;
    /// Reports for each listed plan whether its paths differ from the planned state: immediately if they do, and on
    /// every change. It wakes only for changes of the list and of the disk, and ends when the list is dropped.
    fn watch_plans(&self, plans: watch::Receiver<PendingPlans>) -> BoxStream<'static, (ApprovalId, bool)> {
        drop(plans);
        stream::empty().boxed()
    }
    /// Notifies the router that the journal contains the outcome of this call, or of a rewind if `None`. Does not wait.
    fn outcome_persisted(&self, call: Option<&CallId>) {
        let _ = call;
    }
    /// Switches to the web search of another model's provider; `None` if it has none.
    fn model_changed(&self, search: Option<Arc<dyn SearchEngine>>) {
        drop(search);
    }
    /// Returns the state of each language server.
    fn language_servers(&self) -> Vec<LanguageServerStatus> {
        Vec::new()
    }
    /// Lists the artifacts of this session, oldest first.
    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<Artifact>, ArtifactError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
    /// Returns the content of an artifact as text for the user; only start and end if it is long.
    fn read_artifact(&self, uri: &str) -> BoxFuture<'_, Result<(Artifact, String), ArtifactError>> {
        let message = format!("no artifact {uri}");
        Box::pin(std::future::ready(Err(ArtifactError { message })))
    }
    /// Assigns the following calls to this task.
    fn task_started(&self, task: &TaskId) {
        let _ = task;
    }
    /// Begins a task with this user prompt.
    fn begin_prompt(&self, prompt: &str) {
        let _ = prompt;
    }
    /// Adds a user message to the running task.
    fn add_message(&self, message: &str) {
        let _ = message;
    }
    /// Ends the task.
    fn task_ended(&self) {}
    /// Returns the files that changed since the start of the session, or since the first change of a task.
    fn changed_files(&self, task: Option<TaskId>) -> BoxFuture<'_, ChangedFiles> {
        let _ = task;
        Box::pin(std::future::ready(ChangedFiles::default()))
    }
    /// Assigns the following calls to this step of the session.
    fn step_started(&self, step: u64) {
        let _ = step;
    }
    /// Returns the file changes of each task.
    fn task_changes(&self) -> BoxFuture<'_, Vec<TaskChangeCounts>> {
        Box::pin(std::future::ready(Vec::new()))
    }
    /// Plans a rewind of files; nothing is written.
    fn plan_rewind(&self, since: RewindStart) -> BoxFuture<'_, Result<FileRewindPlan, CheckpointError>> {
        let _ = since;
        Box::pin(std::future::ready(Ok(FileRewindPlan::default())))
    }
    /// Restores files. Repeating a request completes an interrupted rewind. On an error, nothing was changed.
    fn rewind(&self, rewind: FileRewind) -> BoxFuture<'_, Result<FileRewindResult, CheckpointError>> {
        let _ = rewind;
        Box::pin(std::future::ready(Ok(FileRewindResult::default())))
    }
    /// Runs the hooks of a call in a layer with its proposed files, and adds their changes to the plan.
    fn add_hooks(&self, plan: Plan, stop: CancellationToken) -> BoxFuture<'_, Plan> {
        drop(stop);
        Box::pin(std::future::ready(plan))
    }
    /// Runs the hooks after a command in the layer in which it ran, and adds their changes to its effects. On an error,
    /// nothing of the layer can be applied.
    fn add_hooks_to_effects(&self, plan: Plan, stop: CancellationToken) -> BoxFuture<'_, Result<Plan, ToolError>> {
        drop(stop);
        Box::pin(std::future::ready(Ok(plan)))
    }
    /// Returns the hooks of the session; `None` if there are none.
    fn hooks(&self) -> Option<Arc<dyn Hooks>> {
        None
    }
    /// Ends a background command, by the ID that the tools use.
    fn stop_command(&self, id: &str) {
        let _ = id;
    }
    /// Stops an agent, by the ID of its session.
    fn stop_agent(&self, agent: &SessionId) {
        let _ = agent;
    }
    /// Forwards a decision to a waiting agent, by its session ID.
    fn tell_agent(&self, agent: &SessionId, command: Command) {
        let _ = (agent, command);
    }
    /// Ends all background commands and agents; completes when they have exited.
    fn end_commands(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
