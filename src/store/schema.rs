//! Database schema, its versions, and the detection of damaged files.

use super::quarantine::{COMPANIONS, with_suffix};
use super::salvage::{self, Salvage};
use super::{StoreError, backup, directory};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Application ID in the file header that identifies a database as aye's.
pub(super) const APPLICATION_ID: i64 = 0x6179_6501;
/// Maximum size in bytes of a store that is checked completely on each start.
const MAX_CHECKED_BYTES: u64 = 64 << 20;
/// Size in bytes to which an oversized write-ahead log is truncated when it restarts.
const MAX_LOG_BYTES: i64 = 8 << 20;
/// Page cache size per connection, in KiB. It can be small, because the operating system caches the file as well.
const PAGES_KIB: i64 = 512;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Table with output tails of running commands.
const OUTPUT_TAILS: &str = "
    CREATE TABLE tails (
        session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
        call TEXT NOT NULL,
        text TEXT NOT NULL,
        ran_ms INTEGER NOT NULL,
        PRIMARY KEY (session, call)
    ) WITHOUT ROWID;
";

/// Table with session metadata. A reference to a parent remains after the parent has been deleted.
const METADATA: &str = "
    CREATE TABLE marks (
        session INTEGER PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
        archived INTEGER NOT NULL DEFAULT 0,
        parent TEXT,
        parent_records INTEGER
    );
";

/// Tables with rows for services and the state of each service. A `key` value is never reused, because acknowledgements
/// refer to it as a position.
const OUTBOX: &str = "
    CREATE TABLE outbox (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        sink TEXT NOT NULL,
        id TEXT NOT NULL,
        time INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX outbox_by_sink ON outbox (sink, key);
    CREATE TABLE outbox_sinks (
        sink TEXT PRIMARY KEY,
        pending INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0,
        acknowledged INTEGER NOT NULL DEFAULT 0,
        dropped INTEGER NOT NULL DEFAULT 0,
        missing INTEGER NOT NULL DEFAULT 0,
        missing_from INTEGER NOT NULL DEFAULT 0,
        missing_until INTEGER NOT NULL DEFAULT 0,
        lost INTEGER NOT NULL DEFAULT 0,
        owner TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        next_attempt INTEGER NOT NULL DEFAULT 0,
        error TEXT,
        delivered INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
";

/// Migrations, one per version. In a store of version n, the first n migrations have been applied.
pub(super) const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        workspace_id TEXT NOT NULL,
        workspace TEXT NOT NULL,
        title TEXT,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        status TEXT NOT NULL,
        model TEXT NOT NULL,
        draft TEXT NOT NULL DEFAULT '',
        owner TEXT
    );
    CREATE INDEX sessions_by_workspace ON sessions (workspace_id, updated);
    CREATE TABLE records (
        key INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        json TEXT NOT NULL,
        time INTEGER NOT NULL,
        UNIQUE (session, seq)
    );
",
    "
    CREATE TABLE decisions (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        time INTEGER NOT NULL,
        session TEXT,
        workspace TEXT NOT NULL,
        tool TEXT NOT NULL,
        summary TEXT NOT NULL,
        verdict TEXT NOT NULL,
        decider TEXT NOT NULL,
        reason TEXT NOT NULL,
        mode TEXT NOT NULL
    );
    CREATE INDEX decisions_by_time ON decisions (time);
",
    // Finished records are packed. A decision refers to its session by key, and by ID after the session is deleted.
    "
    CREATE TABLE packed (
        key INTEGER PRIMARY KEY,
        session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (session, first)
    );
    DROP INDEX decisions_by_time;
    ALTER TABLE decisions RENAME TO decisions_before;
    CREATE TABLE decisions (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        time INTEGER NOT NULL,
        session,
        workspace TEXT,
        tool TEXT NOT NULL,
        summary TEXT NOT NULL,
        verdict TEXT NOT NULL,
        decider TEXT NOT NULL,
        reason TEXT NOT NULL,
        mode TEXT NOT NULL
    );
    INSERT INTO decisions
        SELECT d.key, d.time, coalesce(s.key, d.session), iif(s.key IS NULL, d.workspace, NULL),
               d.tool, d.summary, d.verdict, d.decider, d.reason, d.mode
        FROM decisions_before d LEFT JOIN sessions s ON s.id = d.session;
    DROP TABLE decisions_before;
    CREATE TRIGGER decisions_outlive_sessions BEFORE DELETE ON sessions BEGIN
        UPDATE decisions SET session = old.id, workspace = old.workspace WHERE session = old.key;
    END;
",
    OUTPUT_TAILS,
    METADATA,
    OUTBOX,
];
/// Query that names every column, and therefore fails if a column is missing.
const EXPECTED: &str = "
    SELECT s.key, s.id, s.workspace_id, s.workspace, s.title, s.created, s.updated, s.status, s.model, s.draft, s.owner,
           r.key, r.session, r.seq, r.json, r.time,
           p.key, p.session, p.first, p.last, p.data,
           d.key, d.time, d.session, d.workspace, d.tool, d.summary, d.verdict, d.decider, d.reason, d.mode,
           o.key, o.sink, o.id, o.time, o.kind, o.body
    FROM sessions s JOIN records r ON r.session = s.key JOIN packed p ON p.session = s.key JOIN decisions d ON d.session = s.key
    JOIN outbox o ON o.time = s.created";
const VERSION: i64 = MIGRATIONS.len() as i64;

pub(super) enum DatabaseState {
    Missing,
    /// Usable. Includes a notice for the user if the store was upgraded.
    Sound(Connection, Option<String>),
    /// Damaged, for the given reason.
    Damaged(String),
}

/// Examines the database at `path`, which is left unchanged unless it is sound.
pub(super) fn examine(path: &Path) -> Result<DatabaseState, StoreError> {
    let companions: Vec<_> = companions(path).filter_map(|file| file.symlink_metadata().ok()).collect();
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if path.is_symlink() {
                let reason = "symlink to a file that does not exist".to_owned();
                return Err(StoreError::Unusable { path: path.to_owned(), reason });
            }
            if companions.is_empty() {
                return Ok(DatabaseState::Missing);
            }
            return Ok(DatabaseState::Damaged("the main database file is missing".to_owned()));
        }
        Err(error) => return Err(StoreError::unusable(path, &error)),
    };
    if !metadata.is_file() {
        return Ok(DatabaseState::Damaged(format!(
            "the database is {}, not a file",
            if metadata.is_dir() { "a directory" } else { "a device" }
        )));
    }
    if companions.iter().any(|companion| !companion.is_file()) {
        return Ok(DatabaseState::Damaged("the database log or its index is not a regular file".to_owned()));
    }
    if metadata.len() == 0 {
        return Ok(DatabaseState::Damaged("the file is empty".to_owned()));
    }
    directory::private().open(path).map_err(|error| StoreError::unusable(path, &error))?;
    let bytes = metadata.len() + companions.iter().map(std::fs::Metadata::len).sum::<u64>();
    match check(path, bytes) {
        Ok(state) => Ok(state),
        Err(SchemaError::NoBackup(error)) => Err(error.to_store_error(path)),
        Err(SchemaError::Newer(found)) => Err(StoreError::Newer { path: path.to_owned(), found, known: VERSION }),
        Err(SchemaError::Sqlite(error)) => match damage(&error) {
            Some(reason) => Ok(DatabaseState::Damaged(reason)),
            None => Err(StoreError::database(path, &error)),
        },
    }
}

/// Returns a description of the damage that an error indicates, or `None` if the error does not mean that the database
/// is damaged.
fn damage(error: &rusqlite::Error) -> Option<String> {
    if let rusqlite::Error::SqlInputError { msg, .. } = error {
        return Some(format!("unexpected tables: {msg}"));
    }
    match error.sqlite_error_code()? {
        ErrorCode::NotADatabase => Some("the file is not a database".to_owned()),
        ErrorCode::DatabaseCorrupt => Some("database pages are inconsistent".to_owned()),
        // SQLite reports an unknown format as a generic error.
        ErrorCode::Unknown => Some(error.to_string()),
        _ => None,
    }
}

enum SchemaError {
    Newer(i64),
    NoBackup(backup::BackupError),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for SchemaError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn check(path: &Path, bytes: u64) -> Result<DatabaseState, SchemaError> {
    let mut connection = connect(path)?;
    // Until the file is known to be sound, closing it must not write to it either.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if version > VERSION {
        return Err(SchemaError::Newer(version));
    }
    if application != APPLICATION_ID {
        return Ok(DatabaseState::Damaged("the database belongs to another program".to_owned()));
    }
    if bytes <= MAX_CHECKED_BYTES {
        // A quick check does not compare indexes with their tables, so missing rows would go unnoticed.
        let verdict: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if verdict != "ok" {
            return Ok(DatabaseState::Damaged(verdict));
        }
    }
    if connection.is_readonly("main")? {
        return Ok(DatabaseState::Damaged("the header marks the database as read-only".to_owned()));
    }
    let notice = if version < VERSION { Some(renew(&mut connection, path, version)?) } else { None };
    connection.prepare(EXPECTED)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    // Setting the cache size reads the tables, so it must follow the checks.
    connection.pragma_update(None, "cache_size", -PAGES_KIB)?;
    Ok(DatabaseState::Sound(connection, notice))
}

/// Upgrades an older store atomically, after making a backup. Returns a notice for the user.
fn renew(connection: &mut Connection, path: &Path, version: i64) -> Result<String, SchemaError> {
    let kept = backup::keep(connection, path, VERSION).map_err(|failure| match failure {
        // An unreadable store is damaged and will be recovered.
        backup::BackupError::Database(error) if damage(&error).is_some() => SchemaError::Sqlite(error),
        other => SchemaError::NoBackup(other),
    })?;
    if let Err(error) = migrate(connection) {
        // The store is unchanged, so the backup is useless. Without this removal, each start would create another
        // backup.
        let _ = std::fs::remove_file(&kept);
        return Err(error.into());
    }
    Ok(format!(
        "the session store was upgraded from format {version} to {VERSION}; a backup of the old one is in `{}`, which you can delete",
        kept.display()
    ))
}

/// Creates a database. The file is given its final name only once it is complete.
pub(super) fn create(path: &Path) -> Result<Connection, StoreError> {
    create_with(path, path, |_| Ok(()))?;
    connect(path).map_err(|error| StoreError::database(path, &error))
}

/// Returns the path at which a recovered store is kept until the damaged store has been moved aside.
pub(super) fn salvaged_path(path: &Path) -> PathBuf {
    with_suffix(path, ".salvaged")
}

/// Creates a new store from the readable parts of a damaged one, which is left unchanged.
pub(super) fn rescue(path: &Path) -> Result<Salvage, StoreError> {
    create_with(path, &salvaged_path(path), |connection| {
        let transaction = connection.transaction()?;
        let saved = salvage::salvage(path, &transaction)?;
        transaction.commit()?;
        Ok(saved)
    })
}

fn create_with<T>(
    path: &Path,
    target: &Path,
    fill: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
) -> Result<T, StoreError> {
    let unfinished = with_suffix(path, ".new");
    for file in std::iter::once(unfinished.clone()).chain(companions(&unfinished)) {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(StoreError::unusable(&file, &error)),
            Ok(()) | Err(_) => {}
        }
    }
    directory::private().create_new(true).open(&unfinished).map_err(|error| StoreError::unusable(&unfinished, &error))?;
    let filled = build(&unfinished, fill).map_err(|error| StoreError::database(path, &error))?;
    std::fs::File::open(&unfinished)
        .and_then(|file| file.sync_all())
        .map_err(|error| StoreError::unusable(&unfinished, &error))?;
    rename(&unfinished, target)?;
    // SQLite could not delete these companion files. Nothing reads them, and the next attempt would delete them too.
    companions(&unfinished).for_each(|file| drop(std::fs::remove_file(file)));
    Ok(filled)
}

fn companions(path: &Path) -> impl Iterator<Item = PathBuf> {
    COMPANIONS.iter().map(move |suffix| with_suffix(path, suffix))
}

/// Renames a file durably.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    std::fs::rename(from, to).map_err(|error| StoreError::unusable(to, &error))?;
    #[cfg(unix)]
    if let Some(directory) = to.parent() {
        std::fs::File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| StoreError::unusable(directory, &error))?;
    }
    Ok(())
}

fn build<T>(path: &Path, fill: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let mut connection = connect(path)?;
    // The file is not visible yet, so a single sync before it is named is enough.
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA auto_vacuum = INCREMENTAL")?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    migrate(&mut connection)?;
    let filled = fill(&mut connection)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(filled)
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let version = |connection: &Connection| connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    if version(connection)? == VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have been faster with the migration.
    let version = version(&transaction)?;
    for step in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or_default()) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Opens an existing database. Checkpoints are left to the writer, because they must not delay a step.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", MAX_LOG_BYTES, |_| Ok(()))?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}
