//! Codex settings.

use super::command_files;
use super::command_pattern::CommandPattern;
use super::document;
use super::prefix_rules;
use super::secrets::SecretFinder;
use super::servers::{self, ServerDescription};
use super::settings::{AgentSettings, Permission, SettingsOwner, Subject};
use super::sources::{Root, Sources};
use crate::protocol::VerdictKind;
use toml::{Table, Value};

/// Settings that have no direct equivalent in aye, each with the reason why it is not imported.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("model_provider", "aye finds a provider by its key; `aye models` lists the models"),
    ("model_providers", "add a provider under `[providers.NAME]` in config.toml"),
    ("model_reasoning_effort", "use `--effort LEVEL`, or set `model.effort` in config.toml"),
    ("profiles", "define `[profiles.NAME]` in config.toml, with `model`, `mode` and `effort`"),
    ("profile", "use `--profile NAME`"),
    ("notify", "set `ui.notifications` in config.toml"),
    ("hooks", "put your hooks in `hooks.toml`; see docs/HOOKS.md"),
    ("shell_environment_policy", "set `environment` under Shell.Exec in policy.toml"),
    ("projects", "aye asks once whether you trust a project"),
    ("permissions", "aye has no permission profiles"),
    ("developer_instructions", "put instructions in AGENTS.md"),
];

pub(super) fn read(sources: &mut Sources, secrets: &SecretFinder) -> AgentSettings {
    let mut settings = AgentSettings::default();
    for (root, level) in [(Root::User, SettingsOwner::User), (Root::Project, SettingsOwner::Project)] {
        read_config(root, level, sources, secrets, &mut settings);
        for (_, file) in sources.files_below(root, "rules", "rules") {
            let (rules, mistakes) = prefix_rules::parse(&file.text);
            for (line, why) in mistakes {
                sources.report(&file.place, format!("line {line}: {why}; it is not imported"));
            }
            for rule in rules {
                read_rule(&file.place, level, rule, sources, &mut settings);
            }
        }
    }
    let instructions = sources.file(Root::User, "AGENTS.override.md").or_else(|| sources.file(Root::User, "AGENTS.md"));
    if let Some(file) = instructions {
        settings.instruct(file.place, file.text);
    }
    for (name, file) in sources.files_below(Root::User, "prompts", "md") {
        if let Some(named) = named_placeholder(&file.text) {
            let reason = "only `$1` to `$9` and `$ARGUMENTS` are replaced; the rest is imported";
            settings.leave_out(&file.place, format!("placeholder `${named}`"), reason);
        }
        command_files::add_markdown(&mut settings, &file.place, SettingsOwner::User, &name, &file.text);
    }
    if sources.exists(Root::User, "skills") {
        settings.leave_out(
            &sources.display_path(Root::User, "skills"),
            "skills",
            "move them to `~/.agents/skills`, where aye and other agents read skills",
        );
    }
    settings
}

fn read_rule(
    place: &str,
    level: SettingsOwner,
    rule: prefix_rules::PrefixRule,
    sources: &mut Sources,
    settings: &mut AgentSettings,
) {
    let verdict = match rule.decision.as_str() {
        "allow" => VerdictKind::Allow,
        "prompt" => VerdictKind::Ask,
        "forbidden" => VerdictKind::Deny,
        other => {
            return sources.report(place, format!("line {}: unknown decision `{other}`; the rule is not imported", rule.line));
        }
    };
    let word = |alternatives: &Vec<String>| match alternatives.as_slice() {
        [word] => word.clone(),
        several => format!("[{}]", several.join("|")),
    };
    let text = rule.pattern.iter().map(word).collect::<Vec<_>>().join(" ");
    // In rules of aye, these characters are wildcards.
    let has_wildcard = rule.pattern.iter().flatten().any(|word| word.contains(['*', '?']) || word.is_empty());
    let subject = if has_wildcard {
        Subject::Other("one of the words contains `*` or `?`, or is empty".to_owned())
    } else {
        Subject::Command(CommandPattern::Beginning(rule.pattern))
    };
    settings.permissions.push(Permission { place: place.to_owned(), text, level, verdict, subject });
}

/// Returns the first named placeholder in the text, such as `$FILE`.
fn named_placeholder(text: &str) -> Option<&str> {
    text.split('$').skip(1).find_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_uppercase() && letter != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        (name.len() > 1 && name != "ARGUMENTS").then_some(name)
    })
}

/// Reads whether the model may search the web, which is set by `web_search` or the older `[tools] web_search`.
fn read_web_search(place: &str, level: SettingsOwner, table: &Table, settings: &mut AgentSettings) {
    let old = table.get("tools").and_then(Value::as_table).and_then(|tools| tools.get("web_search"));
    let verdict = match table.get("web_search").or(old) {
        Some(Value::String(mode)) if mode == "disabled" => VerdictKind::Deny,
        Some(Value::String(_) | Value::Boolean(true)) => VerdictKind::Allow,
        Some(Value::Boolean(false)) => VerdictKind::Deny,
        _ => return,
    };
    let (place, text) = (place.to_owned(), "web_search".to_owned());
    settings.permissions.push(Permission { place, text, level, verdict, subject: Subject::Search });
}

fn read_config(root: Root, level: SettingsOwner, sources: &mut Sources, secrets: &SecretFinder, settings: &mut AgentSettings) {
    let Some(file) = sources.file(root, "config.toml") else { return };
    let place = file.place.as_str();
    let table = match document::toml(&file.text) {
        Ok(table) => table,
        Err(why) => return sources.report(place, format!("{why}; none of it is imported")),
    };
    let text = |key: &str| table.get(key).and_then(Value::as_str);
    if let Some(policy) = text("approval_policy") {
        settings.leave_out(place, format!("approval_policy `{policy}`"), equivalent_approvals(policy));
    }
    if let Some(mode) = text("sandbox_mode") {
        settings.leave_out(place, format!("sandbox_mode `{mode}`"), equivalent_sandbox(mode));
    }
    read_web_search(place, level, &table, settings);
    if let Some(access) = table.get("sandbox_workspace_write").and_then(Value::as_table) {
        let keys: Vec<String> = access.keys().map(|key| format!("`{key}`")).collect();
        let reason = "set `network` and `writable_paths` under Shell.Exec in policy.toml";
        settings.leave_out(place, format!("sandbox_workspace_write {}", keys.join(", ")), reason);
    }
    if let Some(model) = text("model") {
        let is_openai = table.get("model_provider").is_none_or(|provider| provider.as_str() == Some("openai"));
        let name = if is_openai { format!("openai/{model}") } else { "PROVIDER/NAME".to_owned() };
        let reason = format!("use `-m {name}`, or set `model.default` in config.toml");
        settings.leave_out(place, format!("model `{model}`"), reason);
    }
    for (key, why) in UNSUPPORTED.iter().filter(|(key, _)| table.contains_key(*key)) {
        settings.leave_out(place, format!("`{key}`"), *why);
    }
    let Some(list) = table.get("mcp_servers") else { return };
    let Some(list) = list.as_table() else {
        return sources.report(place, "`mcp_servers` must be a table; it is not imported");
    };
    for (name, entry) in list {
        let entry_name = format!("MCP server `{}`", name.chars().take(64).collect::<String>());
        match entry.as_table() {
            _ if level == SettingsOwner::Project => {
                settings.leave_out(place, entry_name, servers::of_project(name, sources));
            }
            Some(entry) => {
                let described = describe(entry, &format!("mcp_servers.{name}"), place, sources, settings);
                servers::add(settings, place, name, described, secrets);
            }
            None => sources.report(place, format!("`mcp_servers.{name}` must be a table; it is not imported")),
        }
    }
}

fn equivalent_approvals(policy: &str) -> &'static str {
    match policy {
        "never" => "no setting skips the policy; `--mode auto` asks only about high-risk actions",
        "untrusted" => "aye asks about everything that the policy does not allow",
        "on-request" | "on-failure" => "aye asks about everything that the policy does not allow; see `--mode`",
        _ => "use `--mode plan`, `ask`, `auto-edit` or `auto`",
    }
}

fn equivalent_sandbox(mode: &str) -> &'static str {
    match mode {
        "danger-full-access" => "aye does not turn its sandbox off; `aye doctor` shows what it can do",
        "read-only" => "use `--mode plan`, or set `sandbox = \"read-only\"` under Shell.Exec in policy.toml",
        _ => "this is aye's default",
    }
}

fn describe(entry: &Table, path: &str, place: &str, sources: &mut Sources, settings: &mut AgentSettings) -> ServerDescription {
    let mut wrong = Vec::new();
    let mut text = |key: &str| match entry.get(key) {
        None => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            wrong.push(format!("`{path}.{key}` must be a string; it is not imported"));
            None
        }
    };
    let (command, url, directory) = (text("command"), text("url"), text("cwd"));
    let bearer_token_env = text("bearer_token_env_var");
    let mut texts = |key: &str| match entry.get(key) {
        None => Vec::new(),
        Some(Value::Array(values)) if values.iter().all(Value::is_str) => {
            values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
        }
        Some(_) => {
            wrong.push(format!("`{path}.{key}` must be an array of strings; it is not imported"));
            Vec::new()
        }
    };
    let (args, forwarded) = (texts("args"), texts("env_vars"));
    let pairs = |key: &str| -> Vec<(String, String)> {
        let table = entry.get(key).and_then(Value::as_table).into_iter().flatten();
        table.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    };
    let reference = |name: String| format!("${{{name}}}");
    let mut env = pairs("env");
    env.extend(forwarded.into_iter().map(|name| (name.clone(), reference(name))));
    let mut headers = pairs("http_headers");
    headers.extend(pairs("env_http_headers").into_iter().map(|(header, variable)| (header, reference(variable))));
    for why in wrong {
        sources.report(place, why);
    }
    for key in ["enabled_tools", "disabled_tools"].into_iter().filter(|key| entry.contains_key(*key)) {
        let reason = "list tools under `[capabilities.\"Mcp.Invoke\"]` or `[tools] disabled` in policy.toml";
        settings.leave_out(place, format!("`{path}.{key}`"), reason);
    }
    let seconds = |key: &str| entry.get(key).and_then(Value::as_integer).and_then(|seconds| u64::try_from(seconds).ok());
    ServerDescription {
        command,
        args,
        env,
        url,
        kind: None,
        headers,
        bearer_token_env,
        directory,
        is_off: entry.get("enabled").and_then(Value::as_bool) == Some(false),
        start_timeout_seconds: seconds("startup_timeout_sec"),
        timeout_seconds: seconds("tool_timeout_sec"),
    }
}
