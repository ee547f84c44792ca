//! Finds names in the policy and in manifests that match no tool, or more than one.

use super::context::AppContext;
use super::policy_layers::Policy;
use crate::policy::{self, Layer, Scope, ToolLimit, entry_server, names_tool};
use crate::tools::{self, RemoteTools, Router};
use std::sync::Arc;

/// Returns a sentence for each problem.
pub(crate) fn find_misnamed(app: &AppContext, policy: &Policy) -> Vec<String> {
    let layers = || policy.layers.iter();
    let named: Vec<String> = layers().flat_map(|layer| layer.bundle.named.iter().map(|one| one.name.clone())).collect();
    let mut told: Vec<String> = layers().flat_map(|layer| disables_nothing(layer, &named, &app.tools.custom)).collect();
    told.extend(layers().flat_map(find_shadowed_commands));
    let own = layers().filter(|layer| matches!(layer.scope, Scope::User | Scope::File));
    told.extend(own.filter_map(|layer| policy::lint_narrow_grants(&layer.bundle)));
    told.extend(app.tools.notices());
    told.extend(app.tools.custom.iter().filter_map(|tool| find_shadowed_tool(tool, &named)));
    told
}

/// Finds names in `[tools] disabled` that match no tool, because a typo would leave a tool enabled.
fn disables_nothing(layer: &Layer, named: &[String], custom: &[Arc<tools::CustomTool>]) -> Vec<String> {
    let of_server = |text: &str| text.to_ascii_lowercase().starts_with("mcp.");
    let idle = layer.bundle.disabled.iter().filter(|one| {
        !of_server(&one.text)
            && tools::canonical_name(&one.text).is_none()
            && !custom.iter().any(|tool| one.hits(&tool.name))
            && !named.iter().any(|name| one.hits(name))
            && !tools::built_in_names().chain([tools::FIND_TOOLS, tools::SKILL]).any(|name| one.hits(name))
    });
    let told = |one: &policy::ToolPattern| {
        let rule = layer.scope.rule(one.line);
        format!("the policy disables the unknown tool `{}` ({rule}); `aye tool list` lists the tools", one.text)
    };
    idle.map(told).collect()
}

/// Finds entries in `tools.enabled` and `tools.disabled` that match no tool. As long as a server's tools are unknown,
/// any name may refer to one of them.
pub(crate) fn find_unmatched(limits: &[ToolLimit], router: &Router) -> Vec<String> {
    let names = router.full_names();
    let unknown = router.remote().map(RemoteTools::unknown_servers);
    let may_be_known_later = |entry: &str| {
        let Some(server) = entry_server(entry) else { return false };
        let all = unknown.as_ref();
        all.is_none_or(|all| all.iter().any(|name| names_tool(server, name)))
    };
    let told = |limit: &ToolLimit| -> Vec<String> {
        let (key, entries) = limit.entries();
        let idle = entries.iter().filter(|entry| !names.iter().any(|name| names_tool(entry, name)) && !may_be_known_later(entry));
        let said =
            |entry: &String| format!("`{entry}` in `{key}` ({}) matches no tool; `aye tool list` lists the tools", limit.rule);
        idle.map(said).collect()
    };
    limits.iter().flat_map(told).collect()
}

/// Reports a custom tool that cannot be called because a named command in the policy has the same name.
fn find_shadowed_tool(tool: &tools::CustomTool, named: &[String]) -> Option<String> {
    let name = named.iter().find(|name| name.eq_ignore_ascii_case(&tool.name))?;
    let file = tool.source.file.display();
    Some(format!("ignored the tool in `{file}`: the policy has a named command `{name}`; rename the tool"))
}

/// Finds named commands that cannot be called because there is a tool with the same name.
fn find_shadowed_commands(layer: &Layer) -> Vec<String> {
    let told = |command: &policy::NamedCommand| {
        let rule = layer.scope.rule(command.line);
        format!("ignored the named command `{}` ({rule}): a built-in tool has this name; rename the command", command.name)
    };
    layer.bundle.named.iter().filter(|command| tools::canonical_name(&command.name).is_some()).map(told).collect()
}
