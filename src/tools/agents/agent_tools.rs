//! Determines an agent's tools, and which entries of its definition are ignored.

use super::{AGENT, is_called};
use crate::policy::{entry_server, from_other_agent};
use crate::subagents::AgentDefinition;
use crate::tools::on_demand::FIND_TOOLS;
use crate::tools::registry::{built_in_names, canonical_name};
use crate::tools::session_skills::SKILL;

/// Read-only tools. An agent that has no others is read-only.
///
/// Agents started by a read-only agent inherit its mode, so they are read-only too.
const READ_ONLY: [&str; 11] =
    ["ReadFile", "ListDirectory", "Glob", "Grep", "Stat", "TextInspect", "HashFile", "DiskUsage", "WebSearch", SKILL, AGENT];
/// Entry in a definition that stands for all tools of all MCP servers.
const OF_SERVERS: &str = "Mcp.*";
/// Tools that interact with the user, which no agent has.
const OF_CONVERSATION: [&str; 4] = ["AskUser", "ProposePlan", "UpdateSteps", "SuggestMemory"];

/// An agent's tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentTools {
    /// Tool names, in the form `Mcp.SERVER/TOOL` for MCP tools.
    pub given: Vec<String>,
    /// Tools that the agent does not have, even if `given` lists them.
    pub denied: Vec<String>,
    /// Entries of the definition that are ignored, each with the reason.
    pub left_out: Vec<(String, &'static str)>,
    /// Whether the agent has only read-only tools.
    pub reads_only: bool,
    /// Entries of the definition, or `None` unless at least one of them limits a tool to certain commands.
    pub scope: Option<Vec<String>>,
}

impl AgentTools {
    pub(crate) fn new(agent: &AgentDefinition) -> Self {
        let denied = agent.denied_tools.iter().filter_map(|entry| tool_of(entry)).collect();
        let (given, left_out) = (Vec::new(), Vec::new());
        let mut tools = Self { given, denied, left_out, reads_only: false, scope: None };
        match &agent.tools {
            None => {
                let built_in = built_in_names().filter(|name| is_for_agents(name));
                tools.given.extend(built_in.chain([SKILL, AGENT, OF_SERVERS]).map(str::to_owned));
            }
            Some(entries) => entries.iter().for_each(|entry| tools.add(entry)),
        }
        tools.given.retain(|name| !tools.denied.contains(name));
        tools.reads_only = agent.reads_only || tools.given.iter().all(|name| READ_ONLY.contains(&name.as_str()));
        tools.scope = agent.tools.clone().filter(|entries| entries.iter().any(|entry| entry.contains('(')));
        tools
    }

    fn add(&mut self, entry: &str) {
        let why = match tool_of(entry) {
            Some(name) if self.given.contains(&name) => return,
            Some(name) if is_for_agents(&name) => return self.given.push(name),
            Some(_) => "agents do not talk to the user",
            None => "aye has no such tool",
        };
        self.left_out.push((entry.to_owned(), why));
    }

    /// Returns the names of the tools to which the session is limited, including the tool that loads other tools.
    pub(crate) fn names(&self) -> Vec<String> {
        self.given.iter().cloned().chain([FIND_TOOLS.to_owned()]).collect()
    }
}

fn is_for_agents(name: &str) -> bool {
    !OF_CONVERSATION.contains(&name)
}

/// Returns the tool to which an entry refers, or the pattern for the tools of an MCP server.
fn tool_of(entry: &str) -> Option<String> {
    let name = entry.split('(').next().unwrap_or_default().trim();
    if name.eq_ignore_ascii_case(SKILL) {
        return Some(SKILL.to_owned());
    }
    if is_called(name) {
        return Some(AGENT.to_owned());
    }
    let of_server = || {
        let name = from_other_agent(name).unwrap_or_else(|| name.to_owned());
        entry_server(&name).is_some().then_some(name)
    };
    canonical_name(name).map(str::to_owned).or_else(of_server)
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
            reads_only: false,
            model: None,
            effort: None,
            max_steps: None,
            prompt: String::new(),
            origin: AgentOrigin::Project,
            file: "a.md".to_owned(),
        }
    }

    #[test]
    fn agents_get_all_tools_except_conversation_tools() {
        let every: Vec<&str> = crate::tools::registry::all_names();
        for definition in [agent(None, &[]), agent(Some(&every), &[])] {
            let tools = AgentTools::new(&definition);
            let has = |name: &str| tools.given.iter().any(|given| given == name);
            assert!(has("EditFile") && has("RunCommand") && !tools.reads_only);
            assert!(!OF_CONVERSATION.iter().any(|name| has(name)), "{:?}", tools.given);
            assert_eq!(has(AGENT), definition.tools.is_none(), "only without a list, or if the list names it");
        }
        assert!(AgentTools::new(&agent(Some(&[]), &[])).given.is_empty());
        let denied = AgentTools::new(&agent(None, &["Bash", "WebFetch", "Write(src/**)"]));
        assert!(denied.given.iter().all(|name| !["RunCommand", "HttpRequest", "WriteFile"].contains(&name.as_str())));
        assert!(denied.given.contains(&OF_SERVERS.to_owned()));
    }

    #[test]
    fn an_agent_is_read_only_because_of_its_tools_or_its_definition() {
        for (tools, reads_only) in [
            (&["Read", "Grep", "Skill", "Task"][..], true),
            (&[], true),
            (&["Read", "Bash"], false),
            (&["Read", "WebFetch"], false),
            (&["Edit"], false),
        ] {
            assert_eq!(AgentTools::new(&agent(Some(tools), &[])).reads_only, reads_only, "{tools:?}");
        }
        let definition = AgentDefinition { reads_only: true, ..agent(None, &[]) };
        assert!(AgentTools::new(&definition).reads_only);
    }

    #[test]
    fn tool_entries_unavailable_to_an_agent_have_a_reason() {
        let entries =
            ["Read", "Bash(git log:*)", "Bash(git diff:*)", "Task", "mcp__docs__search", "mcp__web", "TodoWrite", "Frob", "LS"];
        let tools = AgentTools::new(&agent(Some(&entries), &[]));
        assert_eq!(tools.given, ["ReadFile", "RunCommand", AGENT, "docs__search", "Mcp.web/*", "ListDirectory"]);
        assert_eq!(tools.scope.unwrap(), entries, "a pattern limits the commands");
        let reasons: Vec<&str> = tools.left_out.iter().map(|(_, why)| *why).collect();
        assert_eq!(reasons, ["agents do not talk to the user", "aye has no such tool"]);
        assert_eq!(AgentTools::new(&agent(Some(&["Read", "Bash"]), &[])).scope, None);
    }
}
