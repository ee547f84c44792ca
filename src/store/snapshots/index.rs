//! Snapshot index, which records the content of each path. The latest snapshot of each root is cached in memory.

use super::eviction::over_quota;
use super::file_stat::{EntryStat, now_ns, stat, stat_listed};
use super::objects::{Objects, StoredContent};
use super::{SnapshotLimits, schema};
use crate::ports::{Checkpoint, ContentId, PathDifference, StoredState};
use crate::store::index_file::{self, IndexError};
use crate::sys::file::FileStamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of skipped files to list by name. Any further files are only counted.
const MAX_NAMED: usize = 20;

pub(super) struct SnapshotIndex {
    pub(super) connection: Connection,
    pub(super) objects: Objects,
    pub(super) limits: SnapshotLimits,
    pub(super) roots: HashMap<PathBuf, LatestFiles>,
}

/// Files in the latest snapshot of a root.
pub(super) struct LatestFiles {
    key: i64,
    number: i64,
    files: HashMap<PathBuf, IndexedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexedFile {
    stood: StoredState,
    stamp: FileStamp,
    looked_at: i64,
}

impl IndexedFile {
    /// Returns whether the stamp proves that the file has not changed since it was recorded.
    fn is_unchanged(&self, stamp: FileStamp) -> bool {
        self.stamp == stamp && self.stood != StoredState::Unkept && stamp.proves_unchanged(self.looked_at)
    }
}

/// Differences between the current files and the latest snapshot.
#[derive(Default)]
struct IndexDiff {
    /// Files that are new or have changed.
    differs: Vec<(PathBuf, IndexedFile)>,
    /// Files that have not changed but whose stamps must be updated.
    touched: Vec<(PathBuf, IndexedFile)>,
    gone: Vec<PathBuf>,
    contents: Vec<(ContentId, u64)>,
    left_out: Vec<(PathBuf, String)>,
    left_out_count: u64,
}

impl IndexDiff {
    /// Records that a file exists but that its content was not stored.
    fn leave_out(&mut self, path: &Path, before: Option<&IndexedFile>, stamp: FileStamp, why: impl Into<String>) {
        self.left_out_count += 1;
        if self.left_out.len() < MAX_NAMED {
            self.left_out.push((path.to_owned(), why.into()));
        }
        self.record_change(path, before, IndexedFile { stood: StoredState::Unkept, stamp, looked_at: now_ns() });
    }

    fn record_change(&mut self, path: &Path, before: Option<&IndexedFile>, now: IndexedFile) {
        match before {
            Some(known) if known.stood == now.stood => {
                if known.stamp != now.stamp || !known.stamp.proves_unchanged(known.looked_at) {
                    self.touched.push((path.to_owned(), now));
                }
            }
            Some(_) | None => self.differs.push((path.to_owned(), now)),
        }
    }
}

impl SnapshotIndex {
    pub(super) fn open(directory: &Path, limits: SnapshotLimits) -> Result<Self, IndexError> {
        let objects = Objects::open(directory.join("contents"))?;
        let connection = index_file::open(&directory.join("index.db"), &schema::SHAPE)?;
        Ok(Self { connection, objects, limits, roots: HashMap::new() })
    }

    pub(super) fn take(&mut self, root: PathBuf, files: Vec<PathBuf>) -> Result<Checkpoint, IndexError> {
        // Contents are added only under the write lock, so that another process does not delete them before they are
        // referenced.
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let key = root_key(&transaction, &root)?;
        let number = newest_number(&transaction, key)?;
        let mut newest = match self.roots.remove(&root) {
            Some(newest) if newest.number == number => newest,
            Some(_) | None => LatestFiles { key, number, files: files_at(&transaction, key, None)? },
        };
        let found = survey(&root, files, &newest.files, &self.objects, self.limits);
        if !(found.differs.is_empty() && found.gone.is_empty()) || number == 0 {
            transaction.execute("INSERT INTO snapshots (root, time) VALUES (?1, ?2)", params![key, now_ns()])?;
            newest.number = transaction.last_insert_rowid();
        }
        write(&transaction, &newest, &found)?;
        let over = over_quota(&transaction, self.limits.all_bytes, newest.number)?;
        transaction.commit()?;
        for path in &found.gone {
            newest.files.remove(path);
        }
        newest.files.extend(found.differs);
        newest.files.extend(found.touched);
        let checkpoint = Checkpoint {
            number: newest.number,
            root: root.clone(),
            left_out: found.left_out,
            left_out_count: found.left_out_count,
        };
        self.roots.insert(root, newest);
        if over {
            self.sweep()?;
        }
        Ok(checkpoint)
    }

    /// Deletes content files that the index no longer refers to.
    pub(super) fn sweep(&mut self) -> Result<(), IndexError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let wanted: HashSet<ContentId> = {
            let mut rows = transaction.prepare("SELECT id FROM contents")?;
            let ids = rows.query_map([], |row| row.get::<_, [u8; 32]>(0))?;
            ids.map(|id| id.map(ContentId)).collect::<Result<_, _>>()?
        };
        self.objects.sweep(|id| wanted.contains(id))?;
        Ok(transaction.commit()?)
    }

    pub(super) fn changes(&mut self, since: &Checkpoint, files: Vec<PathBuf>) -> Result<Vec<PathDifference>, IndexError> {
        let transaction = self.connection.transaction()?;
        let key = root_key(&transaction, &since.root)?;
        let there = transaction.query_row("SELECT count(*) FROM snapshots WHERE number = ?1", [since.number], |row| row.get(0));
        let there: i64 = there?;
        if there == 0 {
            return Err(IndexError::Other(format!("snapshot {} was evicted for newer ones", since.number)));
        }
        let loaded;
        let then = match self.roots.get(&since.root) {
            Some(newest) if newest.number == since.number && newest_number(&transaction, key)? == since.number => &newest.files,
            Some(_) | None => {
                loaded = files_at(&transaction, key, Some(since.number))?;
                &loaded
            }
        };
        transaction.commit()?;
        let limit = self.limits.file_bytes;
        let mut changed = BTreeMap::new();
        let mut seen = HashSet::new();
        for path in files {
            let (place, before) = (since.root.join(&path), then.get(&path));
            if let Some(after) = now(&place, stat_listed(&place), before, limit) {
                changed.insert(path.clone(), PathDifference { path: path.clone(), before: stored_state(before), after });
            }
            seen.insert(path);
        }
        for (path, known) in then.iter().filter(|(path, _)| !seen.contains(*path)) {
            let place = since.root.join(path);
            if let Some(after) = now(&place, stat(&place), Some(known), limit) {
                changed.insert(path.clone(), PathDifference { path: path.clone(), before: known.stood.clone(), after });
            }
        }
        Ok(changed.into_values().collect())
    }

    pub(super) fn content(&mut self, id: ContentId) -> Result<Vec<u8>, IndexError> {
        Ok(self.objects.read(id)?)
    }
}

fn stored_state(known: Option<&IndexedFile>) -> StoredState {
    known.map_or(StoredState::Missing, |known| known.stood.clone())
}

/// Returns the current state of a path if it differs from `before`, or `None` if it is the same or cannot be compared.
/// Files larger than `limit` bytes are not read.
fn now(path: &Path, looked: io::Result<EntryStat>, before: Option<&IndexedFile>, limit: u64) -> Option<StoredState> {
    // A file whose content was not stored cannot be compared.
    if before.is_some_and(|known| known.stood == StoredState::Unkept) {
        return None;
    }
    let after = match looked {
        Ok(EntryStat::Missing | EntryStat::Special(_)) => StoredState::Missing,
        Ok(EntryStat::Link(_, to)) => StoredState::Link { to },
        Ok(EntryStat::File(stamp)) => {
            if before.is_some_and(|known| known.is_unchanged(stamp)) {
                return None;
            }
            match Objects::hash(path, limit) {
                Ok(Some((content, bytes))) => StoredState::File { content, bytes, mode: stamp.permissions() },
                Ok(None) => StoredState::Unkept,
                Err(error) if error.kind() == io::ErrorKind::NotFound => StoredState::Missing,
                // An unreadable file cannot be compared.
                Err(_) => return None,
            }
        }
        Err(_) => return None,
    };
    (stored_state(before) != after).then_some(after)
}

/// Examines all files, reading those that may have changed.
fn survey(
    root: &Path,
    files: Vec<PathBuf>,
    known: &HashMap<PathBuf, IndexedFile>,
    objects: &Objects,
    limits: SnapshotLimits,
) -> IndexDiff {
    let mut found = IndexDiff::default();
    let mut seen: HashSet<PathBuf> = HashSet::with_capacity(files.len());
    let mut new_bytes = 0;
    for path in files {
        let (place, before, looked_at) = (root.join(&path), known.get(&path), now_ns());
        let limit = (seen.len() >= limits.files).then(|| format!("more than {} files", limits.files));
        match stat_listed(&place) {
            Ok(EntryStat::Missing) => continue,
            Ok(EntryStat::File(stamp) | EntryStat::Link(stamp, _) | EntryStat::Special(stamp)) if limit.is_some() => {
                found.leave_out(&path, before, stamp, limit.unwrap_or_default());
            }
            Ok(EntryStat::Special(stamp)) => found.leave_out(&path, before, stamp, "neither a file nor a symlink"),
            Ok(EntryStat::Link(stamp, to)) => {
                found.record_change(&path, before, IndexedFile { stood: StoredState::Link { to }, stamp, looked_at });
            }
            Ok(EntryStat::File(stamp)) if before.is_some_and(|known| known.is_unchanged(stamp)) => {}
            Ok(EntryStat::File(stamp)) => match keep(&place, stamp, objects, limits, &mut new_bytes) {
                Ok(kept) => {
                    found.contents.push((kept.id, kept.bytes));
                    let stood = StoredState::File { content: kept.id, bytes: kept.bytes, mode: kept.stamp.permissions() };
                    found.record_change(&path, before, IndexedFile { stood, stamp: kept.stamp, looked_at });
                }
                Err(why) => found.leave_out(&path, before, stamp, why),
            },
            Err(error) => found.leave_out(&path, before, FileStamp::default(), error.to_string()),
        }
        seen.insert(path);
    }
    found.gone = known.keys().filter(|path| !seen.contains(*path)).cloned().collect();
    found
}

/// Stores the content of a file. On failure, returns the reason why it was not stored.
pub(super) fn keep(
    place: &Path,
    stamp: FileStamp,
    objects: &Objects,
    limits: SnapshotLimits,
    new_bytes: &mut u64,
) -> Result<StoredContent, String> {
    let bytes = stamp.bytes.unsigned_abs();
    if bytes > limits.file_bytes {
        return Err(format!("{bytes} bytes, over the limit of {} per file", limits.file_bytes));
    }
    if *new_bytes + bytes > limits.snapshot_bytes {
        return Err(format!("over the limit of {} new bytes per snapshot", limits.snapshot_bytes));
    }
    let kept = objects.keep(place).map_err(|error| error.to_string())?.ok_or("changed while it was being read")?;
    *new_bytes += if kept.is_new { kept.bytes } else { 0 };
    Ok(kept)
}

pub(super) fn root_key(transaction: &Transaction<'_>, root: &Path) -> rusqlite::Result<i64> {
    let path = root.as_os_str().as_bytes();
    let found = transaction.query_row("SELECT key FROM roots WHERE path = ?1", [path], |row| row.get(0)).optional()?;
    if let Some(key) = found {
        return Ok(key);
    }
    transaction.execute("INSERT INTO roots (path) VALUES (?1)", [path])?;
    Ok(transaction.last_insert_rowid())
}

/// Returns the number of the root's latest snapshot, or 0 if there is none.
fn newest_number(transaction: &Transaction<'_>, root: i64) -> rusqlite::Result<i64> {
    transaction.query_row("SELECT coalesce(max(number), 0) FROM snapshots WHERE root = ?1", [root], |row| row.get(0))
}

/// Returns the files of a root as of snapshot `number`, or as of the latest snapshot if no number is given.
fn files_at(transaction: &Transaction<'_>, root: i64, number: Option<i64>) -> rusqlite::Result<HashMap<PathBuf, IndexedFile>> {
    let columns = "SELECT path, content, link, bytes, mode, inode, modified, changed, looked_at FROM versions";
    let mut rows = match number {
        None => transaction.prepare(&format!("{columns} WHERE root = ?1 AND until IS NULL AND since <= ?2"))?,
        Some(_) => {
            transaction.prepare(&format!("{columns} WHERE root = ?1 AND since <= ?2 AND (until IS NULL OR until > ?2)"))?
        }
    };
    let read = |row: &rusqlite::Row<'_>| {
        let path = PathBuf::from(OsStr::from_bytes(&row.get::<_, Vec<u8>>(0)?));
        let (content, link): (Option<[u8; 32]>, Option<Vec<u8>>) = (row.get(1)?, row.get(2)?);
        let stamp =
            FileStamp { bytes: row.get(3)?, mode: row.get(4)?, inode: row.get(5)?, modified: row.get(6)?, changed: row.get(7)? };
        let stood = match (content, link) {
            (Some(id), _) => {
                StoredState::File { content: ContentId(id), bytes: stamp.bytes.unsigned_abs(), mode: stamp.permissions() }
            }
            (None, Some(to)) => StoredState::Link { to: PathBuf::from(OsStr::from_bytes(&to)) },
            (None, None) => StoredState::Unkept,
        };
        Ok((path, IndexedFile { stood, stamp, looked_at: row.get(8)? }))
    };
    rows.query_map(params![root, number.unwrap_or(i64::MAX)], read)?.collect()
}

fn write(transaction: &Transaction<'_>, newest: &LatestFiles, found: &IndexDiff) -> rusqlite::Result<()> {
    let mut end =
        transaction.prepare("UPDATE versions SET until = ?3 WHERE root = ?1 AND path = ?2 AND until IS NULL AND since < ?3")?;
    let mut begin = transaction.prepare(
        "INSERT INTO versions (root, path, since, content, link, bytes, mode, inode, modified, changed, looked_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let mut touch = transaction.prepare(
        "UPDATE versions SET inode = ?3, modified = ?4, changed = ?5, looked_at = ?6
         WHERE root = ?1 AND path = ?2 AND until IS NULL",
    )?;
    let mut content = transaction.prepare("INSERT OR IGNORE INTO contents (id, bytes) VALUES (?1, ?2)")?;
    for path in found.gone.iter().chain(found.differs.iter().map(|(path, _)| path)) {
        end.execute(params![newest.key, path.as_os_str().as_bytes(), newest.number])?;
    }
    for (path, IndexedFile { stood, stamp, looked_at }) in &found.differs {
        let (id, link) = match stood {
            StoredState::File { content, .. } => (Some(content.0), None),
            StoredState::Link { to } => (None, Some(to.as_os_str().as_bytes().to_vec())),
            StoredState::Missing | StoredState::Unkept => (None, None),
        };
        let path = path.as_os_str().as_bytes();
        let FileStamp { inode, bytes, modified, changed, mode } = stamp;
        begin.execute(params![newest.key, path, newest.number, id, link, bytes, mode, inode, modified, changed, looked_at])?;
    }
    for (path, IndexedFile { stamp, looked_at, .. }) in &found.touched {
        let path = path.as_os_str().as_bytes();
        touch.execute(params![newest.key, path, stamp.inode, stamp.modified, stamp.changed, looked_at])?;
    }
    for (id, bytes) in &found.contents {
        content.execute(params![id.0, bytes.cast_signed()])?;
    }
    Ok(())
}
