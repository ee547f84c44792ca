//! Tool statistics: number of calls, durations and outcomes.

use super::ToolStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of tool names to count separately. Limited because a model can invent names.
const NAMES: usize = 200;
/// Name under which calls to all other tools are counted.
const OTHERS: &str = "others";

/// Usage statistics for one tool in a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUse {
    pub tool_name: String,
    pub calls: u64,
    /// Number of failed calls.
    pub failed: u64,
    /// Number of calls that a rule or the user denied.
    pub denied: u64,
    /// Total duration of all calls in milliseconds, excluding time spent waiting for approval.
    pub total_ms: u64,
    pub longest_ms: u64,
}

impl ToolUse {
    /// Returns the mean duration in milliseconds, rounded down.
    pub fn mean_ms(&self) -> u64 {
        self.total_ms.checked_div(self.calls).unwrap_or(0)
    }
}

/// Usage statistics for all tools in a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolUses(BTreeMap<String, ToolUse>);

impl From<Vec<ToolUse>> for ToolUses {
    fn from(uses: Vec<ToolUse>) -> Self {
        Self(uses.into_iter().map(|one| (one.tool_name.clone(), one)).collect())
    }
}

impl ToolUses {
    /// Adds a completed call to the statistics.
    pub fn note(&mut self, tool_name: &str, status: ToolStatus, latency_ms: u64) {
        let name = if self.0.len() < NAMES || self.0.contains_key(tool_name) { tool_name } else { OTHERS };
        let one = self.0.entry(name.to_owned()).or_insert_with(|| ToolUse { tool_name: name.to_owned(), ..ToolUse::default() });
        one.calls += 1;
        one.failed += u64::from(status == ToolStatus::Failed);
        one.denied += u64::from(status == ToolStatus::Denied);
        one.total_ms = one.total_ms.saturating_add(latency_ms);
        one.longest_ms = one.longest_ms.max(latency_ms);
    }

    /// Returns the statistics for each tool, most frequently called first.
    pub fn list(&self) -> Vec<ToolUse> {
        let mut uses: Vec<ToolUse> = self.0.values().cloned().collect();
        uses.sort_by(|one, other| other.calls.cmp(&one.calls).then_with(|| one.tool_name.cmp(&other.tool_name)));
        uses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_tool_and_outcome() {
        let mut uses = ToolUses::default();
        uses.note("Grep", ToolStatus::Succeeded, 4);
        uses.note("ReadFile", ToolStatus::Failed, 1);
        uses.note("Grep", ToolStatus::Denied, 0);
        uses.note("Grep", ToolStatus::Succeeded, 11);
        let grep = ToolUse { tool_name: "Grep".into(), calls: 3, failed: 0, denied: 1, total_ms: 15, longest_ms: 11 };
        let read = ToolUse { tool_name: "ReadFile".into(), calls: 1, failed: 1, denied: 0, total_ms: 1, longest_ms: 1 };
        assert_eq!(grep.mean_ms(), 5);
        assert_eq!(uses.list(), [grep, read]);
    }

    #[test]
    fn tool_names_beyond_the_limit_are_counted_together() {
        let mut uses = ToolUses::default();
        for index in 0..10 * NAMES {
            uses.note(&format!("tool{index}"), ToolStatus::Failed, 1);
        }
        let list = uses.list();
        assert_eq!(list.len(), NAMES + 1);
        assert_eq!((list[0].tool_name.as_str(), list[0].calls), (OTHERS, 9 * NAMES as u64));
    }
}
