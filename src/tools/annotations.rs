//! Describes tools to other agents: whether they are read-only, destructive, idempotent, open-world, or usable only in
//! a session.

use serde_json::Value;

/// Tool annotations of the Model Context Protocol. They inform clients, but grant no permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToolHints {
    pub reads_only: bool,
    /// Whether existing data may be lost.
    pub destructive: bool,
    /// Whether repeating the same call has no further effect.
    pub idempotent: bool,
    /// Whether the tool interacts with systems outside this machine.
    pub open_world: bool,
}

/// Details of a tool that other agents receive in addition to its definition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolDetails {
    pub hints: ToolHints,
    /// JSON Schema of the tool's output, or `None` if the output is not JSON.
    pub output_schema: Option<Value>,
}

const READS: ToolHints = ToolHints { reads_only: true, destructive: false, idempotent: true, open_world: false };
const ADDS: ToolHints = ToolHints { reads_only: false, destructive: false, idempotent: false, open_world: false };
const CHANGES: ToolHints = ToolHints { destructive: true, ..ADDS };
/// Hints for tools that run commands, whose effects are not known in advance.
pub(super) const RUNS: ToolHints = ToolHints { open_world: true, ..CHANGES };
/// Hints for a tool that runs a program in a read-only sandbox, where the program may still contact other systems.
pub(super) const READS_BY_PROGRAM: ToolHints = ToolHints { open_world: true, ..READS };

static BUILT_IN: &[(&str, ToolHints)] = &[
    ("ReadFile", READS),
    ("ListDirectory", READS),
    ("Glob", READS),
    ("Grep", READS),
    ("Stat", READS),
    ("TextInspect", READS),
    ("HashFile", READS),
    ("DiskUsage", READS),
    ("WriteFile", ToolHints { idempotent: true, ..CHANGES }),
    ("EditFile", CHANGES),
    ("ApplyPatch", CHANGES),
    ("AppendFile", ADDS),
    ("TextPatch", CHANGES),
    ("CreateDirectory", ToolHints { idempotent: true, ..ADDS }),
    ("Copy", ADDS),
    ("Move", CHANGES),
    ("Delete", CHANGES),
    ("RunCommand", RUNS),
    ("CliSession", RUNS),
    ("CliWrite", RUNS),
    // Each call returns only output that was not read before.
    ("CliRead", ToolHints { idempotent: false, ..READS }),
    ("CliStop", ToolHints { idempotent: true, ..CHANGES }),
    ("CliGetPlatform", READS),
    ("CliEnv", READS),
    ("OpenPath", ADDS),
    ("RevealInOs", ToolHints { idempotent: true, ..ADDS }),
    ("HttpRequest", RUNS),
    ("WebSearch", ToolHints { reads_only: true, destructive: false, idempotent: true, open_world: true }),
];

/// Tools that require a session with a user, and are therefore not offered to other agents.
#[cfg(test)]
const SESSION_TOOLS: &[&str] = &["UploadArtifact", "AskUser", "ProposePlan", "UpdateSteps", "SuggestMemory"];

/// Returns the hints for a built-in tool, or `None` if the tool is not offered to other agents.
pub(super) fn hints_for(name: &str) -> Option<ToolHints> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, hints)| *hints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::registry::built_in_tools;

    /// Tool that the tests add. It is not offered to other agents.
    const ADDED: &str = "CountWords";

    #[test]
    fn every_tool_has_annotations_or_is_listed_as_session_only() {
        for tool in built_in_tools().filter(|tool| tool.name() != ADDED) {
            let of_a_session = SESSION_TOOLS.contains(&tool.name());
            assert_eq!(hints_for(tool.name()).is_none(), of_a_session, "{} is in exactly one of the two lists", tool.name());
        }
        let names: Vec<_> = built_in_tools().map(|tool| tool.name().to_owned()).collect();
        for (name, _) in BUILT_IN {
            assert!(names.iter().any(|known| known == name), "unknown tool `{name}`");
        }
    }

    #[test]
    fn tools_that_write_or_run_programs_are_never_annotated_read_only() {
        let harmless = ["File.Read", "Shell.Exec", "Network.Search"];
        for tool in built_in_tools() {
            let Some(hints) = hints_for(tool.name()) else { continue };
            assert!(!(hints.reads_only && hints.destructive), "{}", tool.name());
            assert!(!hints.reads_only || harmless.contains(&tool.capability()), "{}", tool.name());
        }
    }
}
