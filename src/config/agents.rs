//! Limits of agents, from `[agents]` and the policy.

use crate::policy::AgentLimits;

/// Limits of the agents that a session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentSettings {
    /// Maximum number of agents that work at the same time; others wait.
    pub at_once: usize,
    /// Maximum number of agents that the calls of one response start.
    pub per_response: usize,
    /// Default and maximum number of steps of an agent.
    pub steps: u32,
    pub max_steps: u32,
    /// Share of the remaining amount of each budget that an agent may use, in percent.
    pub budget_percent: u32,
    /// Maximum number of levels of agents: 0 if a session starts none, 1 if its agents start none.
    pub depth: u32,
}

impl AgentSettings {
    /// Returns the settings with these values of their keys.
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

    /// Returns the settings within the limits of the policy.
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

    /// Returns the steps of an agent that requests this number.
    pub(crate) fn steps_of(&self, requested: Option<u32>) -> u32 {
        requested.unwrap_or(self.steps).min(self.max_steps)
    }
}
