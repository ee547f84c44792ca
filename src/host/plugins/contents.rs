//! The contents of a plugin: usable parts, errors, and parts that aye does not use.

use super::installed::Plugin;
use crate::hooks::{HookAction, HookOrigin, read_claude_file};
use crate::skills::{Fault, Folder, Origin, Report, SkillSet, check};
use crate::subagents::{self, AgentSet};
use crate::tools::{CustomTool, Source, ToolOwner};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Maximum bytes of a file that is only described.
const FILE_BYTES: u64 = 1 << 20;
const HOOKS: &str = "hooks/hooks.json";
const SERVERS: &str = ".mcp.json";
/// Other parts of plugins that aye does not use: the start of their paths, and their descriptions.
const UNUSED: [(&str, &str); 3] =
    [("output-styles/", "output styles"), (".lsp.json", "language servers"), ("monitors/", "monitors")];

/// A skill, an agent, a slash command or a tool of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Part {
    pub name: String,
    /// Purpose, and the command line of a tool.
    pub description: String,
}

/// The contents of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Contents {
    pub skills: Vec<Part>,
    pub agents: Vec<Part>,
    pub commands: Vec<Part>,
    pub tools: Vec<Part>,
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
        [&self.skills, &self.agents, &self.commands, &self.tools].into_iter().all(Vec::is_empty)
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
        let Ok(bytes) = plugin.read(HOOKS, FILE_BYTES) else { return };
        let file = read_claude_file(&bytes, HOOKS, HookOrigin::Project);
        let lines: Vec<&str> = file
            .hooks
            .iter()
            .filter_map(|hook| match &hook.action {
                HookAction::Command { line, .. } => Some(line.as_str()),
                HookAction::Unusable(_) => None,
            })
            .collect();
        let lines = if lines.is_empty() { String::new() } else { format!(" (`{}`)", lines.join("`, `")) };
        self.unused.push(format!("{HOOKS}: aye does not run hooks of plugins{lines}"));
    }

    fn add_servers(&mut self, plugin: &Plugin) {
        let Ok(bytes) = plugin.read(SERVERS, FILE_BYTES) else { return };
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let servers = document.get("mcpServers").unwrap_or(&document).as_object();
        let names: Vec<&str> = servers.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        self.unused.push(format!("{SERVERS}: aye does not start MCP servers of plugins{names}; `aye mcp add` adds a server"));
    }
}

/// Returns whether a text names a repository or an archive instead of a folder.
pub(crate) fn is_remote(source: &str) -> bool {
    let is_archive = |extension: &str| Path::new(source).extension().is_some_and(|found| found.eq_ignore_ascii_case(extension));
    source.contains("://")
        || source.contains("::")
        || source.starts_with("git@")
        || ["gz", "tgz", "zip", "tar"].into_iter().any(is_archive)
}
