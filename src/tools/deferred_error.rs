//! Errors that would reveal something about a hidden path. They are reported only once the policy has checked the path.

use super::paths::Paths;
use super::settings::ToolSettings;
use super::tool::AnyTool;
use crate::ports::Plan;
use crate::protocol::{Action, ToolCall, ToolError};
use serde_json::{Map, Value};

/// Returns the actions of a call if one of them refers to a path that the call may not read.
pub(super) fn unreadable_actions(
    tool: &dyn AnyTool,
    called: &str,
    arguments: Map<String, Value>,
    settings: &ToolSettings,
) -> Option<Vec<Action>> {
    // If symlinks cannot be resolved, the path as written is enough.
    let actions = tool
        .actions(called, arguments.clone(), &Paths::on_disk(settings))
        .or_else(|_| tool.actions(called, arguments, &Paths::lexical(settings)))
        .ok()?;
    let may_be_seen = |action: &Action| match action {
        Action::Read { target }
        | Action::Write { target }
        | Action::Delete { target }
        | Action::Open { target }
        | Action::Upload { target }
        | Action::Exec { cwd: target, .. } => (settings.paths.may_read)(&target.real),
        Action::Named { inputs, paths, .. } => inputs.iter().chain(paths).all(|target| (settings.paths.may_read)(&target.real)),
        Action::Custom { .. } | Action::Fetch { .. } | Action::Search { .. } | Action::Invoke { .. } => true,
    };
    (!actions.iter().all(may_be_seen)).then_some(actions)
}

/// Error of a call that cannot succeed. It is reported only once the policy has allowed the call.
pub(super) struct DeferredError(pub ToolError);

/// Lists the paths as the model wrote them.
fn list_paths(actions: &[Action]) -> String {
    let given = |action: &Action| match action {
        Action::Read { target }
        | Action::Write { target }
        | Action::Delete { target }
        | Action::Open { target }
        | Action::Upload { target }
        | Action::Exec { cwd: target, .. } => target.given.clone(),
        Action::Named { argv, .. } | Action::Custom { argv, .. } => argv.join(" "),
        Action::Fetch { url, .. } => url.clone(),
        Action::Search { query, .. } => query.clone(),
        Action::Invoke { server, tool, .. } => format!("{server}/{tool}"),
    };
    actions.iter().map(given).collect::<Vec<_>>().join(" ")
}

pub(super) fn plan_with_deferred_error(call: ToolCall, tool_name: &str, actions: Vec<Action>, error: ToolError) -> Plan {
    Plan {
        summary: format!("{tool_name} {} (not possible)", list_paths(&actions)),
        actions,
        changes: false,
        ..Plan::empty(call, tool_name.to_owned(), Box::new(DeferredError(error)))
    }
}
