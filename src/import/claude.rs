//! Claude Code settings.

use super::command_files;
use super::command_pattern::CommandPattern;
use super::json_entry::JsonEntry;
use super::secrets::SecretFinder;
use super::servers::{self, ServerDescription};
use super::settings::{AgentSettings, Permission, SettingsOwner, Subject};
use super::sources::{MAX_BYTES, Root, Sources};
use crate::protocol::VerdictKind;
use serde_json::Value;

/// Maximum size of `.claude.json` in bytes. The file also contains the history of all projects.
const STATE_BYTES: u64 = 16 << 20;
const FILE_TOOLS: &[&str] = &["Edit", "Write", "MultiEdit", "NotebookEdit"];
const READING_TOOLS: &[&str] = &["Read", "Grep", "Glob", "LS"];
const WRITERS: &[&str] = &["WriteFile", "EditFile", "ApplyPatch", "AppendFile", "TextPatch"];
const READERS: &[&str] = &["ReadFile", "Grep", "Glob", "ListDirectory", "TextInspect"];
/// Settings that have no equivalent in aye, each with the reason why it is not imported.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("hooks", HOOKS_STAY),
    ("model", "set `model.default` in config.toml; `aye models` lists the models"),
    ("apiKeyHelper", "save a key with `aye auth login anthropic`"),
    ("statusLine", "see `status.command` in `aye config schema`"),
    ("enabledPlugins", "add a plugin with `aye plugin add SOURCE`"),
    ("outputStyle", "put instructions in AGENTS.md"),
    ("sandbox", "the sandbox is on by default; `aye doctor` shows what it can do"),
];
/// Reason why skill directories are not imported.
const SKILLS_STAY: &str = "nothing to import: aye reads these skills directly, and a project's skills once you trust it";
/// Reason why hooks are not imported.
const HOOKS_STAY: &str =
    "nothing to import: aye reads a project's hooks directly, once you trust it; put your own in `hooks.toml` (docs/HOOKS.md)";
/// Reason why agent directories are not imported.
const AGENTS_STAY: &str = "nothing to import: aye reads these agents directly, and a project's agents once you trust it";
/// Directories that are not imported, each with the reason.
const UNSUPPORTED_DIRECTORIES: &[(&str, &str)] = &[("agents", AGENTS_STAY), ("skills", SKILLS_STAY), ("hooks", HOOKS_STAY)];

pub(super) fn read(sources: &mut Sources, secrets: &SecretFinder) -> AgentSettings {
    let mut settings = AgentSettings::default();
    let files = [(Root::User, "settings.json"), (Root::Project, "settings.json"), (Root::Project, "settings.local.json")];
    for (root, name) in files {
        if let Some((place, entries)) = sources.json(root, name, MAX_BYTES) {
            read_settings(&JsonEntry::new(&place, &entries), level(root), sources, &mut settings);
        }
    }
    read_servers(sources, secrets, &mut settings);
    if let Some(file) = sources.file(Root::User, "CLAUDE.md") {
        settings.instruct(file.place, file.text);
    }
    for root in [Root::User, Root::Project] {
        for (name, file) in sources.files_below(root, "commands", "md") {
            command_files::report_shell_commands(&mut settings, &file.place, &file.text, "!`");
            command_files::add_markdown(&mut settings, &file.place, level(root), &name, &file.text);
        }
        for (name, why) in UNSUPPORTED_DIRECTORIES {
            if sources.exists(root, name) {
                settings.leave_out(&sources.display_path(root, name), *name, *why);
            }
        }
    }
    settings
}

fn level(root: Root) -> SettingsOwner {
    match root {
        Root::User | Root::Home => SettingsOwner::User,
        Root::Project | Root::Workspace => SettingsOwner::Project,
    }
}

fn read_settings(file: &JsonEntry<'_>, level: SettingsOwner, sources: &mut Sources, settings: &mut AgentSettings) {
    let place = file.place;
    if let Some(permissions) = file.object("permissions", sources) {
        let lists = [("allow", VerdictKind::Allow), ("ask", VerdictKind::Ask), ("deny", VerdictKind::Deny)];
        for (key, verdict) in lists {
            for text in permissions.texts(key, sources) {
                let subject = subject(text);
                let permission = Permission { place: place.to_owned(), text: text.to_owned(), level, verdict, subject };
                settings.permissions.push(permission);
            }
        }
        if let Some(mode) = permissions.text("defaultMode", sources).filter(|mode| *mode != "default") {
            settings.leave_out(place, format!("defaultMode `{mode}`"), equivalent_mode(mode));
        }
        for directory in permissions.texts("additionalDirectories", sources) {
            settings.leave_out(place, format!("additional directory `{directory}`"), "use `--add-dir DIR`");
        }
    }
    let names: Vec<String> = file.pairs("env", sources).into_iter().map(|(name, _)| name).collect();
    if !names.is_empty() {
        let reason = "aye does not set variables for commands; set them in your shell";
        settings.leave_out(place, format!("environment variables {}", names.join(", ")), reason);
    }
    for (key, why) in UNSUPPORTED.iter().filter(|(key, _)| file.entries.contains_key(*key)) {
        settings.leave_out(place, format!("`{key}`"), *why);
    }
}

fn equivalent_mode(mode: &str) -> &'static str {
    match mode {
        "bypassPermissions" => "no setting skips the policy; `--mode auto` asks only about high-risk actions",
        "acceptEdits" => "use `--mode auto-edit`, or set `[approval] mode` in config.toml",
        "plan" => "use `--mode plan`, or set `[approval] mode` in config.toml",
        _ => "use `--mode plan`, `ask`, `auto-edit` or `auto`",
    }
}

/// Parses what a permission applies to, which is written as `Tool` or `Tool(specifier)`.
fn subject(text: &str) -> Subject {
    let text = text.trim();
    if let Some(name) = text.strip_prefix("mcp__") {
        let (server, tool) = name.split_once("__").map_or((name, None), |(server, tool)| (server, Some(tool)));
        let tool = tool.filter(|tool| *tool != "*");
        return Subject::Server(server.to_owned(), tool.map(str::to_owned));
    }
    let (tool, specifier) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => match rest.strip_suffix(')') {
            Some(specifier) => (tool, Some(specifier.trim())),
            None => return Subject::Other("the closing parenthesis is missing".to_owned()),
        },
    };
    let paths = |specifier: &str, subject: fn(Vec<String>) -> Subject| match path_pattern(specifier) {
        Ok(pattern) => subject(vec![pattern]),
        Err(why) => Subject::Other(why),
    };
    match (tool, specifier.filter(|specifier| !matches!(*specifier, "" | "*" | "**"))) {
        ("Bash", None) => Subject::Command(CommandPattern::Every),
        ("Bash", Some(specifier)) => Subject::Command(CommandPattern::parse(specifier)),
        (tool, None) if FILE_TOOLS.contains(&tool) => Subject::Tools(WRITERS.to_vec()),
        (tool, Some(specifier)) if FILE_TOOLS.contains(&tool) => paths(specifier, Subject::Write),
        (tool, None) if READING_TOOLS.contains(&tool) => Subject::Tools(READERS.to_vec()),
        (tool, Some(specifier)) if READING_TOOLS.contains(&tool) => paths(specifier, Subject::Read),
        ("WebFetch", None) => Subject::Web(None),
        ("WebFetch", Some(specifier)) => match specifier.strip_prefix("domain:") {
            Some(domain) => Subject::Web(Some(domain.trim().to_owned())),
            None => Subject::Other("expected `domain:HOST`".to_owned()),
        },
        ("WebSearch", None) => Subject::Search,
        ("WebSearch", Some(_)) => Subject::Other("add rules for queries under `Network.Search` to your policy".to_owned()),
        ("Task" | "Agent", _) => Subject::Other("agents do not need a rule: the policy checks each of their calls".to_owned()),
        _ => Subject::Other("aye has no such tool".to_owned()),
    }
}

/// Converts a path pattern. `//x` is absolute, `/x` is relative to the workspace, and a name without any slash matches
/// at any depth.
fn path_pattern(specifier: &str) -> Result<String, String> {
    let trimmed = specifier.trim_end_matches('/');
    if trimmed.is_empty() || trimmed.starts_with('!') || trimmed.contains('$') {
        return Err("aye does not support this form of path".to_owned());
    }
    if trimmed.split('/').any(|part| part == "..") {
        return Err("the path contains `..`".to_owned());
    }
    if let Some(absolute) = trimmed.strip_prefix("//") {
        return Ok(format!("/{absolute}"));
    }
    if trimmed == "~" || trimmed.starts_with("~/") {
        return Ok(trimmed.to_owned());
    }
    let below = trimmed.strip_prefix("./").or_else(|| trimmed.strip_prefix('/'));
    Ok(match below {
        Some(below) => format!("${{workspace}}/{below}"),
        None if trimmed.starts_with("**/") => trimmed.to_owned(),
        None if trimmed.contains('/') => format!("${{workspace}}/{trimmed}"),
        None => format!("**/{trimmed}"),
    })
}

/// Reads the user's MCP servers, including those that the user added for this project only.
fn read_servers(sources: &mut Sources, secrets: &SecretFinder, settings: &mut AgentSettings) {
    let found = sources.json(Root::User, ".claude.json", STATE_BYTES);
    if let Some((place, entries)) = found.or_else(|| sources.json(Root::Home, ".claude.json", STATE_BYTES)) {
        let file = JsonEntry::new(&place, &entries);
        read_server_list(&file, sources, secrets, settings);
        let workspace = sources.workspace().to_string_lossy().into_owned();
        let project = file.object("projects", sources).and_then(|projects| projects.object(&workspace, sources));
        if let Some(project) = project {
            read_server_list(&project, sources, secrets, settings);
        }
    }
    if sources.exists(Root::Workspace, ".mcp.json") {
        let place = sources.display_path(Root::Workspace, ".mcp.json");
        settings.leave_out(&place, "MCP servers", "aye reads this file directly, once you trust the project");
    }
}

fn read_server_list(file: &JsonEntry<'_>, sources: &mut Sources, secrets: &SecretFinder, settings: &mut AgentSettings) {
    let Some(list) = file.object("mcpServers", sources) else { return };
    for name in list.entries.keys() {
        let Some(entry) = list.object(name, sources) else { continue };
        let kind = entry.text("type", sources).filter(|kind| *kind != "stdio");
        let described = ServerDescription {
            command: entry.text("command", sources).map(str::to_owned),
            args: entry.texts("args", sources).into_iter().map(str::to_owned).collect(),
            env: entry.pairs("env", sources),
            url: entry.text("url", sources).map(str::to_owned),
            kind: kind.map(str::to_owned),
            headers: entry.pairs("headers", sources),
            is_off: entry.entries.get("disabled") == Some(&Value::Bool(true)),
            ..ServerDescription::default()
        };
        servers::add(settings, file.place, name, described, secrets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_entries_are_parsed_as_by_claude_code() {
        let command = |text: &str| Subject::Command(CommandPattern::parse(text));
        let paths = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        for (text, expected) in [
            ("Bash", Subject::Command(CommandPattern::Every)),
            ("Bash(*)", Subject::Command(CommandPattern::Every)),
            ("Bash(npm run test:*)", command("npm run test:*")),
            ("Read(//etc/x)", Subject::Read(paths(&["/etc/x"]))),
            ("Read(~/.ssh/**)", Subject::Read(paths(&["~/.ssh/**"]))),
            ("Read(.env)", Subject::Read(paths(&["**/.env"]))),
            ("Read(./secrets/**)", Subject::Read(paths(&["${workspace}/secrets/**"]))),
            ("Edit(/src/**/*.ts)", Subject::Write(paths(&["${workspace}/src/**/*.ts"]))),
            ("Write(docs/)", Subject::Write(paths(&["**/docs"]))),
            ("Edit", Subject::Tools(WRITERS.to_vec())),
            ("WebFetch(domain:example.com)", Subject::Web(Some("example.com".to_owned()))),
            ("WebFetch", Subject::Web(None)),
            ("mcp__github__create_issue", Subject::Server("github".to_owned(), Some("create_issue".to_owned()))),
            ("mcp__github", Subject::Server("github".to_owned(), None)),
            ("mcp__github__*", Subject::Server("github".to_owned(), None)),
        ] {
            assert_eq!(subject(text), expected, "{text}");
        }
        for text in ["Bash(x", "Task(x)", "WebSearch(x)", "Frobnicate", "Read(../x)", "Edit(!x)", "WebFetch(x)"] {
            assert!(matches!(subject(text), Subject::Other(_)), "{text}");
        }
    }
}
