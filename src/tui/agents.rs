//! The session's agents: their state, calls and prompts.

use super::format::{dollars, format_count};
use crate::protocol::{AgentState, SessionId};
use crate::text;
use std::fmt::Write;

/// Maximum number of agents that are stored. The oldest are dropped first.
const MAX_AGENTS: usize = 500;
/// Maximum number of call summaries that are stored per agent.
const MAX_CALLS: usize = 200;

/// Agents that the session has started in this process, and the view of them that is open.
#[derive(Debug, Default)]
pub(crate) struct AgentOverview {
    entries: Vec<AgentEntry>,
    /// Open view of the agents, which is updated while they work, or `None` if no view is open.
    pub view: Option<AgentsView>,
}

/// View of the agents, which shows the list or the details of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentsView {
    List,
    One(SessionId),
}

/// Agent that was started by the session or by another agent.
#[derive(Debug)]
pub(crate) struct AgentEntry {
    pub id: SessionId,
    /// Agent that started this one, or `None` if the session did.
    pub parent: Option<SessionId>,
    pub agent: String,
    pub title: String,
    pub prompt: String,
    pub max_steps: u32,
    /// Outcome of the agent's work, or `None` while the agent is working.
    pub state: Option<AgentState>,
    /// Number of tool calls that the agent has made.
    pub calls: u32,
    /// Summaries of the agent's most recent calls, oldest first.
    pub summaries: Vec<String>,
    pub tokens: u64,
    pub cost_usd: Option<f64>,
}

impl AgentOverview {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an agent that has started. If the agent continues earlier work, its new entry replaces the earlier one.
    pub(crate) fn add(&mut self, entry: AgentEntry) {
        self.entries.retain(|known| known.id != entry.id);
        self.entries.push(entry);
        let extra = self.entries.len().saturating_sub(MAX_AGENTS);
        self.entries.drain(..extra);
    }

    pub(crate) fn note_call(&mut self, id: &SessionId, calls: u32, summary: String) {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == *id) else { return };
        entry.calls = calls;
        entry.summaries.push(summary);
        let extra = entry.summaries.len().saturating_sub(MAX_CALLS);
        entry.summaries.drain(..extra);
    }

    pub(crate) fn end(&mut self, id: &SessionId, state: AgentState, tokens: u64, cost_usd: Option<f64>) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == *id) {
            (entry.state, entry.tokens, entry.cost_usd) = (Some(state), tokens, cost_usd);
        }
    }

    /// Returns the agent with this 1-based number in the list, if there is one.
    pub(crate) fn at(&self, number: usize) -> Option<&AgentEntry> {
        self.entries.get(number.checked_sub(1)?)
    }

    /// Returns the title and text of a view. For the details of an unknown agent, returns the list instead.
    pub(crate) fn text(&self, view: &AgentsView) -> (String, String) {
        match view {
            AgentsView::List => self.list(),
            AgentsView::One(id) => {
                let entry = self.entries.iter().find(|entry| entry.id == *id);
                entry.map_or_else(|| self.list(), |entry| (entry.heading(), entry.details()))
            }
        }
    }

    /// Returns each agent's index and nesting level in tree order, in which every agent follows its parent.
    fn in_tree_order(&self) -> Vec<(usize, usize)> {
        let is_known = |id: &SessionId| self.entries.iter().any(|entry| entry.id == *id);
        let is_top = |entry: &AgentEntry| entry.parent.as_ref().is_none_or(|parent| !is_known(parent));
        let mut rest: Vec<(usize, usize)> =
            (0..self.entries.len()).rev().filter(|index| is_top(&self.entries[*index])).map(|index| (index, 0)).collect();
        let mut order = Vec::with_capacity(self.entries.len());
        while let Some((index, level)) = rest.pop().filter(|_| order.len() < self.entries.len()) {
            order.push((index, level));
            let is_below = |entry: &AgentEntry| entry.parent.as_ref() == Some(&self.entries[index].id);
            rest.extend((0..self.entries.len()).rev().filter(|at| is_below(&self.entries[*at])).map(|at| (at, level + 1)));
        }
        order
    }

    fn list(&self) -> (String, String) {
        let mut list = String::new();
        for (index, level) in self.in_tree_order() {
            let entry = &self.entries[index];
            let indent = "  ".repeat(level);
            // Writing to a string cannot fail.
            let _ = writeln!(list, "{:>3}  {indent}{}", index + 1, entry.summary());
            if let (None, Some(last)) = (entry.state, entry.summaries.last()) {
                let _ = writeln!(list, "       {indent}{}", text::clean_line(last));
            }
        }
        list.push_str("\n/agents NUMBER shows an agent's prompt and calls; /agents stop NUMBER stops the agent\n");
        ("Agents".to_owned(), list)
    }
}

impl AgentEntry {
    fn heading(&self) -> String {
        format!("Agent {}: {}", text::clean_line(&self.agent), text::clean_line(&self.title))
    }

    /// Returns a one-line summary of the agent, such as `explore  working, 12 calls: Find the parser`.
    fn summary(&self) -> String {
        let mut summary =
            format!("{}  {}, {}", text::clean_line(&self.agent), self.state_name(), format_count(self.calls as usize, "call"));
        if self.tokens > 0 {
            let _ = write!(summary, ", {}", format_count(usize::try_from(self.tokens).unwrap_or(usize::MAX), "token"));
        }
        if let Some(cost) = self.cost_usd {
            let _ = write!(summary, ", {}", dollars(cost));
        }
        let _ = write!(summary, ": {}", text::clean_line(&self.title));
        summary
    }

    fn details(&self) -> String {
        let mut details = format!(
            "{}, {} of at most {} steps\nsession {}\n\nPrompt\n\n{}\n\nCalls\n\n",
            self.state_name(),
            format_count(self.calls as usize, "call"),
            self.max_steps,
            self.id,
            self.prompt
        );
        for summary in &self.summaries {
            let _ = writeln!(details, "{}", text::clean_line(summary));
        }
        let _ = write!(details, "\n`aye sessions show {}` prints the whole conversation\n", self.id);
        details
    }

    fn state_name(&self) -> &'static str {
        match self.state {
            None => "working",
            Some(AgentState::Completed) => "completed",
            Some(AgentState::Failed) => "failed",
            Some(AgentState::Stopped) => "stopped",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_follows_the_one_that_started_it_and_keeps_its_number() {
        let mut agents = AgentOverview::default();
        for (id, parent) in [("a", None), ("b", None), ("c", Some("a")), ("d", Some("c")), ("e", Some("gone")), ("f", Some("a"))]
        {
            agents.add(AgentEntry {
                id: SessionId::new(id),
                parent: parent.map(SessionId::new),
                agent: id.to_owned(),
                title: "x".to_owned(),
                prompt: String::new(),
                max_steps: 1,
                state: Some(AgentState::Completed),
                calls: 0,
                summaries: Vec::new(),
                tokens: 0,
                cost_usd: None,
            });
        }
        let (_, list) = agents.text(&AgentsView::List);
        let starts: Vec<&str> = list.lines().take(6).map(|line| line.split("  completed").next().unwrap()).collect();
        assert_eq!(starts, ["  1  a", "  3    c", "  4      d", "  6    f", "  2  b", "  5  e"], "{list}");
    }
}
