//! `aye sessions pull`: downloads a session from the object store to continue it on this machine, or lists the stored
//! sessions.

use crate::cli::session_ids::short_id;
use crate::host::console::{print_json, print_text, warn, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::session_uploads::SessionUploads;
use crate::host::startup::{open_store, runtime};
use crate::protocol::{Problem, SessionId};
use crate::services::workspace::{BucketSession, PullOptions, PullResult, find, list, pull};
use crate::transfer::format::{format_count, format_size};
use std::fmt::Write;

/// Maximum number of sessions listed in text output.
const LISTED: usize = 100;
/// Maximum number of matching sessions listed in the error for an ambiguous ID.
const AMBIGUOUS: usize = 8;

pub(crate) fn run(app: &AppContext, id: &str, take_over: bool, fork: bool) -> Result<Exit, CliError> {
    let store = open_store(app)?;
    let uploads = SessionUploads::for_command(app, &store)?;
    let SessionUploads { bucket, local, machine } = &uploads;
    let found = runtime()?.block_on(async {
        let found = find(bucket, id, AMBIGUOUS + 1).await.map_err(|error| CliError::failed(error.problem))?;
        let id = only_one(id, found)?;
        pull(bucket, local, &id, machine, PullOptions { take_over, fork }).await.map_err(|error| CliError::failed(error.problem))
    });
    let pulled = found?;
    let (id, records) = (&pulled.id, format_count(pulled.records, "record"));
    print_text(&match pulled.result {
        PullResult::New | PullResult::Extended => format!("pulled session {id}: {records}\n"),
        PullResult::UpToDate => format!("session {id} is up to date\n"),
        PullResult::Ahead => format!("session {id} is newer on this machine than in the store\n"),
    });
    warn_all(&pulled.notices);
    warn(format!("to continue: `aye --resume={}`", short_id(id)));
    Ok(Exit::Completed)
}

fn only_one(given: &str, mut found: Vec<SessionId>) -> Result<SessionId, CliError> {
    let problem = Problem::new(format!("cannot pull session `{given}`"));
    let hint = "list the sessions in the store: `aye sessions pull`";
    match found.len() {
        0 => Err(CliError::failed(problem.because("the store has no such session").hint(hint))),
        1 => Ok(found.remove(0)),
        _ => {
            let ids: Vec<&str> = found.iter().take(AMBIGUOUS).map(SessionId::as_str).collect();
            Err(CliError::failed(problem.because(format!("the ID is ambiguous: {}", ids.join(", "))).hint(hint)))
        }
    }
}

/// Prints the sessions in the object store, most recent first.
pub(crate) fn list_stored(app: &AppContext, json: bool) -> Result<Exit, CliError> {
    let store = open_store(app)?;
    let SessionUploads { bucket, machine, .. } = SessionUploads::for_command(app, &store)?;
    let most = if json { usize::MAX } else { LISTED + 1 };
    let listed = runtime()?.block_on(list(&bucket, &machine, most));
    let (mut sessions, notices) = listed.map_err(|error| CliError::failed(error.problem))?;
    warn_all(&notices);
    if json {
        print_json(&sessions);
        return Ok(Exit::Completed);
    }
    if sessions.len() > LISTED {
        sessions.truncate(LISTED);
        warn(format!("only the last {LISTED} sessions are listed; to list all: `aye sessions pull --json`"));
    }
    let mut lines: String = sessions.iter().map(line).collect();
    if sessions.is_empty() {
        lines.push_str("no sessions in the store yet\n");
    }
    print_text(&lines);
    Ok(Exit::Completed)
}

fn line(session: &BucketSession) -> String {
    let mut line = format!(
        "{}  {}  {}  {}",
        short_id(&session.session_id),
        session.updated.strftime("%Y-%m-%d %H:%M UTC"),
        format_size(session.bytes),
        session.title.as_deref().unwrap_or("(no title)"),
    );
    match (&session.host, session.is_here, session.busy) {
        (Some(host), false, true) => drop(write!(line, "  (a task is running on {host})")),
        (Some(host), false, false) => drop(write!(line, "  (last used on {host})")),
        _ => {}
    }
    line.push('\n');
    line
}
