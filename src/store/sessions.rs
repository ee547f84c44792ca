//! Session queries, including loading a session's records.

use super::database::Database;
use super::metadata::{ARCHIVED_OF_COMMAND, OF_AGENT, OF_COMMAND};
use super::records::{self, Place};
use super::session_lock::live_holder;
use super::{StoreError, output_tails};
use crate::ports::{Record, SavedTail};
use crate::protocol::{CallId, SessionId, WorkspaceId};
use crate::session::{SessionActivity, starts_step};
use rusqlite::{Row, params};
use serde::Serialize;
use std::collections::HashMap;

/// Minimum number of digits in a session ID prefix.
const PREFIX_DIGITS: usize = 6;
/// Maximum number of sessions to list when a prefix is ambiguous.
const AMBIGUOUS_SHOWN: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionSummary {
    pub session_id: SessionId,
    pub workspace_id: WorkspaceId,
    pub workspace: String,
    /// Title from the first prompt; absent while there is none, as with only a draft or a review.
    pub title: Option<String>,
    pub created: jiff::Timestamp,
    pub updated: jiff::Timestamp,
    pub status: SessionActivity,
    pub model: String,
    /// ID of the running process that owns the session lock.
    pub held_by: Option<u32>,
    /// Whether the session is archived, and therefore not listed among the sessions to resume.
    pub archived: bool,
    /// Whether this session belongs to an agent, in which case `parent` is the session that started the agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_agent: bool,
    /// Whether a command of aye wrote the prompt, such as `aye review`. Such a session is never the latest one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_command: bool,
    /// Parent session, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
}

/// Session loaded from the store.
#[derive(Debug, Default)]
pub(crate) struct LoadedSession {
    /// All records in order, including unreadable ones.
    pub records: Vec<Record>,
    /// Number of records that this version cannot read. They are left in the store.
    pub skipped: usize,
    /// Text that was typed but not sent.
    pub draft: String,
    /// Last saved output of each command whose outcome is unknown.
    pub tails: HashMap<CallId, SavedTail>,
}

/// Contiguous part of a session that begins with a step or a task.
#[derive(Debug, Default)]
pub(crate) struct SessionPart {
    pub records: Vec<Record>,
    /// Position before which the preceding part ends. `None` if this is the first part.
    pub before: Option<i64>,
}

impl LoadedSession {
    /// Adds a record. Unreadable records are included, because positions are significant while a step is unfinished.
    fn push(&mut self, place: Place<'_>) {
        let (record, count) = match place {
            Place::Record { json, .. } => (serde_json::from_slice(json).unwrap_or(Record::Unreadable), 1),
            Place::Lost { count } => (Record::Unreadable, usize::try_from(count).unwrap_or(usize::MAX)),
        };
        if record == Record::Unreadable {
            self.skipped = self.skipped.saturating_add(count);
        }
        self.records.push(record);
    }
}

const COLUMNS: &str = "id, workspace_id, workspace, title, created, updated, status, model, owner,
     coalesce((SELECT archived FROM marks WHERE session = sessions.key), 0) AS archived,
     (SELECT parent FROM marks WHERE session = sessions.key)";

/// Returns the sessions of a workspace, or all sessions, most recent first.
pub(super) fn sessions(database: &Database, workspace: Option<&WorkspaceId>) -> Result<Vec<SessionSummary>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE ?1 IS NULL OR workspace_id = ?1 ORDER BY updated DESC, key DESC");
    database.read(|reader| {
        let mut statement = reader.prepare_cached(&sql)?;
        let rows = statement.query_map(params![workspace.map(WorkspaceId::as_str)], summary)?;
        rows.collect()
    })
}

/// Returns the latest session of a workspace that has a title, is not archived, and was started by the user.
pub(super) fn latest(database: &Database, workspace: &WorkspaceId) -> Result<Option<SessionSummary>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions WHERE workspace_id = ?1 AND title IS NOT NULL AND archived = 0 ORDER BY updated DESC, key DESC LIMIT 1"
    );
    database.read(|reader| reader.prepare_cached(&sql)?.query_map([workspace.as_str()], summary)?.next().transpose())
}

/// Returns the session whose ID starts with `prefix`. Fails if there is no such session or if there are several.
pub(super) fn find(database: &Database, prefix: &str) -> Result<SessionSummary, StoreError> {
    let digits = prefix.to_ascii_lowercase();
    if digits.len() < PREFIX_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(StoreError::NotAnId { given: prefix.to_owned() });
    }
    // `g` follows the last hex digit, so this range contains exactly the IDs with the prefix.
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id");
    let mut found: Vec<SessionSummary> =
        database.read(|reader| reader.prepare_cached(&sql)?.query_map([&digits], summary)?.collect())?;
    if found.len() > 1 {
        let ids = found.iter().take(AMBIGUOUS_SHOWN).map(|session| session.session_id.to_string()).collect();
        return Err(StoreError::Ambiguous { given: prefix.to_owned(), ids });
    }
    found.pop().ok_or_else(|| StoreError::NoSession { given: prefix.to_owned() })
}

/// Loads a session including all of its records.
pub(super) fn load(database: &Database, id: &SessionId) -> Result<LoadedSession, StoreError> {
    const SQL: &str = "SELECT draft, key FROM sessions WHERE id = ?1";
    let loaded = database.read(|reader| {
        let found = reader
            .prepare_cached(SQL)?
            .query_map([id.as_str()], |row| Ok((text(row, 0)?, row.get::<_, i64>(1)?)))?
            .next()
            .transpose()?;
        let Some((draft, key)) = found else { return Ok(None) };
        let mut loaded = LoadedSession { records: Vec::new(), skipped: 0, draft, tails: output_tails::load(reader, key)? };
        // This transaction prevents packing between the queries.
        let _steady = reader.unchecked_transaction()?;
        let last = records::last(reader, key)?;
        records::visit(reader, key, 1, last, |place| loaded.push(place))?;
        Ok(Some(loaded))
    })?;
    loaded.ok_or_else(|| StoreError::NoSession { given: id.to_string() })
}

/// Returns the position of a session's last record, or 0 if the session has no records.
pub(super) fn position(database: &Database, id: &SessionId) -> Result<i64, StoreError> {
    database.read(|reader| {
        let mut statement = reader.prepare_cached("SELECT key FROM sessions WHERE id = ?1")?;
        let key = statement.query_map([id.as_str()], |row| row.get::<_, i64>(0))?.next().transpose()?;
        key.map_or(Ok(0), |key| records::last(reader, key))
    })
}

/// Returns approximately the last `about` records before a position, rounded to whole steps. Without a position,
/// returns the last records of the session.
pub(super) fn load_page(
    database: &Database,
    id: &SessionId,
    before: Option<i64>,
    about: usize,
) -> Result<SessionPart, StoreError> {
    let piece = database.read(|reader| {
        let key = reader
            .prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
            .query_map([id.as_str()], |row| row.get::<_, i64>(0))?
            .next()
            .transpose()?;
        let Some(key) = key else { return Ok(None) };
        let _steady = reader.unchecked_transaction()?;
        let last = records::last(reader, key)?.min(before.map_or(i64::MAX, |before| before.saturating_sub(1)));
        let mut reach = i64::try_from(about).unwrap_or(i64::MAX).max(1);
        loop {
            let from = last.saturating_sub(reach).max(0) + 1;
            if let Some(piece) = whole_steps(reader, key, (from, last))? {
                return Ok(Some(piece));
            }
            reach = reach.saturating_mul(2);
        }
    })?;
    piece.ok_or_else(|| StoreError::NoSession { given: id.to_string() })
}

/// Returns the session's draft.
pub(super) fn draft(database: &Database, id: &SessionId) -> Result<String, StoreError> {
    let mut found = database.read(|reader| {
        let mut statement = reader.prepare_cached("SELECT draft FROM sessions WHERE id = ?1")?;
        let rows = statement.query_map([id.as_str()], |row| text(row, 0))?;
        rows.collect::<rusqlite::Result<Vec<String>>>()
    })?;
    found.pop().ok_or_else(|| StoreError::NoSession { given: id.to_string() })
}

/// Returns the records in a range of positions, starting with the first step in it, or `None` if no step starts there.
/// The start of the session also counts as the start of a step.
fn whole_steps(reader: &rusqlite::Connection, key: i64, (from, last): (i64, i64)) -> rusqlite::Result<Option<SessionPart>> {
    let mut piece = SessionPart::default();
    let mut begun = from <= 1;
    records::visit(reader, key, from, last, |place| match place {
        Place::Record { seq, json, .. } => {
            if !begun && starts_step(json) {
                begun = true;
                piece.before = Some(seq);
            }
            if begun {
                piece.records.push(serde_json::from_slice(json).unwrap_or(Record::Unreadable));
            }
        }
        Place::Lost { .. } if begun => piece.records.push(Record::Unreadable),
        Place::Lost { .. } => {}
    })?;
    Ok(begun.then_some(piece))
}

/// Reads a text column, tolerating values that are damaged or were written by another program.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(row.get_ref(column)?.as_bytes_or_null()?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default())
}

fn summary(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    let time = |column| Ok::<_, rusqlite::Error>(jiff::Timestamp::from_millisecond(row.get(column)?).unwrap_or_default());
    let owner: Option<String> = row.get(8)?;
    let archived = row.get::<_, i64>(9).unwrap_or_default();
    Ok(SessionSummary {
        session_id: SessionId::new(text(row, 0)?),
        workspace_id: WorkspaceId::new(text(row, 1)?),
        workspace: text(row, 2)?,
        title: Some(text(row, 3)?).filter(|title| !title.is_empty()),
        created: time(4)?,
        updated: time(5)?,
        status: SessionActivity::parse(&text(row, 6)?),
        model: text(row, 7)?,
        held_by: live_holder(owner.as_deref()).map(|holder| holder.instance.pid),
        archived: archived != 0 && archived != OF_COMMAND,
        of_agent: archived == OF_AGENT,
        of_command: archived == OF_COMMAND || archived == ARCHIVED_OF_COMMAND,
        parent: row.get::<_, Option<String>>(10).unwrap_or_default().map(SessionId::new),
    })
}
