//! The tools that an agent gets: those of its definition that can only read.

use super::AGENT;
use crate::subagents::AgentDefinition;
use crate::tools::on_demand::FIND_TOOLS;
use crate::tools::registry::canonical_name;
use crate::tools::session_skills::SKILL;

/// Tools that an agent may have. Commands run in plan mode: only those that read.
const READ_ONLY: [&str; 11] = [
    "ReadFile",
    "ListDirectory",
    "Glob",
    "Grep",
    "Stat",
    "TextInspect",
    "HashFile",
    "DiskUsage",
    "RunCommand",
    "HttpRequest",
    "WebSearch",
];

/// The tools of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentTools {
    /// Names of tools.
    pub given: Vec<&'static str>,
    /// Entries of the definition that the agent does not get, with the reason.
    pub left_out: Vec<(String, &'static str)>,
}

impl AgentTools {
    pub(crate) fn new(agent: &AgentDefinition) -> Self {
        let mut tools = Self { given: Vec::new(), left_out: Vec::new() };
        match &agent.tools {
            None => tools.given.extend(READ_ONLY.into_iter().chain([SKILL])),
            Some(entries) => entries.iter().for_each(|entry| tools.add(entry)),
        }
        let denied: Vec<&str> = agent.denied_tools.iter().filter_map(|entry| read_only(entry)).collect();
        tools.given.retain(|name| !denied.contains(name));
        tools
    }

    fn add(&mut self, entry: &str) {
        let why = match read_only(entry) {
            Some(name) if self.given.contains(&name) => return,
            // Without its pattern, the entry would be wider than the definition says.
            Some(_) if entry.contains('(') => "patterns are not supported",
            Some(name) => return self.given.push(name),
            None if is_name(entry, &[AGENT, "Task"]) => "agents cannot start agents",
            None if entry.starts_with("mcp__") || entry.contains('/') => "agents have no tools of MCP servers",
            None if canonical_name(entry).is_some() => "agents can only read",
            None => "aye has no such tool",
        };
        self.left_out.push((entry.to_owned(), why));
    }

    /// Returns the names for the limit of the session, with the tool that loads others.
    pub(crate) fn names(&self) -> Vec<String> {
        self.given.iter().chain(&[FIND_TOOLS]).map(|name| (*name).to_owned()).collect()
    }
}

/// Returns the tool of an entry, if it is one that an agent may have.
fn read_only(entry: &str) -> Option<&'static str> {
    let name = entry.split('(').next().unwrap_or_default().trim();
    if name.eq_ignore_ascii_case(SKILL) {
        return Some(SKILL);
    }
    let name = canonical_name(name)?;
    READ_ONLY.into_iter().find(|known| *known == name)
}

fn is_name(entry: &str, names: &[&str]) -> bool {
    let entry = entry.split('(').next().unwrap_or_default().trim();
    names.iter().any(|name| name.eq_ignore_ascii_case(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subagents::AgentOrigin;

    fn agent(tools: Option<&[&str]>, denied: &[&str]) -> AgentDefinition {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        AgentDefinition {
            name: "a".to_owned(),
            description: "x".to_owned(),
            tools: tools.map(owned),
            denied_tools: owned(denied),
            model: None,
            effort: None,
            max_steps: None,
            prompt: String::new(),
            origin: AgentOrigin::Project,
            file: "a.md".to_owned(),
        }
    }

    #[test]
    fn an_agent_gets_only_tools_that_read() {
        let every: Vec<&str> = crate::tools::registry::all_names();
        let tools = AgentTools::new(&agent(Some(&every), &[]));
        let mut given = tools.given.clone();
        given.sort_unstable();
        let mut expected = READ_ONLY.to_vec();
        expected.sort_unstable();
        assert_eq!(given, expected);
        assert!(AgentTools::new(&agent(Some(&[]), &[])).given.is_empty());
        assert!(!AgentTools::new(&agent(None, &["Bash", "WebFetch"])).given.contains(&"RunCommand"));
    }

    #[test]
    fn entries_that_an_agent_does_not_get_have_a_reason() {
        let entries = ["Read", "Edit", "Bash(git:*)", "Task", "mcp__docs__search", "TodoWrite", "LS"];
        let tools = AgentTools::new(&agent(Some(&entries), &[]));
        assert_eq!(tools.given, ["ReadFile", "ListDirectory"]);
        let reasons: Vec<&str> = tools.left_out.iter().map(|(_, why)| *why).collect();
        assert_eq!(
            reasons,
            [
                "agents can only read",
                "patterns are not supported",
                "agents cannot start agents",
                "agents have no tools of MCP servers",
                "agents can only read",
            ]
        );
    }
}
