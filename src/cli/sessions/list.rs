//! `aye sessions list`: lists a project's sessions, with their totals and states.

use crate::cli::sessions::args::SessionScope;
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::host::stored_sessions::{artifact_bytes, open};
use crate::session::Tally;
use crate::store::{SessionSummary, Size};
use crate::transfer::format::{dollars, format_count, one_line};
use serde::Serialize;
use std::fmt::Write;

/// A session in the JSON output of `aye sessions list`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionRow<'a> {
    #[serde(flatten)]
    summary: &'a SessionSummary,
    /// State of unfinished work: `interrupted`, `waiting`, `paused` or `running`. Absent if everything is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<&'static str>,
    tasks: u64,
    steps: u64,
    queued: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// Cost in US dollars, or `null` if no price is known.
    cost_usd: Option<f64>,
    estimated: bool,
    records: u64,
    bytes: u64,
    artifact_bytes: u64,
}

pub(crate) fn run(app: &AppContext, json: bool, scope: SessionScope, archived: bool) -> Result<Exit, CliError> {
    let store = open_store(app)?;
    let workspace = match scope {
        SessionScope::Project => Some(app.workspace_id()),
        SessionScope::All => None,
    };
    let mut sessions = store.sessions(workspace.as_ref())?;
    sessions.retain(|session| session.archived == archived);
    let tally = |session: &SessionSummary| store.tally(&session.session_id).unwrap_or_default();
    if json {
        let sizes = store.sizes()?;
        let listed: Vec<SessionRow<'_>> = sessions
            .iter()
            .map(|summary| {
                let size = sizes.get(&summary.session_id).copied().unwrap_or_default();
                to_row(summary, tally(summary), size, artifact_bytes(app, &summary.session_id))
            })
            .collect();
        print_json(&listed);
        return Ok(Exit::Completed);
    }
    let mut lines = String::new();
    for session in &sessions {
        lines.push_str(line(session).trim_end());
        let _ = writeln!(lines, "{}", format_totals(tally(session)));
        if scope == SessionScope::All {
            let _ = writeln!(lines, "          {}", one_line(&session.workspace));
        }
    }
    if sessions.is_empty() {
        lines.push_str(if archived { "no archived sessions\n" } else { "no sessions yet\n" });
    }
    print_text(&lines);
    Ok(Exit::Completed)
}

fn to_row(summary: &SessionSummary, tally: Tally, size: Size, artifact_bytes: u64) -> SessionRow<'_> {
    SessionRow {
        summary,
        open: open(summary),
        tasks: tally.tasks,
        steps: tally.steps,
        queued: tally.queued,
        input_tokens: tally.totals.usage.input_tokens,
        output_tokens: tally.totals.usage.output_tokens,
        cost_usd: tally.totals.cost_usd,
        estimated: tally.totals.estimated,
        records: size.records,
        bytes: size.bytes,
        artifact_bytes,
    }
}

/// Formats a session as one line of a list.
pub(crate) fn line(session: &SessionSummary) -> String {
    let id: String = session.session_id.as_str().chars().take(8).collect();
    let state = open(session).unwrap_or("idle");
    let title = session.title.as_deref().unwrap_or("(no prompt)");
    let state = match state {
        _ if session.of_agent => "agent",
        "idle" if session.of_command => "command",
        state => state,
    };
    let time = session.updated.strftime("%Y-%m-%d %H:%M");
    format!("{}  {time}  {state:11}  {}\n", one_line(&id), one_line(title))
}

fn format_totals(tally: Tally) -> String {
    if tally == Tally::default() {
        return String::new();
    }
    let mut sums = format!("  ({}, {}", format_count(tally.tasks, "prompt"), format_count(tally.steps, "step"));
    if let Some(cost) = tally.totals.cost_usd {
        let _ = write!(sums, ", {}", dollars(cost, tally.totals.estimated));
    }
    if tally.queued > 0 {
        let _ = write!(sums, ", {} queued", tally.queued);
    }
    sums.push(')');
    sums
}
