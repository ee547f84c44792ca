//! Prompts the user, in line mode, to choose a session to resume.

use crate::cli::sessions::list::line;
use crate::host::console::print_text;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::options::SessionChoice;
use crate::store::{SessionSummary, Store};
use std::io::BufRead;

/// Maximum number of sessions shown, limited so the list fits on a small screen. `aye sessions list` shows all
/// sessions.
const MAX_SHOWN: usize = 9;

/// Lists the workspace's sessions, most recent first, and prompts the user to choose one. Pressing Enter chooses the
/// first session.
pub(crate) fn ask(store: &Store, app: &AppContext, choice: SessionChoice) -> Result<SessionChoice, CliError> {
    if choice != SessionChoice::Pick {
        return Ok(choice);
    }
    let found = offered_sessions(store, app)?;
    match found.as_slice() {
        // The session of a command is never the latest one.
        [only] if only.of_command => return Ok(SessionChoice::Id(only.session_id.to_string())),
        [] | [_] => return Ok(SessionChoice::Latest),
        _ => {}
    }
    for (number, session) in found.iter().take(MAX_SHOWN).enumerate() {
        print_text(&format!("{}  {}", number + 1, line(session)));
    }
    print_text("Session number [1]: ");
    let mut words = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut words)
        .map_err(|error| CliError::usage(format!("cannot read your choice: {error}")))?;
    let number = match words.trim() {
        "" => 1,
        given => given.parse::<usize>().unwrap_or(0),
    };
    let chosen = number.checked_sub(1).and_then(|index| found.iter().take(MAX_SHOWN).nth(index));
    let Some(session) = chosen else {
        let last = found.len().min(MAX_SHOWN);
        return Err(CliError::usage(format!("invalid choice `{}`: must be a number from 1 to {last}", words.trim())));
    };
    Ok(SessionChoice::Id(session.session_id.to_string()))
}

/// Returns whether the screen must list the sessions: there are several, or the only one is that of a command, which is
/// never the latest session.
pub(crate) fn needs_list(store: &Store, app: &AppContext) -> Result<bool, CliError> {
    let found = unarchived_sessions(store, app)?;
    Ok(found.len() > 1 || found.iter().any(|session| session.of_command))
}

/// Returns the sessions in this workspace that are not archived.
fn unarchived_sessions(store: &Store, app: &AppContext) -> Result<Vec<SessionSummary>, CliError> {
    let mut found = store.sessions(Some(&app.workspace_id()))?;
    found.retain(|session| !session.archived);
    Ok(found)
}

/// Returns the unarchived sessions without those of commands, or with them if there are no others.
fn offered_sessions(store: &Store, app: &AppContext) -> Result<Vec<SessionSummary>, CliError> {
    let mut found = unarchived_sessions(store, app)?;
    if found.iter().any(|session| !session.of_command) {
        found.retain(|session| !session.of_command);
    }
    Ok(found)
}
