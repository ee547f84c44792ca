//! Text printed to the terminal after the full-screen UI has closed.

use crate::host::console::print_text;
use crate::host::exit::Exit;
use crate::protocol::ChangedFiles;
use crate::tui::{ExitReason, TuiOutcome};
use std::fmt::Write as _;

/// Signal number of SIGINT, which is the same on all Unix systems.
const SIGINT: i32 = 2;
/// Maximum number of changed files listed by name.
const MAX_NAMED: usize = 12;

/// Prints how the session ended, and returns the exit code.
pub(crate) fn farewell(outcome: &TuiOutcome, changed: &ChangedFiles) -> Exit {
    let mut text = String::new();
    if let Some(answer) = &outcome.last_answer {
        text.push_str(&crate::text::clean(answer.trim_end()));
        text.push('\n');
    }
    text.push_str(&changes(changed));
    if let Some(hint) = &outcome.resume_hint {
        text = format!("{text}\nTo continue: {hint}\n");
    }
    match outcome.ended {
        ExitReason::Closed | ExitReason::Another | ExitReason::Open(_) | ExitReason::Setup => {}
        ExitReason::Quit | ExitReason::Signal(_) => print_text(&text),
    }
    match outcome.ended {
        ExitReason::Quit | ExitReason::Another | ExitReason::Open(_) | ExitReason::Setup => Exit::Completed,
        ExitReason::Closed => Exit::Failed,
        ExitReason::Signal(signal) if signal == SIGINT => Exit::Interrupted,
        ExitReason::Signal(_) => Exit::Terminated,
    }
}

/// Formats the list of changed files. If there are many, only the first ones are named.
fn changes(changed: &ChangedFiles) -> String {
    let Some(counts) = changed.summary() else { return String::new() };
    let mut text = format!("\nChanged since this session began: {counts}\n");
    for file in changed.files.iter().take(MAX_NAMED) {
        let name = crate::text::reveal(&file.path).replace(['\n', '\r'], " ");
        let lines = if file.added + file.removed > 0 { format!("  +{} −{}", file.added, file.removed) } else { String::new() };
        let _ = writeln!(text, "  {} {name}{lines}", file.status.status_char());
    }
    let more = changed.files.len().saturating_sub(MAX_NAMED) as u64 + changed.more_files;
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}
