//! The `[agents]` table of a bundle, which limits agents.

use super::reader::{BundleError, BundleTable};

/// Limits on the agents that a session may start. `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentLimits {
    pub at_once: Option<u64>,
    pub per_response: Option<u64>,
    pub max_steps: Option<u64>,
    pub budget_percent: Option<u64>,
    pub depth: Option<u64>,
}

impl AgentLimits {
    pub(super) fn read(root: &BundleTable<'_>) -> Result<Self, BundleError> {
        let Some(section) = root.section("agents")? else { return Ok(Self::default()) };
        section.only(&["at_once", "per_response", "max_steps", "budget_percent", "depth"])?;
        let at_least_one = |key: &str| match section.number(key)? {
            Some(0) => {
                let message = format!("`{key}` is 0; expected an integer of at least 1. `depth = 0` turns agents off");
                Err(section.error_at(key, &message))
            }
            number => Ok(number),
        };
        Ok(Self {
            at_once: at_least_one("at_once")?,
            per_response: at_least_one("per_response")?,
            max_steps: at_least_one("max_steps")?,
            budget_percent: at_least_one("budget_percent")?,
            depth: section.number("depth")?,
        })
    }

    /// Combines two sets of limits, keeping the smaller value for each key.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            at_once: least(self.at_once, other.at_once),
            per_response: least(self.per_response, other.per_response),
            max_steps: least(self.max_steps, other.max_steps),
            budget_percent: least(self.budget_percent, other.budget_percent),
            depth: least(self.depth, other.depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_of_all_policies_applies() {
        let limits = |at_once, max_steps| AgentLimits { at_once, max_steps, ..AgentLimits::default() };
        let both = limits(Some(4), None).and(limits(Some(2), Some(10)));
        assert_eq!(both, limits(Some(2), Some(10)));
        assert_eq!(both.and(limits(Some(9), Some(99))), both, "a later policy raises nothing");
    }
}
