//! Verdicts on MCP tools. They depend on whether a tool is listed, which rules match it, and whether it has changed
//! since it was allowed.

use super::bundle::{McpCapability, RuleDecision, ToolPattern};
use super::layer::{CompiledLayer, is_in_effect};
use super::layer_verdict::{ActionFinding, LayerVerdict, combine_layers, reason, unlisted_verdict};
use crate::protocol::{BACKEND_SERVER, CALLS_SERVER_TOOL, Risk};
use jiff::Timestamp;

const CAPABILITY: &str = "Mcp.Invoke";
const BACKEND: &str = "BackendTool.Invoke";
/// Tool name used to judge reading a server's resources.
pub(crate) const READING: &str = "resources/read";
const CHANGED: &str = "the tool's description or arguments changed since it was allowed";

/// Returns the capability that grants the tools of a server.
pub(crate) fn capability(server: &str) -> &'static str {
    if server == BACKEND_SERVER { BACKEND } else { CAPABILITY }
}

fn listed_tools<'a>(server: &str, layer: &'a CompiledLayer) -> Option<&'a McpCapability> {
    if server == BACKEND_SERVER { layer.bundle.capabilities.backend.as_ref() } else { layer.bundle.capabilities.mcp.as_ref() }
}

/// A tool as its server currently offers it.
pub(crate) struct Offered<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    /// Fingerprint of the tool's description and schema.
    pub fingerprint: &'a str,
    /// Whether the tool differs from the version that was last allowed.
    pub changed: bool,
}

impl Offered<'_> {
    /// Returns the tool's name as used in `[tools] disabled`.
    pub(crate) fn full_name(&self) -> String {
        format!("Mcp.{}", self.name())
    }

    fn name(&self) -> String {
        format!("{}/{}", self.server, self.tool)
    }
}

/// Returns the verdict on a tool call, combined across all policy layers.
pub(crate) fn judge(offered: &Offered<'_>, layers: &[CompiledLayer], now: Timestamp) -> ActionFinding {
    let mut decided = combine_layers(capability(offered.server), layers, |layer| judge_layer(offered, layer, now));
    // Otherwise, server `docs/x` with tool `y` would look like server `docs` with tool `x/y`.
    if offered.server.is_empty() || offered.server.contains('/') {
        decided = decided.stricter(LayerVerdict::deny("built-in", "the server name is empty or contains `/`"));
    }
    ActionFinding { decided, risk: Risk::Medium, critical: false, reads_only: false, remember: None, parts: Vec::new() }
}

fn judge_layer(offered: &Offered<'_>, layer: &CompiledLayer, now: Timestamp) -> Option<LayerVerdict> {
    let Some(tools) = listed_tools(offered.server, layer) else {
        return unlisted_verdict(capability(offered.server), layer);
    };
    let mut decided = judge_by_rules(offered, tools, layer, now);
    decided.lock_if_managed(layer.scope);
    decided.approval_rule.clone_from(&tools.approval_rule);
    Some(decided)
}

/// Returns the verdict based on rules. Deny rules are checked first, followed by the allow list (which no rule
/// overrides), ask rules, allow rules and the default approval.
fn judge_by_rules(offered: &Offered<'_>, tools: &McpCapability, layer: &CompiledLayer, now: Timestamp) -> LayerVerdict {
    let name = offered.name();
    let by = |decision: RuleDecision| {
        let current = layer.tools.iter().filter(|owned| is_in_effect(owned.rule.expires_at, now));
        current.filter(move |owned| owned.rule.decision == decision).filter(|owned| owned.rule.applies_to(&name))
    };
    if let Some(owned) = by(RuleDecision::Deny).next() {
        return LayerVerdict::deny(owned.scope.rule(owned.rule.line), reason(&owned.rule.reason, "denied by a rule"));
    }
    // A layer that only tightens and has no list does not affect the lists of other layers.
    let listed = match &tools.allowed {
        Some(patterns) => patterns.iter().find(|pattern| pattern.names(&name)).map(|pattern| pattern.line),
        None => (!layer.scope.grants()).then_some(tools.line),
    };
    let Some(listed) = listed else {
        let key = if offered.server == BACKEND_SERVER { "allowed_tool_names" } else { "allowed_tools" };
        let told = format!("`{name}` is not in `{key}` of `[capabilities.\"{}\"]`", capability(offered.server));
        return LayerVerdict::deny(layer.scope.rule(tools.allowed_line), told);
    };
    if let Some(owned) = by(RuleDecision::Ask).next() {
        return LayerVerdict::ask(owned.scope.rule(owned.rule.line), reason(&owned.rule.reason, "a rule requires approval"));
    }
    let mut changed = None;
    for owned in by(RuleDecision::Allow) {
        let rule = owned.scope.rule(owned.rule.line);
        match &owned.rule.fingerprint {
            Some(fingerprint) if fingerprint == offered.fingerprint => {}
            None if !offered.changed => {}
            Some(_) | None => {
                changed.get_or_insert(rule);
                continue;
            }
        }
        return LayerVerdict::allow(rule, reason(&owned.rule.reason, "allowed by a rule"));
    }
    // No mode allows a tool that differs from the version that the user reviewed.
    if let Some(rule) = changed {
        return LayerVerdict::ask(rule, CHANGED).not_grantable();
    }
    if offered.changed {
        return LayerVerdict::ask(layer.scope.rule(listed), CHANGED).not_grantable();
    }
    if tools.requires_approval {
        let asked = layer.scope.rule(tools.approval_line);
        return if offered.server == BACKEND_SERVER {
            // A mode or a plan must not allow this call. A saved rule can, and was already applied above.
            LayerVerdict::ask(asked, "calls a back-end tool").not_grantable()
        } else {
            LayerVerdict::ask(asked, CALLS_SERVER_TOOL)
        };
    }
    LayerVerdict::allow(layer.scope.rule(listed), "the policy allows this tool")
}

/// Returns the verdict, combined across all policy layers, on a server that requests access to the session's model.
/// Modes do not affect this verdict.
pub(crate) fn sampling(server: &str, layers: &[CompiledLayer]) -> LayerVerdict {
    combine_layers(CAPABILITY, layers, |layer| {
        let Some(tools) = &layer.bundle.capabilities.mcp else { return unlisted_verdict(CAPABILITY, layer) };
        let listed = match &tools.sampling {
            Some(patterns) => patterns.iter().find(|pattern| pattern.names(server)).map(|pattern| pattern.line),
            // As for tools, a layer that only tightens and has no list does not affect the lists of other layers.
            None => (!layer.scope.grants()).then_some(tools.line),
        };
        let Some(line) = listed else {
            let told = format!("`{server}` is not in `allow_sampling` of `[capabilities.\"{CAPABILITY}\"]`");
            return Some(LayerVerdict::deny(layer.scope.rule(tools.line), told));
        };
        Some(if tools.requires_approval {
            LayerVerdict::ask(layer.scope.rule(tools.approval_line), "sends a prompt to this session's model").not_grantable()
        } else {
            LayerVerdict::allow(layer.scope.rule(line), "the policy lets this server use the model")
        })
    })
}

/// Returns whether a policy layer could allow any tool of this server.
pub(crate) fn may_list(server: &str, layer: &CompiledLayer) -> bool {
    let Some(tools) = listed_tools(server, layer) else { return !layer.refuses(capability(server)) };
    let Some(patterns) = &tools.allowed else { return !layer.scope.grants() };
    patterns.iter().any(|pattern| match pattern.text.split_once('/') {
        Some((of_server, _)) => ToolPattern { text: of_server.to_owned(), line: 0 }.names(server),
        None => pattern.text.contains('*'),
    })
}
