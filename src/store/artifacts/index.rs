//! Artifact index: hashes, descriptions and times of last use.

use super::ArtifactLimits;
use super::contents::{self, ArtifactContents};
use crate::ports::{NewArtifact, StoredArtifact};
use crate::protocol::{ARTIFACT_SCHEME, Artifact, ArtifactKind};
use crate::store::index_file::{self, IndexError, IndexFormat};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::path::Path;
use tempfile::NamedTempFile;

/// Number of hash digits in a URI, which is enough to make it unique.
const URI_DIGITS: usize = 24;
/// Minimum number of hash digits in a shortened URI.
const MIN_DIGITS: usize = 12;
/// Maximum number of evicted artifacts that the index remembers.
const GIVEN_UP: u64 = 10_000;

/// Database format, whose application ID spells `ayea`.
const SHAPE: IndexFormat = IndexFormat {
    application_id: 0x6179_6561,
    versions: &["
    CREATE TABLE contents (hash TEXT PRIMARY KEY, bytes INTEGER NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE artifacts (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        hash TEXT NOT NULL,
        session TEXT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        content_type TEXT NOT NULL,
        created INTEGER NOT NULL,
        UNIQUE (hash, session)
    );
    CREATE INDEX artifacts_session ON artifacts (session);
    CREATE TABLE given_up (key INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE);
"],
};

pub(super) struct Index {
    pub(super) connection: Connection,
    pub(super) contents: ArtifactContents,
    pub(super) limits: ArtifactLimits,
}

impl Index {
    /// Opens the index and repairs it if a crash left it incomplete.
    pub(super) fn open(directory: &Path, limits: ArtifactLimits) -> Result<Self, IndexError> {
        let contents = ArtifactContents::open(directory.join(contents::DIRECTORY))?;
        let connection = index_file::open(&directory.join("index.db"), &SHAPE)?;
        let mut index = Self { connection, contents, limits };
        index.tidy()?;
        Ok(index)
    }

    pub(super) fn contents(&self) -> &ArtifactContents {
        &self.contents
    }

    /// Adds missing rows for contents on disk. Content files get their final names while the index is locked, so a
    /// content without a row was either stored just before a crash, or its row was damaged. Either way, the content is
    /// complete and worth keeping.
    fn tidy(&mut self) -> Result<(), IndexError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (hash, bytes) in self.contents.tidy()? {
            let insert = "INSERT OR IGNORE INTO contents (hash, bytes, used) VALUES (?1, ?2, ?3)";
            transaction.execute(insert, params![hash, bytes.cast_signed(), now()])?;
        }
        Ok(transaction.commit()?)
    }

    pub(super) fn add(
        &mut self,
        hash: &str,
        bytes: u64,
        new: NewArtifact,
        session: &str,
        file: NamedTempFile,
    ) -> Result<Artifact, IndexError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.contents.name(hash, file)?;
        let content = "INSERT INTO contents (hash, bytes, used) VALUES (?1, ?2, ?3) ON CONFLICT (hash) DO UPDATE SET used = ?3";
        transaction.execute(content, params![hash, bytes.cast_signed(), now()])?;
        transaction.execute(
            "INSERT INTO artifacts (hash, session, kind, name, content_type, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (hash, session) DO UPDATE SET kind = ?3, name = ?4, content_type = ?5, created = ?6",
            params![hash, session, kind_name(new.kind), new.name, new.content_type, now()],
        )?;
        transaction.execute("DELETE FROM given_up WHERE hash = ?1", [hash])?;
        evict(&transaction, &self.contents, self.limits, hash)?;
        transaction.commit()?;
        let NewArtifact { kind, name, content_type } = new;
        Ok(Artifact { uri: uri(hash), kind, name, content_type, bytes })
    }

    pub(super) fn find(&mut self, given: &str) -> Result<StoredArtifact, IndexError> {
        let digits = given.strip_prefix(ARTIFACT_SCHEME).unwrap_or(given).to_ascii_lowercase();
        if digits.len() < MIN_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let message =
                format!("`{given}` is not an artifact URI; copy it from a tool result: {ARTIFACT_SCHEME} and hex digits");
            return Err(IndexError::Other(message));
        }
        let range = params![digits, format!("{digits}g")];
        let hash = "SELECT hash FROM contents WHERE hash >= ?1 AND hash < ?2 ORDER BY hash LIMIT 1";
        let Some(hash) = self.connection.query_row(hash, range, |row| row.get::<_, String>(0)).optional()? else {
            return Err(self.missing_error(given, &digits)?);
        };
        match self.contents.matches_hash(&hash) {
            Ok(true) => {}
            Ok(false) => {
                let message = format!("the content of {given} is damaged; run the tool call that produced it again");
                return Err(IndexError::Other(message));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(evicted_error(given)),
            Err(error) => return Err(error.into()),
        }
        // The time of last use only determines the eviction order, so a failed update does not prevent reading.
        let _ = self.connection.execute("UPDATE contents SET used = ?2 WHERE hash = ?1", params![hash, now()]);
        let told = "SELECT hash, kind, name, content_type, bytes FROM contents LEFT JOIN artifacts USING (hash)
                    WHERE hash = ?1 ORDER BY key DESC LIMIT 1";
        let artifact = self.connection.query_row(told, [&hash], artifact)?;
        // Resolve symlinks, because readers do not follow any.
        Ok(StoredArtifact { artifact, path: self.contents.path(&hash).canonicalize()? })
    }

    /// Returns the session's artifacts, oldest first.
    pub(super) fn list(&mut self, session: &str) -> Result<Vec<Artifact>, IndexError> {
        let mut rows = self.connection.prepare(
            "SELECT hash, kind, name, content_type, bytes FROM artifacts JOIN contents USING (hash)
             WHERE session = ?1 ORDER BY created, key",
        )?;
        let found = rows.query_map([session], artifact)?.collect::<Result<_, _>>()?;
        Ok(found)
    }

    fn missing_error(&self, given: &str, digits: &str) -> Result<IndexError, IndexError> {
        let range = params![digits, format!("{digits}g")];
        let was = "SELECT count(*) FROM given_up WHERE hash >= ?1 AND hash < ?2";
        let was: i64 = self.connection.query_row(was, range, |row| row.get(0))?;
        Ok(if was > 0 {
            evicted_error(given)
        } else {
            IndexError::Other(format!(
                "unknown artifact {given}; copy the URI exactly from the tool result, or run that tool call again"
            ))
        })
    }
}

fn evicted_error(given: &str) -> IndexError {
    IndexError::Other(format!("{given} was evicted for newer artifacts; run the tool call that produced it again"))
}

/// Evicts the least recently used contents until the rest fit within the limit. Never evicts the content that was just
/// stored.
pub(super) fn evict(
    transaction: &Transaction<'_>,
    contents: &ArtifactContents,
    limits: ArtifactLimits,
    keep: &str,
) -> Result<(), IndexError> {
    loop {
        let all = "SELECT coalesce(sum(bytes), 0), count(*) FROM contents";
        let (bytes, count): (i64, i64) = transaction.query_row(all, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if bytes.unsigned_abs() <= limits.all_bytes && count.unsigned_abs() <= limits.count {
            return Ok(());
        }
        let oldest = "SELECT hash FROM contents WHERE hash <> ?1 ORDER BY used, hash LIMIT 1";
        let Some(oldest) = transaction.query_row(oldest, [keep], |row| row.get::<_, String>(0)).optional()? else {
            return Ok(());
        };
        // The row is deleted after the file: a crash in between leaves a row without content, which reads as evicted.
        contents.remove(&oldest)?;
        transaction.execute("DELETE FROM contents WHERE hash = ?1", [&oldest])?;
        transaction.execute("DELETE FROM artifacts WHERE hash = ?1", [&oldest])?;
        transaction.execute("INSERT OR IGNORE INTO given_up (hash) VALUES (?1)", [&oldest])?;
        let forget = "DELETE FROM given_up WHERE key <= (SELECT max(key) FROM given_up) - ?1";
        transaction.execute(forget, [GIVEN_UP.cast_signed()])?;
    }
}

fn artifact(row: &Row<'_>) -> rusqlite::Result<Artifact> {
    let (hash, kind): (String, Option<String>) = (row.get(0)?, row.get(1)?);
    let (name, content_type): (Option<String>, Option<String>) = (row.get(2)?, row.get(3)?);
    Ok(Artifact {
        uri: uri(&hash),
        kind: kind.as_deref().map_or(ArtifactKind::ToolOutput, parse_kind),
        name: name.unwrap_or_else(|| "(name lost in a crash)".to_owned()),
        content_type: content_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        bytes: row.get::<_, i64>(4)?.unsigned_abs(),
    })
}

pub(super) fn uri(hash: &str) -> String {
    format!("{ARTIFACT_SCHEME}{}", &hash[..URI_DIGITS.min(hash.len())])
}

fn kind_name(kind: ArtifactKind) -> &'static str {
    match kind {
        ArtifactKind::ToolOutput => "tool_output",
        ArtifactKind::FileDiff => "file_diff",
        ArtifactKind::Image => "image",
        ArtifactKind::File => "file",
    }
}

fn parse_kind(word: &str) -> ArtifactKind {
    match word {
        "file_diff" => ArtifactKind::FileDiff,
        "image" => ArtifactKind::Image,
        "file" => ArtifactKind::File,
        _ => ArtifactKind::ToolOutput,
    }
}

pub(super) fn now() -> i64 {
    i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}
