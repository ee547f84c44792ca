//! A session's agents: usable and unusable agents, and the precedence among agents with the same name.

use super::agent_file::{AgentFile, AgentFormat};
use super::built_in::built_in;
use super::definition::{AgentDefinition, AgentOrigin, ParsedDefinition};
use super::{markdown, toml_file};
use crate::skills::{BrokenFile, Fault, HiddenFile, SkillReport, broken_notice};
use std::path::Path;

/// Maximum number of agents in a session.
const MAX_AGENTS: usize = 500;

/// All agents found for a session, usable or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentSet {
    /// Usable agents, sorted by name.
    pub agents: Vec<AgentDefinition>,
    pub broken: Vec<BrokenFile>,
    pub hidden: Vec<HiddenFile>,
    /// Messages about folders that were only partly read.
    pub limits: Vec<String>,
}

impl AgentSet {
    /// Combines definition files, given in order of precedence, with the built-in agents.
    pub(crate) fn new(files: &[AgentFile], limits: Vec<String>) -> Self {
        let mut set = Self { limits, ..Self::default() };
        for file in files {
            set.add_file(file, None);
        }
        for agent in built_in() {
            set.add(agent, None);
        }
        set.agents.sort_by(|one, other| one.name.cmp(&other.name));
        set
    }

    /// Adds a plugin's agents. An agent whose name is already in use is added as `PLUGIN:NAME`.
    pub(crate) fn add_plugin(&mut self, plugin: &str, files: &[AgentFile]) {
        for file in files {
            self.add_file(file, Some(plugin));
        }
        self.agents.sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// Returns the usable agent with the given name. An agent of a plugin can also be named `PLUGIN:NAME`.
    pub(crate) fn find(&self, name: &str) -> Option<&AgentDefinition> {
        let of_plugin = || {
            let (plugin, name) = name.trim().split_once(':')?;
            let folder = format!("plugin:{plugin}/");
            self.agents.iter().find(|agent| agent.file.starts_with(&folder) && agent.is_named(name))
        };
        self.agents.iter().find(|agent| agent.is_named(name)).or_else(of_plugin)
    }

    /// Returns whether all agents are built in.
    pub(crate) fn is_built_in(&self) -> bool {
        self.agents.iter().all(|agent| agent.origin == AgentOrigin::BuiltIn)
    }

    /// Returns a message about unusable agents to show when a session starts.
    pub(crate) fn notice(&self) -> Option<String> {
        broken_notice(&self.broken, "agent")
    }

    fn add_file(&mut self, file: &AgentFile, plugin: Option<&str>) {
        let ParsedDefinition { agent, errors, .. } = read(file);
        match agent {
            Some(_) if self.agents.len() >= MAX_AGENTS => {
                let message = format!("the limit is {MAX_AGENTS} agents");
                self.broken.push(BrokenFile { file: file.shown.clone(), faults: vec![Fault::general(message)] });
            }
            Some(agent) => self.add(agent, plugin),
            None => self.broken.push(BrokenFile { file: file.shown.clone(), faults: errors }),
        }
    }

    fn add(&mut self, mut agent: AgentDefinition, plugin: Option<&str>) {
        match (self.find(&agent.name), plugin) {
            (Some(_), Some(plugin)) => {
                agent.name = format!("{plugin}:{}", agent.name);
                // A plugin may contain two agents with the same name.
                self.add(agent, None);
            }
            (Some(used), None) => {
                let used_file = used.file.clone();
                self.hidden.push(HiddenFile { name: agent.name, file: agent.file, used_file });
            }
            (None, _) => self.agents.push(agent),
        }
    }
}

fn read(file: &AgentFile) -> ParsedDefinition {
    let path = Path::new(&file.shown);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match (&file.content, AgentFormat::of_file(&file.shown)) {
        (Err(why), _) => ParsedDefinition::failed(Fault::general(why.clone())),
        (Ok(bytes), Some(AgentFormat::Toml)) => toml_file::read(&stem, &file.shown, file.origin, bytes),
        (Ok(bytes), Some(AgentFormat::Markdown) | None) => markdown::read(&stem, &file.shown, file.origin, bytes),
    }
}

/// Reports the errors and warnings for a definition file.
pub(crate) fn check(file: &AgentFile) -> SkillReport {
    let ParsedDefinition { errors, warnings, .. } = read(file);
    SkillReport { file: file.shown.clone(), errors, warnings }
}

#[cfg(test)]
mod tests;
