//! Sandbox escalation: when access is blocked, the user can allow the command to run again with exactly that access.

use crate::protocol::{ErrorCode, SandboxAccess, ToolResult};

/// Maximum number of paths and hosts that can be allowed for a single run.
const MAX_OPENS: usize = 8;

/// Result of a run in which the sandbox blocked access.
#[derive(Debug)]
pub(super) struct BlockedRun {
    first: ToolResult,
    latency_ms: u64,
    /// Whether the command is running or has run again.
    again: bool,
}

impl BlockedRun {
    pub(super) fn new(first: ToolResult, latency_ms: u64) -> Self {
        Self { first, latency_ms, again: false }
    }

    pub(super) fn requested_access(&self) -> &[SandboxAccess] {
        &self.first.denied
    }

    /// Returns whether `denied` contains access beyond that of the first run, and all of it together can still be
    /// requested.
    pub(super) fn is_extended_by(&self, denied: &[SandboxAccess]) -> bool {
        let new = denied.iter().filter(|one| !self.first.denied.contains(one)).count();
        (1..=MAX_OPENS.saturating_sub(self.first.denied.len())).contains(&new)
    }

    pub(super) fn mark_rerun(&mut self) {
        self.again = true;
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.again
    }

    /// Returns how long the first run took, in milliseconds, if its result is the final one.
    pub(super) fn latency_ms(&self) -> Option<u64> {
        (!self.again).then_some(self.latency_ms)
    }

    /// Returns the call's final result: that of the second run if there was one, and that of the first run otherwise.
    /// If the second run failed without output, its result includes the output of the first run.
    pub(super) fn result_or(&self, result: ToolResult) -> ToolResult {
        let names = format_access(&self.first.denied);
        if !self.again {
            let why = result.error.map_or_else(String::new, |error| match error.code {
                ErrorCode::Cancelled => ": the task was stopped".to_owned(),
                _ => format!(": {}", error.message),
            });
            let said = format!("[The sandbox blocked {names}. The command was not run again with that access{why}.]");
            return ToolResult { output_text: join_paths(&self.first.output_text, &said), ..self.first.clone() };
        }
        if result.error.is_none() || !result.output_text.is_empty() {
            return result;
        }
        let said = format!("[In an earlier run the sandbox blocked {names}. Output of that run:]");
        ToolResult { output_text: join_paths(&said, &self.first.output_text), ..result }
    }
}

/// Formats a list of accesses, such as `example.com:443 and writing `/opt``.
pub(super) fn format_access(places: &[SandboxAccess]) -> String {
    let names: Vec<String> = places.iter().map(ToString::to_string).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

fn join_paths(one: &str, other: &str) -> String {
    let line = if one.is_empty() || one.ends_with('\n') || other.is_empty() { "" } else { "\n" };
    format!("{one}{line}{other}")
}
