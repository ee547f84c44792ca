//! `aye policy`: shows, explains, tests and edits the policy, without ever running a tool call.

pub(crate) mod args;
mod check;
mod explain;
mod grants;
pub(crate) mod init;
mod log;
mod origin;
mod paint;
mod pull;
mod redact;
mod schema;
mod server_tools;
mod show;
mod test;
mod validate;

#[cfg(test)]
mod tests;

use crate::host::console::warn;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::policy_layers::Policy;
use crate::host::project::ProjectConfig;
use crate::host::session;
use crate::policy::{Enforcer, Explanation};
use crate::protocol::{Action, ApproveWhen, CallArguments};
use crate::tools::{self, SandboxPolicy, Toolset};
use args::PolicyAction;
use server_tools::ServerTools;

pub(crate) fn run(common: &Common, action: PolicyAction) -> Result<Exit, CliError> {
    match action {
        PolicyAction::Check => check::run(&AppContext::find(common)?, common),
        PolicyAction::Redact { jsonl } => redact::run(&AppContext::find(common)?, common, jsonl),
        PolicyAction::Explain { subject, json } => explain::run(&AppContext::find(common)?, common, subject, json),
        PolicyAction::Show { form } => show::run(&AppContext::find(common)?, common, form),
        PolicyAction::Test { files, json } => test::run(&AppContext::find(common)?, common, &files, json),
        PolicyAction::Validate { file, json } => validate::run(&AppContext::find(common)?, common, file.as_deref(), json),
        PolicyAction::Init { template, place } => init::run(&AppContext::find(common)?, template, place),
        PolicyAction::Grants(action) => grants::run(&AppContext::find(common)?, action),
        PolicyAction::Log { json, session, denied, most } => {
            let filter = crate::store::DecisionFilter { session, denied_only: denied, most };
            log::run(&AppContext::find(common)?, &filter, json)
        }
        PolicyAction::Pull => pull::run(&AppContext::find(common)?),
        PolicyAction::Schema => schema::run(),
    }
}

/// Loads the policy in effect, with all its layers.
pub(super) fn load_policy(app: &AppContext, common: &Common) -> Result<Policy, CliError> {
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    project.ignored_policy_notice().iter().for_each(warn);
    app.policy(common.policy.as_deref(), Some(&project))
}

/// Returns the context including the user's custom tools and, if the project is trusted, the project's.
fn with_tools(app: &AppContext, common: &Common) -> AppContext {
    let mut own = app.clone();
    own.with_tools_of(&ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust));
    own
}

/// Returns the tools available under a policy. They are used to determine the actions of calls without running them.
fn toolset(app: &AppContext, enforcer: &Enforcer) -> Toolset {
    let settings = session::tool_settings(app, enforcer, SandboxPolicy::unsandboxed());
    Toolset::new(settings, session::tool_sources(app, enforcer))
}

fn judge_server_tool(
    action: Action,
    arguments: &CallArguments,
    enforcer: &Enforcer,
) -> Result<(Vec<Action>, Explanation), String> {
    if let CallArguments::Malformed(_) = arguments {
        return Err("the arguments are not a JSON object".to_owned());
    }
    if let Action::Invoke { server, tool, .. } = &action
        && let Err(denial) = enforcer.offers(&format!("Mcp.{server}/{tool}"))
    {
        return Ok((Vec::new(), Explanation::from_denial(denial)));
    }
    let actions = vec![action];
    let told = enforcer.explain(&actions, jiff::Timestamp::now());
    Ok((actions, told))
}

fn in_background(arguments: &CallArguments) -> bool {
    matches!(arguments, CallArguments::Object(object) if object.get("background").is_some_and(|value| value.as_bool() == Some(true)))
}

/// Judges a call by its arguments alone. Returns its actions and the verdict, or the reason why the call is invalid.
fn judge_call(
    tool: &str,
    arguments: &CallArguments,
    enforcer: &Enforcer,
    toolset: &Toolset,
    servers: &ServerTools,
) -> Result<(Vec<Action>, Explanation), String> {
    if let Some(action) = servers.action(tool).filter(|_| !toolset.is_local(tool)) {
        return judge_server_tool(action, arguments, enforcer);
    }
    if let Err(denial) = enforcer.offers(tools::canonical_name(tool).unwrap_or(tool)) {
        return Ok((Vec::new(), Explanation::from_denial(denial)));
    }
    let actions = toolset.actions_for(tool, arguments).map_err(|error| error.message)?;
    let mut told = enforcer.explain(&actions, jiff::Timestamp::now());
    // Sessions and background commands do not end on their own, so their effects cannot be reviewed.
    let is_awaited = tools::canonical_name(tool) == Some("RunCommand") && !in_background(arguments);
    told.approve = told.approve.map(|when| if is_awaited { when } else { ApproveWhen::Before });
    if !is_awaited {
        told.hosts.clear();
    }
    Ok((actions, told))
}
