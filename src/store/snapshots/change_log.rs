//! Log of a session's changes by step, used for rewinds.

use super::IndexError;
use super::baselines::{MIXED, authors, writing};
use super::index::SnapshotIndex;
use super::path_state::{ScannedState, parse_mark};
use crate::ports::{Attribution, ChangeHistory, MarkedState as Told, Touch, TouchedDirectory};
use crate::protocol::{SessionId, TaskId};
use rusqlite::{Connection, OptionalExtension, params};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// View of the change log stored in the snapshot database.
pub(super) struct ChangeLogTable<'a> {
    connection: &'a mut Connection,
    /// Maximum size in bytes of a file to read.
    file_bytes: u64,
}

impl<'a> ChangeLogTable<'a> {
    pub(super) fn new(index: &'a mut SnapshotIndex) -> Self {
        Self { connection: &mut index.connection, file_bytes: index.limits.file_bytes }
    }

    pub(super) fn note_directories(&mut self, owner: &Attribution, noted: &[TouchedDirectory]) -> Result<(), IndexError> {
        let transaction = writing(self.connection)?;
        let task = owner.task.as_ref().map_or("", TaskId::as_str);
        // The first change in a step contains the previous state.
        let sql = "INSERT OR IGNORE INTO directories (session, task, step, path, made, mode) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        for one in noted {
            let path = one.path.as_os_str().as_bytes();
            let values = params![owner.session.as_str(), task, owner.step.cast_signed(), path, one.made, one.mode];
            transaction.prepare_cached(sql)?.execute(values)?;
        }
        Ok(transaction.commit()?)
    }

    pub(super) fn note_gap(&mut self, owner: &Attribution, words: &str) -> Result<(), IndexError> {
        let sql = "INSERT OR IGNORE INTO gaps (session, step, words) VALUES (?1, ?2, ?3)";
        self.connection.execute(sql, params![owner.session.as_str(), owner.step.cast_signed(), words])?;
        Ok(())
    }

    pub(super) fn trail(&mut self, session: &SessionId, step: u64) -> Result<ChangeHistory, IndexError> {
        let key = params![session.as_str(), step.cast_signed()];
        let transaction = self.connection.transaction()?;
        let path = |bytes: Vec<u8>| PathBuf::from(OsStr::from_bytes(&bytes));
        let task = |task: String| Some(task).filter(|task| !task.is_empty()).map(TaskId::new);
        let files = {
            let sql =
                "SELECT path, task, stood, why, after, authors FROM baselines WHERE session = ?1 AND step >= ?2 ORDER BY number";
            let mut rows = transaction.prepare_cached(sql)?;
            let found = rows.query_map(key, |row| {
                let mark: Vec<u8> = row.get(2)?;
                Ok(Touch {
                    path: path(row.get(0)?),
                    task: task(row.get(1)?),
                    before: Told { stood: parse_mark(&mark), mark, why: row.get(3)? },
                    after: row.get(4)?,
                    by: authors(row.get(5)?),
                    mixed: row.get::<_, i64>(5)? & MIXED != 0,
                })
            })?;
            found.collect::<Result<_, _>>()?
        };
        let directories = {
            let sql = "SELECT path, task, made, mode FROM directories WHERE session = ?1 AND step >= ?2 ORDER BY number";
            let mut rows = transaction.prepare_cached(sql)?;
            let found = rows.query_map(key, |row| {
                Ok(TouchedDirectory { path: path(row.get(0)?), task: task(row.get(1)?), made: row.get(2)?, mode: row.get(3)? })
            })?;
            found.collect::<Result<_, _>>()?
        };
        let gaps = {
            let mut rows =
                transaction.prepare_cached("SELECT words FROM gaps WHERE session = ?1 AND step >= ?2 ORDER BY number")?;
            let found = rows.query_map(key, |row| row.get(0))?;
            found.collect::<Result<_, _>>()?
        };
        let left_out: Option<i64> = transaction
            .query_row("SELECT left_out FROM tracked WHERE session = ?1", [session.as_str()], |row| row.get(0))
            .optional()?;
        transaction.commit()?;
        Ok(ChangeHistory { files, directories, gaps, left_out: left_out.unwrap_or(0).unsigned_abs() })
    }

    pub(super) fn current_states(&self, paths: &[PathBuf]) -> Vec<Told> {
        let now = |path: &PathBuf| {
            let ScannedState { stood, mark, why, .. } = ScannedState::now(path, self.file_bytes);
            Told { stood, mark, why }
        };
        paths.iter().map(now).collect()
    }
}
