//! Built-in agents.

use super::definition::{AgentDefinition, AgentOrigin};
use super::markdown;

/// Names and definition files of the built-in agents.
const FILES: [(&str, &str); 2] =
    [("explore", include_str!("../../assets/agents/explore.md")), ("review", include_str!("../../assets/agents/review.md"))];

/// Parses and returns the built-in agents.
pub(super) fn built_in() -> impl Iterator<Item = AgentDefinition> {
    let read = |(name, text): (&str, &str)| markdown::read(name, "built-in", AgentOrigin::BuiltIn, text.as_bytes()).agent;
    FILES.into_iter().filter_map(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_agent_parses() {
        let names: Vec<String> = built_in().map(|agent| agent.name).collect();
        assert_eq!(names, ["explore", "review"]);
        for (name, text) in FILES {
            let read = markdown::read(name, "built-in", AgentOrigin::BuiltIn, text.as_bytes());
            assert!(read.errors.is_empty() && read.warnings.is_empty(), "{name}: {read:?}");
        }
    }
}
