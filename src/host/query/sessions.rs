//! Lists sessions for the screen, with their titles, states and last messages.

use crate::agent;
use crate::host::context::AppContext;
use crate::host::drift;
use crate::host::error::CliError;
use crate::host::{session_search, stored_sessions};
use crate::protocol::{
    CommandEnd, EventKind, HostResponse, ListedSession, ListedState, PreviewLine, PreviewLineKind, SessionId, SessionPreview,
    ToolStatus, cut_position_before,
};
use crate::session::{CallStage, OpenCall, SessionActivity, SessionState};
use crate::store::{SessionSummary, Store, StoreError};
use crate::tui;
use crate::workspace::git::Repository;
use std::path::Path;

/// Maximum number of sessions in the list. A search is not subject to this limit.
const MAX: usize = 500;
/// Maximum number of sessions for which the cost is computed.
const COSTED: usize = 100;
/// Number of records read for a session's preview.
const PIECE: usize = 120;
/// Maximum number of lines in a preview.
const LINES: usize = 40;
/// Maximum length of a line in bytes.
const LINE_BYTES: usize = 600;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Lists sessions. Matching titles are reported first, followed by matching conversations and costs, which take longer
/// to determine.
pub(crate) fn list(
    store: &Store,
    app: &AppContext,
    (words, all, archived): (&str, bool, bool),
    is_last: &dyn Fn() -> bool,
    tell: &dyn Fn(HostResponse),
) -> Result<(), StoreError> {
    let here = app.workspace_id();
    let mut everywhere = store.sessions(None)?;
    everywhere.retain(|session| session.archived == archived && !session.of_agent && !is_empty_here(session));
    let count_here = everywhere.iter().filter(|session| session.workspace_id == here).count() as u64;
    let counts = (count_here, everywhere.len() as u64);
    let repository = Repository::find(&app.workspace);
    let chosen: Vec<&SessionSummary> = everywhere.iter().filter(|session| all || session.workspace_id == here).collect();
    let told = |sessions: Vec<ListedSession>, looks_on| {
        let (words, (here, everywhere)) = (words.to_owned(), counts);
        tell(HostResponse::Sessions { words, all, archived, sessions, here, everywhere, looks_on });
    };
    let pattern = if words.trim().is_empty() { None } else { Some(session_search::pattern(words.trim())) };
    let pattern = match pattern {
        None => None,
        Some(Ok(pattern)) => Some(pattern),
        // An incomplete regular expression matches nothing yet.
        Some(Err(_)) => {
            told(Vec::new(), false);
            return Ok(());
        }
    };
    let in_title = |session: &SessionSummary| {
        pattern.as_ref().is_none_or(|pattern| {
            session.title.as_deref().is_some_and(|title| pattern.is_match(title))
                || session.session_id.as_str().starts_with(words)
        })
    };
    let mut found: Vec<ListedSession> = chosen
        .iter()
        .filter(|session| in_title(session))
        .take(MAX)
        .map(|session| to_listed_session(session, app, repository.as_ref()))
        .collect();
    told(found.clone(), true);
    if let Some(pattern) = &pattern {
        for session in chosen.iter().filter(|session| !in_title(session)) {
            if !is_last() || found.len() >= MAX {
                break;
            }
            match session_search::first_hit(store, session, pattern, is_last) {
                Ok(Some(hit)) => {
                    found.push(ListedSession { hit: Some(hit), ..to_listed_session(session, app, repository.as_ref()) });
                }
                // Another process has deleted the session.
                Ok(None) | Err(StoreError::NoSession { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    for session in found.iter_mut().take(COSTED) {
        if !is_last() {
            return Ok(());
        }
        let totals = store.tally(&session.session_id).unwrap_or_default().totals;
        (session.cost_usd, session.estimated) = (totals.cost_usd, totals.estimated);
    }
    if is_last() {
        told(found, false);
    }
    Ok(())
}

/// Returns whether a session is open in this process and has no prompt yet, so there is nothing to resume.
fn is_empty_here(session: &SessionSummary) -> bool {
    session.title.is_none() && session.held_by == Some(std::process::id())
}

fn to_listed_session(session: &SessionSummary, app: &AppContext, repository: Option<&Repository>) -> ListedSession {
    let state = match (session.status, session.held_by) {
        (_, Some(pid)) if pid != std::process::id() => ListedState::Elsewhere,
        (SessionActivity::Idle, _) => ListedState::Done,
        (SessionActivity::Waiting, _) => ListedState::Waits,
        (SessionActivity::Paused, _) => ListedState::Paused,
        (SessionActivity::Running, Some(_)) => ListedState::Done,
        (SessionActivity::Running, None) => ListedState::Interrupted,
    };
    let is_here = session.workspace == app.workspace.to_string_lossy();
    let branch = if is_here {
        repository.and_then(|repository| repository.branch_at(session.updated))
    } else {
        Repository::find(Path::new(&session.workspace)).and_then(|repository| repository.branch_at(session.updated))
    };
    ListedSession {
        session_id: session.session_id.clone(),
        title: session.title.clone(),
        state,
        elsewhere: (!is_here).then(|| crate::text::abbreviate_home(Path::new(&session.workspace), &app.home)),
        updated: session.updated,
        created: session.created,
        age: age(jiff::Timestamp::now().as_second().saturating_sub(session.updated.as_second())),
        model: session.model.clone(),
        branch,
        cost_usd: None,
        estimated: false,
        lacks: (!Path::new(&session.workspace).is_dir()).then(|| "directory is missing".to_owned()),
        hit: None,
    }
}

/// Formats an age, as in `now`, `5 min`, `2 h`, `3 d` or `7 w`.
pub(super) fn age(seconds: i64) -> String {
    match seconds {
        ..MINUTE => "now".to_owned(),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        _ if seconds < 14 * DAY => format!("{} d", seconds / DAY),
        _ => format!("{} w", seconds / (7 * DAY)),
    }
}

/// Returns a session's preview, which consists of the end of the conversation and the session's totals.
pub(crate) fn preview(store: &Store, app: &AppContext, id: &SessionId) -> Result<SessionPreview, CliError> {
    let summary = store.find(id.as_str())?;
    let piece = store.page(&summary.session_id, None, PIECE)?;
    let mut lines: Vec<PreviewLine> = Vec::new();
    let (mut summaries, mut answer) = (std::collections::HashMap::new(), String::new());
    let put = |lines: &mut Vec<PreviewLine>, kind, text: &str| {
        let text = text[..cut_position_before(text, LINE_BYTES)].trim().to_owned();
        if !text.is_empty() {
            lines.push(PreviewLine { kind, text });
        }
    };
    for event in agent::replay(&piece.records, &app.workspace_id(), id) {
        if !matches!(event.kind, EventKind::TextChunk { .. }) {
            put(&mut lines, PreviewLineKind::Answer, &std::mem::take(&mut answer));
        }
        match event.kind {
            EventKind::TaskStarted { prompt, .. } => put(&mut lines, PreviewLineKind::Prompt, &prompt),
            EventKind::Steered { text } => put(&mut lines, PreviewLineKind::Prompt, &text),
            EventKind::TextChunk { text } => answer.push_str(&text),
            EventKind::ToolRequested { tool_call_id, summary, .. } => {
                summaries.insert(tool_call_id, summary);
            }
            EventKind::ToolStarted { tool_call_id, summary: Some(edited), .. } => {
                summaries.insert(tool_call_id, edited);
            }
            EventKind::ToolCompleted { tool_call_id, tool_name, status, output_text, ended, .. } => {
                let what = summaries.remove(&tool_call_id).unwrap_or(tool_name);
                let exit = CommandEnd::exit_text_of(ended.as_ref(), &output_text);
                let exit = exit.filter(|exit| what.starts_with("$ ") && exit != "0");
                match (status, exit) {
                    (ToolStatus::Succeeded, Some(exit)) => {
                        put(&mut lines, PreviewLineKind::Failed, &format!("{what} — exit {exit}"));
                    }
                    (ToolStatus::Succeeded, None) => put(&mut lines, PreviewLineKind::Done, &what),
                    (ToolStatus::Failed, _) => put(&mut lines, PreviewLineKind::Failed, &what),
                    (ToolStatus::Denied, _) => put(&mut lines, PreviewLineKind::Denied, &what),
                }
            }
            EventKind::OwnCommandStarted { tool_call_id, line, .. } => {
                summaries.insert(tool_call_id, format!("$ {line}"));
            }
            EventKind::TaskFailed { failure, .. } => put(&mut lines, PreviewLineKind::Failed, &failure.message),
            EventKind::TaskCancelled { .. } => put(&mut lines, PreviewLineKind::Note, "interrupted"),
            _ => {}
        }
    }
    put(&mut lines, PreviewLineKind::Answer, &answer);
    for (kind, words) in unfinished_calls(&SessionState::from_records(&piece.records), summary.held_by.is_some()) {
        put(&mut lines, kind, &words);
    }
    let before = lines.len().saturating_sub(LINES);
    lines.drain(..before);
    Ok(SessionPreview { session_id: id.clone(), lines, facts: facts(store, app, &summary) })
}

/// Returns the preview of a session that cannot be read, which consists of the error.
pub(crate) fn failed_preview(session_id: SessionId, error: CliError) -> SessionPreview {
    let kinds = [PreviewLineKind::Failed].into_iter().chain(std::iter::repeat(PreviewLineKind::Note));
    let text = error.into_problem().text();
    let lines = text.lines().zip(kinds).map(|(line, kind)| PreviewLine { kind, text: line.to_owned() }).collect();
    SessionPreview { session_id, lines, facts: Vec::new() }
}

/// Returns the calls in the open step that are waiting for approval or have no result. `held` specifies whether another
/// process owns the session.
fn unfinished_calls(state: &SessionState, held: bool) -> Vec<(PreviewLineKind, String)> {
    let told = |call: &OpenCall| match call.stage {
        CallStage::Planning | CallStage::Done => None,
        CallStage::Asking => Some((PreviewLineKind::Waits, format!("{} — waiting for your approval", call.summary))),
        CallStage::Running | CallStage::Blocked if held => Some((PreviewLineKind::Note, format!("{} — running", call.summary))),
        CallStage::Running | CallStage::Blocked => {
            Some((PreviewLineKind::Failed, format!("{} — was running when aye exited", call.summary)))
        }
    };
    state.calls().iter().filter_map(told).collect()
}

fn facts(store: &Store, app: &AppContext, summary: &SessionSummary) -> Vec<String> {
    let tally = store.tally(&summary.session_id).unwrap_or_default();
    let counted = |count: u64, word: &str| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") };
    let mut facts = vec![
        format!(
            "{} · {} · {} tokens",
            counted(tally.tasks, "prompt"),
            counted(tally.steps, "step"),
            tui::tokens(tally.totals.tokens())
        ),
        summary.model.clone(),
    ];
    if tally.queued > 0 {
        facts.push(format!("{} queued", counted(tally.queued, "message")));
    }
    if let Some(pid) = summary.held_by.filter(|pid| *pid != std::process::id()) {
        facts.push(format!("open in process {pid}"));
    }
    if Path::new(&summary.workspace).is_dir() {
        facts.extend(drift::branch(summary).map(|words| format!("⚠ {words}")));
        let changed =
            tokio::runtime::Handle::try_current().map(|runtime| runtime.block_on(drift::files(app, &summary.session_id)));
        facts.extend(changed.ok().and_then(|files| drift::describe_files(&files)).map(|words| format!("⚠ {words} since then")));
    } else {
        facts.push(format!("⚠ directory is missing: {}", summary.workspace));
    }
    facts.retain(|fact| !fact.is_empty());
    facts
}

pub(crate) fn rename(store: &Store, id: &SessionId, title: &str) -> Result<String, CliError> {
    stored_sessions::rename(store, id, title)
}

pub(crate) fn delete(store: &Store, app: &AppContext, id: &SessionId) -> Result<(), CliError> {
    stored_sessions::forget(store, app, id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{Record, TaskEnd};
    use crate::protocol::{CallArguments, CallId, StepId, ToolCall, ToolResult};

    #[test]
    fn pending_and_started_calls_are_listed_as_open_and_answered_calls_are_not() {
        let id = |id: &str| CallId::new(id);
        let intent = |name: &str, summary: &str| Record::Intent {
            step_id: StepId::new("s"),
            call: ToolCall {
                tool_call_id: id(name),
                tool_name: "RunCommand".to_owned(),
                arguments: CallArguments::Malformed(String::new()),
            },
            summary: summary.to_owned(),
            actions: Vec::new(),
            proposal: None,
            changes: true,
        };
        let started = |name: &str, edited: Option<&str>| Record::Started {
            tool_call_id: id(name),
            rule: String::new(),
            places: Vec::new(),
            told: None,
            edited: edited.map(|summary| crate::ports::EditedCommand { summary: summary.to_owned(), actions: Vec::new() }),
        };
        let asked = |name: &str, summary: &str| {
            let approval = crate::tui::tests::fixtures::command_approval(name);
            let approval = crate::protocol::Approval { tool_call_id: id(name), action_summary: summary.to_owned(), ..approval };
            Record::ApprovalRequested { approval }
        };
        let finished = |name: &str| Record::Finished { result: ToolResult::success(id(name), "RunCommand", ""), latency_ms: 1 };
        let all = [
            vec![intent("a", "$ one"), asked("a", "$ one"), intent("b", "$ two"), intent("c", "$ three")],
            vec![started("b", Some("$ deux")), started("c", None), finished("c")],
        ]
        .concat();
        let told = |records: &[Record], held| -> Vec<String> {
            unfinished_calls(&SessionState::from_records(records), held).into_iter().map(|(_, words)| words).collect()
        };
        assert_eq!(told(&all, false), ["$ one — waiting for your approval", "$ deux — was running when aye exited"]);
        assert_eq!(told(&all, true)[1], "$ deux — running");
        let ended = Record::TaskEnded { task_id: crate::protocol::TaskId::new("t"), step_count: 1, end: TaskEnd::Cancelled };
        assert_eq!(told(&[all, vec![ended]].concat(), false), [""; 0]);
    }

    #[test]
    fn only_an_empty_session_of_this_process_is_left_out() {
        let session = |title: Option<&str>, held_by| SessionSummary {
            session_id: SessionId::new("s"),
            workspace_id: crate::protocol::WorkspaceId::new("w"),
            workspace: String::new(),
            title: title.map(str::to_owned),
            created: jiff::Timestamp::default(),
            updated: jiff::Timestamp::default(),
            status: SessionActivity::Idle,
            model: String::new(),
            held_by,
            archived: false,
            of_agent: false,
            of_command: false,
            parent: None,
        };
        let me = std::process::id();
        assert!(is_empty_here(&session(None, Some(me))));
        for (title, held_by) in [(Some("prompt"), Some(me)), (None, Some(me + 1)), (None, None)] {
            assert!(!is_empty_here(&session(title, held_by)), "{title:?} {held_by:?}");
        }
    }

    #[test]
    fn the_preview_of_a_session_that_cannot_be_read_is_the_error() {
        let error = CliError::from(StoreError::NoSession { given: "4bb9".to_owned() });
        let preview = failed_preview(SessionId::new("4bb9"), error);
        assert!(preview.lines[0].text.contains("unknown session `4bb9`"), "{preview:?}");
        assert_eq!(preview.lines[0].kind, PreviewLineKind::Failed);
        assert!(preview.lines[1..].iter().all(|line| line.kind == PreviewLineKind::Note), "{preview:?}");
    }

    #[test]
    fn ages_are_shown_as_a_number_and_a_unit() {
        for (seconds, words) in [
            (-5, "now"),
            (59, "now"),
            (60, "1 min"),
            (7_199, "1 h"),
            (90_000, "1 d"),
            (13 * 86_400, "13 d"),
            (21 * 86_400, "3 w"),
        ] {
            assert_eq!(age(seconds), words);
        }
    }
}
