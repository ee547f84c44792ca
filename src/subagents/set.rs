//! Agents of a session: which of several with the same name is used, and which are unusable.

use super::agent_file::{AgentFile, AgentFormat};
use super::built_in::built_in;
use super::definition::{AgentDefinition, AgentOrigin, ParsedDefinition};
use super::{markdown, toml_file};
use crate::skills::{BrokenFile, Fault, HiddenFile, SkillReport, broken_notice};
use std::path::Path;

/// Maximum number of agents of a session.
const MAX_AGENTS: usize = 500;

/// The usable agents, and the unusable ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentSet {
    /// Agents by name.
    pub agents: Vec<AgentDefinition>,
    pub broken: Vec<BrokenFile>,
    pub hidden: Vec<HiddenFile>,
    /// Messages about folders that were not read completely.
    pub limits: Vec<String>,
}

impl AgentSet {
    /// Combines files, in order of precedence, with the built-in agents.
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

    /// Adds the files of a plugin. An agent whose name is already used becomes `PLUGIN:NAME`.
    pub(crate) fn add_plugin(&mut self, plugin: &str, files: &[AgentFile]) {
        for file in files {
            self.add_file(file, Some(plugin));
        }
        self.agents.sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// Returns the agent with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&AgentDefinition> {
        self.agents.iter().find(|agent| agent.is_named(name))
    }

    /// Returns whether all agents are built in.
    pub(crate) fn is_built_in(&self) -> bool {
        self.agents.iter().all(|agent| agent.origin == AgentOrigin::BuiltIn)
    }

    /// Returns a message about agents that are not used, for the start of a session.
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
                // The same plugin may have two agents of one name.
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

/// Returns the errors in a file.
pub(crate) fn check(file: &AgentFile) -> SkillReport {
    let ParsedDefinition { errors, warnings, .. } = read(file);
    SkillReport { file: file.shown.clone(), errors, warnings }
}

#[cfg(test)]
mod tests;
