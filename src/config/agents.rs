//! Agent limits set by `[agents]` and the policy.

use crate::policy::AgentLimits;

/// Limits on the agents that a session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentSettings {
    /// Maximum number of agents that can work at the same time. Any others wait.
    pub at_once: usize,
    /// Maximum number of agents that the tool calls in a single response can start.
    pub per_response: usize,
    /// Default step limit of an agent.
    pub steps: u32,
    pub max_steps: u32,
    /// Percentage of each budget's remaining amount that an agent may use.
    pub budget_percent: u32,
    /// Maximum nesting depth of agents. With 0, a session cannot start agents; with 1, its agents cannot start any of
    /// their own.
    pub depth: u32,
}

impl AgentSettings {
    /// Creates the settings by looking up the value of each key in `[agents]`.
    pub(super) fn new(number: impl Fn(&str) -> u64) -> Self {
        let small = |key: &str| u32::try_from(number(key)).unwrap_or(u32::MAX);
        Self {
            at_once: small("at_once") as usize,
            per_response: small("per_response") as usize,
            steps: small("steps"),
            max_steps: small("max_steps"),
            budget_percent: small("budget_percent"),
            depth: small("depth"),
        }
    }

    /// Returns the settings reduced to what the policy allows.
    #[must_use]
    pub(crate) fn within(self, limits: AgentLimits) -> Self {
        let least = |own: u32, limit: Option<u64>| limit.map_or(own, |limit| own.min(u32::try_from(limit).unwrap_or(u32::MAX)));
        let count =
            |own: usize, limit: Option<u64>| limit.map_or(own, |limit| own.min(usize::try_from(limit).unwrap_or(usize::MAX)));
        Self {
            at_once: count(self.at_once, limits.at_once),
            per_response: count(self.per_response, limits.per_response),
            steps: self.steps,
            max_steps: least(self.max_steps, limits.max_steps),
            budget_percent: least(self.budget_percent, limits.budget_percent),
            depth: least(self.depth, limits.depth),
        }
    }

    /// Returns an agent's step limit, given the number of steps that the model requested for it.
    pub(crate) fn steps_of(&self, requested: Option<u32>) -> u32 {
        requested.unwrap_or(self.steps).min(self.max_steps)
    }
}
