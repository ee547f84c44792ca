//! Tool interface. A call is planned, judged by the policy, and then run with a permit.

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

/// Execution context for a tool.
#[derive(Debug, Clone)]
pub(crate) struct RunContext {
    /// ID of the running call.
    pub tool_call_id: Option<CallId>,
    /// Live output. Chunks are dropped when the channel is full, but the result is always complete.
    pub output: mpsc::Sender<String>,
    /// Receives the progress of reading or applying the effects of a command.
    pub progress: ProgressSender,
    /// Fires when the call must be killed.
    pub kill: CancellationToken,
    /// Fires when the user interrupts the task, and whenever `kill` fires. Commands receive `SIGINT` and are killed 2
    /// s later. Calls that only wait or read end early. Calls that change files ignore the token and run to
    /// completion.
    pub interrupt: CancellationToken,
    /// Fires when the user moves a command to the background. The call returns its result immediately while the
    /// command continues.
    pub background: CancellationToken,
    /// Maximum size of the output returned to the conversation, in bytes. A tool never returns more, and the result
    /// of a truncated call describes how to get the rest.
    pub max_bytes: usize,
}

/// Bytes of a call's output limit that are reserved for notes.
const NOTE_BYTES: usize = 1024;

impl RunContext {
    /// Returns a context that discards output and cannot be interrupted.
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

    /// Returns the number of bytes available for output, excluding those reserved for notes.
    pub(crate) fn output_limit(&self) -> usize {
        self.max_bytes - NOTE_BYTES.min(self.max_bytes / 4)
    }
}

/// Plans awaiting approval, each with the states of the paths that it would change.
pub(crate) type PendingPlans = Arc<[(ApprovalId, Vec<PlaceChange>)]>;

pub(crate) trait ToolRouter: Send + Sync {
    /// Returns every tool that may be offered to the model, with its canonical name.
    fn definitions(&self) -> Vec<ToolDefinition>;
    /// Returns the capability that a tool requires, or `None` if no tool has this name.
    fn capability(&self, tool_name: &str) -> Option<&'static str>;
    /// Plans a call. Planning may read files but does not write anything.
    fn plan(&self, call: ToolCall) -> BoxFuture<'_, Result<Plan, ToolError>>;
    /// Returns the actions implied by a call's arguments, without opening files. Works even if planning fails.
    /// Returns an empty list if the arguments are invalid.
    fn scope(&self, call: ToolCall) -> BoxFuture<'_, Vec<Action>> {
        let _ = call;
        Box::pin(std::future::ready(Vec::new()))
    }
    /// Plans a call again with additional access. The plan lists the granted access in `opens` and, for the policy,
    /// in `actions` (a host as `Fetch`, a path as `Write`). Access that cannot be granted is omitted.
    fn plan_with_access(&self, call: ToolCall, opens: Vec<SandboxAccess>) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let _ = opens;
        self.plan(call)
    }
    /// Applies the user's changes to a plan without writing anything. Fails if any of its paths have changed since
    /// planning.
    fn amend(&self, plan: Plan, amendment: Amendment) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let _ = amendment;
        let message = format!("calls to {} cannot be edited; approve the call as proposed or deny it", plan.tool_name);
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::InvalidRequest, message))))
    }
    /// Runs a command in a preview. Running the returned plan applies the preview's changes; dropping the plan
    /// discards them.
    fn preview(&self, plan: Plan, permit: PreviewPermit, context: RunContext) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let _ = (permit, context);
        let message = format!("calls to {} cannot be previewed", plan.tool_name);
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::InvalidRequest, message))))
    }
    /// Reopens the layer of a call that ended in an earlier process, provided its effects still have the given
    /// digest. Returns a plan like the one from `preview` without running anything. On error, the layer is discarded.
    fn reopen_layer(&self, call: ToolCall, digest: String) -> BoxFuture<'_, Result<Plan, ToolError>> {
        drop(digest);
        let message = format!("calls to {} have no layer", call.tool_name);
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::InvalidRequest, message))))
    }
    /// Runs a plan. Fails with `POLICY_DENIED` unless the permit allows all of its actions. Never overwrites a path
    /// that has changed since planning; the call fails with `CONFLICT` instead.
    fn run(&self, plan: Plan, permit: Permit, context: RunContext) -> BoxFuture<'_, ToolResult>;
    /// Reports whether each listed plan's paths differ from their state at planning time, first for every plan whose
    /// paths already differ, then after each change. The stream wakes only when the list or the disk changes, and
    /// ends when the list's sender is dropped.
    fn watch_plans(&self, plans: watch::Receiver<PendingPlans>) -> BoxStream<'static, (ApprovalId, bool)> {
        drop(plans);
        stream::empty().boxed()
    }
    /// Notifies the router that the journal contains the outcome of this call, or of a rewind if `call` is `None`.
    /// Returns without waiting.
    fn outcome_persisted(&self, call: Option<&CallId>) {
        let _ = call;
    }
    /// Switches to the web search offered by the new model's provider, or to none if `search` is `None`.
    fn model_changed(&self, search: Option<Arc<dyn SearchEngine>>) {
        drop(search);
    }
    /// Returns the state of each language server.
    fn language_servers(&self) -> Vec<LanguageServerStatus> {
        Vec::new()
    }
    /// Lists the session's artifacts, oldest first.
    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<Artifact>, ArtifactError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
    /// Returns an artifact and its content as text for the user. Long content is reduced to its start and end.
    fn read_artifact(&self, uri: &str) -> BoxFuture<'_, Result<(Artifact, String), ArtifactError>> {
        let message = format!("no artifact {uri}");
        Box::pin(std::future::ready(Err(ArtifactError { message })))
    }
    /// Attributes subsequent calls to this task.
    fn task_started(&self, task: &TaskId) {
        let _ = task;
    }
    /// Records the user prompt that starts a task.
    fn begin_prompt(&self, prompt: &str) {
        let _ = prompt;
    }
    /// Adds a user message to the running task.
    fn add_message(&self, message: &str) {
        let _ = message;
    }
    /// Records the end of the task.
    fn task_ended(&self) {}
    /// Returns the files that changed since the session started. If a task is given, returns the files that it
    /// changed, compared with their state before its first change.
    fn changed_files(&self, task: Option<TaskId>) -> BoxFuture<'_, ChangedFiles> {
        let _ = task;
        Box::pin(std::future::ready(ChangedFiles::default()))
    }
    /// Returns the content of the workspace's scripts that a goal's check mentions, from which the files that the check
    /// may read are derived.
    fn check_scripts(&self, check: String) -> BoxFuture<'_, String> {
        let _ = check;
        Box::pin(std::future::ready(String::new()))
    }
    /// Attributes subsequent calls to this step of the session.
    fn step_started(&self, step: u64) {
        let _ = step;
    }
    /// Returns the number of file changes made by each task.
    fn task_changes(&self) -> BoxFuture<'_, Vec<TaskChangeCounts>> {
        Box::pin(std::future::ready(Vec::new()))
    }
    /// Plans a file rewind without writing anything.
    fn plan_rewind(&self, since: RewindStart) -> BoxFuture<'_, Result<FileRewindPlan, CheckpointError>> {
        let _ = since;
        Box::pin(std::future::ready(Ok(FileRewindPlan::default())))
    }
    /// Restores files. Repeating a request completes an interrupted rewind. If this returns an error, nothing was
    /// changed.
    fn rewind(&self, rewind: FileRewind) -> BoxFuture<'_, Result<FileRewindResult, CheckpointError>> {
        let _ = rewind;
        Box::pin(std::future::ready(Ok(FileRewindResult::default())))
    }
    /// Runs a call's hooks in a layer with the proposed files and adds the hooks' changes to the plan.
    fn add_hooks(&self, plan: Plan, stop: CancellationToken) -> BoxFuture<'_, Plan> {
        drop(stop);
        Box::pin(std::future::ready(plan))
    }
    /// Runs the post-call hooks in the layer in which the command ran and adds their changes to the command's
    /// effects. On error, nothing in the layer can be applied.
    fn add_hooks_to_effects(&self, plan: Plan, stop: CancellationToken) -> BoxFuture<'_, Result<Plan, ToolError>> {
        drop(stop);
        Box::pin(std::future::ready(Ok(plan)))
    }
    /// Returns the session's hooks, or `None` if it has none.
    fn hooks(&self) -> Option<Arc<dyn Hooks>> {
        None
    }
    /// Stops the background command with this ID, which is the one used by the tools.
    fn stop_command(&self, id: &str) {
        let _ = id;
    }
    /// Stops the agent that runs in the given session.
    fn stop_agent(&self, agent: &SessionId) {
        let _ = agent;
    }
    /// Forwards a user decision to the waiting agent that runs in the given session.
    fn tell_agent(&self, agent: &SessionId, command: Command) {
        let _ = (agent, command);
    }
    /// Stops all background commands and agents. The future completes once they have ended.
    fn end_commands(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
