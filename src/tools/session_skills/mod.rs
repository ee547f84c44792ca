//! A session's skills: those that are available, and those that the current task uses.

mod tool_scope;

use crate::protocol::{Action, ToolResult, ToolStatus};
use crate::skills::{Skill, SkillSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Name of the tool that loads a skill.
pub(crate) const SKILL: &str = "Skill";

/// A session's skills. Cheap to clone, and all clones share them.
#[derive(Clone, Default)]
pub(crate) struct SessionSkills(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    set: Arc<SkillSet>,
    /// Names of the skills that the current task uses, without duplicates.
    active: Vec<String>,
    /// Limits that apply because the session belongs to an agent.
    agent: Option<AgentScope>,
}

/// Limits on an agent's calls, in addition to those imposed by its own skills.
struct AgentScope {
    name: String,
    /// Entries of the agent's tool list, or `None` unless some of them are limited to certain commands.
    entries: Option<Vec<String>>,
    /// Skills of the session that started the agent.
    outer: SessionSkills,
}

impl SessionSkills {
    pub(crate) fn new(set: Arc<SkillSet>) -> Self {
        Self(Arc::new(Mutex::new(State { set, ..State::default() })))
    }

    /// Returns the skills for an agent's session. `entries` lists the agent's tools if some of them are limited to
    /// certain commands. `outer` contains the skills of the session that started the agent.
    pub(crate) fn for_agent(name: &str, entries: Option<Vec<String>>, outer: Self) -> Self {
        let agent = Some(AgentScope { name: name.to_owned(), entries, outer });
        Self(Arc::new(Mutex::new(State { agent, ..State::default() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the skills that subsequent calls can use. Skills that the task is using remain active.
    pub(crate) fn replace(&self, set: Arc<SkillSet>) {
        self.state().set = set;
    }

    pub(in crate::tools) fn skill_set(&self) -> Arc<SkillSet> {
        Arc::clone(&self.state().set)
    }

    /// Begins a task, in which only the skills named in its prompt are active at first.
    pub(crate) fn begin_task(&self, prompt: &str) {
        self.end_task();
        self.note_prompt(prompt);
    }

    /// Ends the task, and with it the use of its skills.
    pub(crate) fn end_task(&self) {
        self.state().active.clear();
    }

    /// Activates the skills whose text the user has sent.
    pub(crate) fn note_prompt(&self, prompt: &str) {
        let set = self.skill_set();
        for (name, line) in Skill::names_in_text(prompt) {
            if set.find(name).is_some_and(|skill| skill.header() == line) {
                self.activate(name);
            }
        }
    }

    /// Activates the skill that a call has loaded.
    pub(crate) fn note_result(&self, result: &ToolResult) {
        if result.tool_name == SKILL
            && result.status == ToolStatus::Succeeded
            && let Some((name, _)) = Skill::names_in_text(&result.output_text).next()
        {
            self.activate(name);
        }
    }

    pub(in crate::tools) fn activate(&self, name: &str) {
        let active = &mut self.state().active;
        if !active.iter().any(|known| known == name) {
            active.push(name.to_owned());
        }
    }

    /// Returns whether a file belongs to a skill whose files are pinned.
    pub(in crate::tools) fn has_pinned(&self, real: &Path) -> bool {
        self.skill_set().skills.iter().any(|skill| skill.is_pinned() && real.starts_with(&skill.real))
    }

    /// Returns the reason why a call needs approval although the policy allows it, if there is one: a skill that the
    /// task uses does not list the tool, or the call runs a file of a skill that has changed since it was trusted.
    /// `name_of` maps a name used by other agents to that of the corresponding tool.
    pub(in crate::tools) fn doubt(
        &self,
        tool_name: &str,
        actions: &[Action],
        runs: &[PathBuf],
        name_of: fn(&str) -> Option<&'static str>,
    ) -> Option<String> {
        let (set, active) = {
            let state = self.state();
            (Arc::clone(&state.set), state.active.clone())
        };
        let changed = runs.iter().find_map(|file| {
            let of_file = set.changed_owner(file).map(|skill| changed_file_reason(skill, file));
            // A script of a plugin may read other files of the plugin.
            of_file.or_else(|| set.changed_plugin_skill(file))
        });
        // Such a call can only add restrictions, or has no effects.
        let is_free = tool_name == SKILL || actions.is_empty();
        let own = changed.or_else(|| {
            if is_free {
                return None;
            }
            let lists = |name: &String| Some((name.clone(), set.find(name)?.manifest.allowed_tools.clone()?));
            let narrow =
                active.iter().filter_map(lists).find(|(_, tools)| !tool_scope::covers(tools, tool_name, actions, name_of));
            narrow.map(|(name, _)| format!("the skill `{name}` does not list this tool in its `allowed-tools`"))
        });
        own.or_else(|| self.agent_doubt(tool_name, actions, runs, name_of))
    }

    /// Returns the reason why an agent's call needs approval, if there is one: either its definition or a skill of the
    /// session that started it does not list the tool.
    fn agent_doubt(
        &self,
        tool_name: &str,
        actions: &[Action],
        runs: &[PathBuf],
        name_of: fn(&str) -> Option<&'static str>,
    ) -> Option<String> {
        let (name, entries, outer) = {
            let state = self.state();
            let agent = state.agent.as_ref()?;
            (agent.name.clone(), agent.entries.clone(), agent.outer.clone())
        };
        let is_listed = entries.is_none_or(|entries| {
            actions.is_empty() || tool_name == SKILL || tool_scope::covers(&entries, tool_name, actions, name_of)
        });
        if is_listed {
            return outer.doubt(tool_name, actions, runs, name_of);
        }
        Some(format!("the agent `{name}` does not list this tool in its `tools`"))
    }
}

fn changed_file_reason(skill: &Skill, file: &Path) -> String {
    let below = file.strip_prefix(&skill.real).unwrap_or(file);
    format!("`{}` in the skill `{}` changed {}", below.display(), skill.name(), skill.reviewed_when())
}
