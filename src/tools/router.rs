//! Implements the tool router port: finds tools by name, plans calls, and runs each plan only with a permit for it.

use super::agents::AGENT;
use super::amendment::{amend_by_hooks, amend_plan, offered_amendments};
use super::annotations::ToolDetails;
use super::arguments::object;
use super::call_result::CallResult;
use super::changes::{self, SessionChanges};
use super::check_scripts::read_scripts;
use super::deferred_error::{DeferredError, plan_with_deferred_error, unreadable_actions};
use super::definition::{concise, definition};
use super::diagnostics::{WrittenTexts, add_new_errors, add_to_plan, changed_files as changed_files_of};
use super::draft::CallEffect;
use super::editor_check::{changed_files, check_before_planning};
use super::error::invalid;
use super::executable_files::mark_by_actions;
use super::mcp::RemoteTools;
use super::output::{KEPT_FROM_BYTES, keep_diff, preview_for_user, uris, with_uploads};
use super::preimage_watch::follow;
use super::redaction::{hide_in_error, hide_in_proposal, hide_in_result, refuse};
use super::registry::{built_in_names, canonical_name};
use super::settings::ToolSettings;
use super::shell::amendment::add_amendments as command_offered;
use super::shell::unapproved_run;
use super::tool::{AnyTool, Payload};
use super::toolset::Toolset;
use crate::policy::redact::Redactor;
use crate::policy::{Permit, PreviewPermit, PreviewRun};
use crate::ports::{
    ArtifactError, Artifacts, BoxFuture, CheckpointError, Doubts, FileRewind, FileRewindPlan, FileRewindResult, Hooks, LayerRun,
    PendingPlans, Plan, PlanAmendments, ProposedText, RewindStart, RunContext, SearchEngine, TaskChangeCounts, ToolRouter,
};
use crate::protocol::{
    Action, Amendable, Amendment, ApprovalId, Artifact, CallId, ChangedFiles, Command, DiscardedEffect, ErrorCode,
    LanguageServerStatus, PreviewOffer, Proposal, SandboxAccess, SessionId, TaskId, TaskPlan, ToolCall, ToolDefinition,
    ToolError, ToolResult, ToolStatus,
};
use crate::tools::blocking::off_thread;
use crate::tools::custom::is_chain;
use crate::tools::hooks::{ChangedText, CommandHooks, HookRunner, notes};
use crate::tools::on_demand::{FIND_TOOLS, with_hint};
use crate::tools::paths::display_path_one_line;
use crate::tools::session_skills::SKILL;
use crate::tools::sessions::cli_write::PlannedInput as Typed;
use crate::tools::shell::checkpoint;
use crate::tools::shell::command_run::PlannedCommand;
use crate::tools::shell::network;
use crate::tools::shell::preview::{
    self, CommittedRun, PreviewRunResult, PreviewedCommand, RecoveryResult, ResumedSession, UndecidedLayer, recover,
};
use crate::tools::text::{draft_call, running};
use crate::tools::write::apply_patch_file::review_reason;
use futures_util::FutureExt;
use futures_util::stream::BoxStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The tools available in one workspace.
pub(crate) struct Router {
    tools: Arc<Toolset>,
    /// Outcomes that remain on disk, in case of a crash, until the session has recorded them.
    settled: Mutex<Vec<CommittedRun>>,
    /// Layers left behind by an earlier process, until the session applies or discards their effects.
    undecided: Mutex<Vec<UndecidedLayer>>,
}

/// Maximum number of outcomes on disk that the session may not have recorded yet.
const SETTLED: usize = 16;

impl Router {
    pub(crate) fn new(tools: Toolset) -> Self {
        Self { tools: Arc::new(tools), settled: Mutex::new(Vec::new()), undecided: Mutex::new(Vec::new()) }
    }

    fn settings(&self) -> &Arc<ToolSettings> {
        self.tools.settings()
    }

    /// Returns the definition of the tool with this name or alias.
    pub(crate) fn definition(&self, name: &str) -> Result<ToolDefinition, ToolError> {
        let tool = self.tools.resolve(name)?;
        let own =
            tool.offered_name() != tool.name() || tool.name().eq_ignore_ascii_case(name) && !tool.alias_names().contains(&name);
        let called = if own { tool.offered_name() } else { name };
        Ok(definition(&*tool, called))
    }

    /// Returns the names of all tools, for display in user interfaces. Includes tools that have not been loaded yet.
    pub(crate) fn available(&self) -> Vec<String> {
        self.tools.available().into_iter().map(|tool| tool.offered_name().to_owned()).collect()
    }

    /// Returns the names that policies use for all tools, whether or not the settings and the policy allow them.
    pub(crate) fn full_names(&self) -> Vec<String> {
        let mut names: Vec<String> = built_in_names().map(str::to_owned).collect();
        names.extend(self.tools.local().map(|tool| tool.name().to_owned()));
        names.extend(self.remote().into_iter().flat_map(RemoteTools::full_names));
        names.extend([FIND_TOOLS, SKILL, AGENT].map(str::to_owned));
        names
    }

    /// Returns the details of a tool that other agents receive, or `None` if it is not available to them.
    pub(crate) fn details_for_client(&self, name: &str) -> Option<ToolDetails> {
        let tool = self.tools.resolve(name).ok()?;
        Some(ToolDetails { hints: tool.hints()?, output_schema: tool.output_schema() })
    }

    /// Returns the name that policies use for a tool.
    pub(crate) fn full_name(&self, name: &str) -> Option<String> {
        self.tools.resolve(name).ok().map(|tool| tool.name().to_owned())
    }

    /// Returns the MCP tools that were available when the router was created.
    pub(crate) fn remote(&self) -> Option<&RemoteTools> {
        self.tools.remote()
    }

    /// Recovers previews whose process died while their changes were being applied, and cleans up all others. Must be
    /// called before any command runs. `bases` are the directories that contain previews. `awaits` returns whether,
    /// according to the session's journal, a call has started but has no result. `undecided` returns whether the
    /// effects in a call's layer have yet to be decided on.
    pub(crate) fn recover(
        &self,
        bases: &[PathBuf],
        awaits: &dyn Fn(&CallId) -> bool,
        undecided: &dyn Fn(&CallId) -> bool,
    ) -> RecoveryResult {
        let resumed = self.settings().session.id.as_ref().map(|session| ResumedSession { session, awaits, undecided });
        let mut recovered = recover(bases, resumed.as_ref());
        *self.undecided.lock().unwrap_or_else(PoisonError::into_inner) = std::mem::take(&mut recovered.undecided);
        recovered
    }

    /// Removes the undecided layer of a call from the list and returns it. Dropping the returned value deletes the
    /// layer from disk.
    fn take_undecided(&self, call: &CallId) -> Option<UndecidedLayer> {
        let mut undecided = self.undecided.lock().unwrap_or_else(PoisonError::into_inner);
        let place = undecided.iter().position(|layer| layer.is_of(call))?;
        let mut layer = undecided.remove(place);
        layer.remove_on_drop();
        Some(layer)
    }

    /// Applies the effects of a previewed command.
    async fn commit_preview(
        &self,
        command: PreviewedCommand,
        (id, tool_name): (CallId, String),
        (proposal, discarded): (Option<Proposal>, Vec<DiscardedEffect>),
        settings: Arc<ToolSettings>,
        context: RunContext,
    ) -> ToolResult {
        let before = checkpoint::snapshot_before_tool(&settings, &context.kill).await;
        let written = WrittenTexts::of_command(changed_files_of(&command, &settings), &settings).await;
        let (result, settled) = preview::commit(command, id, tool_name, discarded, Arc::clone(&settings), context.progress).await;
        if let Ok(Some(before)) = before {
            before.record_own_changes(&settings).await;
        }
        if let Some(settled) = settled {
            self.keep_settled(settled);
        }
        let written = match written {
            Some(written) => written.without_discarded().await,
            None => None,
        };
        let result = add_new_errors(written, result, proposal.as_ref(), &settings.workspace).await;
        with_diff(result, proposal, settings).await
    }

    /// Plans a call on a blocking thread and redacts the plan.
    async fn plan_blocking(&self, call: ToolCall, opens: Vec<SandboxAccess>) -> Result<Plan, ToolError> {
        let tools = Arc::clone(&self.tools);
        let redactor = Arc::clone(&tools.settings().redactor);
        check_before_planning(&call, &tools).await.map_err(|error| hide_in_error(&redactor, error))?;
        let planned = tokio::task::spawn_blocking(move || {
            let name = call.tool_name.clone();
            let plan = plan(call, &tools).and_then(|plan| open(plan, opens, tools.settings()));
            plan.map_err(|error| prefer_denial(&name, error, &tools)).map_err(|error| hide_in_error(&redactor, error)).map(
                |plan| Plan {
                    summary: redactor.redact(&plan.summary).text.into_owned(),
                    proposal: plan.proposal.map(|proposal| hide_in_proposal(&redactor, proposal)),
                    ..plan
                },
            )
        })
        .await;
        planned.unwrap_or_else(|_| {
            Err(ToolError::new(ErrorCode::ToolExecutionFailed, "the call could not be planned: the tool crashed"))
        })
    }

    /// Adds language server diagnostics to a plan.
    async fn with_diagnostics(&self, plan: Plan) -> Plan {
        match self.tools.resolve(&plan.call.tool_name) {
            Ok(tool) => add_to_plan(plan, &*tool, self.settings()).await,
            Err(_) => plan,
        }
    }

    /// Runs a call's hooks on its proposal before the call runs, and adds the changes that they make to the plan.
    async fn with_hooks(&self, plan: Plan, stop: CancellationToken) -> Plan {
        let Some(hooks) = self.settings().session.hooks.clone().filter(|_| plan.changes && plan.proposal.is_some()) else {
            return plan;
        };
        let runner = HookRunner::new(Arc::clone(&self.tools), hooks);
        let Some(proposal) = runner.hooked_proposal(&plan) else { return plan };
        let texts = proposal.texts.clone();
        let Some(mut hooked) = runner.run_on(proposal, &stop).await.filter(|_| !stop.is_cancelled()) else { return plan };
        let mut plan = plan;
        if !hooked.changed.is_empty() {
            match self.plan_with_texts(plan.call.clone(), texts, &hooked.changed).await {
                Ok(amended) => {
                    hooked.describe_changes(self.settings());
                    plan = self.with_diagnostics(amended).await;
                }
                Err(error) => hooked.discard_changes(&error.message),
            }
        }
        if let Some(proposal) = &mut plan.proposal {
            proposal.notes.extend(hooked.notes());
        }
        Plan { hook_runs: Some(hooked.runs), ..plan }
    }

    /// Runs the hooks that follow a command in the command's layer, and adds the changes that they make to its effects.
    async fn with_hooks_in_layer(&self, mut plan: Plan, stop: CancellationToken) -> Result<Plan, ToolError> {
        let Some(hooks) = self.settings().session.hooks.clone().filter(|_| plan.hook_runs.is_none()) else { return Ok(plan) };
        let runner = HookRunner::new(Arc::clone(&self.tools), hooks);
        let Some(hooks) = CommandHooks::new(&runner, &plan) else { return Ok(plan) };
        let mut command = match std::mem::replace(&mut plan.payload, Box::new(())).downcast::<PreviewedCommand>() {
            Ok(command) => *command,
            Err(payload) => return Ok(Plan { payload, ..plan }),
        };
        let redactor = &self.settings().redactor;
        let before = std::mem::take(&mut command.plan_notes);
        let (trial, runs) = hooks.run(command, &stop).await.map_err(|error| hide_in_error(redactor, error))?;
        let taken = plan.proposal.take().unwrap_or_default();
        let (summary, usual_notes) = (taken.summary, taken.usual_notes);
        plan.proposal = Some(Proposal { summary, notes: before, usual_notes, ..Proposal::default() });
        let mut plan = self.with_diagnostics(with_effects(plan, trial, redactor)).await;
        if let (Some(proposal), Some(runs)) = (&mut plan.proposal, &runs) {
            proposal.notes.extend(notes(runs));
        }
        Ok(Plan { hook_runs: runs, ..plan })
    }

    /// Plans the call of `before` again, but with different content for its files.
    async fn plan_with_texts(
        &self,
        call: ToolCall,
        before: Vec<ProposedText>,
        changed: &[ChangedText],
    ) -> Result<Plan, ToolError> {
        let again = self.plan_blocking(call, Vec::new()).await?;
        if self.tools.resolve(&again.call.tool_name)?.proposed_texts(&again.payload) != before {
            return Err(ToolError::new(ErrorCode::Conflict, "a file that the call changes was modified while the hooks ran"));
        }
        let settings = self.settings();
        let named = |text: &ChangedText| (display_path_one_line(&text.path, settings), text.now.clone());
        let (texts, tools) = (changed.iter().map(named).collect::<Vec<_>>(), Arc::clone(&self.tools));
        let amended = tokio::task::spawn_blocking(move || amend_by_hooks(again, texts, &tools)).await;
        let amended = amended.unwrap_or_else(|_| Err(invalid("the tool crashed")));
        amended.map_err(|error| hide_in_error(&settings.redactor, error))
    }

    /// Simulates that the process was killed. All data on disk remains.
    #[cfg(test)]
    pub(in crate::tools) fn forget(&self) {
        let kept = std::mem::take(&mut *self.settled.lock().unwrap_or_else(PoisonError::into_inner));
        kept.into_iter().for_each(CommittedRun::abandon);
    }

    fn keep_settled(&self, settled: CommittedRun) {
        let mut kept = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(settled);
        let told = kept.len().saturating_sub(SETTLED);
        kept.drain(..told);
    }
}

impl ToolRouter for Router {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.offered_tools().into_iter().map(concise).collect()
    }

    fn capability(&self, tool_name: &str) -> Option<&'static str> {
        self.tools.resolve(tool_name).ok().map(|tool| tool.capability())
    }

    fn plan(&self, call: ToolCall) -> BoxFuture<'_, Result<Plan, ToolError>> {
        async move { Ok(self.with_diagnostics(self.plan_blocking(call, Vec::new()).await?).await) }.boxed()
    }

    fn scope(&self, call: ToolCall) -> BoxFuture<'_, Vec<Action>> {
        let tools = Arc::clone(&self.tools);
        async move {
            let scope = move || {
                let named = tools.actions_now(&call.tool_name, &call.arguments);
                named.or_else(|_| tools.actions_for(&call.tool_name, &call.arguments)).unwrap_or_default()
            };
            tokio::task::spawn_blocking(scope).await.unwrap_or_default()
        }
        .boxed()
    }

    fn plan_with_access(&self, call: ToolCall, opens: Vec<SandboxAccess>) -> BoxFuture<'_, Result<Plan, ToolError>> {
        self.plan_blocking(call, opens).boxed()
    }

    fn amend(&self, plan: Plan, amendment: Amendment) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let tools = Arc::clone(&self.tools);
        async move {
            let redactor = Arc::clone(&tools.settings().redactor);
            let amended = tokio::task::spawn_blocking(move || amend_plan(plan, &amendment, &tools)).await;
            let amended = amended.unwrap_or_else(|_| Err(invalid("the call could not be edited: the tool crashed")));
            let amended = amended.map_err(|error| hide_in_error(&redactor, error))?;
            Ok(self.with_diagnostics(amended).await)
        }
        .boxed()
    }

    fn preview(&self, plan: Plan, permit: PreviewPermit, context: RunContext) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let settings = Arc::new(match permit.run() {
            PreviewRun::Requested => self.settings().for_preview(),
            PreviewRun::BeforeApproval if !permit.hosts().is_empty() => self.settings().for_layer().for_named_program(),
            PreviewRun::BeforeApproval | PreviewRun::WithAccess => self.settings().for_layer(),
        });
        async move {
            if !permit.covers(&plan.actions) {
                return Err(ToolError::new(ErrorCode::PolicyDenied, "the approval was given for a different call"));
            }
            check_previewable(&plan, &permit)?;
            let mut plan = plan;
            let payload = std::mem::replace(&mut plan.payload, Box::new(()));
            let Ok(mut work) = payload.downcast::<PlannedCommand>() else {
                return Err(invalid(format!("{} cannot be previewed", plan.tool_name)));
            };
            work.opens.extend(permit.hosts().iter().cloned());
            let redactor = Arc::clone(&settings.redactor);
            let (id, tool_name) = (plan.call.tool_call_id.clone(), plan.tool_name.clone());
            let trial = preview::run(*work, id, tool_name, settings, context).await;
            let trial = trial.map_err(|error| hide_in_error(&redactor, error))?;
            Ok(self.with_diagnostics(with_effects(plan, trial, &redactor)).await)
        }
        .boxed()
    }

    fn reopen_layer(&self, call: ToolCall, digest: String) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let settings = Arc::new(self.settings().for_layer());
        async move {
            let layer = self.take_undecided(&call.tool_call_id);
            let layer = layer.ok_or_else(|| invalid("the copy in which the command ran no longer exists"))?;
            let plan = self.plan_blocking(call, Vec::new()).await?;
            let redactor = Arc::clone(&settings.redactor);
            let trial = off_thread(move || preview::reopen(layer, &digest, &settings)).await?;
            let trial = trial.map_err(|error| hide_in_error(&redactor, error))?;
            Ok(with_effects(plan, trial, &redactor))
        }
        .boxed()
    }

    fn watch_plans(&self, plans: watch::Receiver<PendingPlans>) -> BoxStream<'static, (ApprovalId, bool)> {
        follow(plans)
    }

    fn model_changed(&self, search: Option<Arc<dyn SearchEngine>>) {
        self.settings().session.search.set_model(search);
    }

    fn run(&self, plan: Plan, permit: Permit, context: RunContext) -> BoxFuture<'_, ToolResult> {
        // A call that is allowed as read-only must not be able to change anything.
        let settings = if permit.reads_only() || unapproved_run::starts_programs(&plan.actions) {
            Arc::new(self.settings().for_permit(&permit))
        } else {
            Arc::clone(self.settings())
        };
        let uploads = settings.session.uploads.clone();
        async move {
            let id = plan.call.tool_call_id.clone();
            if !permit.covers(&plan.actions) {
                let error = ToolError::new(ErrorCode::PolicyDenied, "the approval was given for a different call");
                return ToolResult::from_error(id, plan.tool_name, error);
            }
            // Resolve the called name, because the tool's own name may refer to an MCP tool.
            let tool = match self.tools.resolve(&plan.call.tool_name) {
                Ok(tool) => tool,
                Err(error) => return ToolResult::from_error(id, plan.tool_name, error),
            };
            let payload: Payload = match plan.payload.downcast::<DeferredError>() {
                Ok(late) => return ToolResult::from_error(id, plan.tool_name, hide_in_error(&settings.redactor, late.0)),
                Err(payload) => payload,
            };
            let payload = match payload.downcast::<PreviewedCommand>() {
                Ok(_) if permit.reads_only() => {
                    let error = ToolError::new(
                        ErrorCode::PolicyDenied,
                        "plan mode does not write files; the command's changes were discarded",
                    );
                    return ToolResult::from_error(id, plan.tool_name, error);
                }
                Ok(command) => {
                    let (call, seen) = ((id, plan.tool_name), (plan.proposal, plan.amends.discarded));
                    return self.commit_preview(*command, call, seen, settings, context).await;
                }
                Err(payload) => payload,
            };
            if let Err(error) = may_leave_sandbox(&payload, &permit) {
                return ToolResult::from_error(id, plan.tool_name, error);
            }
            let redactor = Arc::clone(&settings.redactor);
            let proposal = plan.proposal;
            let settings = running(&plan.tool_name, &plan.call.tool_name, &settings);
            let context = RunContext { tool_call_id: Some(id.clone()), max_bytes: context.output_limit(), ..context };
            let settings = with_output_limit(settings, &payload, context.max_bytes);
            let places = if plan.changes { changes::changed_paths(&plan.actions) } else { Vec::new() };
            let tracked = settings.session.changes.as_ref().filter(|_| !places.is_empty());
            let mut kept = None;
            if let (Some(log), Some(changes)) = (tracked, SessionChanges::new(&settings)) {
                changes.note_others().await;
                kept = Some(log.keep(places).await);
            }
            let changes = if plan.changes { plan.actions.as_slice() } else { &[] };
            let ready = check_before_run(&*tool, changes, &id, &settings, &context.interrupt).await;
            let written = WrittenTexts::new(&*tool, &payload, &settings).filter(|_| plan.changes);
            let done = match ready {
                Ok(()) => tool.run(payload, Arc::clone(&settings), context).await,
                Err(error) => Err(error.into()),
            };
            let mut result = to_result(done, id, plan.tool_name);
            if let (Some(log), Some(kept)) = (tracked, kept) {
                log.record_saved(kept).await;
            }
            result = add_new_errors(written, result, proposal.as_ref(), &settings.workspace).await;
            with_diff(hide_in_result(&redactor, result), proposal, settings).await
        }
        .then(|result| with_uploads(result, uploads))
        .boxed()
    }

    fn outcome_persisted(&self, call: Option<&CallId>) {
        if let Some(editor) = &self.settings().session.editor {
            editor.notify_journaled(call);
        }
        drop(call.and_then(|call| self.take_undecided(call)));
    }

    fn language_servers(&self) -> Vec<LanguageServerStatus> {
        self.settings().session.diagnostics.as_ref().map(|servers| servers.statuses()).unwrap_or_default()
    }

    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<Artifact>, ArtifactError>> {
        with_artifacts(self.settings(), |artifacts| artifacts.list())
    }

    fn read_artifact(&self, uri: &str) -> BoxFuture<'_, Result<(Artifact, String), ArtifactError>> {
        let uri = uri.to_owned();
        with_artifacts(self.settings(), move |artifacts| preview_for_user(artifacts, &uri))
    }

    fn task_started(&self, task: &TaskId) {
        if let Some(changes) = SessionChanges::new(self.settings()) {
            changes.begin_task(task.clone());
        }
    }

    fn begin_prompt(&self, prompt: &str) {
        self.settings().session.skills.begin_task(prompt);
    }

    fn add_message(&self, message: &str) {
        self.settings().session.skills.note_prompt(message);
    }

    fn task_ended(&self) {
        self.settings().session.skills.end_task();
    }

    fn changed_files(&self, task: Option<TaskId>) -> BoxFuture<'_, ChangedFiles> {
        async move {
            match SessionChanges::new(self.settings()) {
                Some(changes) => changes.list(task).await,
                None => ChangedFiles::default(),
            }
        }
        .boxed()
    }

    fn check_scripts(&self, check: String) -> BoxFuture<'_, String> {
        let settings = Arc::clone(self.settings());
        async move { off_thread(move || read_scripts(&check, &settings)).await.unwrap_or_default() }.boxed()
    }

    fn step_started(&self, step: u64) {
        if let Some(changes) = &self.settings().session.changes {
            changes.set_step(step);
        }
        if let Some(agents) = &self.settings().session.agents {
            agents.runner().stepped(step);
        }
    }

    fn task_changes(&self) -> BoxFuture<'_, Vec<TaskChangeCounts>> {
        async move {
            match SessionChanges::new(self.settings()) {
                Some(changes) => changes.task_totals().await,
                None => Vec::new(),
            }
        }
        .boxed()
    }

    fn plan_rewind(&self, since: RewindStart) -> BoxFuture<'_, Result<FileRewindPlan, CheckpointError>> {
        async move {
            match SessionChanges::new(self.settings()) {
                Some(changes) => changes.plan_rewind(since).await,
                None => Ok(FileRewindPlan::default()),
            }
        }
        .boxed()
    }

    fn rewind(&self, rewind: FileRewind) -> BoxFuture<'_, Result<FileRewindResult, CheckpointError>> {
        async move {
            let Some(changes) = SessionChanges::new(self.settings()) else { return Ok(FileRewindResult::default()) };
            if let Some(editor) = &self.settings().session.editor
                && let Ok(planned) = changes.plan_rewind(rewind.since).await
            {
                editor.begin_rewind(planned.files.iter().map(|file| self.settings().workspace.join(&file.path)).collect()).await;
            }
            changes.rewind(&rewind).await
        }
        .boxed()
    }

    fn add_hooks(&self, plan: Plan, stop: CancellationToken) -> BoxFuture<'_, Plan> {
        self.with_hooks(plan, stop).boxed()
    }

    fn add_hooks_to_effects(&self, plan: Plan, stop: CancellationToken) -> BoxFuture<'_, Result<Plan, ToolError>> {
        self.with_hooks_in_layer(plan, stop).boxed()
    }

    fn hooks(&self) -> Option<Arc<dyn Hooks>> {
        let hooks = self.settings().session.hooks.clone()?;
        Some(Arc::new(HookRunner::new(Arc::clone(&self.tools), hooks)))
    }

    fn stop_command(&self, id: &str) {
        self.settings().session.commands.stop(id);
    }

    fn stop_agent(&self, agent: &SessionId) {
        if let Some(agents) = &self.settings().session.agents {
            agents.runner().stop(agent);
        }
    }

    fn tell_agent(&self, agent: &SessionId, command: Command) {
        if let Some(agents) = &self.settings().session.agents {
            agents.runner().pass_command(agent, command);
        }
    }

    fn end_commands(&self) -> BoxFuture<'_, ()> {
        let agents = self.settings().session.agents.as_ref().map(|agents| agents.runner().end_all());
        async move {
            let agents = async {
                if let Some(end) = agents {
                    end.await;
                }
            };
            tokio::join!(self.settings().session.commands.end_all(), agents);
        }
        .boxed()
    }
}

/// Checks, before a call that makes changes runs, that its files have no unsaved edits.
async fn check_before_run(
    tool: &dyn AnyTool,
    changes: &[Action],
    id: &CallId,
    settings: &ToolSettings,
    interrupt: &CancellationToken,
) -> Result<(), ToolError> {
    let Some(editor) = settings.session.editor.as_ref().filter(|_| !changes.is_empty()) else { return Ok(()) };
    editor.may_run(id, changed_files(tool, changes), settings.max_file_size_bytes, interrupt).await
}

/// Checks that a plan can run in a view with the access that its permit allows.
fn check_previewable(plan: &Plan, permit: &PreviewPermit) -> Result<(), ToolError> {
    let why = match (permit.run(), &plan.preview, &plan.layer) {
        (PreviewRun::WithAccess, _, LayerRun::Possible) => return Ok(()),
        (PreviewRun::WithAccess, _, LayerRun::Impossible { reason }) => reason.as_str(),
        (PreviewRun::WithAccess, _, LayerRun::None | LayerRun::Ended(_)) => "the command cannot run in a copy",
        (PreviewRun::Requested | PreviewRun::BeforeApproval, PreviewOffer::Impossible { reason }, _) => reason.as_str(),
        (PreviewRun::Requested | PreviewRun::BeforeApproval, ..) if !plan.opens.is_empty() => {
            "the requested access is not approved"
        }
        (PreviewRun::Requested | PreviewRun::BeforeApproval, ..) => return Ok(()),
    };
    Err(invalid(format!("cannot preview this call: {why}")))
}

/// Returns a plan that applies the effects of a command that has run in a view. The plan itself needs no further
/// access.
fn with_effects(mut plan: Plan, trial: PreviewRunResult, redactor: &Redactor) -> Plan {
    let PreviewRunResult { mut kept, effects, proposal: seen, parts, end } = trial;
    let before = plan.proposal.unwrap_or_default();
    kept.plan_notes = before.notes_without_estimate();
    let notes = kept.plan_notes.iter().cloned().chain(seen.notes).collect();
    let usual_notes = before.usual_notes;
    let proposal = hide_in_proposal(redactor, Proposal { summary: before.summary, notes, usual_notes, ..seen });
    let offer = Amendable { effects: parts, ..Amendable::default() };
    if !plan.opens.is_empty() {
        plan.actions.retain(Action::is_command);
    }
    Plan {
        opens: Vec::new(),
        proposal: Some(proposal),
        runs: Vec::new(),
        preview: PreviewOffer::Impossible { reason: "the command has already run; approve to apply its changes".to_owned() },
        effects: Some(Box::new(effects)),
        layer: end.map_or(LayerRun::None, LayerRun::Ended),
        amends: PlanAmendments { offer, told: plan.amends.told, ..PlanAmendments::default() },
        payload: Box::new(kept),
        ..plan
    }
}

/// Returns the settings for a call whose output is limited to `max_bytes`.
fn with_output_limit(settings: Arc<ToolSettings>, payload: &Payload, max_bytes: usize) -> Arc<ToolSettings> {
    if settings.max_output_bytes <= max_bytes || is_chain(payload) {
        return settings;
    }
    Arc::new(ToolSettings { max_output_bytes: max_bytes, ..(*settings).clone() })
}

/// Runs a query on the artifacts on a blocking thread.
fn with_artifacts<'a, T: Send + 'static>(
    settings: &ToolSettings,
    ask: impl FnOnce(&dyn Artifacts) -> Result<T, ArtifactError> + Send + 'static,
) -> BoxFuture<'a, Result<T, ArtifactError>> {
    let nothing = || ArtifactError { message: "this session does not store artifacts".to_owned() };
    let Some(artifacts) = settings.session.artifacts.clone() else { return std::future::ready(Err(nothing())).boxed() };
    async move {
        let asked = tokio::task::spawn_blocking(move || ask(&*artifacts)).await;
        asked.unwrap_or_else(|error| Err(ArtifactError { message: format!("cannot read the artifacts: {error}") }))
    }
    .boxed()
}

/// Converts a tool's outcome to the result of the call.
fn to_result(outcome: CallResult, id: CallId, tool_name: String) -> ToolResult {
    match outcome {
        Ok(output) => ToolResult {
            denied: output.denied,
            changed: output.changed,
            artifact_uris: uris(&output.artifacts),
            images: output.images,
            ended: output.ended,
            left_out: output.left_out,
            used: output.used,
            ..ToolResult::success(id, tool_name, output.text)
        },
        Err(failure) => ToolResult {
            output_text: failure.printed,
            artifact_uris: uris(&failure.artifacts),
            denied: failure.denied,
            changed: failure.changed,
            ended: failure.ended,
            left_out: failure.left_out,
            ..ToolResult::from_error(id, tool_name, failure.error)
        },
    }
}

/// Stores the diff of the changes if it is long, and adds the resulting artifact to the result.
async fn with_diff(result: ToolResult, proposal: Option<Proposal>, settings: Arc<ToolSettings>) -> ToolResult {
    let done = proposal.filter(|_| result.status == ToolStatus::Succeeded);
    if !is_long(done.as_ref()) && !is_long(result.changed.as_deref()) {
        return result;
    }
    let mut kept = result.clone();
    let keep = tokio::task::spawn_blocking(move || {
        keep_diff(&mut kept, done.as_ref(), &settings);
        kept
    });
    keep.await.unwrap_or(result)
}

fn is_long(proposal: Option<&Proposal>) -> bool {
    proposal.is_some_and(|proposal| proposal.diff.text_bytes() > KEPT_FROM_BYTES)
}

/// Returns the error of a failed call if the policy allows the tool. If it denies the tool, returns nothing but the
/// denial. An unknown name is not considered denied.
fn prefer_denial(name: &str, error: ToolError, tools: &Toolset) -> ToolError {
    let denial = tools.resolve(name).ok().and_then(|tool| (tools.settings().may_use)(tool.name()).err());
    denial.unwrap_or(error)
}

/// Checks that a command planned to run outside the sandbox has a permit for that.
fn may_leave_sandbox(payload: &Payload, permit: &Permit) -> Result<(), ToolError> {
    let leaves = payload.downcast_ref::<PlannedCommand>().is_some_and(|work| work.narrow.unsandboxed);
    if leaves && !permit.is_unsandboxed() {
        return Err(ToolError::new(ErrorCode::PolicyDenied, "the approval does not cover a run outside the sandbox"));
    }
    Ok(())
}

fn plan(call: ToolCall, tools: &Toolset) -> Result<Plan, ToolError> {
    let (tool, settings) = (tools.resolve(&call.tool_name)?, tools.settings());
    let arguments = object(&call.arguments)?;
    refuse(tool.name(), tool.restores(), &arguments)?;
    let draft = match draft_call(&*tool, &call.tool_name, arguments.clone(), settings) {
        Ok(draft) => draft,
        // The error may reveal an unreadable path, so the policy judges the path first.
        Err(error) => match unreadable_actions(&*tool, &call.tool_name, arguments, settings) {
            Some(actions) => return Ok(plan_with_deferred_error(call, tool.name(), actions, error)),
            None => return Err(with_hint(error, &*tool, tools.finder())),
        },
    };
    let doubts = match draft.work.downcast_ref::<Typed>() {
        Some(typed) => {
            Doubts { through_links: unapproved_run::link_escape_reason(&draft.actions, settings), ..typed.doubts(settings) }
        }
        None => unapproved_run::doubts(&draft.actions, settings),
    };
    let waits_for_user = draft.effect == CallEffect::Asks;
    let (changes, timeout_seconds, runs) = match draft.effect {
        CallEffect::Reads | CallEffect::Asks => (false, 0, Vec::new()),
        CallEffect::Changes => (true, 0, Vec::new()),
        CallEffect::Runs { timeout_seconds, files } => (true, timeout_seconds, files),
    };
    let doubts = Doubts {
        skill: settings.session.skills.doubt(tool.name(), &draft.actions, &runs, canonical_name),
        review: review_reason(&draft.work),
        ..doubts
    };
    let preview = draft.work.downcast_ref::<PlannedCommand>().map_or(PreviewOffer::None, |work| preview::offer(work, settings));
    let layer = draft.work.downcast_ref::<PlannedCommand>().map_or(LayerRun::None, |work| preview::layer(work, settings));
    Ok(Plan {
        call,
        tool_name: tool.name().to_owned(),
        summary: draft.summary,
        proposal: draft.proposal.map(|proposal| mark_by_actions(proposal, &draft.actions, settings)),
        actions: draft.actions,
        changes,
        waits_for_user,
        places: if changes { tool.planned_changes(&draft.work) } else { Vec::new() },
        runs,
        preview,
        effects: None,
        layer,
        opens: Vec::new(),
        timeout_seconds,
        sandbox: draft.work.downcast_ref::<PlannedCommand>().and_then(|work| work.narrow.describe(settings)),
        task_plan: draft.work.downcast_ref::<TaskPlan>().map(|plan| Box::new(plan.clone().into())),
        doubts,
        amends: offered_amendments(&*tool, &draft.work, settings),
        hook_runs: None,
        payload: draft.work,
    })
}

/// Adds temporary access to a plan. Access to a host is checked against the policy like a request to that host.
fn open(plan: Plan, mut opens: Vec<SandboxAccess>, settings: &ToolSettings) -> Result<Plan, ToolError> {
    opens.retain(|opened| match opened {
        SandboxAccess::Write { path } => (settings.paths.may_open)(Path::new(path)),
        SandboxAccess::Read { path, .. } => (settings.paths.may_show)(Path::new(path)),
        SandboxAccess::Host { .. } | SandboxAccess::Network => true,
    });
    if opens.is_empty() {
        return Ok(plan);
    }
    let Plan { mut actions, mut proposal, mut amends, payload, .. } = plan;
    let Ok(mut work) = payload.downcast::<PlannedCommand>() else {
        return Err(invalid(format!("no access can be allowed for {}", plan.tool_name)));
    };
    let fetch = |opened: &SandboxAccess| match opened {
        SandboxAccess::Host { host, port } => {
            Some(Action::Fetch { url: network::address(host, *port), method: "CONNECT".to_owned() })
        }
        SandboxAccess::Network | SandboxAccess::Write { .. } | SandboxAccess::Read { .. } => None,
    };
    actions.extend(opens.iter().filter_map(fetch));
    let words = opens.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if let Some(proposal) = &mut proposal {
        network::remove_network_note(&mut proposal.notes);
    }
    work.opens.clone_from(&opens);
    command_offered(&work, &mut amends.offer, &plan.tool_name, settings);
    let layer = preview::layer(&work, settings);
    Ok(Plan {
        summary: format!("{}, allowing {words}", plan.summary),
        actions,
        proposal,
        preview: preview::offer(&work, settings),
        layer,
        opens,
        amends,
        payload: work,
        ..plan
    })
}
