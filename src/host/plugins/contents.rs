//! Lists the contents of a plugin: the parts that aye can use, errors, and parts that aye does not use.

use super::installed::Plugin;
use crate::config::Environment;
use crate::config::servers::variable_names;
use crate::hooks::{HookAction, PLUGIN_ROOT};
use crate::skills::{Fault, Folder, Origin, SkillReport, SkillSet, check};
use crate::subagents::{self, AgentSet};
use crate::text::{reveal_line, truncate};
use crate::tools::{CustomTool, Source, ToolOwner};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Plugin parts that aye does not support, each with the prefix of its path and a description.
const UNUSED: [(&str, &str); 3] =
    [("output-styles/", "output styles"), (".lsp.json", "language servers"), ("monitors/", "monitors")];

/// Maximum width of a server value for display, in terminal cells.
const VALUE_CELLS: usize = 80;

/// A part of a plugin, such as a skill or a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Part {
    pub name: String,
    /// Purpose of the part and, for a tool, a hook or a server, its command line.
    pub description: String,
}

/// Contents of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Contents {
    pub skills: Vec<Part>,
    pub agents: Vec<Part>,
    pub commands: Vec<Part>,
    pub tools: Vec<Part>,
    pub hooks: Vec<Part>,
    pub servers: Vec<Part>,
    /// Parts that aye does not use, with the reasons.
    pub unused: Vec<String>,
    /// Errors in parts of the plugin. Parts with errors are not used.
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
}

impl Contents {
    /// Reads the contents of a plugin without running any of its code.
    pub(crate) fn read(plugin: &Plugin) -> Self {
        let mut contents = Self::default();
        contents.add_skills(plugin);
        contents.add_agents(plugin);
        contents.add_commands(plugin);
        contents.add_tools(plugin);
        contents.add_hooks(plugin);
        contents.add_servers(plugin);
        for (start, what) in UNUSED {
            if plugin.pin.files.keys().any(|path| path.starts_with(start)) {
                contents.unused.push(format!("{start}: aye does not use {what} from plugins"));
            }
        }
        contents
    }

    /// Returns whether the plugin contains nothing that aye uses.
    pub(crate) fn is_empty(&self) -> bool {
        [&self.skills, &self.agents, &self.commands, &self.tools, &self.hooks, &self.servers].into_iter().all(Vec::is_empty)
    }

    fn add_skills(&mut self, plugin: &Plugin) {
        let folder = Folder {
            path: plugin.root.join("skills"),
            shown: "skills".to_owned(),
            origin: Origin::Plugin,
            boundary: Some(plugin.root.clone()),
            kept_apart: Vec::new(),
        };
        let reports = check(&folder);
        let mut set = SkillSet::default();
        set.add_plugin(&plugin.skills());
        for skill in std::mem::take(&mut set.skills) {
            let file = format!("skills/{}/", skill.manifest.name);
            if reports.iter().any(|report| report.file.starts_with(&file) && !report.errors.is_empty()) {
                continue;
            }
            self.skills.push(Part { name: skill.manifest.name, description: skill.manifest.description });
        }
        for report in reports {
            self.add_report(report);
        }
        // Skills outside the standard folder have no report.
        let usual = plugin.shown("skills/");
        for broken in set.broken.iter().filter(|broken| !broken.file.starts_with(&usual)) {
            self.errors.extend(broken.faults.iter().map(|fault| fault.with_file(&broken.file)));
        }
    }

    fn add_agents(&mut self, plugin: &Plugin) {
        let files = plugin.agents();
        let mut set = AgentSet::default();
        set.add_plugin(plugin.name(), &files);
        self.agents.extend(set.agents.into_iter().map(|agent| Part { name: agent.name, description: agent.description }));
        for hidden in set.hidden {
            self.errors.push(format!("{}: another agent in the plugin has the name `{}`", hidden.file, hidden.name));
        }
        for file in &files {
            self.add_report(subagents::check(file));
        }
    }

    fn add_report(&mut self, report: SkillReport) {
        let lines = |faults: Vec<Fault>| faults.into_iter().map(|fault| fault.with_file(&report.file)).collect::<Vec<_>>();
        self.errors.extend(lines(report.errors));
        self.warnings.extend(lines(report.warnings));
    }

    fn add_commands(&mut self, plugin: &Plugin) {
        for command in plugin.commands() {
            match command {
                Ok((command, notices)) => {
                    self.commands.push(Part { name: format!("/{}", command.name), description: command.description });
                    self.warnings.extend(notices);
                }
                Err(why) => self.errors.push(why),
            }
        }
    }

    fn add_tools(&mut self, plugin: &Plugin) {
        let prefix = format!("{}/", plugin.root.display());
        for (file, content) in plugin.tools() {
            let (name, root, hashes) = (plugin.name().to_owned(), plugin.root.clone(), plugin.hashes());
            let shown = file.strip_prefix(&plugin.root).unwrap_or(&file).display().to_string();
            let source = Source { file, owner: ToolOwner::Plugin { name, root, hashes } };
            let tool = content.map_err(|why| format!("{shown}: {why}"));
            let tool =
                tool.and_then(|bytes| CustomTool::parse(&bytes, source).map_err(|error| error.to_string().replace(&prefix, "")));
            match tool {
                Ok(tool) => {
                    let runs =
                        tool.command_line().map_or_else(|| "calls other tools".to_owned(), |line| format!("runs `{line}`"));
                    self.tools.push(Part { description: format!("{runs}: {}", tool.description), name: tool.name });
                }
                Err(why) => self.errors.push(why),
            }
        }
    }

    fn add_hooks(&mut self, plugin: &Plugin) {
        for file in plugin.hooks() {
            self.warnings.extend(file.notes);
            for hook in file.hooks {
                match &hook.action {
                    HookAction::Command { line, .. } => {
                        let name = format!("{} {}", hook.event.as_str(), hook.selection());
                        self.hooks.push(Part { name, description: format!("runs `{line}`") });
                    }
                    HookAction::Unusable(why) => self.errors.push(format!("{}: {why}", hook.name())),
                }
            }
        }
    }

    fn add_servers(&mut self, plugin: &Plugin) {
        // Variables of this environment do not describe the plugin.
        let (servers, problems) = plugin.servers_with_entries(&Environment::default(), &[]);
        self.errors.extend(problems);
        self.servers
            .extend(servers.into_iter().map(|(server, entry)| Part { name: server.name, description: server_reach(&entry) }));
    }
}

/// Describes an MCP server as defined in its file: the command or URL, its values, and the user's environment variables
/// that those values refer to.
fn server_reach(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    if let Some(url) = text("url").or_else(|| text("serverUrl")) {
        let own = own_variables(&[entry.get("url"), entry.get("serverUrl"), entry.get("headers")], "sends");
        return format!("connects to {url}{}{own}", shown_values(entry, "headers"));
    }
    let words = entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let line: Vec<&str> = text("command").into_iter().chain(words).collect();
    let directory = text("cwd").map(|directory| format!(", in {directory}")).unwrap_or_default();
    let own = own_variables(&["command", "args", "cwd", "env"].map(|key| entry.get(key)), "passes");
    format!("runs `{}`{directory}{}{own}", line.join(" "), shown_values(entry, "env"))
}

/// Formats the values of a key. Long values are shortened, and variables are not expanded.
fn shown_values(entry: &Value, key: &str) -> String {
    let shown = |text: &str| truncate(&reveal_line(text), VALUE_CELLS).into_owned();
    let pair = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}=`{}`", shown(name), shown(&value))
    };
    let pairs: Vec<String> = entry.get(key).and_then(Value::as_object).into_iter().flatten().map(pair).collect();
    if pairs.is_empty() { String::new() } else { format!(", {key}: {}", pairs.join(", ")) }
}

/// Returns a clause that lists the user's environment variables to which these values refer, or an empty string if
/// there are none.
fn own_variables(values: &[Option<&Value>], verb: &str) -> String {
    let mut names = BTreeSet::new();
    let mut rest: Vec<&Value> = values.iter().copied().flatten().collect();
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => names.extend(variable_names(text)),
            Value::Array(values) => rest.extend(values),
            Value::Object(fields) => rest.extend(fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    names.remove(PLUGIN_ROOT);
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { String::new() } else { format!("; {verb} your environment variables: {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn servers_are_described_with_their_values_and_environment_variables() {
        let long = "x".repeat(500);
        for (entry, description) in [
            (json!({"command": "docs", "args": ["--all"]}), "runs `docs --all`"),
            (
                json!({"command": "${CLAUDE_PLUGIN_ROOT}/docs", "args": ["${HOME}"], "env": {"A": "x", "B": "${TOKEN:-none}"}}),
                "runs `${CLAUDE_PLUGIN_ROOT}/docs ${HOME}`, env: A=`x`, B=`${TOKEN:-none}`; passes your environment variables: HOME, TOKEN",
            ),
            (
                json!({"url": "https://example.org/${TEAM}", "headers": {"Authorization": "Bearer ${TOKEN}"}}),
                "connects to https://example.org/${TEAM}, headers: Authorization=`Bearer ${TOKEN}`; sends your environment variables: \
                TEAM, TOKEN",
            ),
        ] {
            assert_eq!(server_reach(&entry), description);
        }
        let shown = server_reach(&json!({"command": "docs", "env": {"A": long, "B": "\u{1b}[31m\nred"}}));
        assert!(shown.len() < 300 && !shown.contains(['\u{1b}', '\n']), "{shown:?}");
    }
}
