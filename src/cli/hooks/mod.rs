//! `aye hooks`: lists, tests and pins hooks.

pub(crate) mod args;

use crate::hooks::{Hook, HookAction, HookOrigin};
use crate::host::console::{print_json, print_text, warn, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::hooks::HookSet;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;
use crate::host::startup;
use crate::host::tool_runner::{Starts, ToolEnvironment, hooks_of};
use crate::ports::{HookTrigger, Hooks};
use crate::protocol::{
    AskingAgent, CallArguments, CallHooks, CallId, EventHooks, HookDecision, HookEvent, Problem, SessionId, ToolCall, ToolResult,
    format_count,
};
use crate::text::{abbreviate_home, clean, clean_line};
use args::HooksAction;
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(crate) fn run(app: &AppContext, common: &Common, action: HooksAction) -> Result<Exit, CliError> {
    match action {
        HooksAction::List { json } => Ok(list(&usable(app, common), json)),
        HooksAction::Test { event, call, text, agent, json } => test(app, common, (event, call, (text, agent)), json),
        HooksAction::Pin => pin(app),
    }
}

/// Returns the hooks that are available to a session in this directory.
fn usable(app: &AppContext, common: &Common) -> Arc<HookSet> {
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    project.ignored_files_notice().iter().for_each(|notice| warn(notice.clone()));
    app.hooks.with_project(&project).set()
}

/// A hook in the JSON output of `aye hooks list`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedHook<'a> {
    name: String,
    event: &'static str,
    matcher: String,
    /// Further condition on a call (`if`).
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    condition: Option<&'a str>,
    #[serde(skip)]
    selection: String,
    origin: HookOrigin,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
    sandboxed: bool,
    /// Reason the hook would not run, if anything prevents it.
    #[serde(skip_serializing_if = "Option::is_none")]
    obstacle: Option<String>,
}

fn list(set: &HookSet, json: bool) -> Exit {
    let listed: Vec<ListedHook<'_>> = set.hooks.iter().map(|hook| listed(hook, set)).collect();
    if json {
        print_json(&serde_json::json!({ "hooks": listed, "notes": set.notes }));
        return Exit::Completed;
    }
    let mut text = String::new();
    for hook in &listed {
        let time = hook.timeout_seconds.map(|seconds| format!(", at most {seconds} s")).unwrap_or_default();
        let place = if hook.sandboxed { "" } else { ", outside the sandbox" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {}{time}{place}", clean_line(&hook.name), clean_line(&hook.selection));
        if let Some(command) = hook.command {
            let _ = writeln!(text, "    {}", clean_line(command));
        }
        if let Some(why) = &hook.obstacle {
            let effect = if hook.event == HookEvent::PreToolUse.as_str() { "; calls that it matches need approval" } else { "" };
            let _ = writeln!(text, "    does not run: {}{effect}", clean_line(why));
        }
    }
    if listed.is_empty() {
        text.push_str(
            "no hooks; aye reads `.aye/hooks.toml` and `.claude/settings.json` in a trusted project, and your own \
            `hooks.toml`\n",
        );
    } else {
        text.push_str("\nA hook can deny a call, ask for approval, rewrite the call or add context. None can allow a call.\n");
    }
    print_text(&text);
    warn_all(&set.notes);
    Exit::Completed
}

fn listed<'a>(hook: &'a Hook, set: &HookSet) -> ListedHook<'a> {
    let (command, timeout_seconds, sandboxed) = match &hook.action {
        HookAction::Command { line, timeout_seconds, unsandboxed } => (Some(line.as_str()), Some(*timeout_seconds), !unsandboxed),
        HookAction::Unusable(_) => (None, None, true),
    };
    ListedHook {
        name: hook.name(),
        event: hook.event.as_str(),
        matcher: hook.matcher.text(),
        condition: hook.condition.as_ref().map(|condition| condition.text.as_str()),
        selection: hook.selection(),
        origin: hook.origin,
        command,
        timeout_seconds,
        sandboxed,
        obstacle: set.obstacle(hook),
    }
}

/// Result of testing a hook.
enum Tested {
    Call(CallHooks),
    Result(String),
    Event(EventHooks),
}

fn test(
    app: &AppContext,
    common: &Common,
    (event, (tool, arguments), (text, agent)): (HookEvent, (String, String), (String, String)),
    json: bool,
) -> Result<Exit, CliError> {
    let parsed = serde_json::from_str(&arguments).map_err(|error| {
        CliError::usage(
            Problem::new("`--args` is not a JSON object").because(error).hint("example: --args '{\"command\": \"ls\"}'"),
        )
    })?;
    let call = ToolCall {
        tool_call_id: CallId::new("call_test"),
        tool_name: tool_name(&tool).to_owned(),
        arguments: CallArguments::Object(parsed),
    };
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    project.ignored_files_notice().iter().for_each(|notice| warn(notice.clone()));
    let ground = ToolEnvironment::find(app, common, &project, Starts::Programs)?;
    let is_of_agent = matches!(event, HookEvent::SubagentStart | HookEvent::SubagentStop);
    let agent = is_of_agent.then(|| AskingAgent { name: agent, agent_session_id: SessionId::new("") });
    let Some(hooks) = hooks_of(&ground, agent) else {
        print_text("no hooks\n");
        return Ok(Exit::Completed);
    };
    let runtime = startup::runtime()?;
    let tested = runtime.block_on(tested(&*hooks, event, call, text));
    if json {
        print_json(&match &tested {
            Tested::Call(hooks) => serde_json::json!(hooks),
            Tested::Result(output) => serde_json::json!({ "result": output }),
            Tested::Event(outcome) => event_json(outcome),
        });
        return Ok(Exit::Completed);
    }
    print_text(&match tested {
        Tested::Call(hooks) => describe_call(&hooks),
        Tested::Result(output) => format!("{}\n", clean(&output)),
        Tested::Event(outcome) => describe_event(&outcome),
    });
    Ok(Exit::Completed)
}

async fn tested(hooks: &dyn Hooks, event: HookEvent, call: ToolCall, text: String) -> Tested {
    let stop = CancellationToken::new();
    let occasion = match event {
        HookEvent::PreToolUse => return Tested::Call(hooks.before_call(call, stop).await),
        HookEvent::PostToolUse => {
            let result = ToolResult::success(call.tool_call_id.clone(), call.tool_name.clone(), text);
            return Tested::Result(hooks.after_call(call, result, (false, stop)).await.output_text);
        }
        HookEvent::UserPromptSubmit | HookEvent::SubagentStart => HookTrigger::Prompt { text, first: false, resumed: false },
        HookEvent::SessionStart => HookTrigger::SessionStart { resumed: false },
        HookEvent::Stop | HookEvent::SubagentStop => HookTrigger::Stop { response: text, repeated: false },
        HookEvent::PreCompact => HookTrigger::Compaction { manual: true },
        HookEvent::Notification => HookTrigger::Notification { kind: "permission_prompt", message: text },
    };
    Tested::Event(hooks.on_occasion(occasion, stop).await)
}

/// Returns the name of the aye tool that corresponds to a Claude Code tool, unless aye already accepts that name as an
/// alias. Returns any other name unchanged.
fn tool_name(name: &str) -> &str {
    match name {
        "Read" => "ReadFile",
        "Write" => "WriteFile",
        "Edit" => "EditFile",
        "WebFetch" => "HttpRequest",
        other => other,
    }
}

fn describe_call(hooks: &CallHooks) -> String {
    if hooks.runs.is_empty() {
        return "No hook matches this call.\n".to_owned();
    }
    let mut text = String::new();
    for run in &hooks.runs {
        let decision = match run.decision {
            HookDecision::None if run.rewrote => "rewrites the call",
            HookDecision::None => "no opinion",
            HookDecision::Ask => "asks for approval",
            HookDecision::Deny => "denies the call",
        };
        let reason = run.reason.as_ref().map(|reason| format!(": {}", clean_line(reason))).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} ({} ms): {decision}{reason}", clean_line(&run.hook), run.latency_ms);
    }
    if let Some(note) = hooks.note() {
        let _ = write!(text, "\nMessage to the model:\n{}", clean(&note));
    }
    text
}

fn event_json(outcome: &EventHooks) -> serde_json::Value {
    let pair = |(hook, text): &(String, String)| serde_json::json!({ "hook": hook, "text": text });
    serde_json::json!({
        "block": outcome.block.as_ref().map(pair),
        "context": outcome.context.iter().map(pair).collect::<Vec<_>>(),
        "notices": outcome.notices,
    })
}

fn describe_event(outcome: &EventHooks) -> String {
    let mut text = String::new();
    if let Some((hook, reason)) = &outcome.block {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} blocks: {}", clean_line(hook), clean_line(reason));
    }
    for (hook, context) in &outcome.context {
        let _ = writeln!(text, "{} adds:\n{}", clean_line(hook), clean(context));
    }
    for notice in &outcome.notices {
        let _ = writeln!(text, "{}", clean_line(notice));
    }
    if text.is_empty() {
        text.push_str("No hook blocks the event or adds context.\n");
    }
    text
}

fn pin(app: &AppContext) -> Result<Exit, CliError> {
    let files = app.hooks.pin().map_err(|why| CliError::failed(Problem::new("cannot pin your hooks").because(why)))?;
    let mut text = String::new();
    for hook in &app.hooks.set().hooks {
        if let HookAction::Command { line, .. } = &hook.action {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {}", clean_line(&hook.name()), clean_line(line));
        }
    }
    let _ = writeln!(text, "Pinned {}:", format_count(files.len() as u64, "file", "files"));
    for file in files {
        let _ = writeln!(text, "    {}", clean_line(&abbreviate_home(&file, &app.home)));
    }
    print_text(&text);
    Ok(Exit::Completed)
}
