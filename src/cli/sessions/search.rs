//! `aye sessions search`: searches titles, prompts, responses, arguments and results, record by record.

use super::list::line as line_of_session;
use crate::cli::sessions::args::SessionScope;
use crate::host::console::{print_json, print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::session_search::{pattern, search_session};
use crate::host::startup::open_store;
use crate::protocol::Problem;
use crate::store::StoreError;
use crate::transfer::format::one_line;
use serde::Serialize;
use std::fmt::Write as _;

/// Maximum number of matches shown per session; any further matches are only counted.
const MAX_SHOWN: usize = 5;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchHit<'a> {
    session_id: &'a str,
    workspace: &'a str,
    title: Option<&'a str>,
    time: jiff::Timestamp,
    /// Location of the match: `title`, `prompt`, `answer`, `arguments`, `result` or `draft`.
    place: &'static str,
    line: String,
}

pub(crate) fn run(app: &AppContext, text: &str, json: bool, scope: SessionScope) -> Result<Exit, CliError> {
    let pattern = pattern(text)?;
    let store = open_store(app)?;
    let workspace = match scope {
        SessionScope::Project => Some(app.workspace_id()),
        SessionScope::All => None,
    };
    let mut found = false;
    for session in store.sessions(workspace.as_ref())? {
        let (mut hits, mut shown) = (0, String::new());
        let looked = search_session(&store, &session, &pattern, |time, part, line| {
            hits += 1;
            if json {
                print_json(&SearchHit {
                    session_id: session.session_id.as_str(),
                    workspace: &session.workspace,
                    title: session.title.as_deref(),
                    time,
                    place: part,
                    line,
                });
            } else if hits <= MAX_SHOWN {
                let _ = writeln!(shown, "  {}  {part:9}  {}", time.strftime("%Y-%m-%d %H:%M"), one_line(&line));
            }
        });
        match looked {
            // Another process has deleted the session in the meantime.
            Ok(()) | Err(StoreError::NoSession { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if hits > 0 && !json {
            let more = hits.saturating_sub(MAX_SHOWN);
            let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
            print_text(&format!("{}{shown}{more}", line_of_session(&session)));
        }
        found |= hits > 0;
    }
    if !found && !json {
        warn(no_matches(text, scope));
    }
    Ok(if found { Exit::Completed } else { Exit::Failed })
}

fn no_matches(text: &str, scope: SessionScope) -> Problem {
    match scope {
        SessionScope::Project => {
            Problem::new(format!("no session of this project contains `{text}`")).hint("use `--all` to search all projects")
        }
        SessionScope::All => Problem::new(format!("no session on this machine contains `{text}`")),
    }
}
