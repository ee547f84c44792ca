//! Schema of the snapshot database: the content of each path from one snapshot to the next.

use crate::store::index_file::IndexFormat;

/// Database format; the application ID spells `ayes`.
pub(super) const SHAPE: IndexFormat =
    IndexFormat { application_id: 0x6179_6573, versions: &[TABLES, BASELINES, STEPS, RECORDED] };

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

/// States of paths before a session changed them, and running commands. The module `baselines` defines the format of
/// `stood` and `after`. The number orders the rows of a path.
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

/// Baselines per step, directories, and gaps. Rows written without a step belong to no step.
const STEPS: &str = "
    CREATE TABLE stepwise (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL,
        task TEXT NOT NULL,
        step INTEGER NOT NULL,
        path BLOB NOT NULL,
        stood BLOB NOT NULL,
        content BLOB,
        why TEXT,
        after BLOB,
        authors INTEGER NOT NULL,
        UNIQUE (session, path, task, step)
    );
    INSERT INTO stepwise (number, session, task, step, path, stood, content, why, after, authors)
        SELECT number, session, task, 0, path, stood, content, why, after, authors FROM baselines;
    DROP TABLE baselines;
    ALTER TABLE stepwise RENAME TO baselines;
    CREATE INDEX baselines_content ON baselines (content) WHERE content IS NOT NULL;
    CREATE INDEX baselines_steps ON baselines (session, step);
    ALTER TABLE spans ADD COLUMN step INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE directories (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL,
        task TEXT NOT NULL,
        step INTEGER NOT NULL,
        path BLOB NOT NULL,
        made INTEGER NOT NULL,
        mode INTEGER NOT NULL,
        UNIQUE (session, path, task, step)
    );
    CREATE INDEX directories_steps ON directories (session, step);
    CREATE TABLE gaps (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL,
        step INTEGER NOT NULL,
        words TEXT NOT NULL,
        UNIQUE (session, step, words)
    );
";

/// Number of the newest command of all sessions when `after` was recorded. Records from before the start of a command
/// are not results of a call that ran at the same time. Earlier versions recorded the newest command of the session,
/// which is never greater.
const RECORDED: &str = "ALTER TABLE baselines ADD COLUMN newest_span INTEGER NOT NULL DEFAULT 0;";
