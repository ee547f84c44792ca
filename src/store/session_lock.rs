//! Session lock, which ensures that only one running process writes to a session.

use super::StoreError;
use super::database::Database;
use crate::ports::Durability;
use crate::protocol::SessionId;
use crate::sys::instance::Instance;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Exclusive right to write to a session, which lasts until it is dropped or the process ends.
pub(crate) struct Claim {
    database: Arc<Database>,
    id: SessionId,
}

/// Owner of a session lock, as stored in the session's row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    #[serde(flatten)]
    pub instance: Instance,
    /// Time at which the session was locked. Absent if an older version of aye locked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<jiff::Timestamp>,
}

impl Holder {
    /// Creates an owner whose lock starts now.
    pub(super) fn new(instance: Instance) -> Self {
        Self { instance, since: Some(jiff::Timestamp::now()) }
    }

    pub(super) fn to_json(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

/// Outcome of trying to lock a session.
enum LockResult {
    Yes,
    NoSession,
    HeldBy(u32),
}

impl Claim {
    pub(super) fn new(database: Arc<Database>, id: SessionId) -> Self {
        Self { database, id }
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.database.unwritten.remove(&self.id);
        let id = self.id.clone();
        self.database.writer.submit(move |desk| {
            let freed = desk.transact(Durability::Process, 0, |transaction| {
                let owner = transaction
                    .prepare_cached("SELECT owner FROM sessions WHERE id = ?1")?
                    .query_row([id.as_str()], |row| row.get::<_, Option<String>>(0))
                    .optional()?;
                if !is_held_by(&Instance::current(), owner.flatten().as_deref()) {
                    return Ok(0);
                }
                transaction.prepare_cached("UPDATE sessions SET owner = NULL WHERE id = ?1")?.execute([id.as_str()])
            });
            // The end of the process also releases the lock.
            if let Err(error) = freed {
                tracing::warn!(%error, session = %id, "cannot unlock the session");
            }
            desk.on_session_closed(&id);
        });
    }
}

/// Locks a stored session for this process. Fails if a running process owns the lock; a lock left by a process that has
/// ended is ignored.
pub(super) fn claim(database: &Arc<Database>, id: &SessionId) -> Result<Claim, StoreError> {
    let wanted = id.clone();
    let taken = database.write(move |desk| {
        let taken = desk.transact(Durability::Process, 0, |transaction| {
            let owner: Option<Option<String>> = transaction
                .prepare_cached("SELECT owner FROM sessions WHERE id = ?1")?
                .query_row([wanted.as_str()], |row| row.get(0))
                .optional()?;
            let Some(owner) = owner else { return Ok(LockResult::NoSession) };
            if let Some(holder) = live_holder(owner.as_deref()) {
                return Ok(LockResult::HeldBy(holder.instance.pid));
            }
            transaction
                .prepare_cached("UPDATE sessions SET owner = ?2 WHERE id = ?1")?
                .execute(params![wanted.as_str(), Holder::new(Instance::current()).to_json()])?;
            Ok(LockResult::Yes)
        });
        if matches!(taken, Ok(LockResult::Yes)) {
            desk.on_session_opened(&wanted);
        }
        taken
    });
    match taken? {
        LockResult::Yes => Ok(Claim::new(database.clone(), id.clone())),
        LockResult::NoSession => Err(StoreError::NoSession { given: id.to_string() }),
        LockResult::HeldBy(pid) => Err(StoreError::Held { id: id.to_string(), pid }),
    }
}

/// Returns the running process that owns the session lock, if any.
pub(super) fn holder(database: &Database, id: &SessionId) -> Result<Option<Holder>, StoreError> {
    let owner: Option<Option<String>> = database.read(|reader| {
        reader.prepare_cached("SELECT owner FROM sessions WHERE id = ?1")?.query_row([id.as_str()], |row| row.get(0)).optional()
    })?;
    Ok(live_holder(owner.flatten().as_deref()))
}

/// Renames a session.
pub(super) fn rename(database: &Database, id: &SessionId, title: &str) -> Result<(), StoreError> {
    let (wanted, title) = (id.clone(), title.to_owned());
    let renamed = database.write(move |desk| {
        desk.transact(Durability::Process, 0, |transaction| {
            transaction.execute("UPDATE sessions SET title = ?2 WHERE id = ?1", params![wanted.as_str(), title])
        })
    });
    match renamed? {
        0 => Err(StoreError::NoSession { given: id.to_string() }),
        _ => Ok(()),
    }
}

/// Deletes a session and its records. Fails if a running process owns the session lock.
pub(super) fn delete(database: &Arc<Database>, id: &SessionId) -> Result<(), StoreError> {
    let claim = claim(database, id)?;
    let doomed = id.clone();
    let deleted = database.write(move |desk| {
        desk.transact(Durability::Power, 0, |transaction| {
            transaction.execute("DELETE FROM sessions WHERE id = ?1", [doomed.as_str()])
        })
    });
    drop(claim);
    deleted.map(drop)
}

/// Returns the owner of a lock if that process is still running. An unreadable entry is treated as no lock.
pub(super) fn live_holder(owner: Option<&str>) -> Option<Holder> {
    parse_holder(owner).filter(|holder| holder.instance.is_alive())
}

/// Returns whether `me` is the recorded owner. Another process that merely reuses the same process ID is not.
pub(super) fn is_held_by(me: &Instance, owner: Option<&str>) -> bool {
    parse_holder(owner).is_some_and(|holder| holder.instance == *me)
}

fn parse_holder(owner: Option<&str>) -> Option<Holder> {
    owner.and_then(|json| serde_json::from_str(json).ok())
}
