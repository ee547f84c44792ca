//! The contents of a plugin: usable parts, errors, and parts that aye does not use.

use super::installed::Plugin;
use crate::config::Environment;
use crate::hooks::HookAction;
use crate::skills::{Fault, Folder, Origin, Report, SkillSet, check};
use crate::subagents::{self, AgentSet};
use crate::tools::{CustomTool, Source, ToolOwner};
use serde::Serialize;
use serde_json::Value;

/// Other parts of plugins that aye does not use: the start of their paths, and what they are.
const UNUSED: [(&str, &str); 3] =
    [("output-styles/", "output styles"), (".lsp.json", "language servers"), ("monitors/", "monitors")];

/// A part of a plugin, such as a skill or a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Part {
    pub name: String,
    /// Purpose, and the command line of a tool, a hook or a server.
    pub description: String,
}

/// The contents of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Contents {
    pub skills: Vec<Part>,
    pub agents: Vec<Part>,
    pub commands: Vec<Part>,
    pub tools: Vec<Part>,
    pub hooks: Vec<Part>,
    pub servers: Vec<Part>,
    /// Parts that aye does not use, with the reason.
    pub unused: Vec<String>,
    /// Errors in parts of the plugin; these parts are not used.
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
}

impl Contents {
    /// Reads the contents of a plugin. Does not run code.
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
                contents.unused.push(format!("{start}: aye does not use {what} of plugins"));
            }
        }
        contents
    }

    /// Returns whether aye uses no part of the plugin.
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
        for skill in set.skills {
            let file = format!("skills/{}/", skill.manifest.name);
            if reports.iter().any(|report| report.file.starts_with(&file) && !report.errors.is_empty()) {
                continue;
            }
            self.skills.push(Part { name: skill.manifest.name, description: skill.manifest.description });
        }
        for report in reports {
            self.add_report(report);
        }
    }

    fn add_agents(&mut self, plugin: &Plugin) {
        let files = plugin.agents();
        let mut set = AgentSet::default();
        set.add_plugin(plugin.name(), &files);
        self.agents.extend(set.agents.into_iter().map(|agent| Part { name: agent.name, description: agent.description }));
        for hidden in set.hidden {
            self.errors.push(format!("{}: another agent of the plugin has the name `{}`", hidden.file, hidden.name));
        }
        for file in &files {
            self.add_report(subagents::check(file));
        }
    }

    fn add_report(&mut self, report: Report) {
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
                        let name = format!("{} [{}]", hook.event.as_str(), hook.matcher.text());
                        self.hooks.push(Part { name, description: format!("runs `{line}`") });
                    }
                    HookAction::Unusable(why) => self.errors.push(format!("{}: {why}", hook.name())),
                }
            }
        }
    }

    fn add_servers(&mut self, plugin: &Plugin) {
        // Variables of this environment say nothing about the plugin.
        let (servers, problems) = plugin.servers_with_entries(&Environment::default(), &[]);
        self.errors.extend(problems);
        self.servers
            .extend(servers.into_iter().map(|(server, entry)| Part { name: server.name, description: server_reach(&entry) }));
    }
}

/// Returns the command or the address of an MCP server, as its file has it.
fn server_reach(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let names = |key: &str| {
        let names: Vec<&str> =
            entry.get(key).and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { String::new() } else { format!(", {key}: {}", names.join(", ")) }
    };
    if let Some(url) = text("url").or_else(|| text("serverUrl")) {
        return format!("connects to {url}{}", names("headers"));
    }
    let words = entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let line: Vec<&str> = text("command").into_iter().chain(words).collect();
    let directory = text("cwd").map(|directory| format!(", in {directory}")).unwrap_or_default();
    format!("runs `{}`{directory}{}", line.join(" "), names("env"))
}
