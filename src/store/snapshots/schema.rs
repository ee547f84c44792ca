//! The database of the snapshots: a path has a content from one snapshot until another.

use crate::store::index_file::Shape;

/// `ayes`.
pub(super) const SHAPE: Shape = Shape { application_id: 0x6179_6573, version: 1, tables: TABLES };

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
