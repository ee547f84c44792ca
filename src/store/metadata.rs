//! Session metadata: the archived flag and the parent session.

use super::StoreError;
use super::database::Database;
use crate::ports::Durability;
use crate::protocol::SessionId;
use rusqlite::{OptionalExtension, Transaction, params};

/// A fork's parent session, and the number of records that the two share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parent {
    pub id: SessionId,
    pub records: u64,
}

pub(super) fn insert_new_session(transaction: &Transaction<'_>, session: i64, parent: &Parent) -> rusqlite::Result<()> {
    let records = i64::try_from(parent.records).unwrap_or(i64::MAX);
    transaction.execute(
        "INSERT INTO marks (session, parent, parent_records) VALUES (?1, ?2, ?3)
         ON CONFLICT (session) DO UPDATE SET parent = ?2, parent_records = ?3",
        params![session, parent.id.as_str(), records],
    )?;
    Ok(())
}

/// Value of `archived` for an agent's session, which is listed only with its parent.
pub(super) const OF_AGENT: i64 = 2;

/// Marks a session as one that its parent session started for an agent.
pub(super) fn started(transaction: &Transaction<'_>, session: i64, parent: &SessionId) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO marks (session, archived, parent, parent_records) VALUES (?1, ?2, ?3, 0)
         ON CONFLICT (session) DO UPDATE SET archived = ?2, parent = ?3, parent_records = 0",
        params![session, OF_AGENT, parent.as_str()],
    )?;
    Ok(())
}

/// Value of `archived` for a session whose prompt a command of aye wrote. It is listed, but is never the latest session.
pub(super) const OF_COMMAND: i64 = 3;

/// Value of `archived` for an archived session whose prompt a command of aye wrote.
pub(super) const ARCHIVED_OF_COMMAND: i64 = 4;

/// Marks a session whose prompt a command of aye wrote.
pub(super) fn started_by_command(transaction: &Transaction<'_>, session: i64) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO marks (session, archived) VALUES (?1, ?2) ON CONFLICT (session) DO UPDATE SET archived = ?2",
        params![session, OF_COMMAND],
    )?;
    Ok(())
}

/// Returns the number of records that a session shares with its parent, or 0 if it is not a fork.
pub(super) fn parent_records(database: &Database, id: &SessionId) -> Result<u64, StoreError> {
    const SQL: &str = "SELECT parent_records FROM marks JOIN sessions ON sessions.key = marks.session WHERE id = ?1";
    let found: Option<Option<i64>> =
        database.read(|reader| reader.prepare_cached(SQL)?.query_row([id.as_str()], |row| row.get(0)).optional())?;
    Ok(found.flatten().map(i64::unsigned_abs).unwrap_or_default())
}

/// Archives or unarchives a session. Changes nothing else; a process that has the session open continues. Fails for the
/// session of an agent, which is never listed by itself.
pub(super) fn archive(database: &Database, id: &SessionId, archived: bool) -> Result<(), StoreError> {
    let wanted = id.clone();
    let of_command = if archived { ARCHIVED_OF_COMMAND } else { OF_COMMAND };
    let done = database.write(move |desk| {
        desk.transact(Durability::Process, 0, |transaction| {
            let changed = transaction.execute(
                "INSERT INTO marks (session, archived) SELECT key, ?2 FROM sessions WHERE id = ?1
                 ON CONFLICT (session) DO UPDATE SET archived = CASE WHEN archived IN (?4, ?5) THEN ?6 ELSE ?2 END
                 WHERE archived <> ?3",
                params![wanted.as_str(), archived, OF_AGENT, OF_COMMAND, ARCHIVED_OF_COMMAND, of_command],
            )?;
            let exists =
                transaction.query_row("SELECT 1 FROM sessions WHERE id = ?1", [wanted.as_str()], |_| Ok(())).optional()?;
            Ok((exists.is_some(), changed))
        })
    });
    match done? {
        (false, _) => Err(StoreError::NoSession { given: id.to_string() }),
        (true, 0) => Err(StoreError::OfAgent { id: id.to_string() }),
        (true, _) => Ok(()),
    }
}

/// Makes the session of a command one of the user, who continues it. It stays archived if it is. Does nothing for other
/// sessions.
pub(super) fn continue_by_user(database: &Database, id: &SessionId) -> Result<(), StoreError> {
    let wanted = id.clone();
    database.write(move |desk| {
        desk.transact(Durability::Process, 0, |transaction| {
            transaction.execute(
                "UPDATE marks SET archived = (archived = ?3)
                 WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND archived IN (?2, ?3)",
                params![wanted.as_str(), OF_COMMAND, ARCHIVED_OF_COMMAND],
            )?;
            Ok(())
        })
    })
}
