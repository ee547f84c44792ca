//! Which sessions there are, and what was said in one.

use super::claim::living;
use super::{Store, StoreError};
use crate::ports::Record;
use crate::protocol::{SessionId, WorkspaceId};
use rusqlite::{Row, params};
use serde::Serialize;
use std::path::PathBuf;

/// A title is a line in a list.
const TITLE_CHARS: usize = 80;
/// Fewer digits name too many.
const PREFIX_DIGITS: usize = 6;
/// So many are listed where a prefix fits several.
const AMBIGUOUS_SHOWN: usize = 8;

/// What a session is before anything is said in it.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: SessionId,
    pub workspace_id: WorkspaceId,
    /// The real path.
    pub workspace: PathBuf,
    /// `anthropic/claude-sonnet-5`.
    pub model: String,
}

/// Where a session stands, by its last record that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    /// No task is open.
    Idle,
    Running,
    /// A question is open.
    Waiting,
    Paused,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    pub session_id: SessionId,
    pub workspace_id: WorkspaceId,
    pub workspace: String,
    /// From the first prompt; absent while there is only a draft.
    pub title: Option<String>,
    pub created: jiff::Timestamp,
    pub updated: jiff::Timestamp,
    pub status: SessionStatus,
    pub model: String,
    /// The living process that holds it.
    pub held_by: Option<u32>,
}

/// A session as it was left.
#[derive(Debug)]
pub struct Loaded {
    /// In the order they were written, unreadable ones too.
    pub records: Vec<Record>,
    /// How many records this version cannot read; they stay where they are.
    pub skipped: usize,
    /// What the person typed and did not send.
    pub draft: String,
}

const COLUMNS: &str = "id, workspace_id, workspace, title, created, updated, status, model, owner";

impl Store {
    /// The sessions of a workspace, or all of them, the latest first.
    pub fn sessions(&self, workspace: Option<&WorkspaceId>) -> Result<Vec<SessionSummary>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM sessions WHERE ?1 IS NULL OR workspace_id = ?1 ORDER BY updated DESC, key DESC");
        self.read(|reader| {
            let mut statement = reader.prepare_cached(&sql)?;
            let rows = statement.query_map(params![workspace.map(WorkspaceId::as_str)], summary)?;
            rows.collect()
        })
    }

    /// The session of this workspace in which something was said last.
    pub fn latest(&self, workspace: &WorkspaceId) -> Result<Option<SessionSummary>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM sessions WHERE workspace_id = ?1 AND title IS NOT NULL ORDER BY updated DESC, key DESC LIMIT 1"
        );
        self.read(|reader| reader.prepare_cached(&sql)?.query_map([workspace.as_str()], summary)?.next().transpose())
    }

    /// The session whose id starts like this.
    pub fn find(&self, prefix: &str) -> Result<SessionSummary, StoreError> {
        let digits = prefix.to_ascii_lowercase();
        if digits.len() < PREFIX_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(StoreError::NotAnId { given: prefix.to_owned() });
        }
        // `g` is the letter after the last hex digit, so this range is the prefix.
        let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id");
        let mut found: Vec<SessionSummary> =
            self.read(|reader| reader.prepare_cached(&sql)?.query_map([&digits], summary)?.collect())?;
        if found.len() > 1 {
            let ids = found.iter().take(AMBIGUOUS_SHOWN).map(|session| session.session_id.to_string()).collect();
            return Err(StoreError::Ambiguous { given: prefix.to_owned(), ids });
        }
        found.pop().ok_or_else(|| StoreError::NoSession { given: prefix.to_owned() })
    }

    /// All that was said in a session.
    pub fn load(&self, id: &SessionId) -> Result<Loaded, StoreError> {
        const SQL: &str = "SELECT draft, key FROM sessions WHERE id = ?1";
        let loaded = self.read(|reader| {
            let found = reader
                .prepare_cached(SQL)?
                .query_map([id.as_str()], |row| Ok((text(row, 0)?, row.get::<_, i64>(1)?)))?
                .next()
                .transpose()?;
            let Some((draft, key)) = found else { return Ok(None) };
            let mut loaded = Loaded { records: Vec::new(), skipped: 0, draft };
            let mut statement = reader.prepare_cached("SELECT json FROM records WHERE session = ?1 ORDER BY seq")?;
            let mut rows = statement.query([key])?;
            while let Some(row) = rows.next()? {
                match row.get_ref(0)?.as_bytes().ok().and_then(|json| serde_json::from_slice(json).ok()) {
                    Some(Record::Unreadable) | None => {
                        // Kept as a place: what may have stood there counts in an open step.
                        loaded.records.push(Record::Unreadable);
                        loaded.skipped += 1;
                    }
                    Some(record) => loaded.records.push(record),
                }
            }
            Ok(Some(loaded))
        })?;
        loaded.ok_or_else(|| StoreError::NoSession { given: id.to_string() })
    }

    pub(super) fn read<T>(&self, query: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        query(&self.inner.reader()).map_err(|error| StoreError::database(&self.inner.path, &error))
    }
}

/// Text that may have been written by a damaged or a foreign hand.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(row.get_ref(column)?.as_bytes_or_null()?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default())
}

fn summary(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    let time = |column| Ok::<_, rusqlite::Error>(jiff::Timestamp::from_millisecond(row.get(column)?).unwrap_or_default());
    let owner: Option<String> = row.get(8)?;
    Ok(SessionSummary {
        session_id: SessionId::new(text(row, 0)?),
        workspace_id: WorkspaceId::new(text(row, 1)?),
        workspace: text(row, 2)?,
        title: Some(text(row, 3)?).filter(|title| !title.is_empty()),
        created: time(4)?,
        updated: time(5)?,
        status: SessionStatus::parse(&text(row, 6)?),
        model: text(row, 7)?,
        held_by: living(owner.as_deref()).map(|holder| holder.pid),
    })
}

impl SessionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
        }
    }

    fn parse(text: &str) -> Self {
        [Self::Running, Self::Waiting, Self::Paused].into_iter().find(|status| status.as_str() == text).unwrap_or(Self::Idle)
    }

    /// What a record makes of the status; most leave it as it is.
    pub(super) fn after(record: &Record) -> Option<Self> {
        match record {
            Record::TaskStarted { .. } | Record::Decided { .. } | Record::Continued => Some(Self::Running),
            Record::ApprovalRequested { .. } => Some(Self::Waiting),
            Record::TaskEnded { .. } => Some(Self::Idle),
            Record::Paused { .. } => Some(Self::Paused),
            Record::Queue { .. }
            | Record::StepStarted { .. }
            | Record::PartialAnswer { .. }
            | Record::AnswerDiscarded { .. }
            | Record::Answer { .. }
            | Record::Intent { .. }
            | Record::RuleSaved { .. }
            | Record::Refused { .. }
            | Record::RuleRemoved { .. }
            | Record::PreviewStarted { .. }
            | Record::Previewed { .. }
            | Record::PreviewDropped { .. }
            | Record::Started { .. }
            | Record::KeptFrom { .. }
            | Record::Finished { .. }
            | Record::Resolved { .. }
            | Record::StepCompleted { .. }
            | Record::PolicyInForce { .. }
            | Record::Steered { .. }
            | Record::Stopping { .. }
            | Record::Wasted { .. }
            | Record::Compacted { .. }
            | Record::CompactionUndone
            | Record::ModelChosen { .. }
            | Record::BudgetSet { .. }
            | Record::Unreadable => None,
        }
    }
}

/// The first line of the first prompt, without control characters.
pub(super) fn title_of(record: &Record) -> Option<String> {
    let Record::TaskStarted { prompt, .. } = record else { return None };
    let text = prompt.text();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no text)");
    let plain: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.chars().count() <= TITLE_CHARS {
        return Some(plain);
    }
    Some(plain.chars().take(TITLE_CHARS - 1).chain(['…']).collect())
}
