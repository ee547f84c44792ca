//! `aye sessions`: what is in the store.

use super::cli::SessionScope;
use super::exit::Exit;
use super::place::{Place, workspace_id};
use super::trouble::Trouble;
use crate::agent;
use crate::headless::{self, Format, Output};
use crate::store::Store;
use crate::text::clean;
use std::fmt::Write;
use std::io::IsTerminal;
use tokio::sync::mpsc;

pub fn list(place: &Place, json: bool, scope: SessionScope) -> Result<Exit, Trouble> {
    let store = Store::open(&place.directories.data)?;
    let workspace = match scope {
        SessionScope::Project => Some(place.workspace_id()),
        SessionScope::All => None,
    };
    let sessions = store.sessions(workspace.as_ref())?;
    if json {
        super::say_json(&sessions);
        return Ok(Exit::Completed);
    }
    let mut lines = String::new();
    for session in &sessions {
        let id: String = session.session_id.as_str().chars().take(8).collect();
        let state = format!("{:?}", session.status).to_lowercase();
        let title = session.title.as_deref().unwrap_or("(only a draft)");
        let when = session.updated.strftime("%Y-%m-%d %H:%M");
        // A list for people; whoever writes to a string cannot fail.
        let _ = writeln!(lines, "{id}  {when}  {state:8}  {}", one_line(title));
        if scope == SessionScope::All {
            let _ = writeln!(lines, "          {}", one_line(&session.workspace));
        }
    }
    if sessions.is_empty() {
        lines.push_str("no sessions here yet\n");
    }
    super::say(&lines);
    Ok(Exit::Completed)
}

/// So that no title can pass for a session of its own.
fn one_line(text: &str) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Prints a session as `exec` would have told it.
pub fn show(place: &Place, id: &str) -> Result<Exit, Trouble> {
    let store = Store::open(&place.directories.data)?;
    let summary = store.find(id)?;
    let loaded = store.load(&summary.session_id)?;
    let workspace = workspace_id(std::path::Path::new(&summary.workspace));
    let (tell, told) = mpsc::unbounded_channel();
    for event in agent::replay(&loaded.records, &workspace, &summary.session_id) {
        let _ = tell.send(event);
    }
    drop(tell);
    let (mut out, mut err) = (std::io::stdout(), std::io::stdout());
    let out_is_terminal = out.is_terminal();
    let output = Output { out: &mut out, err: &mut err, out_is_terminal, clean };
    super::runtime()?.block_on(headless::run(told, Format::Text, output));
    Ok(Exit::Completed)
}

pub fn delete(place: &Place, id: &str) -> Result<Exit, Trouble> {
    let store = Store::open(&place.directories.data)?;
    let summary = store.find(id)?;
    store.delete(&summary.session_id)?;
    super::say(&format!("forgot session {}\n", summary.session_id));
    Ok(Exit::Completed)
}
