//! Baselines, which record the state of each path before the session changed it, and who made each change.

use super::IndexError;
use super::eviction::{evict_oldest, forget, forget_contents};
use super::file_stat::{EntryStat, stat};
use super::index::{SnapshotIndex, keep, root_key};
use super::objects::Objects;
use super::path_state::{ScannedState, is_directory, mark, parse_mark, walk_below};
use crate::ports::{
    Attribution, Checkpoint, ContentId, Difference, Differences, KnownPath, PathDifference, RunSpan, StoredState,
};
use crate::protocol::{ChangedBy, SessionId, TaskId};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Author flag for a path that another program or user changed in between two changes within the same step.
pub(super) const MIXED: i64 = 8;

/// Number of recent rows in which to look for files of other sessions. Concurrent sessions never write that many.
const RECENT_ROWS: i64 = 50_000;

fn change_bit(by: ChangedBy) -> i64 {
    match by {
        ChangedBy::Tool => 1,
        ChangedBy::Command => 2,
        ChangedBy::Outside => 4,
    }
}

pub(super) fn authors(bits: i64) -> Vec<ChangedBy> {
    [ChangedBy::Tool, ChangedBy::Command, ChangedBy::Outside].into_iter().filter(|by| bits & change_bit(*by) != 0).collect()
}

/// A session's counters, kept while data is added.
struct TrackedSession<'a> {
    transaction: &'a Transaction<'a>,
    session: &'a str,
    task: &'a str,
    step: i64,
    /// Number of the most recent command in any session, or 0 if no command has run.
    newest_span: i64,
    bytes: u64,
    files: u64,
    left_out: u64,
}

impl<'a> TrackedSession<'a> {
    fn open(transaction: &'a Transaction<'a>, owner: &'a Attribution) -> rusqlite::Result<Self> {
        let session = owner.session.as_str();
        let new = transaction.execute(
            "INSERT OR IGNORE INTO tracked (session, number) VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM tracked))",
            [session],
        )?;
        if new > 0 {
            evict_oldest(transaction)?;
        }
        let (bytes, files, left_out) =
            transaction.query_row("SELECT bytes, files, left_out FROM tracked WHERE session = ?1", [session], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            })?;
        let task = owner.task.as_ref().map_or("", TaskId::as_str);
        let [bytes, files, left_out] = [bytes, files, left_out].map(i64::unsigned_abs);
        let sql = "SELECT coalesce(max(number), 0) FROM spans";
        let newest_span = transaction.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(Self { transaction, session, task, step: owner.step.cast_signed(), newest_span, bytes, files, left_out })
    }

    fn save(self) -> rusqlite::Result<()> {
        self.transaction.execute(
            "UPDATE tracked SET bytes = ?2, files = ?3, left_out = ?4 WHERE session = ?1",
            params![self.session, self.bytes.cast_signed(), self.files.cast_signed(), self.left_out.cast_signed()],
        )?;
        Ok(())
    }

    /// Returns the mark of the path's baseline for the current step.
    fn baseline(&self, path: &Path) -> rusqlite::Result<Option<Vec<u8>>> {
        let sql = "SELECT stood FROM baselines WHERE session = ?1 AND path = ?2 AND task = ?3 AND step = ?4";
        let key = params![self.session, path.as_os_str().as_bytes(), self.task, self.step];
        self.transaction.prepare_cached(sql)?.query_row(key, |row| row.get(0)).optional()
    }

    /// Returns the mark of the path's most recently recorded state after a change.
    fn last_state(&self, path: &Path) -> rusqlite::Result<Option<Vec<u8>>> {
        let sql = "SELECT after FROM baselines WHERE session = ?1 AND path = ?2 ORDER BY number DESC LIMIT 1";
        let key = params![self.session, path.as_os_str().as_bytes()];
        self.transaction.prepare_cached(sql)?.query_row(key, |row| row.get(0)).optional().map(Option::flatten)
    }

    /// Returns the mark of the path's most recently recorded state, if it was recorded after this command started.
    fn state_during_command(&self, path: &Path, span: i64) -> rusqlite::Result<Option<Vec<u8>>> {
        let sql = "SELECT after FROM (SELECT after, newest_span FROM baselines WHERE session = ?1 AND path = ?2
                   ORDER BY number DESC LIMIT 1) WHERE newest_span >= ?3";
        let key = params![self.session, path.as_os_str().as_bytes(), span];
        self.transaction.prepare_cached(sql)?.query_row(key, |row| row.get(0)).optional().map(Option::flatten)
    }

    /// Adds a path to the session, unless the session already has `most` paths. Returns whether the path was added.
    fn add(&mut self, path: &Path, before: &ScannedState, after: Option<&[u8]>, bits: i64, most: u64) -> rusqlite::Result<bool> {
        if self.files >= most {
            self.left_out += 1;
            return Ok(false);
        }
        let content = if let StoredState::File { content, .. } = before.stood { Some(content.0) } else { None };
        if let Some(id) = content {
            let sql = "INSERT OR IGNORE INTO contents (id, bytes) VALUES (?1, ?2)";
            self.transaction.prepare_cached(sql)?.execute(params![id, before.bytes.cast_signed()])?;
        }
        let sql = "INSERT INTO baselines (session, task, path, stood, content, why, after, authors, step, newest_span)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let path = path.as_os_str().as_bytes();
        self.transaction.prepare_cached(sql)?.execute(params![
            self.session,
            self.task,
            path,
            before.mark,
            content,
            before.why,
            after,
            bits,
            self.step,
            self.newest_span
        ])?;
        self.files += 1;
        Ok(true)
    }

    fn update(&self, path: &Path, after: Option<&[u8]>, bits: i64) -> rusqlite::Result<()> {
        let sql = "UPDATE baselines SET after = coalesce(?4, after), authors = authors | ?5,
                   newest_span = iif(?4 IS NULL, newest_span, ?7)
                   WHERE session = ?1 AND path = ?2 AND task = ?3 AND step = ?6";
        let path = path.as_os_str().as_bytes();
        let values = params![self.session, path, self.task, after, bits, self.step, self.newest_span];
        self.transaction.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    fn record_unattributed(&self, path: &Path, after: &[u8]) -> rusqlite::Result<()> {
        let sql = "UPDATE baselines SET after = ?4, authors = 0, newest_span = ?6
                   WHERE session = ?1 AND path = ?2 AND task = ?3 AND step = ?5";
        let path = path.as_os_str().as_bytes();
        let values = params![self.session, path, self.task, after, self.step, self.newest_span];
        self.transaction.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    /// Returns whether the path is recorded for any task, or is inside a directory that a tool was about to create.
    fn is_known(&self, path: &Path) -> rusqlite::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM baselines WHERE session = ?1 AND path = ?2 AND (?3 OR after IS NULL))";
        let mut statement = self.transaction.prepare_cached(sql)?;
        for (at, place) in path.ancestors().enumerate() {
            if statement.query_row(params![self.session, place.as_os_str().as_bytes(), at == 0], |row| row.get(0))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn forget(&mut self, path: &Path) -> rusqlite::Result<()> {
        let sql = "DELETE FROM baselines WHERE session = ?1 AND path = ?2 AND task = ?3 AND step = ?4";
        let key = params![self.session, path.as_os_str().as_bytes(), self.task, self.step];
        self.files -= (self.transaction.prepare_cached(sql)?.execute(key)? as u64).min(self.files);
        Ok(())
    }

    /// Returns the paths at or below `path` that have a baseline in the current step, each with the mark of its
    /// baseline.
    fn unsettled_paths(&self, path: &Path) -> rusqlite::Result<Vec<(PathBuf, Vec<u8>)>> {
        let sql = "SELECT path, stood FROM baselines
                   WHERE session = ?1 AND task = ?2 AND step = ?6 AND (path = ?3 OR (path > ?4 AND path < ?5))";
        let at = path.as_os_str().as_bytes();
        let (from, to) = ([at, b"/"].concat(), [at, b"0"].concat());
        let mut rows = self.transaction.prepare_cached(sql)?;
        let found = rows.query_map(params![self.session, self.task, at, from, to, self.step], |row| {
            Ok((PathBuf::from(OsStr::from_bytes(&row.get::<_, Vec<u8>>(0)?)), row.get(1)?))
        })?;
        found.collect()
    }
}

pub(super) fn writing(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

impl SnapshotIndex {
    pub(super) fn keep_baselines(&mut self, owner: &Attribution, paths: &[PathBuf]) -> Result<(), IndexError> {
        let transaction = writing(&mut self.connection)?;
        let mut tracked = TrackedSession::open(&transaction, owner)?;
        let limits = super::SnapshotLimits { snapshot_bytes: self.limits.session_bytes, ..self.limits };
        let goes_on = any_open(&transaction, owner.session.as_str())?;
        for path in paths {
            let room = limits.session_files.saturating_sub(tracked.files);
            let (found, more) = walk_below(path, usize::try_from(room).unwrap_or(usize::MAX).max(1));
            tracked.left_out += more;
            for path in found {
                let left = tracked.last_state(&path)?;
                let known = tracked.baseline(&path)?.is_some();
                if known && left.is_none() {
                    continue;
                }
                let before = if known {
                    ScannedState::now(&path, limits.file_bytes)
                } else {
                    store_state(&path, &self.objects, limits, &mut tracked)
                };
                let outside = left.is_some_and(|left| left != before.mark) && !goes_on;
                let bits = change_bit(ChangedBy::Tool) | if outside { change_bit(ChangedBy::Outside) } else { 0 };
                if known {
                    tracked.update(&path, None, bits | if outside { MIXED } else { 0 })?;
                } else {
                    tracked.add(&path, &before, None, bits, limits.session_files)?;
                }
            }
        }
        tracked.save()?;
        Ok(transaction.commit()?)
    }

    pub(super) fn settle_baselines(&mut self, owner: &Attribution, paths: &[PathBuf]) -> Result<(), IndexError> {
        let transaction = writing(&mut self.connection)?;
        let mut tracked = TrackedSession::open(&transaction, owner)?;
        let (most, limit) = (self.limits.session_files, self.limits.file_bytes);
        for path in paths {
            // From now on, paths in a new directory are tracked individually.
            if is_directory(path) && tracked.baseline(path)?.is_some_and(|mark| parse_mark(&mark) == StoredState::Missing) {
                tracked.forget(path)?;
                let (found, more) = walk_below(path, usize::try_from(most.saturating_sub(tracked.files)).unwrap_or(usize::MAX));
                tracked.left_out += more;
                for path in found {
                    if tracked.baseline(&path)?.is_none() {
                        tracked.add(
                            &path,
                            &ScannedState::from_stored(StoredState::Missing),
                            None,
                            change_bit(ChangedBy::Tool),
                            most,
                        )?;
                    }
                }
            }
            for (path, before) in tracked.unsettled_paths(path)? {
                let now = ScannedState::now(&path, limit);
                if now.mark == before && tracked.last_state(&path)?.is_none() {
                    // The path did not change after all, but its state is still recorded.
                    tracked.record_unattributed(&path, &now.mark)?;
                } else {
                    tracked.update(&path, Some(&now.mark), 0)?;
                }
            }
        }
        tracked.save()?;
        Ok(transaction.commit()?)
    }

    pub(super) fn note_baselines(&mut self, owner: &Attribution, by: ChangedBy, noted: Vec<KnownPath>) -> Result<(), IndexError> {
        let transaction = writing(&mut self.connection)?;
        // Changes by others do not belong to a step.
        let owner = Attribution { step: if by == ChangedBy::Outside { 0 } else { owner.step }, ..owner.clone() };
        let mut tracked = TrackedSession::open(&transaction, &owner)?;
        for one in noted {
            if !tracked.is_known(&one.path)? {
                record_change(&mut tracked, by, one, None, self.limits.session_files)?;
            }
        }
        tracked.save()?;
        Ok(transaction.commit()?)
    }

    pub(super) fn begin_span(&mut self, owner: Attribution, since: Checkpoint) -> Result<RunSpan, IndexError> {
        let transaction = writing(&mut self.connection)?;
        let tracked = TrackedSession::open(&transaction, &owner)?;
        transaction.execute(
            "INSERT INTO spans (session, task, root, snapshot, open, step) VALUES (?1, ?2, ?3, ?4, 1, ?5)",
            params![tracked.session, tracked.task, since.root.as_os_str().as_bytes(), since.number, tracked.step],
        )?;
        let number = transaction.last_insert_rowid();
        transaction.commit()?;
        Ok(RunSpan { number, owner, since })
    }

    pub(super) fn end_span(&mut self, span: &RunSpan, changed: Vec<PathDifference>, goes_on: bool) -> Result<(), IndexError> {
        let transaction = writing(&mut self.connection)?;
        let mut tracked = TrackedSession::open(&transaction, &span.owner)?;
        for PathDifference { path, before, after } in changed {
            let path = span.since.root.join(path);
            let why = (before == StoredState::Unkept).then(|| "the content was not saved".to_owned());
            let noted = KnownPath { path, before, why, after: Some(after) };
            record_change(&mut tracked, ChangedBy::Command, noted, Some(span.number), self.limits.session_files)?;
        }
        tracked.save()?;
        if !goes_on {
            transaction.execute("UPDATE spans SET open = 0 WHERE number = ?1", [span.number])?;
        }
        Ok(transaction.commit()?)
    }

    pub(super) fn written_by_others(
        &mut self,
        span: &RunSpan,
        changed: &[PathDifference],
    ) -> Result<HashSet<PathBuf>, IndexError> {
        let left: HashMap<PathBuf, Vec<u8>> =
            changed.iter().map(|one| (span.since.root.join(&one.path), mark(&one.after))).collect();
        // The latest rows include those of files written while the command runs.
        let sql = "SELECT path, after FROM baselines
                   WHERE number > (SELECT coalesce(max(number), 0) FROM baselines) - ?1
                   AND session != ?2 AND newest_span >= ?3 AND authors & ?4 != 0 AND after IS NOT NULL";
        let key = params![RECENT_ROWS, span.owner.session.as_str(), span.number, change_bit(ChangedBy::Tool)];
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(key)?;
        let mut written = HashSet::new();
        while let Some(row) = rows.next()? {
            let path = PathBuf::from(OsStr::from_bytes(row.get_ref(0)?.as_bytes().unwrap_or_default()));
            if left.get(&path).is_some_and(|left| row.get_ref(1).is_ok_and(|after| after.as_bytes() == Ok(left))) {
                written.insert(path);
            }
        }
        Ok(written)
    }

    pub(super) fn open_spans(&mut self, session: &SessionId) -> Result<Vec<RunSpan>, IndexError> {
        let sql = "SELECT number, task, root, snapshot, step FROM spans WHERE session = ?1 AND open = 1 ORDER BY number";
        let mut rows = self.connection.prepare_cached(sql)?;
        let spans = rows.query_map([session.as_str()], |row| {
            let task = Some(row.get::<_, String>(1)?).filter(|task| !task.is_empty()).map(TaskId::new);
            let since = checkpoint(row.get(3)?, &row.get::<_, Vec<u8>>(2)?);
            Ok(RunSpan {
                number: row.get(0)?,
                owner: Attribution { session: session.clone(), task, step: row.get::<_, i64>(4)?.unsigned_abs() },
                since,
            })
        })?;
        Ok(spans.collect::<Result<_, _>>()?)
    }

    pub(super) fn first_snapshots(&mut self, session: &SessionId) -> Result<Vec<Checkpoint>, IndexError> {
        let sql = "SELECT root, min(snapshot) FROM spans WHERE session = ?1 GROUP BY root ORDER BY root";
        let mut rows = self.connection.prepare_cached(sql)?;
        let found = rows.query_map([session.as_str()], |row| Ok(checkpoint(row.get(1)?, &row.get::<_, Vec<u8>>(0)?)))?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    pub(super) fn states_at(&mut self, since: &Checkpoint, paths: &[PathBuf]) -> Result<Vec<StoredState>, IndexError> {
        let transaction = self.connection.transaction()?;
        let key = root_key(&transaction, &since.root)?;
        let columns = "SELECT content, link, bytes, mode FROM versions WHERE root = ?1 AND path = ?2 AND since <= ?3 AND";
        // Each query uses its own index.
        let lasting = format!("{columns} until IS NULL");
        let past = format!("{columns} until > ?3");
        let mut found = Vec::with_capacity(paths.len());
        for path in paths {
            let mut stood = StoredState::Missing;
            for sql in [&lasting, &past] {
                let values = params![key, path.as_os_str().as_bytes(), since.number];
                let then = transaction.prepare_cached(sql)?.query_row(values, stored_state).optional()?;
                if let Some(then) = then {
                    stood = then;
                    break;
                }
            }
            found.push(stood);
        }
        transaction.commit()?;
        Ok(found)
    }

    pub(super) fn differences(&mut self, session: &SessionId, task: Option<&TaskId>) -> Result<Differences, IndexError> {
        let session = session.as_str();
        let left_out: Option<i64> = self
            .connection
            .query_row("SELECT left_out FROM tracked WHERE session = ?1", [session], |row| row.get(0))
            .optional()?;
        let Some(left_out) = left_out else { return Ok(Differences::default()) };
        let goes_on = any_open(&self.connection, session)?;
        let known = self.baselines(session, task)?;
        let limit = self.limits.file_bytes;
        let mut files = BTreeMap::new();
        for (path, BaselineRow { before, why, after, bits }) in &known {
            // The process that created this directory was stopped before it recorded the content.
            if is_directory(path) {
                let (found, _) = walk_below(path, usize::try_from(self.limits.session_files).unwrap_or(usize::MAX));
                for inner in found.into_iter().filter(|inner| after.is_none() && !known.contains_key(inner)) {
                    let now = ScannedState::now(&inner, limit).stood;
                    let by = authors(*bits);
                    files.insert(inner.clone(), Difference { path: inner, before: StoredState::Missing, why: None, now, by });
                }
            }
            let now = ScannedState::now(path, limit);
            if now.mark == *before {
                continue;
            }
            let outside = after.as_ref().is_some_and(|after| *after != now.mark) && !goes_on;
            let by = authors(bits | if outside { change_bit(ChangedBy::Outside) } else { 0 });
            let why = why.clone().or(now.why);
            files.insert(path.clone(), Difference { path: path.clone(), before: parse_mark(before), why, now: now.stood, by });
        }
        Ok(Differences { files: files.into_values().collect(), left_out: left_out.unsigned_abs() })
    }

    /// Returns whether each path is still in the state of its first baseline. Omits paths whose baseline is not stored.
    pub(super) fn baseline_matches(
        &mut self,
        session: &SessionId,
        paths: Vec<PathBuf>,
    ) -> Result<HashMap<PathBuf, bool>, IndexError> {
        let (known, limit) = (self.baselines(session.as_str(), None)?, self.limits.file_bytes);
        let compare = |path: PathBuf| {
            let row = known.get(&path).filter(|row| parse_mark(&row.before) != StoredState::Unkept)?;
            let is_same = ScannedState::now(&path, limit).mark == row.before;
            Some((path, is_same))
        };
        Ok(paths.into_iter().filter_map(compare).collect())
    }

    /// Returns the first baseline, the last recorded state and the combined authors of each path.
    fn baselines(&self, session: &str, task: Option<&TaskId>) -> rusqlite::Result<BTreeMap<PathBuf, BaselineRow>> {
        let sql = "SELECT path, stood, why, after, authors, task FROM baselines WHERE session = ?1 ORDER BY number";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([session])?;
        let mut known: BTreeMap<PathBuf, BaselineRow> = BTreeMap::new();
        let mut others = HashSet::new();
        while let Some(row) = rows.next()? {
            let path = PathBuf::from(OsStr::from_bytes(&row.get::<_, Vec<u8>>(0)?));
            let (after, bits): (Option<Vec<u8>>, i64) = (row.get(3)?, row.get(4)?);
            if task.is_some_and(|task| row.get_ref(5).is_ok_and(|of| of.as_str() != Ok(task.as_str()))) {
                others.insert(path);
                continue;
            }
            if let Some(earlier) = known.get_mut(&path) {
                earlier.after = after;
                earlier.bits |= bits;
            } else {
                known.insert(path, BaselineRow { before: row.get(1)?, why: row.get(2)?, after, bits });
            }
        }
        // The state left by a later task must not be attributed to others.
        for path in others {
            if let Some(known) = known.get_mut(&path) {
                known.after = None;
            }
        }
        Ok(known)
    }

    pub(super) fn forget_session(&mut self, session: &SessionId) -> Result<(), IndexError> {
        let transaction = writing(&mut self.connection)?;
        forget(&transaction, session.as_str())?;
        let gone = forget_contents(&transaction)?;
        transaction.commit()?;
        if gone > 0 { self.sweep() } else { Ok(()) }
    }
}

struct BaselineRow {
    before: Vec<u8>,
    why: Option<String>,
    after: Option<Vec<u8>>,
    bits: i64,
}

fn stored_state(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredState> {
    let (content, link): (Option<[u8; 32]>, Option<Vec<u8>>) = (row.get(0)?, row.get(1)?);
    let (bytes, mode): (i64, i64) = (row.get(2)?, row.get(3)?);
    Ok(match (content, link) {
        (Some(id), _) => {
            StoredState::File { content: ContentId(id), bytes: bytes.unsigned_abs(), mode: u32::try_from(mode).unwrap_or(0) }
        }
        (None, Some(to)) => StoredState::Link { to: PathBuf::from(OsStr::from_bytes(&to)) },
        (None, None) => StoredState::Unkept,
    })
}

/// Records a change that was made by a command or by another program. If it was found by comparing the files with their
/// state before a command, `span` is the number of that command's span.
fn record_change(
    tracked: &mut TrackedSession<'_>,
    by: ChangedBy,
    noted: KnownPath,
    span: Option<i64>,
    most: u64,
) -> rusqlite::Result<()> {
    let KnownPath { path, before, why, after } = noted;
    let after = after.as_ref().map(mark);
    let left = tracked.last_state(&path)?;
    // If the state equals the result of a call that ran at the same time as the command, the command did not make the
    // change. An equal result from before the start of the command proves nothing, because something else may have
    // changed the path in between.
    let beside = match (&after, span) {
        (Some(_), Some(span)) => tracked.state_during_command(&path, span)? == after,
        (Some(_), None) => left == after,
        (None, _) => false,
    };
    if let Some(first) = tracked.baseline(&path)? {
        if beside {
            return tracked.update(&path, after.as_deref(), 0);
        }
        let found = mark(&before);
        let mixed = left.is_some_and(|left| left != found) && first != found;
        return tracked.update(&path, after.as_deref(), change_bit(by) | if mixed { MIXED } else { 0 });
    }
    if beside && tracked.step > 0 {
        return Ok(());
    }
    tracked.add(&path, &ScannedState { why, ..ScannedState::from_stored(before) }, after.as_deref(), change_bit(by), most)?;
    Ok(())
}

/// Returns the current state of a path. If there is room, also stores its content.
fn store_state(path: &Path, objects: &Objects, limits: super::SnapshotLimits, tracked: &mut TrackedSession<'_>) -> ScannedState {
    match stat(path) {
        Ok(EntryStat::File(stamp)) => match keep(path, stamp, objects, limits, &mut tracked.bytes) {
            Ok(kept) => ScannedState::from_stored(StoredState::File {
                content: kept.id,
                bytes: kept.bytes,
                mode: kept.stamp.permissions(),
            }),
            Err(why) => ScannedState::not_stored(stamp, why),
        },
        _ => ScannedState::now(path, limits.file_bytes),
    }
}

fn any_open(connection: &Connection, session: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM spans WHERE session = ?1 AND open = 1)";
    connection.prepare_cached(sql)?.query_row([session], |row| row.get(0))
}

fn checkpoint(number: i64, root: &[u8]) -> Checkpoint {
    let root = PathBuf::from(OsStr::from_bytes(root));
    Checkpoint { number, root, left_out: Vec::new(), left_out_count: 0 }
}
