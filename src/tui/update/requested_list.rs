//! Lists that the user requested: `/ran`, `/policy grants` and `/lsp`.

use crate::protocol::{LanguageServerStatus, ListedGrant, ListedRun, RequestedList};
use crate::text;
use crate::tui::picker::Row;

/// Returns one list row per entry. Commands are listed newest first.
pub(crate) fn rows(list: &RequestedList) -> Vec<Row> {
    match list {
        RequestedList::UnaskedRuns { runs, .. } => runs.iter().enumerate().rev().map(run_row).collect(),
        RequestedList::Grants { grants } => grants.iter().enumerate().map(grant_row).collect(),
        RequestedList::LanguageServers { servers } => servers.iter().map(server_row).collect(),
    }
}

/// Returns the notices shown below the list.
pub(crate) fn notices(list: &RequestedList) -> Vec<String> {
    match list {
        RequestedList::UnaskedRuns { earlier: 1.., .. } => {
            vec!["earlier commands are not listed; `aye policy log` shows all decisions".to_owned()]
        }
        RequestedList::UnaskedRuns { .. } => Vec::new(),
        RequestedList::Grants { .. } => vec!["/policy undo removes the last rule that you saved in this session".to_owned()],
        RequestedList::LanguageServers { .. } => Vec::new(),
    }
}

/// Returns the row of a language server, with the first words of its state. The preview explains the state.
fn server_row(status: &LanguageServerStatus) -> Row {
    let state = status.state.split([';', ':']).next().unwrap_or_default();
    let cells = [status.language.as_str(), status.server.as_str(), state].map(text::reveal_line);
    let detail = format!("{}\n{}", cells[1], text::reveal(&status.state));
    Row { key: status.language.clone(), cells: cells.to_vec(), mark: "", lacks: None, detail }
}

fn run_row((at, run): (usize, &ListedRun)) -> Row {
    let ListedRun { command, outcome, reason } = run;
    let line = |words: &str| text::reveal_line(words);
    Row {
        key: at.to_string(),
        cells: vec![line(command), line(outcome)],
        mark: "",
        lacks: None,
        detail: format!("{}\n{}\n{}", text::reveal(command), line(outcome), line(reason)),
    }
}

fn grant_row((at, grant): (usize, &ListedGrant)) -> Row {
    let ListedGrant { name, rule, times } = grant;
    let line = |words: &str| text::reveal_line(words);
    let times = if times.is_empty() { String::new() } else { format!("\n{}", line(times)) };
    Row {
        key: at.to_string(),
        cells: vec![line(name), line(rule)],
        mark: "",
        lacks: None,
        detail: format!("{}\n{}{times}", text::reveal(rule), line(name)),
    }
}
