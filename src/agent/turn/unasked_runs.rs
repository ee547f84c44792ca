//! Commands that have run without approval since aye started.

use super::sandbox_escalation::format_access;
use crate::protocol::{CallId, CommandEnd, Effects, ListedRun, RequestedList, SandboxAccess, ToolResult};
use std::collections::VecDeque;

/// Maximum number of commands to list. Older commands are only counted.
const MAX_RUNS: usize = 200;

/// Command that ran without approval.
#[derive(Debug)]
struct UnaskedRun {
    tool_call_id: CallId,
    /// Command line as shown in the transcript, such as `$ cargo test`.
    summary: String,
    /// Reason why no approval was required, including the changes that were applied.
    why: String,
    /// Outcome of the command once it has ended, such as `exit 0`.
    ended: Option<String>,
}

/// Formats the hosts that a rule allowed a command to connect to.
fn format_hosts(hosts: &[SandboxAccess]) -> String {
    if hosts.is_empty() { String::new() } else { format!(" with access to {}", format_access(hosts)) }
}

/// Commands that ran without approval, oldest first.
#[derive(Debug, Default)]
pub(super) struct UnaskedRuns {
    runs: VecDeque<UnaskedRun>,
    dropped: usize,
}

impl UnaskedRuns {
    /// Adds a command that is starting. `effects` contains the effects of its run in a layer and the hosts that a
    /// rule allowed, or is `None` for a command that a rule allows.
    pub(super) fn start(
        &mut self,
        tool_call_id: &CallId,
        summary: &str,
        rule: &str,
        effects: Option<(&Effects, &[SandboxAccess])>,
    ) {
        if self.runs.len() == MAX_RUNS {
            self.runs.pop_front();
            self.dropped += 1;
        }
        let why = match effects {
            None => format!("allowed by {rule}"),
            Some((effects, hosts)) if effects.is_empty() => format!("in a copy{}; changed no file", format_hosts(hosts)),
            Some((effects, hosts)) => {
                format!("in a copy{}; applied: {}", format_hosts(hosts), effects.summary())
            }
        };
        let (tool_call_id, summary) = (tool_call_id.clone(), summary.to_owned());
        self.runs.push_back(UnaskedRun { tool_call_id, summary, why, ended: None });
    }

    /// Adds the outcome of a listed command.
    pub(super) fn end(&mut self, result: &ToolResult) {
        let Some(run) = self.runs.iter_mut().rev().find(|run| run.tool_call_id == result.tool_call_id) else { return };
        run.ended = Some(if let Some(error) = &result.error {
            error.code.as_str().to_owned()
        } else {
            let exit = CommandEnd::exit_text_of(result.ended.as_ref(), &result.output_text);
            exit.map_or_else(|| "done".to_owned(), |code| format!("exit {code}"))
        });
    }

    /// Returns the list of commands for the user.
    pub(super) fn list(&self) -> RequestedList {
        let listed = |run: &UnaskedRun| ListedRun {
            command: run.summary.clone(),
            outcome: run.ended.clone().unwrap_or_else(|| "running".to_owned()),
            reason: run.why.clone(),
        };
        let earlier = u64::try_from(self.dropped).unwrap_or(u64::MAX);
        RequestedList::UnaskedRuns { runs: self.runs.iter().map(listed).collect(), earlier }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_listed_with_its_outcome_and_applied_changes() {
        let mut runs = UnaskedRuns::default();
        assert!(runs.list().to_text().starts_with("no command"));
        let (first, second) = (CallId::new("c1"), CallId::new("c2"));
        runs.start(&first, "$ ls", "built-in:40", None);
        runs.start(&second, "$ make test", "built-in:9", Some((&Effects::default(), &[])));
        runs.end(&ToolResult::success(second, "RunCommand".to_owned(), "Exit code: 2\nno rule".to_owned()));
        let list = runs.list().to_text();
        assert!(list.contains("$ ls  running; allowed by built-in:40"), "{list}");
        assert!(list.contains("$ make test  exit 2; in a copy; changed no file"), "{list}");
    }

    #[test]
    fn only_the_latest_runs_are_listed_and_earlier_ones_are_counted() {
        let mut runs = UnaskedRuns::default();
        for number in 0..MAX_RUNS + 3 {
            runs.start(&CallId::new(format!("c{number}")), "$ ls", "r", None);
        }
        let list = runs.list().to_text();
        assert!(list.contains("3 earlier ones") && list.lines().count() == MAX_RUNS + 2);
    }
}
