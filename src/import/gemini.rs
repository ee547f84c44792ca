//! Gemini CLI settings.

use super::command_files;
use super::command_pattern::CommandPattern;
use super::document;
use super::json_entry::JsonEntry;
use super::secrets::SecretFinder;
use super::servers::{self, ServerDescription};
use super::settings::{AgentSettings, Permission, SettingsOwner, Subject};
use super::sources::{MAX_BYTES, Root, Sources};
use crate::protocol::VerdictKind;

const WRITERS: &[&str] = &["WriteFile", "EditFile", "ApplyPatch", "AppendFile", "TextPatch"];
/// Settings that have no equivalent in aye, each with the reason why it is not imported.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("hooks", "put your hooks in `hooks.toml`; see docs/HOOKS.md"),
    ("model", "use `-m gemini/NAME`, or set `model.default` in config.toml"),
    ("security", "aye asks once whether you trust a project; keys are saved with `aye auth login gemini`"),
    ("selectedAuthType", "save a key with `aye auth login gemini`"),
    ("sandbox", "the sandbox is on by default; `aye doctor` shows what it can do"),
    ("extensions", "aye does not use Gemini CLI extensions; `aye plugin add SOURCE` adds plugins"),
    ("autoAccept", "use `--mode auto-edit`, or set `[approval] mode` in config.toml"),
];

pub(super) fn read(sources: &mut Sources, secrets: &SecretFinder) -> AgentSettings {
    let mut settings = AgentSettings::default();
    for (root, level) in [(Root::User, SettingsOwner::User), (Root::Project, SettingsOwner::Project)] {
        if let Some((place, entries)) = sources.json(root, "settings.json", MAX_BYTES) {
            read_settings(&JsonEntry::new(&place, &entries), level, sources, secrets, &mut settings);
        }
        read_commands(root, level, sources, &mut settings);
        for (name, why) in [("policies", "add rules to policy.toml"), ("extensions", "aye does not use Gemini CLI extensions")] {
            if sources.exists(root, name) {
                settings.leave_out(&sources.display_path(root, name), name, why);
            }
        }
    }
    if let Some(file) = sources.file(Root::User, "GEMINI.md") {
        settings.instruct(file.place, file.text);
    }
    let has_own = ["AGENTS.md", "CLAUDE.md"].iter().any(|name| sources.exists(Root::Workspace, name));
    if sources.exists(Root::Workspace, "GEMINI.md") && !has_own {
        let place = sources.display_path(Root::Workspace, "GEMINI.md");
        settings.leave_out(&place, "instructions", "aye reads AGENTS.md; add a line `@GEMINI.md` to it");
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
    let tools = file.object("tools", sources);
    let lists = [("allowed", "allowedTools", VerdictKind::Allow), ("exclude", "excludeTools", VerdictKind::Deny)];
    for (key, old_key, verdict) in lists {
        let mut texts = file.texts(old_key, sources);
        texts.extend(tools.iter().flat_map(|tools| tools.texts(key, sources)).collect::<Vec<_>>());
        for text in texts {
            let permission =
                Permission { place: place.to_owned(), text: text.to_owned(), level, verdict, subject: subject(text, verdict) };
            settings.permissions.push(permission);
        }
    }
    let mut core = file.texts("coreTools", sources);
    core.extend(tools.iter().flat_map(|tools| tools.texts("core", sources)).collect::<Vec<_>>());
    if !core.is_empty() {
        let reason = "set `tools.enabled` in config.toml to the aye tools to offer";
        settings.leave_out(place, format!("core tools {}", core.join(", ")), reason);
    }
    let mode = file.object("general", sources).and_then(|general| general.text("defaultApprovalMode", sources));
    if let Some(mode) = mode.filter(|mode| *mode != "default") {
        let reason = match mode {
            "yolo" => "no setting skips the policy; `--mode auto` asks only about high-risk actions",
            "auto_edit" => "use `--mode auto-edit`, or set `[approval] mode` in config.toml",
            _ => "use `--mode plan`, `ask`, `auto-edit` or `auto`",
        };
        settings.leave_out(place, format!("defaultApprovalMode `{mode}`"), reason);
    }
    for (key, why) in UNSUPPORTED.iter().filter(|(key, _)| file.entries.contains_key(*key)) {
        settings.leave_out(place, format!("`{key}`"), *why);
    }
    read_servers(file, level, sources, secrets, settings);
}

/// Parses what a permission applies to, which is written as `tool` or `run_shell_command(command)`. Gemini CLI compares
/// only the beginning of a command.
fn subject(text: &str, verdict: VerdictKind) -> Subject {
    let (tool, argument) = match text.trim().split_once('(') {
        None => (text.trim(), None),
        Some((tool, rest)) => match rest.strip_suffix(')') {
            Some(argument) => (tool, Some(argument.trim())),
            None => return Subject::Other("the closing parenthesis is missing".to_owned()),
        },
    };
    match (tool, argument.filter(|argument| !matches!(*argument, "" | "*"))) {
        ("run_shell_command" | "ShellTool", None) => Subject::Command(CommandPattern::Every),
        ("run_shell_command" | "ShellTool", Some(command)) => {
            let command = command.trim_end_matches('*').trim_end();
            Subject::Command(match CommandPattern::parse(&format!("{command} *")) {
                // A rule for exactly this command line is narrower than the pattern.
                CommandPattern::Other(_) if verdict == VerdictKind::Allow => CommandPattern::Line(command.to_owned()),
                pattern => pattern,
            })
        }
        ("write_file" | "replace" | "edit" | "WriteFileTool" | "EditTool", _) => Subject::Tools(WRITERS.to_vec()),
        ("read_file" | "ReadFileTool", _) => Subject::Tools(vec!["ReadFile"]),
        ("read_many_files" | "ReadManyFilesTool", _) => Subject::Other("aye has no such tool".to_owned()),
        ("list_directory" | "LSTool", _) => Subject::Tools(vec!["ListDirectory"]),
        ("glob" | "GlobTool", _) => Subject::Tools(vec!["Glob"]),
        ("search_file_content" | "grep_search" | "GrepTool", _) => Subject::Tools(vec!["Grep"]),
        ("web_fetch" | "WebFetchTool", _) => Subject::Web(None),
        ("google_web_search" | "WebSearchTool", _) => Subject::Search,
        (name, None) if name.contains("__") => {
            let (server, tool) = name.split_once("__").unwrap_or((name, ""));
            Subject::Server(server.to_owned(), Some(tool.to_owned()).filter(|tool| !matches!(tool.as_str(), "" | "*")))
        }
        _ => Subject::Other("aye has no such tool".to_owned()),
    }
}

fn read_servers(
    file: &JsonEntry<'_>,
    level: SettingsOwner,
    sources: &mut Sources,
    secrets: &SecretFinder,
    settings: &mut AgentSettings,
) {
    let Some(list) = file.object("mcpServers", sources) else { return };
    let limits = file.object("mcp", sources);
    let mut names = |key: &str| -> Option<Vec<String>> {
        let limits = limits.as_ref().filter(|limits| limits.entries.contains_key(key))?;
        Some(limits.texts(key, sources).into_iter().map(str::to_owned).collect())
    };
    let (allowed, excluded) = (names("allowed"), names("excluded").unwrap_or_default());
    for name in list.entries.keys() {
        let Some(entry) = list.object(name, sources) else { continue };
        if level == SettingsOwner::Project {
            settings.leave_out(file.place, format!("MCP server `{name}`"), servers::of_project(name, sources));
            continue;
        }
        let streamable = entry.text("httpUrl", sources);
        let url = streamable.or_else(|| entry.text("url", sources));
        let kind = match (streamable, entry.text("type", sources), url) {
            (Some(_), ..) => Some("http"),
            (None, Some(kind), _) => Some(kind).filter(|kind| *kind != "stdio"),
            (None, None, Some(_)) => Some("sse"),
            (None, None, None) => None,
        };
        let converted =
            |pairs: Vec<(String, String)>| pairs.into_iter().map(|(name, value)| (name, with_braces(&value))).collect();
        let described = ServerDescription {
            command: entry.text("command", sources).map(with_braces),
            args: entry.texts("args", sources).into_iter().map(with_braces).collect(),
            env: converted(entry.pairs("env", sources)),
            url: url.map(with_braces),
            kind: kind.map(str::to_owned),
            headers: converted(entry.pairs("headers", sources)),
            directory: entry.text("cwd", sources).map(str::to_owned),
            timeout_seconds: entry.number("timeout").map(|milliseconds| milliseconds.div_ceil(1000).max(1)),
            is_off: excluded.contains(name) || allowed.as_ref().is_some_and(|allowed| !allowed.contains(name)),
            ..ServerDescription::default()
        };
        if entry.flag("trust") == Some(true) {
            settings.leave_out(
                file.place,
                format!("`trust` of `{name}`"),
                "each call to a tool needs approval until you allow the tool",
            );
        }
        for key in ["includeTools", "excludeTools"].into_iter().filter(|key| entry.entries.contains_key(*key)) {
            let reason = "list tools under `[capabilities.\"Mcp.Invoke\"]` or `[tools] disabled` in policy.toml";
            settings.leave_out(file.place, format!("`{key}` of `{name}`"), reason);
        }
        servers::add(settings, file.place, name, described, secrets);
    }
}

/// Converts references of the form `$VAR` to `${VAR}`.
fn with_braces(text: &str) -> String {
    let mut parts = text.split('$');
    let mut converted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(part.len());
        let is_name = end > 0 && !part.starts_with(|first: char| first.is_ascii_digit());
        if is_name {
            converted.extend(["${", &part[..end], "}", &part[end..]]);
        } else {
            converted.push('$');
            converted.push_str(part);
        }
    }
    converted
}

fn read_commands(root: Root, level: SettingsOwner, sources: &mut Sources, settings: &mut AgentSettings) {
    for (name, file) in sources.files_below(root, "commands", "toml") {
        let place = file.place.as_str();
        let table = match document::toml(&file.text) {
            Ok(table) => table,
            Err(why) => {
                sources.report(place, format!("{why}; it is not imported"));
                continue;
            }
        };
        let Some(prompt) = table.get("prompt").and_then(toml::Value::as_str) else {
            sources.report(place, "`prompt` must be a string; it is not imported");
            continue;
        };
        command_files::report_shell_commands(settings, place, prompt, "!{");
        let prompt = convert_mentions(&prompt.replace("{{args}}", "$ARGUMENTS"));
        command_files::add_prompt(settings, place, level, &name, table.get("description").and_then(toml::Value::as_str), &prompt);
    }
}

/// Converts mentions of the form `@{path}` to `@path`.
fn convert_mentions(prompt: &str) -> String {
    let mut parts = prompt.split("@{");
    let mut converted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((path, rest)) if !path.contains(char::is_whitespace) => converted.extend(["@", path.trim(), rest]),
            _ => converted.extend(["@{", part]),
        }
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_file_references_are_converted_to_the_syntax_of_aye() {
        for (given, expected) in
            [("Bearer $TOKEN", "Bearer ${TOKEN}"), ("${TOKEN}x$A.b", "${TOKEN}x${A}.b"), ("costs $5 $", "costs $5 $")]
        {
            assert_eq!(with_braces(given), expected);
        }
        assert_eq!(convert_mentions("see @{docs/a.md} and @{no end"), "see @docs/a.md and @{no end");
    }
}
