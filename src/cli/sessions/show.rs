//! `aye sessions show`: prints the conversation of a session, as text or as events.

use crate::agent;
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::protocol::{CallId, CommandEnd, Event, EventKind};
use crate::text::clean;
use crate::transfer::format::one_line;
use crate::workspace::identity::workspace_id;
use std::collections::HashMap;

pub(crate) fn run(app: &AppContext, id: &str, json: bool) -> Result<Exit, CliError> {
    let store = open_store(app)?;
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
        EventKind::ToolStarted { tool_call_id, summary: Some(edited), .. } => {
            calls.insert(tool_call_id, edited);
            String::new()
        }
        EventKind::OwnCommandStarted { tool_call_id, line, .. } => {
            calls.insert(tool_call_id, format!("$ {line}"));
            String::new()
        }
        EventKind::ToolCompleted { tool_call_id, tool_name, error, output_text, ended, .. } => {
            let summary = calls.remove(&tool_call_id).unwrap_or(tool_name);
            // Only the output of a command starts with its exit code.
            let exit_code = CommandEnd::exit_text_of(ended.as_ref(), &output_text);
            let exit_code = exit_code.filter(|code| summary.starts_with("$ ") && code != "0");
            let end = match (error, exit_code) {
                (Some(error), _) => error.to_string(),
                (None, Some(code)) => format!("exit {code}"),
                (None, None) => "done".to_owned(),
            };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CallArguments, ErrorCode, SessionId, ToolError, ToolStatus, WorkspaceId};

    #[test]
    fn a_failed_command_is_listed_with_its_exit_code_and_other_output_is_not_searched_for_one() {
        let error = Some(ToolError::new(ErrorCode::ToolExecutionFailed, "there is no such file"));
        let failed = "there is no such file";
        for (summary, output, error, end) in [
            ("$ make test", "Exit code: 2\nno rule\n", None, "exit 2"),
            ("$ make", "Exit code: 0\n", None, "done"),
            ("$ cat build.log", "Exit code: 0\nExit code: 2\n", None, "done"),
            ("Read build.log", "Exit code: 2\nno rule\n", None, "done"),
            ("Read a.txt", "", error, failed),
        ] {
            let id = CallId::new("c1");
            let event = |kind| Event {
                workspace_id: WorkspaceId::new("w"),
                session_id: SessionId::new("s"),
                task_id: None,
                step_id: None,
                timestamp: jiff::Timestamp::UNIX_EPOCH,
                kind,
            };
            let requested = EventKind::ToolRequested {
                tool_call_id: id.clone(),
                tool_name: "RunCommand".to_owned(),
                capability: None,
                arguments: CallArguments::Object(serde_json::Map::new()),
                summary: summary.to_owned(),
            };
            let completed = EventKind::ToolCompleted {
                tool_call_id: id,
                tool_name: "RunCommand".to_owned(),
                status: if error.is_some() { ToolStatus::Failed } else { ToolStatus::Succeeded },
                latency_ms: 1,
                output_text: output.to_owned(),
                error,
                proposal: None,
                redactions: Vec::new(),
                artifact_uris: Vec::new(),
                ended: None,
            };
            let mut calls = HashMap::new();
            as_text(event(requested), &mut calls);
            assert_eq!(as_text(event(completed), &mut calls), format!("* {summary}: {end}\n"));
        }
    }
}
