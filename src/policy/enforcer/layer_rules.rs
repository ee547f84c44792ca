//! Describes the rules of a policy layer for display.

use crate::policy::bundle::BundleEntry;
use crate::policy::layer::CompiledLayer;

const ALLOW: &str = "allow";
const ASK: &str = "ask";
const DENY: &str = "deny";

/// Keys that limit a capability to certain paths, hosts, commands or tools.
const LIMITS: [&str; 5] = ["allowed_paths", "allowed_domains", "allowed_commands", "allowed_tools", "allowed_tool_names"];

/// Keys that state what a rule is about.
const SUBJECTS: [&str; 5] = ["command", "paths", "tools", "domains", "queries"];

/// Describes what a layer allows, asks about and denies, in this order: `allow  git status|diff (reads only)`. Omits
/// entries that the layer may not make, because they would widen the policy.
pub(super) fn describe_rules(layer: &CompiledLayer) -> Vec<String> {
    let widens = if layer.scope.only_tightens() { layer.bundle.widens() } else { &[] };
    let counts = |entry: &&BundleEntry| !widens.iter().any(|(line, _)| *line == entry.line);
    let mut rules: Vec<(&str, String)> = layer.bundle.stated.iter().filter(counts).filter_map(entry_rule).collect();
    rules.extend(layer.bundle.capabilities.granted.iter().filter_map(|name| default_rule(layer, name)));
    if layer.bundle.denies_unlisted {
        rules.push((DENY, "everything that the policy does not list".to_owned()));
    }
    // The decisions are in alphabetical order.
    rules.sort_by_key(|(decision, _)| *decision);
    rules.into_iter().map(|(decision, subject)| format!("{decision:5}  {subject}")).collect()
}

/// Returns the decision that an entry of a bundle states, and its subject, if it states one.
fn entry_rule(entry: &BundleEntry) -> Option<(&'static str, String)> {
    if entry.section == "tools" && entry.key == "disabled" {
        return Some((DENY, format!("tools: {}", join(&parse(entry)?, ", "))));
    }
    let capability = entry.section.strip_prefix("capabilities.")?.trim_matches('"');
    if entry.key.starts_with("blocked_") {
        return Some((DENY, format!("{}: {}", name_of(capability), join(&parse(entry)?, ", "))));
    }
    let toml::Value::Table(rule) = parse(entry)? else { return None };
    let text = |key: &str| rule.get(key).and_then(toml::Value::as_str);
    let decision = [ALLOW, ASK, DENY].into_iter().find(|name| entry.key == "rules" && text("decision") == Some(*name))?;
    let subject = SUBJECTS.into_iter().find_map(|key| {
        let separator = if key == "command" { " " } else { ", " };
        rule.get(key).map(|value| join(value, separator))
    });
    let subject = subject.unwrap_or_else(|| name_of(capability).to_owned());
    let subject = if rule.contains_key("paths") { format!("{}: {subject}", name_of(capability)) } else { subject };
    let reason = text("reason").map(|reason| format!(" ({reason})")).unwrap_or_default();
    Some((decision, subject + &reason))
}

/// Returns the decision for calls of a capability that no rule decides.
fn default_rule(layer: &CompiledLayer, capability: &str) -> Option<(&'static str, String)> {
    let section = format!("capabilities.\"{capability}\"");
    let stated = |key: &str| layer.bundle.stated.iter().find(|entry| entry.section == section && entry.key == key);
    let asks = stated("requires_approval").map_or(capability == "Network.Search", |entry| entry.value == "true");
    if capability == "Tool.Custom" || !asks && !layer.scope.grants() {
        return None;
    }
    let limit = LIMITS.into_iter().find_map(stated).and_then(parse).map(|value| format!(": {}", join(&value, ", ")));
    let other = if stated("rules").is_some() { "other " } else { "" };
    Some((if asks { ASK } else { ALLOW }, format!("{other}{}{}", name_of(capability), limit.unwrap_or_default())))
}

/// Parses the value of an entry.
fn parse(entry: &BundleEntry) -> Option<toml::Value> {
    format!("value = {}", entry.value).parse::<toml::Table>().ok()?.remove("value")
}

/// Joins the elements of a list. Alternatives for one element are separated by `|`.
fn join(value: &toml::Value, separator: &str) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(|item| join(item, "|")).collect::<Vec<_>>().join(separator),
        other => other.to_string(),
    }
}

/// Returns what a capability is about, in words.
fn name_of(capability: &str) -> &str {
    match capability {
        "File.Read" => "file reads",
        "File.Write" => "file changes",
        "File.Delete" => "file deletions",
        "Shell.Exec" => "commands",
        "Network.Http" => "HTTP requests",
        "Network.Search" => "web searches",
        "Mcp.Invoke" => "MCP tools",
        "BackendTool.Invoke" => "back-end tools",
        "Tool.Custom" => "custom tools",
        "Workspace.Upload" => "uploads of artifacts",
        other => other,
    }
}
