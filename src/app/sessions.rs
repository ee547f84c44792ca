//! `aye sessions`: what is in the store.

use super::cli::SessionScope;
use super::exit::Exit;
use super::place::{Place, workspace_id};
use super::trouble::Trouble;
use crate::agent;
use crate::protocol::EventKind;
use crate::store::{SessionStatus, SessionSummary, Snapshots};
use crate::text::clean;
use std::collections::HashMap;
use std::fmt::Write;

pub fn list(place: &Place, json: bool, scope: SessionScope) -> Result<Exit, Trouble> {
    let store = super::open_store(place)?;
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
        lines.push_str(&line(session));
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

/// A session in a list for people.
pub fn line(session: &SessionSummary) -> String {
    let id: String = session.session_id.as_str().chars().take(8).collect();
    // What a dead process left open is open still, but nothing of it runs.
    let state = match (session.status, session.held_by) {
        (SessionStatus::Running, None) => "interrupted",
        (status, _) => status.as_str(),
    };
    let title = session.title.as_deref().unwrap_or("(only a draft)");
    format!("{id}  {}  {state:11}  {}\n", session.updated.strftime("%Y-%m-%d %H:%M"), one_line(title))
}

/// So that no title can pass for a session of its own.
fn one_line(text: &str) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Prints what was said and done, as text.
pub fn show(place: &Place, id: &str) -> Result<Exit, Trouble> {
    let store = super::open_store(place)?;
    let summary = store.find(id)?;
    let loaded = store.load(&summary.session_id)?;
    let workspace = workspace_id(std::path::Path::new(&summary.workspace));
    let mut calls = HashMap::new();
    for event in agent::replay(&loaded.records, &workspace, &summary.session_id) {
        match event.kind {
            EventKind::TaskStarted { prompt, .. } => super::say(&format!("\n> {}\n\n", clean(&prompt).replace('\n', "\n> "))),
            EventKind::TextChunk { text } => super::say(&format!("{}\n", clean(text.trim_end()))),
            EventKind::ToolRequested { tool_call_id, summary, .. } => {
                calls.insert(tool_call_id, summary);
            }
            EventKind::ToolCompleted { tool_call_id, tool_name, error, .. } => {
                let summary = calls.remove(&tool_call_id).unwrap_or(tool_name);
                let end = error.map_or_else(|| "done".to_owned(), |error| error.to_string());
                super::say(&format!("* {}: {}\n", one_line(&summary), one_line(&end)));
            }
            EventKind::AnswerDiscarded { reason } => super::say(&format!("[cut off: {}]\n", one_line(&reason))),
            EventKind::TaskFailed { failure, .. } => super::say(&format!("[failed: {}]\n", one_line(&failure.message))),
            EventKind::TaskCancelled { .. } => super::say("[stopped]\n"),
            _ => {}
        }
    }
    Ok(Exit::Completed)
}

pub fn delete(place: &Place, id: &str) -> Result<Exit, Trouble> {
    let store = super::open_store(place)?;
    let summary = store.find(id)?;
    store.delete(&summary.session_id)?;
    if let Err(error) = Snapshots::new(&place.directories.data).forget(&summary.session_id) {
        tracing::warn!(%error, "what the session changed is kept still");
    }
    super::say(&format!("forgot session {}\n", summary.session_id));
    Ok(Exit::Completed)
}
