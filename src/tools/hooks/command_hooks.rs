//! Hooks that follow a command that ran in a layer. They run in the same layer, on top of the command's effects.
//! Because their changes become part of those effects, all of them are shown, decided on and applied together.

use super::call_hooks::HookedTool;
use super::command::{CommandOutcome, RunPlace};
use super::runner::HookRunner;
use crate::hooks::{Hook, HookAction};
use crate::ports::Plan;
use crate::protocol::{ErrorCode, HookDecision, HookEvent, HookRun, ToolCall, ToolError};
use crate::sys::overlay::{Change, Changes, Node, NodeKind};
use crate::tools::blocking::off_thread;
use crate::tools::paths::{display_path_one_line, join_names};
use crate::tools::settings::ToolSettings;
use crate::tools::shell::preview::{HookLayer, PreviewRunResult, PreviewedCommand};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of changed files to list per hook run.
const MAX_NAMED: usize = 20;

/// Hooks that run after a command, in the command's layer.
pub(in crate::tools) struct CommandHooks<'a> {
    runner: &'a HookRunner,
    call: ToolCall,
    tool: HookedTool,
    hooks: Vec<Hook>,
}

/// The changes in a layer, by path.
type LayerState = BTreeMap<PathBuf, Change>;

impl<'a> CommandHooks<'a> {
    /// Returns the hooks that can run in a command's layer. Returns `None` if there are none, or if the command failed,
    /// was stopped, was blocked or changed nothing. After a command that only read, a hook that writes a log would
    /// otherwise create changes that need approval.
    pub(in crate::tools) fn new(runner: &'a HookRunner, plan: &Plan) -> Option<Self> {
        let command = plan.payload.downcast_ref::<PreviewedCommand>()?;
        let effects = plan.effects.as_deref()?;
        if command.error().is_some() || !command.has_changes() || !effects.denied.is_empty() {
            return None;
        }
        let tool = runner.tool(&plan.call)?;
        let is_sandboxed = |hook: &&Hook| matches!(hook.action, HookAction::Command { unsandboxed: false, .. });
        let hooks: Vec<Hook> = runner.hooks.matching(HookEvent::PostToolUse, &tool.names).filter(is_sandboxed).cloned().collect();
        let hooks: Vec<Hook> = hooks.into_iter().filter(|hook| !runner.inputs(hook, &tool).is_empty()).collect();
        (!hooks.is_empty()).then(|| Self { runner, call: plan.call.clone(), tool, hooks })
    }

    /// Runs the hooks in the command's layer. Returns the combined effects of the command and the hooks, along with the
    /// hook runs, or `None` in place of the runs if the hooks cannot run in the layer.
    ///
    /// # Errors
    /// Returns an error if the layer cannot be read, in which case none of the changes in it can be applied.
    pub(in crate::tools) async fn run(
        self,
        command: PreviewedCommand,
        stop: &CancellationToken,
    ) -> Result<(PreviewRunResult, Option<Vec<HookRun>>), ToolError> {
        let settings = Arc::clone(self.runner.settings());
        let (making, command) = (Arc::new(settings.for_hooks_in_layer()), Arc::new(command));
        let of = Arc::clone(&command);
        let layer = off_thread(move || HookLayer::of_command(&of, &making)).await?;
        let mut runs = None;
        if let Ok(layer) = layer {
            let layer = Arc::new(layer);
            let mut state = state_of(&command).await?;
            let runs = runs.insert(Vec::new());
            for hook in &self.hooks {
                for told in self.runner.inputs(hook, &self.tool) {
                    let input = self.runner.input_after(&self.tool, &self.call, &told, Some(command.result()));
                    let replaced: Arc<[PathBuf]> = replaced_paths(&state).into();
                    let since = Instant::now();
                    let outcome = self.runner.run(hook, &input, stop, RunPlace::Layer(Arc::clone(&layer), replaced)).await;
                    let latency_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                    let now = state_of(&command).await?;
                    let mut changed = changed_paths(&state, &now);
                    // Build output is counted, not listed.
                    changed.retain(|path| !command.is_build_output(path));
                    let changed = names(&changed, &settings);
                    state = now;
                    runs.push(describe(HookRun { hook: hook.name(), latency_ms, ..HookRun::default() }, outcome, changed));
                }
            }
        }
        let unended = || ToolError::new(ErrorCode::ToolExecutionFailed, "the hooks after the command did not finish");
        let command = Arc::into_inner(command).ok_or_else(unended)?;
        let result = off_thread(move || command.read_again()).await??;
        Ok((result, runs))
    }
}

/// Adds a description of the hook's messages and changes to its run.
fn describe(run: HookRun, outcome: CommandOutcome, changed: Vec<String>) -> HookRun {
    let mut words: Vec<String> = match outcome {
        CommandOutcome::Response(response) => {
            let reason = response.reason.filter(|_| response.decision == HookDecision::Deny);
            reason.into_iter().chain(response.context).collect()
        }
        CommandOutcome::NotRun(why) => vec![format!("it was not run: {why}")],
        CommandOutcome::Failed(why) => vec![format!("it failed: {why}")],
    };
    if !changed.is_empty() {
        let names = join_names(changed.iter().map(|name| format!("`{name}`")));
        words.push(format!("It changed {names}; this is part of the command's changes."));
    }
    HookRun { context: (!words.is_empty()).then(|| words.join("\n")), changed, ..run }
}

/// Reads the state of a command's layer, in which nothing may be running at the time.
async fn state_of(command: &Arc<PreviewedCommand>) -> Result<LayerState, ToolError> {
    let command = Arc::clone(command);
    let read = move || -> Result<LayerState, ToolError> {
        let changes = command.changes_now()?;
        let entry = |changes: &Changes, change: &Change| (changes.old(&change.path), change.clone());
        Ok(changes.iter().flat_map(|changes| changes.entries().iter().map(move |change| entry(changes, change))).collect())
    };
    off_thread(read).await?
}

/// Returns the paths whose content differs from that in the workspace. A hook whose program is at or below one of them
/// would run content that nobody has approved yet.
fn replaced_paths(state: &LayerState) -> Vec<PathBuf> {
    let is_directory = |node: &Option<Node>| node.is_some_and(|node| node.kind == NodeKind::Directory);
    let is_same = |change: &Change| is_directory(&change.before) && is_directory(&change.after);
    state.iter().filter(|(_, change)| !is_same(change)).map(|(path, _)| path.clone()).collect()
}

/// Returns the paths that changed between two states. A directory that exists in both is skipped, because its times
/// change whenever its entries do.
fn changed_paths(before: &LayerState, now: &LayerState) -> Vec<PathBuf> {
    let is_other = |path: &Path| match (before.get(path), now.get(path)) {
        (Some(before), Some(now)) => {
            let is_directory = now.after.is_some_and(|node| node.kind == NodeKind::Directory) && before.kind() == now.kind();
            !is_directory && (before.written != now.written || before.after != now.after)
        }
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    };
    let mut paths: Vec<PathBuf> = before.keys().chain(now.keys()).filter(|path| is_other(path)).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Returns the displayed names of up to `MAX_NAMED` paths, followed by the number of any further paths.
fn names(paths: &[PathBuf], settings: &ToolSettings) -> Vec<String> {
    let mut names: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| display_path_one_line(path, settings)).collect();
    if paths.len() > MAX_NAMED {
        names.push(format!("{} more", paths.len() - MAX_NAMED));
    }
    names
}
