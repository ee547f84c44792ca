//! opencode settings.

use super::command_files;
use super::command_pattern::CommandPattern;
use super::json_entry::JsonEntry;
use super::secrets::SecretFinder;
use super::servers::{self, ServerDescription};
use super::settings::{AgentSettings, Permission, SettingsOwner, Subject};
use super::sources::{MAX_BYTES, Root, Sources};
use crate::protocol::VerdictKind;
use serde_json::Value;

const FILES: [&str; 2] = ["opencode.json", "opencode.jsonc"];
const WRITERS: &[&str] = &["WriteFile", "EditFile", "ApplyPatch", "AppendFile", "TextPatch"];
/// Settings that have no equivalent in aye, each with the reason why it is not imported.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("model", "use `-m PROVIDER/NAME`, or set `model.default` in config.toml"),
    ("small_model", "set `model.small` in config.toml"),
    ("provider", "add a provider under `[providers.NAME]` in config.toml, and a key with `aye auth login`"),
    ("agent", "put agents in `.aye/agents`"),
    ("mode", "use `--mode plan`, `ask`, `auto-edit` or `auto`"),
    ("plugin", "aye does not use opencode plugins; `aye plugin add SOURCE` adds plugins"),
    ("formatter", "aye runs no formatters"),
    ("lsp", "configure language servers under `[lsp]` in config.toml; see docs/LANGUAGE_SERVERS.md"),
    ("instructions", "add the paths to AGENTS.md, as `@path`"),
    ("share", "aye runs on this machine only"),
];

pub(super) fn read(sources: &mut Sources, secrets: &SecretFinder) -> AgentSettings {
    let mut settings = AgentSettings::default();
    for (root, level) in [(Root::User, SettingsOwner::User), (Root::Workspace, SettingsOwner::Project)] {
        for name in FILES {
            if let Some((place, entries)) = sources.json(root, name, MAX_BYTES) {
                read_settings(&JsonEntry::new(&place, &entries), level, sources, secrets, &mut settings);
            }
        }
    }
    if let Some(file) = sources.file(Root::User, "AGENTS.md") {
        settings.instruct(file.place, file.text);
    }
    for (root, level) in [(Root::User, SettingsOwner::User), (Root::Project, SettingsOwner::Project)] {
        for directory in ["command", "commands"] {
            for (name, file) in sources.files_below(root, directory, "md") {
                command_files::report_shell_commands(&mut settings, &file.place, &file.text, "!`");
                command_files::add_markdown(&mut settings, &file.place, level, &name, &file.text);
            }
        }
        let skills = "move them to `~/.agents/skills` or `.agents/skills`, where aye and other agents read skills";
        for (name, why) in
            [("agent", "put agents in `.aye/agents`"), ("plugin", "aye does not use opencode plugins"), ("skill", skills)]
        {
            if sources.exists(root, name) {
                settings.leave_out(&sources.display_path(root, name), name, why);
            }
        }
    }
    settings
}

fn read_settings(
    file: &JsonEntry<'_>,
    level: SettingsOwner,
    sources: &mut Sources,
    secrets: &SecretFinder,
    settings: &mut AgentSettings,
) {
    let place = file.place;
    match file.entries.get("permission") {
        Some(Value::String(action)) => add(place, level, &Entry::general("*", action), sources, settings),
        Some(_) => {
            if let Some(permission) = file.object("permission", sources) {
                read_permissions(&permission, level, sources, settings);
            }
        }
        None => {}
    }
    // The older form disables tools.
    for (tool, value) in file.object("tools", sources).iter().flat_map(|tools| tools.entries) {
        if value == &Value::Bool(false) {
            add(place, level, &Entry::general(tool, "deny"), sources, settings);
        }
    }
    if let Some(commands) = file.object("command", sources) {
        for name in commands.entries.keys() {
            let Some(command) = commands.object(name, sources) else { continue };
            let Some(template) = command.text("template", sources) else { continue };
            command_files::report_shell_commands(settings, place, template, "!`");
            command_files::add_prompt(settings, place, level, name, command.text("description", sources), template);
        }
    }
    for (key, why) in UNSUPPORTED.iter().filter(|(key, _)| file.entries.contains_key(*key)) {
        settings.leave_out(place, format!("`{key}`"), *why);
    }
    read_servers(file, level, sources, secrets, settings);
}

/// Reads permissions. For each tool, the last pattern that matches decides, so allow patterns that a later pattern
/// overrides are skipped.
fn read_permissions(file: &JsonEntry<'_>, level: SettingsOwner, sources: &mut Sources, settings: &mut AgentSettings) {
    for (tool, value) in file.entries {
        let patterns = match value {
            Value::String(action) => {
                add(file.place, level, &Entry::general(tool, action), sources, settings);
                continue;
            }
            Value::Object(patterns) => patterns,
            _ => {
                sources.report(file.place, format!("`permission.{tool}` must be a string or an object; it is not imported"));
                continue;
            }
        };
        let patterns: Vec<(&String, &str)> =
            patterns.iter().map(|(pattern, action)| (pattern, action.as_str().unwrap_or_default())).collect();
        for (at, (pattern, action)) in patterns.iter().enumerate() {
            let overrides = |(later, action): &&(&String, &str)| {
                *action != "allow"
                    && (later.as_str() == "*"
                        || pattern.trim_end_matches([' ', '*']).starts_with(later.trim_end_matches([' ', '*'])))
            };
            let overriding = patterns[at + 1..].iter().find(overrides);
            if let Some((later, _)) = overriding.filter(|_| *action == "allow") {
                let reason = format!("the later pattern `{later}` overrides it");
                settings.leave_out(file.place, format!("allow {tool} `{pattern}`"), reason);
                continue;
            }
            let has_exceptions = patterns.iter().any(|(other, action)| *action == "allow" && other != pattern);
            add(file.place, level, &Entry { tool, pattern, action, has_exceptions }, sources, settings);
        }
    }
}

/// Permission as written in the settings.
struct Entry<'a> {
    tool: &'a str,
    pattern: &'a str,
    action: &'a str,
    /// Whether other patterns for the same tool allow some calls.
    has_exceptions: bool,
}

impl<'a> Entry<'a> {
    /// Creates an entry that applies to every use of a tool.
    fn general(tool: &'a str, action: &'a str) -> Self {
        Self { tool, pattern: "*", action, has_exceptions: false }
    }
}

fn add(place: &str, level: SettingsOwner, entry: &Entry<'_>, sources: &mut Sources, settings: &mut AgentSettings) {
    let Entry { tool, pattern, action, has_exceptions } = *entry;
    let verdict = match action {
        "allow" => VerdictKind::Allow,
        "ask" => VerdictKind::Ask,
        "deny" => VerdictKind::Deny,
        _ => {
            return sources
                .report(place, format!("`permission.{tool}`: `{pattern}` must be allow, ask or deny; it is not imported"));
        }
    };
    let subject = match subject(tool, pattern) {
        Subject::Command(CommandPattern::Every) | Subject::Tools(_) if verdict != VerdictKind::Allow && has_exceptions => {
            Subject::Other(
                "in aye, a general deny or ask cannot have exceptions; aye asks about everything that no rule matches".to_owned(),
            )
        }
        subject => subject,
    };
    let text = if pattern == "*" { tool.to_owned() } else { format!("{tool} `{pattern}`") };
    settings.permissions.push(Permission { place: place.to_owned(), text, level, verdict, subject });
}

fn subject(tool: &str, pattern: &str) -> Subject {
    let is_every = matches!(pattern, "*" | "**");
    match tool {
        "bash" if is_every => Subject::Command(CommandPattern::Every),
        "bash" => Subject::Command(CommandPattern::parse(pattern)),
        "edit" | "write" | "patch" | "multiedit" if is_every => Subject::Tools(WRITERS.to_vec()),
        "edit" | "write" | "patch" | "multiedit" => paths(pattern, Subject::Write),
        "read" if is_every => Subject::Tools(vec!["ReadFile", "TextInspect"]),
        "read" => paths(pattern, Subject::Read),
        "grep" if is_every => Subject::Tools(vec!["Grep"]),
        "glob" if is_every => Subject::Tools(vec!["Glob"]),
        "list" if is_every => Subject::Tools(vec!["ListDirectory"]),
        "webfetch" if is_every => Subject::Web(None),
        "webfetch" => Subject::Other("rules for requests name hosts: see `blocked_domains`".to_owned()),
        "websearch" if is_every => Subject::Search,
        "websearch" => Subject::Other("add rules for queries under `Network.Search` to your policy".to_owned()),
        "task" => Subject::Other("agents do not need a rule: the policy checks each of their calls".to_owned()),
        "external_directory" => Subject::Other("see `allowed_paths` of File.Read and File.Write".to_owned()),
        "*" => {
            Subject::Other("the entry applies to every tool; aye asks about everything that its policy does not allow".to_owned())
        }
        // The tools of an MCP server are named `SERVER_TOOL`.
        _ => match tool.strip_suffix("_*").filter(|server| !server.is_empty() && !server.contains('*')) {
            Some(server) if is_every => Subject::Server(server.to_owned(), None),
            _ => Subject::Other("aye has no such tool".to_owned()),
        },
    }
}

/// Converts a path pattern in which `*` matches any text, including slashes.
fn paths(pattern: &str, subject: fn(Vec<String>) -> Subject) -> Subject {
    if pattern.contains("..") || pattern.contains('$') && !pattern.starts_with("$HOME/") {
        return Subject::Other("aye does not support this form of path".to_owned());
    }
    let pattern = pattern.strip_prefix("$HOME/").map_or_else(|| pattern.to_owned(), |below| format!("~/{below}"));
    let pattern = match pattern.strip_suffix("/*") {
        Some(folder) => format!("{folder}/**"),
        None => pattern,
    };
    let is_placed = pattern.starts_with(['/', '~']) || pattern.starts_with("**/");
    subject(vec![match pattern.strip_prefix("./") {
        Some(below) => format!("${{workspace}}/{below}"),
        None if is_placed => pattern,
        None if pattern.starts_with('*') => format!("**/{pattern}"),
        None => format!("${{workspace}}/{pattern}"),
    }])
}

fn read_servers(
    file: &JsonEntry<'_>,
    level: SettingsOwner,
    sources: &mut Sources,
    secrets: &SecretFinder,
    settings: &mut AgentSettings,
) {
    let Some(list) = file.object("mcp", sources) else { return };
    for name in list.entries.keys() {
        let Some(entry) = list.object(name, sources) else { continue };
        let label = format!("MCP server `{name}`");
        if level == SettingsOwner::Project {
            settings.leave_out(file.place, label, servers::of_project(name, sources));
            continue;
        }
        let mut words: Vec<String> = entry.texts("command", sources).into_iter().map(str::to_owned).collect();
        let pairs = entry.pairs("environment", sources);
        let headers = entry.pairs("headers", sources);
        let values = pairs.iter().chain(&headers).map(|(_, value)| value);
        if words.iter().chain(values).any(|text| text.contains("{file:")) {
            settings.leave_out(
                file.place,
                label,
                "the entry reads a value from a file (`{file:…}`); use an environment variable",
            );
            continue;
        }
        let converted =
            |pairs: Vec<(String, String)>| pairs.into_iter().map(|(name, value)| (name, with_references(&value))).collect();
        let command = (!words.is_empty()).then(|| words.remove(0));
        let described = ServerDescription {
            command: command.map(|command| with_references(&command)),
            args: words.iter().map(|word| with_references(word)).collect(),
            env: converted(pairs),
            url: entry.text("url", sources).map(with_references),
            headers: converted(headers),
            is_off: entry.flag("enabled") == Some(false),
            timeout_seconds: None,
            ..ServerDescription::default()
        };
        servers::add(settings, file.place, name, described, secrets);
    }
}

/// Converts references of the form `{env:VAR}` to `${VAR}`.
fn with_references(text: &str) -> String {
    let mut parts = text.split("{env:");
    let mut converted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((name, rest)) => converted.extend(["${", name.trim(), "}", rest]),
            None => converted.extend(["{env:", part]),
        }
    }
    converted
}
