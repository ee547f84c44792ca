//! Schema of the snapshot database, which records the content of each path from one snapshot to the next.

use crate::store::index_file::IndexFormat;

/// Database format, whose application ID spells `ayes`.
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

/// Tables with path states before a session changed them, and with running commands. The format of `stood` and `after`
/// is defined in the module `path_state`. `number` orders the rows of each path.
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

/// Tables that divide baselines by step, and record directories and gaps. Rows written by older versions belong to no
/// step.
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

/// Column with the number of the most recent command in any session when `after` was recorded. A state that was
/// recorded before a command started cannot be the result of a call that ran alongside the command. Earlier versions
/// recorded the most recent command of the same session, whose number is never greater.
const RECORDED: &str = "ALTER TABLE baselines ADD COLUMN newest_span INTEGER NOT NULL DEFAULT 0;";
