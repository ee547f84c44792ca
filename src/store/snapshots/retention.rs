//! Snapshot retention, limited by size and age.

use super::eviction::{forget_contents, over_quota};
use super::file_stat::now_ns;
use super::index::SnapshotIndex;
use super::{Inner, Snapshots};
use crate::ports::CheckpointError;
use crate::protocol::SessionId;
use crate::store::ExternalContents;
use crate::store::index_file::IndexError;
use rusqlite::{Connection, TransactionBehavior};
use std::collections::HashSet;
use std::time::Duration;

impl Snapshots {
    pub(crate) fn usage(&self) -> Result<ExternalContents, CheckpointError> {
        self.inner.with_existing(|index| index.total())
    }

    /// Deletes snapshots older than `age`, the oldest snapshots beyond the size limit and, if `living` is given, data
    /// of sessions that it does not contain. With `dry_run`, only counts what would be deleted.
    pub(crate) fn prune(
        &self,
        living: Option<&HashSet<SessionId>>,
        age: Duration,
        dry_run: bool,
    ) -> Result<ExternalContents, CheckpointError> {
        self.inner.with_existing(|index| index.prune(living, age, dry_run))
    }
}

impl Inner {
    /// Runs `work` only if the index already exists, to avoid creating an empty one.
    fn with_existing(
        &self,
        work: impl FnOnce(&mut SnapshotIndex) -> Result<ExternalContents, IndexError>,
    ) -> Result<ExternalContents, CheckpointError> {
        if self.directory.join("index.db").exists() { self.run(work) } else { Ok(ExternalContents::default()) }
    }
}

impl SnapshotIndex {
    fn total(&self) -> Result<ExternalContents, IndexError> {
        Ok(total(&self.connection)?)
    }

    fn prune(
        &mut self,
        living: Option<&HashSet<SessionId>>,
        age: Duration,
        dry_run: bool,
    ) -> Result<ExternalContents, IndexError> {
        let before = self.total()?;
        if !dry_run {
            for session in self.orphans(living)? {
                self.forget_session(&session)?;
            }
        }
        let old = now_ns().saturating_sub(i64::try_from(age.as_nanos()).unwrap_or(i64::MAX));
        let limits = self.limits;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Keep the latest snapshot of a root for comparison, and the snapshots of running commands.
        transaction.execute(
            "DELETE FROM snapshots WHERE time < ?1 AND number NOT IN (SELECT max(number) FROM snapshots GROUP BY root)
             AND number NOT IN (SELECT snapshot FROM spans WHERE open <> 0)",
            [old],
        )?;
        transaction.execute(
            "DELETE FROM versions WHERE until IS NOT NULL AND NOT EXISTS
             (SELECT 1 FROM snapshots WHERE snapshots.root = versions.root AND number >= since AND number < until)",
            [],
        )?;
        forget_contents(&transaction)?;
        let keep = "SELECT coalesce((SELECT min(snapshot) FROM spans WHERE open <> 0), (SELECT max(number) FROM snapshots), 0)";
        let keep: i64 = transaction.query_row(keep, [], |row| row.get(0))?;
        over_quota(&transaction, limits.all_bytes, keep)?;
        let freed = before.less(total(&transaction)?);
        if dry_run {
            transaction.rollback()?;
            return Ok(freed);
        }
        transaction.commit()?;
        self.roots.clear();
        if freed.count > 0 {
            self.sweep()?;
        }
        Ok(freed)
    }

    /// Returns sessions that have data but are not among the sessions in `living`.
    fn orphans(&self, living: Option<&HashSet<SessionId>>) -> Result<Vec<SessionId>, IndexError> {
        let Some(living) = living else { return Ok(Vec::new()) };
        let mut rows = self.connection.prepare("SELECT DISTINCT session FROM tracked")?;
        let sessions = rows.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(sessions.into_iter().map(SessionId::new).filter(|session| !living.contains(session)).collect())
    }
}

fn total(connection: &Connection) -> rusqlite::Result<ExternalContents> {
    connection.query_row("SELECT count(*), coalesce(sum(bytes), 0) FROM contents", [], |row| {
        Ok(ExternalContents { count: row.get::<_, i64>(0)?.unsigned_abs(), bytes: row.get::<_, i64>(1)?.unsigned_abs() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{Attribution, Baselines, Checkpoints};
    use crate::protocol::TaskId;

    #[test]
    fn old_snapshots_are_pruned_except_the_newest_of_each_root() {
        let data = tempfile::tempdir().unwrap();
        let work = tempfile::tempdir().unwrap();
        let wait = |future: crate::ports::BoxFuture<'_, Result<_, CheckpointError>>| {
            tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future).unwrap()
        };
        let snapshots = Snapshots::new(data.path());
        assert_eq!(snapshots.prune(None, Duration::ZERO, false).unwrap(), ExternalContents::default());
        assert!(!data.path().join("snapshots").exists(), "nothing is made only to be looked into");
        for content in ["one", "three", "second"] {
            std::fs::write(work.path().join("file"), content).unwrap();
            wait(snapshots.take(work.path().to_owned(), vec!["file".into()]));
        }
        assert_eq!(snapshots.usage().unwrap(), ExternalContents { count: 3, bytes: 14 });
        let day = Duration::from_secs(86_400);
        assert_eq!(snapshots.prune(None, day, false).unwrap(), ExternalContents::default());
        assert_eq!(snapshots.prune(None, Duration::ZERO, true).unwrap(), ExternalContents { count: 2, bytes: 8 });
        assert_eq!(snapshots.prune(None, Duration::ZERO, false).unwrap(), ExternalContents { count: 2, bytes: 8 });
        assert_eq!(snapshots.usage().unwrap(), ExternalContents { count: 1, bytes: 6 });
        std::fs::write(work.path().join("file"), "after").unwrap();
        wait(snapshots.take(work.path().to_owned(), vec!["file".into()]));
        let small = Snapshots::new(data.path()).with_budget(6);
        assert_eq!(small.prune(None, day, false).unwrap(), ExternalContents { count: 1, bytes: 6 });
    }

    #[test]
    fn baselines_of_a_session_are_pruned_once_the_session_is_known_to_be_deleted() {
        let data = tempfile::tempdir().unwrap();
        let work = tempfile::tempdir().unwrap();
        let path = work.path().join("file");
        std::fs::write(&path, "before").unwrap();
        let snapshots = Snapshots::new(data.path());
        let owner = Attribution { session: SessionId::new("s1"), task: Some(TaskId::new("task_1")), step: 1 };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(snapshots.keep(owner, vec![path])).unwrap();
        let week = Duration::from_secs(7 * 86_400);
        assert_eq!(snapshots.prune(None, week, false).unwrap().count, 0, "which sessions there are is not known");
        let living = HashSet::from([SessionId::new("s1")]);
        assert_eq!(snapshots.prune(Some(&living), week, false).unwrap().count, 0);
        assert_eq!(snapshots.prune(Some(&HashSet::new()), week, false).unwrap(), ExternalContents { count: 1, bytes: 6 });
    }
}
