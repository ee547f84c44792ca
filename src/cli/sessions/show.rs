//! `aye sessions show`: prints the conversation of a session, as text or as events.

use crate::agent;
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::protocol::{CallId, Event, EventKind};
use crate::text::clean;
use crate::transfer::format::one_line;
use crate::workspace::identity::workspace_id;
use std::collections::HashMap;

pub(crate) fn run(place: &AppContext, id: &str, json: bool) -> Result<Exit, CliError> {
    let store = open_store(place)?;
    let summary = store.find(id)?;
    let loaded = store.load(&summary.session_id)?;
    let workspace = workspace_id(std::path::Path::new(&summary.workspace));
    let mut calls = HashMap::new();
    for event in agent::replay(&loaded.records, &workspace, &summary.session_id) {
        if json {
            print_json(&event);
        } else {
            print_text(&as_text(event, &mut calls));
        }
    }
    if !json && !loaded.draft.trim().is_empty() {
        print_text(&format!("\n[not sent] {}\n", clean(loaded.draft.trim_end()).replace('\n', "\n  ")));
    }
    Ok(Exit::Completed)
}

fn as_text(event: Event, calls: &mut HashMap<CallId, String>) -> String {
    match event.kind {
        EventKind::TaskStarted { prompt, .. } => format!("\n> {}\n\n", clean(&prompt).replace('\n', "\n> ")),
        EventKind::Steered { text } => format!("\n> {}\n\n", clean(&text).replace('\n', "\n> ")),
        EventKind::TextChunk { text } => format!("{}\n", clean(text.trim_end())),
        EventKind::ToolRequested { tool_call_id, summary, .. } => {
            calls.insert(tool_call_id, summary);
            String::new()
        }
        EventKind::ToolCompleted { tool_call_id, tool_name, error, .. } => {
            let summary = calls.remove(&tool_call_id).unwrap_or(tool_name);
            let end = error.map_or_else(|| "done".to_owned(), |error| error.to_string());
            format!("* {}: {}\n", one_line(&summary), one_line(&end))
        }
        EventKind::AnswerDiscarded { reason } => format!("[cut off: {}]\n", one_line(&reason)),
        EventKind::TaskFailed { failure, .. } | EventKind::PromptBlocked { failure, .. } => {
            format!("[failed: {}]\n", one_line(&failure.message))
        }
        EventKind::TaskCancelled { .. } => "[interrupted]\n".to_owned(),
        _ => String::new(),
    }
}
