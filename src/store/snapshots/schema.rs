//! The database of the snapshots: a path has a content from one snapshot until another.

use super::Trouble;
use super::objects::private_file;
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

/// Another aye may be keeping the first snapshot of a large tree.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// `ayes`, so that no other database is taken for this one.
const APPLICATION_ID: i64 = 0x6179_6573;
const VERSION: i64 = 2;

const TABLES: &str = "
    CREATE TABLE roots (key INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE);
    CREATE TABLE snapshots (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        root INTEGER NOT NULL REFERENCES roots (key),
        time INTEGER NOT NULL
    );
    CREATE TABLE versions (
        key INTEGER PRIMARY KEY,
        root INTEGER NOT NULL,
        path BLOB NOT NULL,
        since INTEGER NOT NULL,
        until INTEGER,
        content BLOB,
        link BLOB,
        bytes INTEGER NOT NULL,
        mode INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        looked_at INTEGER NOT NULL
    );
    CREATE INDEX versions_now ON versions (root, path) WHERE until IS NULL;
    CREATE INDEX versions_past ON versions (root, until) WHERE until IS NOT NULL;
    CREATE INDEX versions_content ON versions (content);
    CREATE TABLE contents (id BLOB PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
";

/// What stood where before a session changed it, and the commands that may be changing more. `stood` and `after` are what
/// `baselines` makes of them; the number tells which of a path came first.
const BASELINES: &str = "
    CREATE TABLE tracked (
        session TEXT PRIMARY KEY,
        number INTEGER NOT NULL,
        bytes INTEGER NOT NULL DEFAULT 0,
        files INTEGER NOT NULL DEFAULT 0,
        left_out INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE baselines (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL,
        task TEXT NOT NULL,
        path BLOB NOT NULL,
        stood BLOB NOT NULL,
        content BLOB,
        why TEXT,
        after BLOB,
        authors INTEGER NOT NULL,
        UNIQUE (session, path, task)
    );
    CREATE INDEX baselines_content ON baselines (content) WHERE content IS NOT NULL;
    CREATE TABLE spans (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL,
        task TEXT NOT NULL,
        root BLOB NOT NULL,
        snapshot INTEGER NOT NULL,
        open INTEGER NOT NULL
    );
    CREATE INDEX spans_session ON spans (session, open);
";

/// Opens the database, making it where it is missing. A damaged one is moved aside: it is about the past and holds nothing up.
pub(super) fn open(path: &Path) -> Result<Connection, Trouble> {
    match connect(path) {
        Err(Trouble::Database(error)) if is_damage(&error) => {
            let mut aside = path.as_os_str().to_owned();
            aside.push(format!(".damaged-{}", jiff::Timestamp::now().as_millisecond()));
            std::fs::rename(path, &aside)?;
            for suffix in ["-wal", "-shm"] {
                let mut companion = path.as_os_str().to_owned();
                companion.push(suffix);
                let _ = std::fs::remove_file(companion);
            }
            connect(path)
        }
        other => other,
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

fn connect(path: &Path) -> Result<Connection, Trouble> {
    private_file().open(path)?;
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    match (version, application) {
        (0, 0) => {
            transaction.execute_batch(TABLES)?;
            transaction.execute_batch(BASELINES)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        (1, APPLICATION_ID) => {
            transaction.execute_batch(BASELINES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        (VERSION, APPLICATION_ID) => {}
        (_, APPLICATION_ID) => {
            return Err(Trouble::Said("it was written by a newer aye; use that version, or move it away".to_owned()));
        }
        (_, _) => return Err(Trouble::Said("it is a database of another program; move it away".to_owned())),
    }
    transaction.commit()?;
    Ok(connection)
}
