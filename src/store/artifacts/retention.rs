//! Artifact retention: limits the total size, and removes artifacts together with their session.

use super::index::{Index, evict, now};
use super::{ArtifactStore, Inner};
use crate::ports::ArtifactError;
use crate::protocol::SessionId;
use crate::store::ExternalContents;
use crate::store::index_file::IndexError;
use rusqlite::{Transaction, TransactionBehavior};
use std::collections::HashSet;
use std::time::Duration;

impl ArtifactStore {
    /// Returns whether an artifact has ever been stored.
    pub(crate) fn is_there(&self) -> bool {
        self.inner.directory.join("index.db").exists()
    }

    pub(crate) fn usage(&self) -> Result<ExternalContents, ArtifactError> {
        self.inner.with_existing(|index| {
            let sql = "SELECT count(*), coalesce(sum(bytes), 0) FROM contents";
            Ok(index.connection.query_row(sql, [], |row| {
                let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
                Ok(ExternalContents { count: number(0)?, bytes: number(1)? })
            })?)
        })
    }

    /// Removes this session's artifacts. Their contents are deleted unless another session also owns them.
    pub(crate) fn forget(&self) -> Result<ExternalContents, ArtifactError> {
        let session = self.inner.session.clone();
        self.inner.with_existing(|index| {
            index.remove(|transaction| {
                transaction.execute("DELETE FROM artifacts WHERE session = ?1", [session])?;
                Ok(())
            })
        })
    }

    /// Deletes contents that have been unused for longer than `unused` and that no session owns. If `living` is given,
    /// sessions that it does not contain do not count as owners. Then evicts contents beyond the size limit. With
    /// `dry_run`, only counts what would be deleted.
    pub(crate) fn prune(
        &self,
        living: Option<&HashSet<SessionId>>,
        unused: Duration,
        dry_run: bool,
    ) -> Result<ExternalContents, ArtifactError> {
        self.inner.with_existing(|index| index.prune(living, unused, dry_run))
    }
}

impl Inner {
    /// Runs `work` only if the index already exists, to avoid creating an empty one.
    fn with_existing(
        &self,
        work: impl FnOnce(&mut Index) -> Result<ExternalContents, IndexError>,
    ) -> Result<ExternalContents, ArtifactError> {
        if self.directory.join("index.db").exists() { self.run(work) } else { Ok(ExternalContents::default()) }
    }
}

impl Index {
    fn prune(
        &mut self,
        living: Option<&HashSet<SessionId>>,
        unused: Duration,
        dry_run: bool,
    ) -> Result<ExternalContents, IndexError> {
        let before = self.total()?;
        let old = now().saturating_sub(i64::try_from(unused.as_nanos()).unwrap_or(i64::MAX));
        let limits = self.limits;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let orphans: Vec<String> = {
            let mut rows = transaction.prepare("SELECT DISTINCT session FROM artifacts")?;
            let sessions = rows.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
            let gone = |session: &String| living.is_some_and(|living| !living.contains(&SessionId::new(session.as_str())));
            sessions.into_iter().filter(gone).collect()
        };
        for session in orphans {
            transaction.execute(
                "DELETE FROM artifacts WHERE session = ?1 AND hash IN (SELECT hash FROM contents WHERE used < ?2)",
                rusqlite::params![session, old],
            )?;
        }
        let mut unowned = unowned_contents(&transaction, old)?;
        if dry_run {
            // Number of bytes that would still exceed the limit after the deletion of these contents.
            let gone: u64 = unowned.iter().map(|(_, bytes)| bytes).sum();
            let over = before.bytes.saturating_sub(gone).saturating_sub(limits.all_bytes);
            let count = unowned.len() as u64;
            transaction.rollback()?;
            return Ok(ExternalContents { count, bytes: gone + over });
        }
        unowned.sort();
        for (hash, _) in &unowned {
            self.contents.remove(hash)?;
            transaction.execute("DELETE FROM contents WHERE hash = ?1", [hash])?;
        }
        evict(&transaction, &self.contents, limits, "")?;
        transaction.commit()?;
        Ok(before.less(self.total()?))
    }

    /// Deletes rows with `rows`, and then the contents whose last owner was among those rows.
    fn remove(&mut self, rows: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) -> Result<ExternalContents, IndexError> {
        let before = self.total()?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Content that already had no owner remains until it reaches the age limit.
        let left: HashSet<String> = unowned_contents(&transaction, i64::MAX)?.into_iter().map(|(hash, _)| hash).collect();
        rows(&transaction)?;
        for (hash, _) in unowned_contents(&transaction, i64::MAX)?.into_iter().filter(|(hash, _)| !left.contains(hash)) {
            self.contents.remove(&hash)?;
            transaction.execute("DELETE FROM contents WHERE hash = ?1", [&hash])?;
        }
        transaction.commit()?;
        Ok(before.less(self.total()?))
    }

    fn total(&self) -> Result<ExternalContents, IndexError> {
        let sql = "SELECT count(*), coalesce(sum(bytes), 0) FROM contents";
        Ok(self.connection.query_row(sql, [], |row| {
            Ok(ExternalContents { count: row.get::<_, i64>(0)?.unsigned_abs(), bytes: row.get::<_, i64>(1)?.unsigned_abs() })
        })?)
    }
}

/// Returns contents that have no owner and were last used before `old`.
fn unowned_contents(transaction: &Transaction<'_>, old: i64) -> rusqlite::Result<Vec<(String, u64)>> {
    let mut rows =
        transaction.prepare("SELECT hash, bytes FROM contents WHERE used < ?1 AND hash NOT IN (SELECT hash FROM artifacts)")?;
    let found = rows.query_map([old], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{Artifacts, NewArtifact};
    use crate::protocol::{Artifact, ArtifactKind};

    fn keep(store: &ArtifactStore, content: &[u8]) -> Artifact {
        let new = NewArtifact { kind: ArtifactKind::ToolOutput, name: "a".to_owned(), content_type: "text/plain".to_owned() };
        let mut writer = store.begin(new).unwrap();
        writer.write(content).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn artifacts_of_only_one_session_are_deleted_with_the_session() {
        let data = tempfile::tempdir().unwrap();
        let store = |id: &str| ArtifactStore::new(data.path(), Some(&SessionId::new(id)));
        assert_eq!(store("one").forget().unwrap(), ExternalContents::default());
        assert!(!data.path().join("artifacts").exists(), "nothing is made only to be looked into");
        let own = keep(&store("one"), b"only of one");
        let shared = keep(&store("one"), b"of both");
        keep(&store("two"), b"of both");
        assert_eq!(store("one").forget().unwrap(), ExternalContents { count: 1, bytes: 11 });
        assert!(store("two").find(&own.uri).is_err());
        assert!(store("two").find(&shared.uri).is_ok());
        assert_eq!(store("one").usage().unwrap(), ExternalContents { count: 1, bytes: 7 });
    }

    #[test]
    fn orphaned_artifacts_are_pruned_by_age_and_artifacts_over_the_budget_immediately() {
        let data = tempfile::tempdir().unwrap();
        let store = |id: &str, bytes| ArtifactStore::new(data.path(), Some(&SessionId::new(id))).with_budget(bytes);
        keep(&store("gone", 100), &[b'1'; 40]);
        keep(&store("here", 100), &[b'2'; 40]);
        let living = HashSet::from([SessionId::new("here")]);
        let living = Some(&living);
        let day = Duration::from_secs(86_400);
        assert_eq!(store("", 100).prune(living, day, false).unwrap(), ExternalContents::default(), "it was used today");
        let now = Duration::ZERO;
        assert_eq!(store("", 100).prune(living, now, true).unwrap(), ExternalContents { count: 1, bytes: 40 });
        assert_eq!(store("", 100).usage().unwrap().count, 2, "it was only said");
        assert_eq!(store("", 100).prune(living, now, false).unwrap(), ExternalContents { count: 1, bytes: 40 });
        keep(&store("here", 100), &[b'3'; 40]);
        assert_eq!(store("", 50).prune(living, day, false).unwrap(), ExternalContents { count: 1, bytes: 40 });
    }
}
