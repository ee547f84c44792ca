//! `aye tool`: lists, describes and calls tools, subject to the policy.

use crate::host::console::{print_json, print_text, warn, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::mcp_servers;
use crate::host::mcp_servers::{FIRST_WAIT, McpServers, SessionServers, specs};
use crate::host::offered_tools;
use crate::host::options::{Answers, Common};
use crate::host::project::ProjectConfig;
use crate::host::tool_runner::{CallVerdict, Starts, ToolEnvironment, ToolRunner};
use crate::host::{session, startup};
use crate::mcp::Spec;
use crate::policy::{PreviewPermit, Verdict};
use crate::ports::{Plan, RunContext, ToolRouter};
use crate::protocol::{
    CallArguments, CallId, Effects, ErrorCode, FileDiff, NO_USER, PreviewOffer, Proposal, ToolCall, ToolError, ToolResult,
    ToolStatus,
};
use crate::tools;
use serde::Serialize;
use std::io::{IsTerminal, Read};
use std::time::Duration;
use tokio::runtime::Runtime;

const MAX_READ_BYTES: u64 = 64 << 20;
/// Maximum time to wait for remaining work at exit.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Everything a subcommand needs to use tools.
struct ToolSession {
    bench: ToolRunner,
    /// Tokio runtime. It is `None` only while this value is being dropped.
    runtime: Option<Runtime>,
    /// MCP servers whose tools are included.
    servers: Option<McpServers>,
}

impl Drop for ToolSession {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if let Some(servers) = &self.servers {
            runtime.block_on(servers.end());
        }
        // Do not wait for abandoned work, which may never end.
        runtime.shutdown_timeout(LAST_WAIT);
    }
}

impl ToolSession {
    fn run_until_interrupted<T>(&self, work: impl Future<Output = T>) -> Result<T, CliError> {
        let runtime = self.runtime.as_ref().ok_or_else(|| CliError::failed("the tools are already closed"))?;
        Ok(runtime.block_on(work))
    }
}

/// Returns whether MCP servers are needed. They are not needed for a built-in tool if such tools take precedence over
/// server tools.
fn needs_servers(app: &AppContext, name: Option<&str>) -> bool {
    let local_first = app.settings.tools.conflict == "local-first";
    name.is_none_or(|name| !local_first || tools::canonical_name(name).is_none())
}

/// Prepares the tools. `name` is the requested tool, or `None` for all tools.
fn table(app: &AppContext, common: &Common, starts: Starts, name: Option<&str>) -> Result<ToolSession, CliError> {
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    project.ignored_policy_notice().iter().for_each(warn);
    let found = needs_servers(app, name)
        .then(|| specs::specs(app, Some(&project)))
        .filter(|(specs, _)| !specs.is_empty() || app.settings.sets("services.backend_tools.manifest"));
    // An MCP server may be a program.
    let starts = if found.is_some() { Starts::Programs } else { starts };
    let ground = ToolEnvironment::find(app, common, &project, starts)?;
    let runtime = startup::runtime()?;
    let servers = found.map(|found| connect(&ground, &project, found, &runtime));
    let bench = ToolRunner::new(ground, servers.as_ref());
    Ok(ToolSession { bench, runtime: Some(runtime), servers })
}

/// Connects to the servers, and waits, for a limited time, for tool lists that are not yet known.
fn connect(ground: &ToolEnvironment, project: &ProjectConfig, found: (Vec<Spec>, Vec<String>), runtime: &Runtime) -> McpServers {
    let ToolEnvironment { app, policy, standing, .. } = ground;
    let settings = || session::tool_settings(app, policy, standing.sandbox_policy(policy));
    let SessionServers { servers, problems, .. } =
        mcp_servers::connect(app, found, policy, settings, project.approved_servers(), false);
    warn_all(&problems);
    warn_all(&runtime.block_on(servers.connect_unknown(FIRST_WAIT)));
    servers
}

pub(crate) fn list(app: &AppContext, common: &Common, json: bool) -> Result<Exit, CliError> {
    let table = table(app, common, Starts::Nothing, None)?;
    let bench = &table.bench;
    let tools = offered_tools::tools_for_model(&bench.router, &bench.policy);
    if json {
        print_json(&tools);
        return Ok(Exit::Completed);
    }
    let capability = |name: &str| bench.router.capability(name).unwrap_or_default().to_string();
    let names = tools.iter().map(|tool| crate::text::width(&tool.tool_name)).max().unwrap_or_default();
    let capabilities = tools.iter().map(|tool| crate::text::width(&capability(&tool.tool_name))).max().unwrap_or_default();
    for tool in tools {
        let capability = capability(&tool.tool_name);
        // `aye tool schema` prints the complete description.
        let line = tool.description.lines().next().unwrap_or_default();
        let first = line.split_inclusive(". ").next().unwrap_or_default().trim_end();
        print_text(&format!("{:names$}  {capability:capabilities$}  {first}\n", tool.tool_name));
    }
    Ok(Exit::Completed)
}

pub(crate) fn schema(app: &AppContext, common: &Common, name: &str) -> Result<Exit, CliError> {
    let table = table(app, common, Starts::Nothing, Some(name))?;
    let tool = table.bench.router.definition(name).map_err(|error| CliError::usage(error.message))?;
    print_json(&tool);
    Ok(Exit::Completed)
}

/// The effects that a call would have.
#[derive(Serialize)]
struct PlannedCall {
    #[serde(flatten)]
    proposal: Proposal,
    /// Diff of the proposed changes, by file, hunk and line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileDiff>,
    /// Effects of running the command in a preview that was then discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<Box<Effects>>,
}

impl PlannedCall {
    fn new(proposal: Proposal, effects: Option<Box<Effects>>) -> Self {
        Self { files: proposal.diff.to_vec(), proposal, effects }
    }
}

/// Prints the effects that a call would have, without running it.
pub(crate) fn plan(app: &AppContext, common: &Common, name: &str, arguments: &str) -> Result<Exit, CliError> {
    let table = table(app, common, Starts::for_tool(name), Some(name))?;
    let call = tool_call(name, arguments)?;
    let bench = &table.bench;
    if let Err(error) = bench.offers(name) {
        return Ok(report(&ToolResult::from_error(call.tool_call_id, name, error), true));
    }
    let plan = match table.run_until_interrupted(bench.plan(call.clone()))? {
        Ok(plan) => plan,
        Err(error) => return Ok(report(&ToolResult::from_error(call.tool_call_id, name, error), true)),
    };
    let permit = match plan.judge(&bench.policy, jiff::Timestamp::now()) {
        Verdict::Allow(permit) => permit.preview(),
        // A preview changes nothing, so it needs no approval.
        Verdict::Ask(question) => question.preview(),
        Verdict::Deny(denial) => {
            return Ok(report(&ToolResult::from_error(call.tool_call_id, name, denial.to_error("")), true));
        }
    };
    print_json(&table.run_until_interrupted(preview_plan(bench, plan, permit))?);
    Ok(Exit::Completed)
}

pub(crate) fn call(
    app: &AppContext,
    common: &Common,
    name: &str,
    arguments: &str,
    json: bool,
    answers: Answers,
) -> Result<Exit, CliError> {
    let table = table(app, common, Starts::for_tool(name), Some(name))?;
    let call = tool_call(name, arguments)?;
    if let CallArguments::Malformed(text) = &call.arguments {
        let error = ToolError::new(ErrorCode::InvalidRequest, malformed(text, arguments));
        return Ok(report(&ToolResult::from_error(call.tool_call_id, name, error), json));
    }
    let result = table.run_until_interrupted(run_call(&table.bench, call, answers))?;
    Ok(report(&result, json))
}

async fn preview_plan(bench: &ToolRunner, plan: Plan, permit: PreviewPermit) -> PlannedCall {
    let summary = plan.summary.clone();
    let mut proposal = plan.proposal.clone().unwrap_or_else(|| Proposal { summary, ..Proposal::default() });
    match &plan.preview {
        PreviewOffer::None => return PlannedCall::new(proposal, None),
        PreviewOffer::Possible => {}
        PreviewOffer::Impossible { reason } => {
            proposal.notes.push(format!("no preview: {reason}"));
            return PlannedCall::new(proposal, None);
        }
    }
    match bench.router.preview(plan, permit, RunContext::detached()).await {
        Ok(mut plan) => {
            let effects = plan.effects.take();
            let proposal = plan.proposal.take().unwrap_or(proposal);
            // The preview is removed now instead of at the next start, although this may take long.
            let _ = tokio::task::spawn_blocking(move || drop(plan)).await;
            PlannedCall::new(proposal, effects)
        }
        Err(error) => {
            proposal.notes.push(format!("no preview: {}", error.message));
            PlannedCall::new(proposal, None)
        }
    }
}

async fn run_call(bench: &ToolRunner, call: ToolCall, answers: Answers) -> ToolResult {
    let (id, name) = (call.tool_call_id.clone(), call.tool_name.clone());
    let judged = match bench.judge(call.clone()).await {
        Ok(judged) if answers != Answers::Yes => bench.run_in_layer(&call, judged, RunContext::detached()).await,
        judged => judged,
    };
    let (plan, permit, by) = match judged {
        Ok(CallVerdict::Allowed(plan, permit)) => (plan, permit, None),
        Ok(CallVerdict::Asks(plan, question)) if answers == Answers::Yes => {
            match bench.run_preview(plan, &question, RunContext::detached()).await {
                Ok(plan) => (plan, question.approve(), Some("you")),
                Err(error) => return ToolResult::from_error(id, name, error),
            }
        }
        Ok(CallVerdict::Asks(plan, question)) => {
            bench.keep(&plan, "deny", NO_USER, &question.reason).await;
            let message = format!("approval required ({}; rule: {}); pass --yes to approve", question.reason, question.rule);
            return ToolResult::from_error(id, name, ToolError::new(ErrorCode::NoApprover, message));
        }
        Err(refused) => return *refused,
    };
    bench.run(plan, permit, by, RunContext::detached()).await
}

fn report(result: &ToolResult, json: bool) -> Exit {
    if json {
        print_json(result);
    } else if std::io::stdout().is_terminal() {
        print_text(&(crate::text::clean(&result.text_for_model()).into_owned() + "\n"));
    } else {
        print_text(&(result.text_for_model() + "\n"));
    }
    if result.status == ToolStatus::Succeeded { Exit::Completed } else { Exit::Failed }
}

/// Returns the error for arguments that are not a JSON object. `source` is the value of `--args`.
fn malformed(text: &str, source: &str) -> String {
    let place = match source.strip_prefix('@') {
        Some(path) => format!("the content of `{path}`"),
        None if source == "-" => "the text from stdin".to_owned(),
        None => "the value of `--args`".to_owned(),
    };
    let why = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value) => format!("found {}", value_kind(&value)),
        Err(error) if error.is_eof() => "the text ends too early".to_owned(),
        Err(error) => format!("invalid JSON at line {}, column {}", error.line(), error.column()),
    };
    format!("{place} is not a JSON object: {why}; example: --args '{{\"path\": \"README.md\"}}'")
}

fn value_kind(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "a boolean",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::String(_) => "a string",
        serde_json::Value::Array(_) => "an array",
        serde_json::Value::Object(_) => "an object",
    }
}

pub(crate) fn tool_call(name: &str, arguments: &str) -> Result<ToolCall, CliError> {
    let text = match arguments.strip_prefix('@') {
        Some(path) => read(std::fs::File::open(path), path)?,
        None if arguments == "-" => read(Ok(std::io::stdin()), "stdin")?,
        None => arguments.to_owned(),
    };
    // A session also rejects such a call.
    if let Some(limit) = CallArguments::describe_exceeded_limit(&text) {
        return Err(CliError::usage(format!("--args: too large: {limit}")));
    }
    Ok(ToolCall { tool_call_id: CallId::new("call_1"), tool_name: name.to_owned(), arguments: CallArguments::parse(&text) })
}

fn read(source: std::io::Result<impl Read>, name: &str) -> Result<String, CliError> {
    let mut text = String::new();
    source
        .and_then(|source| source.take(MAX_READ_BYTES).read_to_string(&mut text))
        .map_err(|error| CliError::usage(format!("--args: cannot read `{name}`: {error}")))?;
    Ok(text)
}
