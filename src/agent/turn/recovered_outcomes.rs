//! Recovery of calls that were running when the process ended, based on the disk and on their last output.

use super::{Call, CallState, TurnMachine};
use crate::ports::{Found, Known};
use crate::protocol::ToolResult;
use std::path::{Path, PathBuf};

/// Maximum number of leftover files listed in a message.
const NAMED_LEFT: usize = 5;

impl TurnMachine {
    /// Sets the recovery information. Call this once, before the session is restored.
    pub fn know(&mut self, known: Known) {
        self.known = known;
    }

    /// Settles calls by the state of the disk: completed ones are done, and those that did not happen are planned and judged again.
    pub(super) fn settle_by_the_disk(&mut self) {
        let Known { mut found, mut tails } = std::mem::take(&mut self.known);
        self.with_calls(|runner, calls| {
            let under_way = |call: &&mut Call| call.changes && matches!(call.state, CallState::Running);
            for call in calls.iter_mut().filter(under_way) {
                let id = call.call.tool_call_id.clone();
                call.tail = tails.remove(&id);
                // Previewed and blocked calls are recovered in other ways.
                let looked = found.remove(&id).filter(|_| !call.previewed && call.held.is_none());
                match looked {
                    Some(Found::Done { left }) => {
                        runner.announce(call, &[]);
                        let text = format!(
                            "{}: done; aye exited before it reported this, and the files have the new content{}",
                            call.summary,
                            beside(&left)
                        );
                        call.settle(ToolResult::succeeded(id, call.call.tool_name.clone(), text));
                        runner.report(call, 0);
                        runner.out.notice(format!(
                            "`{}` had finished when aye exited; it is not run again{}",
                            call.summary,
                            beside(&left)
                        ));
                    }
                    Some(Found::NotDone { left }) => {
                        call.state = CallState::Planning;
                        call.left = left;
                        runner.out.notice(format!("`{}` had not run when aye exited; it is planned again", call.summary));
                    }
                    Some(Found::Partly { words }) => call.partly = Some(words),
                    None => {}
                }
            }
        });
    }
}

/// Returns the note about leftover files, which are in the same directories as the call's files.
pub(super) fn beside(left: &[PathBuf]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let named: Vec<_> = left
        .iter()
        .take(NAMED_LEFT)
        .filter_map(|path| path.file_name())
        .map(|name| format!("`{}`", Path::new(name).display()))
        .collect();
    let more = left.len().saturating_sub(NAMED_LEFT);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(" (left over next to them: {}{more})", named.join(", "))
}
