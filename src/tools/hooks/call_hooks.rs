//! Hooks that run before and after calls.

use super::command::{CommandOutcome, RunPlace};
use super::condition::may_meet;
use super::runner::HookRunner;
use crate::hooks::{FILE_PATH, Hook, HookAction, ToolShape, shape_of};
use crate::protocol::{Action, CallArguments, CallHooks, HookDecision, HookEvent, HookRun, ToolCall, ToolResult};
use crate::tools::argument_names::normalize;
use crate::tools::tool::AnyTool;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of files in a call for which hooks run, once per file.
const MAX_FILES: usize = 20;

/// A call in the form in which hooks see it.
pub(super) struct HookedTool {
    shape: &'static ToolShape,
    /// All names by which the tool is known.
    pub(super) names: Vec<String>,
    /// Tool name that appears in a hook's input.
    told: String,
    /// Arguments under the names used in the tool's schema.
    arguments: Map<String, Value>,
    /// Files that the call changes. Empty if its arguments name exactly one, which is part of the input anyway.
    files: Vec<PathBuf>,
}

impl HookedTool {
    /// Returns the inputs for a hook: one for each file.
    pub(super) fn inputs(&self) -> Vec<Map<String, Value>> {
        let input = self.shape.input(&self.arguments);
        if self.files.is_empty() {
            return vec![input];
        }
        let with = |file: &PathBuf| {
            let mut input = input.clone();
            input.insert(FILE_PATH.to_owned(), file.to_string_lossy().into());
            input
        };
        self.files.iter().map(with).collect()
    }
}

impl HookRunner {
    /// Returns the inputs for which a hook runs: one for each file of the call that meets the hook's condition.
    pub(super) fn inputs(&self, hook: &Hook, tool: &HookedTool) -> Vec<Map<String, Value>> {
        let is_meant = |told: &Map<String, Value>| {
            hook.condition.as_ref().is_none_or(|condition| may_meet(condition, &tool.names, told, &self.settings().workspace))
        };
        tool.inputs().into_iter().take(MAX_FILES).filter(is_meant).collect()
    }

    /// Runs the hooks that precede a call, one after the other, until one denies the call. Each hook receives the call
    /// as rewritten by the hooks before it.
    pub(super) async fn before(&self, call: ToolCall, stop: &CancellationToken) -> CallHooks {
        let mut done = CallHooks::default();
        let Some(mut tool) = self.tool(&call) else { return done };
        let hooks: Vec<Hook> = self.hooks.matching(HookEvent::PreToolUse, &tool.names).cloned().collect();
        if tool.files.len() > MAX_FILES && !hooks.is_empty() {
            let reason = format!("the call changes {} files; hooks run for at most {MAX_FILES}", tool.files.len());
            let (hook, reason) = (hooks[0].name(), Some(reason));
            done.runs.push(HookRun { hook, decision: HookDecision::Ask, reason, ..HookRun::default() });
        }
        for hook in hooks {
            for told in self.inputs(&hook, &tool) {
                let (run, updated) = self.before_one(&hook, (&tool, &call), &told, stop).await;
                let is_denied = run.decision == HookDecision::Deny;
                done.runs.push(run);
                if is_denied {
                    return done;
                }
                let Some(updated) = updated.filter(|updated| *updated != told) else { continue };
                let run = done.runs.last_mut();
                if !tool.files.is_empty() {
                    if let Some(run) = run {
                        run.decision = HookDecision::Deny;
                        run.reason = Some(format!("the hook rewrote a call to {}, which hooks cannot rewrite", tool.told));
                    }
                    return done;
                }
                if let Some(run) = run {
                    run.rewrote = true;
                }
                tool.arguments = tool.shape.rewritten(&tool.arguments, &told, &updated);
                done.arguments = Some(CallArguments::Object(tool.arguments.clone()));
            }
        }
        done
    }

    async fn before_one(
        &self,
        hook: &Hook,
        (tool, call): (&HookedTool, &ToolCall),
        told: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> (HookRun, Option<Map<String, Value>>) {
        let mut input = self.input(HookEvent::PreToolUse);
        input.insert("tool_name".to_owned(), tool.told.as_str().into());
        input.insert("tool_input".to_owned(), self.absolute(told).into());
        input.insert("tool_use_id".to_owned(), call.tool_call_id.as_str().into());
        let since = Instant::now();
        let outcome = self.run(hook, &input, stop, RunPlace::Workspace).await;
        let latency_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let run = HookRun { hook: hook.name(), latency_ms, ..HookRun::default() };
        match outcome {
            CommandOutcome::Response(response) => {
                let reason = response.reason.filter(|_| response.decision != HookDecision::None);
                let run = HookRun { decision: response.decision, reason, context: response.context, ..run };
                (run, response.updated_input.map(|updated| self.to_received_form(told, updated)))
            }
            CommandOutcome::NotRun(why) => {
                (HookRun { decision: HookDecision::Ask, reason: Some(format!("the hook could not run: {why}")), ..run }, None)
            }
            CommandOutcome::Failed(why) => {
                let reason = format!("the hook failed: {why}. Nothing was run");
                (HookRun { decision: HookDecision::Deny, reason: Some(reason), ..run }, None)
            }
        }
    }

    /// Returns the input for a hook that runs after a call. `result` is `None` if the call has not run yet.
    pub(super) fn input_after(
        &self,
        tool: &HookedTool,
        call: &ToolCall,
        told: &Map<String, Value>,
        result: Option<&ToolResult>,
    ) -> Map<String, Value> {
        let mut input = self.input(HookEvent::PostToolUse);
        input.insert("tool_name".to_owned(), tool.told.as_str().into());
        input.insert("tool_input".to_owned(), self.absolute(told).into());
        input.insert("tool_use_id".to_owned(), call.tool_call_id.as_str().into());
        input.insert("tool_response".to_owned(), response(tool, result));
        input
    }

    /// Runs the hooks that follow a successful call and adds their messages to the result. `ran_before` says whether
    /// the sandboxed ones have already run in a layer before the call.
    pub(super) async fn after(
        &self,
        call: ToolCall,
        mut result: ToolResult,
        ran_before: bool,
        stop: &CancellationToken,
    ) -> ToolResult {
        let Some(tool) = self.tool(&call) else { return result };
        let is_left = |hook: &&Hook| !ran_before || matches!(hook.action, HookAction::Command { unsandboxed: true, .. });
        let hooks: Vec<Hook> = self.hooks.matching(HookEvent::PostToolUse, &tool.names).filter(is_left).cloned().collect();
        for hook in hooks {
            for told in self.inputs(&hook, &tool) {
                let input = self.input_after(&tool, &call, &told, Some(&result));
                let name = hook.name();
                let words = match self.run(&hook, &input, stop, RunPlace::Workspace).await {
                    CommandOutcome::Response(response) => {
                        let reason = response.reason.filter(|_| response.decision == HookDecision::Deny);
                        let words: Vec<String> = reason.into_iter().chain(response.context).collect();
                        (!words.is_empty()).then(|| format!("[From the hook {name}]\n{}", words.join("\n")))
                    }
                    CommandOutcome::NotRun(why) => Some(format!("[The hook {name} was not run: {why}]")),
                    CommandOutcome::Failed(why) => Some(format!("[The hook {name} failed: {why}]")),
                };
                if let Some(words) = words {
                    let gap = if result.output_text.is_empty() || result.output_text.ends_with('\n') { "" } else { "\n" };
                    result.output_text = format!("{}{gap}{words}", result.output_text);
                }
            }
        }
        result
    }

    /// Returns a call as hooks see it, or `None` if the call cannot run because its tool is unknown or its arguments
    /// are malformed.
    pub(super) fn tool(&self, call: &ToolCall) -> Option<HookedTool> {
        let CallArguments::Object(arguments) = &call.arguments else { return None };
        let tool = self.tools.resolve(&call.tool_name).ok()?;
        let shape = shape_of(tool.name());
        let mut settled = Value::Object(arguments.clone());
        let arguments = match (normalize(&mut settled, &tool.schema(&call.tool_name), ""), settled) {
            (Ok(()), Value::Object(settled)) => settled,
            // The call fails with these arguments, regardless of the hooks.
            _ => arguments.clone(),
        };
        let remote = remote_name(&*tool);
        let mut names: Vec<String> = remote.iter().cloned().collect();
        names.extend(shape.names.iter().map(|name| (*name).to_owned()));
        let own = [tool.name(), tool.offered_name(), call.tool_name.as_str()];
        names.extend(own.map(str::to_owned));
        names.dedup();
        let told = names.first().cloned().unwrap_or_default();
        let is_named = shape.input(&arguments).contains_key(FILE_PATH);
        let files = if is_named { Vec::new() } else { self.files(call) };
        Some(HookedTool { shape, names, told, arguments, files })
    }

    /// Determines from its arguments which files a call changes.
    fn files(&self, call: &ToolCall) -> Vec<PathBuf> {
        let actions = self.tools.actions_for(&call.tool_name, &call.arguments).unwrap_or_default();
        let mut files: Vec<PathBuf> = actions
            .into_iter()
            .filter_map(|action| match action {
                Action::Write { target } | Action::Delete { target } => Some(target.real),
                _ => None,
            })
            .collect();
        files.sort();
        files.dedup();
        files
    }

    /// Returns the input with an absolute file path, which is what hooks expect.
    fn absolute(&self, told: &Map<String, Value>) -> Map<String, Value> {
        let mut input = told.clone();
        if let Some(Value::String(path)) = input.get_mut(FILE_PATH)
            && !path.starts_with(['/', '~'])
        {
            *path = self.settings().workspace.join(&*path).to_string_lossy().into_owned();
        }
        input
    }

    /// Converts the input that a hook has returned. A path that the hook did not change is restored to its original
    /// form, which may be relative.
    fn to_received_form(&self, told: &Map<String, Value>, mut updated: Map<String, Value>) -> Map<String, Value> {
        let path = told.get(FILE_PATH).filter(|_| updated.get(FILE_PATH) == self.absolute(told).get(FILE_PATH));
        if let Some(path) = path {
            updated.insert(FILE_PATH.to_owned(), path.clone());
        }
        updated
    }
}

/// Returns the name of an MCP tool in the form that other agents use, or `None` if the tool is not an MCP tool.
fn remote_name(tool: &dyn AnyTool) -> Option<String> {
    let name = tool.name().strip_prefix("Mcp.")?;
    let (server, tool) = name.split_once('/')?;
    let plain = |name: &str| -> String {
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '_' }).collect()
    };
    Some(format!("mcp__{}__{}", plain(server), plain(tool)))
}

/// Returns a call's result in the form that hooks expect.
fn response(tool: &HookedTool, result: Option<&ToolResult>) -> Value {
    let text = result.map(ToolResult::text_for_model).unwrap_or_default();
    if tool.shape.names.contains(&"Bash") {
        serde_json::json!({ "stdout": text, "stderr": "", "interrupted": false })
    } else {
        serde_json::json!({ "success": true, "output": text })
    }
}
