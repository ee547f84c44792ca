//! Imports sessions from checkpoints. Imported content has no authority: rules, policy and budget are not imported,
//! and the user must decide pending approvals again.

use super::checkpoint::{ArtifactContent, OWN_FORMAT, VERSION};
use super::error::TransferError;
use super::format::{format_count, one_line};
use super::incoming::{IncomingCheckpoint, IncomingEntry};
use super::records_from_messages;
use crate::ports::{Artifacts, NewArtifact, Record};
use crate::protocol::{Problem, SessionId};
use crate::session::{SessionState, without_authority};
use crate::store::{ArtifactStore, ImportedSession, NewSession, Parent, Store, TimedRecord};
use crate::workspace::identity::workspace_id;
use base64::Engine as _;
use jiff::Timestamp;
use serde::Deserialize;
use std::path::Path;

const ID_DIGITS: usize = 32;
/// Maximum length of a title, in characters.
const TITLE_CHARS: usize = 80;

/// Version fields of a checkpoint file, which are validated first.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    checkpoint_version: Option<serde_json::Value>,
    aye: Option<OwnForm>,
}

#[derive(Deserialize)]
struct OwnForm {
    format: Option<serde_json::Value>,
}

/// Session that is ready to be imported, with notices for the user.
pub(crate) struct PreparedImport {
    pub foreign: ImportedSession,
    pub artifacts: Vec<ArtifactContent>,
    pub notices: Vec<String>,
}

/// Imports a session that was exported from this store under a new ID.
pub(crate) fn copy(
    store: &Store,
    artifacts_of: &dyn Fn(&SessionId) -> ArtifactStore,
    workspace: &Path,
    text: &str,
    parent: Parent,
) -> Result<SessionId, TransferError> {
    let PreparedImport { mut foreign, artifacts, .. } =
        prepare(workspace, text).map_err(|problem| TransferError::Failed(problem.with_location("cannot copy the session")))?;
    foreign.parent = Some(parent);
    foreign.session.id = new_id();
    keep(&artifacts_of(&foreign.session.id), artifacts);
    while !store.import(foreign.clone())? {
        foreign.session.id = new_id();
    }
    Ok(foreign.session.id)
}

/// Parses and validates a checkpoint without changing anything.
pub(crate) fn prepare(workspace: &Path, text: &str) -> Result<PreparedImport, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_form(text)?;
    let mut incoming: IncomingCheckpoint<'_> = parse(text)?;
    let own = incoming.aye.take();
    let mut notices = Vec::new();
    let (records, own) = match own {
        Some(own) => (records_from_entries(&own.records, &mut notices), Some(own)),
        None => (records_from_messages::records(&mut incoming, &mut notices), None),
    };
    if let Some(last) = records.iter().map(|written| written.time).max()
        && last > Timestamp::now()
    {
        notices.push("some records are dated in the future; check this machine's clock".to_owned());
    }
    let first = records.first().map(|written| written.time).or(incoming.checkpointed_at).unwrap_or_default();
    let (title, model, draft, created, artifacts) = match own {
        Some(own) => {
            let here = workspace.to_string_lossy();
            if let Some(there) = own.workspace.filter(|there| *there != here) {
                notices.push(format!(
                    "created in `{}`; it now belongs to `{here}`, but paths in it still refer to the old directory",
                    one_line(&there)
                ));
            }
            (own.title, own.model, own.draft, own.created.unwrap_or(first), own.artifacts.unwrap_or_default())
        }
        None => (None, String::new(), String::new(), first, Vec::new()),
    };
    if records.is_empty() && draft.trim().is_empty() {
        return Err(Problem::new("nothing to import").because("the session is empty"));
    }
    let state = SessionState::from_records(records.iter().map(|written| &written.record));
    if let count @ 1.. = state.queue.len() {
        notices.push(format!(
            "{} queued: review before you continue",
            if count == 1 { "1 message is".to_owned() } else { format!("{count} messages are") }
        ));
    }
    let title = title.or(state.title).map(|title| clean_title(&title)).filter(|title| !title.is_empty());
    let session = NewSession {
        id: SessionId::new(incoming.session_id.to_ascii_lowercase()),
        workspace_id: workspace_id(workspace),
        workspace: workspace.to_owned(),
        model: clean_title(&model),
        started_by: None,
        is_of_command: false,
    };
    Ok(PreparedImport { foreign: ImportedSession { session, created, title, draft, parent: None, records }, artifacts, notices })
}

fn check_form(text: &str) -> Result<(), Problem> {
    let form: Form = parse(text)?;
    match form.checkpoint_version {
        Some(serde_json::Value::String(version)) if version == VERSION => {}
        Some(version) => {
            let problem = Problem::new(format!("unsupported checkpointVersion {}", one_line(&version.to_string())));
            let problem = problem.because(format!("this version of aye reads \"{VERSION}\""));
            return Err(problem.hint("export the session again with a matching version of aye"));
        }
        None => {
            let expected = format!("expected \"{VERSION}\", as written by `aye sessions export`");
            return Err(Problem::new("missing checkpointVersion").because(expected));
        }
    }
    match form.aye.map(|own| own.format) {
        Some(Some(format)) if format != OWN_FORMAT => {
            let problem = Problem::new(format!("unsupported format {} of `aye`", one_line(&format.to_string())));
            let problem = problem.because(format!("this version of aye reads {OWN_FORMAT}"));
            Err(problem.hint("use a newer version of aye, or remove `aye` from the file to import the thread alone"))
        }
        _ => Ok(()),
    }
}

/// Parses JSON. Errors contain the line, the column and what was expected there.
fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        let at = format!(" at line {} column {}", inner.line(), inner.column());
        let reason = inner.to_string();
        let reason = reason.strip_suffix(&at).unwrap_or(&reason);
        let path = if path == "." { String::new() } else { format!("`{}`: ", one_line(&path)) };
        Problem::new(format!("line {}, column {}", inner.line(), inner.column())).because(format!("{path}{}", one_line(reason)))
    })?;
    reader.end().map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        Problem::new("unexpected text after the session").because("expected one JSON object").with_location(place)
    })?;
    Ok(parsed)
}

fn records_from_entries(entries: &[IncomingEntry<'_>], notices: &mut Vec<String>) -> Vec<TimedRecord> {
    let (mut unreadable, mut first) = (0_u64, None);
    let records = entries.iter().enumerate().filter_map(|(number, entry)| {
        let record = serde_json::from_str(entry.entry.get()).unwrap_or_else(|error| {
            first.get_or_insert_with(|| format!("aye.records[{number}]: {}", one_line(&error.to_string())));
            Record::Unreadable
        });
        unreadable += u64::from(record == Record::Unreadable);
        without_authority(record).map(|record| TimedRecord { time: entry.time, record })
    });
    let records: Vec<TimedRecord> = records.collect();
    if unreadable > 0 {
        let first = first.map_or_else(String::new, |first| format!(" ({first})"));
        notices
            .push(format!("this version cannot read {}{first}; they are kept but not shown", format_count(unreadable, "record")));
    }
    records
}

/// Stores the artifacts whose content matches their URIs and returns an error message for each of the others. The
/// session still refers to those that were not stored.
pub(crate) fn keep(store: &ArtifactStore, artifacts: Vec<ArtifactContent>) -> Vec<String> {
    let kept = artifacts.into_iter().filter_map(|ArtifactContent { artifact, base64 }| {
        let kept =
            base64::engine::general_purpose::STANDARD.decode(&base64).map_err(|error| error.to_string()).and_then(|content| {
                let new = NewArtifact {
                    kind: artifact.kind,
                    name: clean_title(&artifact.name),
                    content_type: clean_title(&artifact.content_type),
                };
                let mut writer = store.begin(new).map_err(|error| error.to_string())?;
                writer.write(&content).map_err(|error| error.to_string())?;
                let kept = writer.finish().map_err(|error| error.to_string())?;
                if kept.uri == artifact.uri { Ok(()) } else { Err(format!("the content belongs to {}", kept.uri)) }
            });
        kept.err().map(|reason| format!("artifact `{}`: {reason}", one_line(&artifact.uri)))
    });
    kept.collect()
}

/// Converts text to a title: a single line of limited length, without control characters.
pub(crate) fn clean_title(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if line.chars().count() <= TITLE_CHARS {
        return line;
    }
    line.chars().take(TITLE_CHARS - 1).chain(['…']).collect()
}

pub(crate) fn is_an_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn is_there(store: &Store, id: &SessionId) -> bool {
    store.find(id.as_str()).is_ok()
}

pub(crate) fn new_id() -> SessionId {
    SessionId::new(uuid::Uuid::new_v4().simple().to_string())
}
