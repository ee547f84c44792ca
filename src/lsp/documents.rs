//! Files that are open in a server, and the texts that the server has for them.

use super::connection::LspConnection;
use super::languages::Language;
use super::limits::{FILE_BYTES, OPEN_FILES};
use crate::ports::ProposedText;
use crate::text::file_uri;
use serde_json::json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files that are open in a language server.
#[derive(Default)]
pub(super) struct Documents {
    open: HashMap<PathBuf, OpenFile>,
    /// Version of the text sent most recently. Versions are never reused, so responses for a different text can be
    /// recognized.
    last_version: i64,
    /// Number of times that files have been used, by which the least recently used file is determined.
    uses: u64,
}

/// File that is open in the server, and the text that the server has for it.
struct OpenFile {
    hash: blake3::Hash,
    version: i64,
    /// Value of the connection's change counter when the text was sent.
    mark: u64,
    used: u64,
    /// Size and modification time of the file when its content was last known to be the same as this text.
    stamp: Option<(u64, SystemTime)>,
}

/// Text that the server has for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentText {
    pub version: i64,
    pub mark: u64,
}

impl Documents {
    /// Makes the server use this text for a file. Nothing is sent if the server already has it.
    pub(super) fn set(
        &mut self,
        connection: &LspConnection,
        language: &Language,
        path: &Path,
        text: &str,
    ) -> Result<SentText, String> {
        self.uses += 1;
        let hash = blake3::hash(text.as_bytes());
        if let Some(file) = self.open.get_mut(path).filter(|file| file.hash == hash) {
            file.used = self.uses;
            return Ok(SentText { version: file.version, mark: file.mark });
        }
        self.last_version += 1;
        let (version, mark) = (self.last_version, connection.mark());
        let uri = file_uri(path);
        if self.open.contains_key(path) {
            let params = json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": [{ "text": text }] });
            connection.notify("textDocument/didChange", &params)?;
        } else {
            self.make_room(connection)?;
            connection.follow(path);
            let id = language.id_of(path).unwrap_or_default();
            let document = json!({ "uri": uri, "languageId": id, "version": version, "text": text });
            connection.notify("textDocument/didOpen", &json!({ "textDocument": document }))?;
        }
        self.open.insert(path.to_owned(), OpenFile { hash, version, mark, used: self.uses, stamp: None });
        Ok(SentText { version, mark })
    }

    /// Closes a file, after which the server uses its content on disk.
    pub(super) fn close(&mut self, connection: &LspConnection, path: &Path) -> Result<(), String> {
        if self.open.remove(path).is_none() {
            return Ok(());
        }
        connection.unfollow(path);
        connection.notify("textDocument/didClose", &json!({ "textDocument": { "uri": file_uri(path) } }))
    }

    /// Closes files whose content on disk is no longer the text that the server has. Files in `except` stay open.
    pub(super) fn close_changed(&mut self, connection: &LspConnection, except: &[ProposedText]) -> Result<(), String> {
        let mut changed = Vec::new();
        for (path, file) in &mut self.open {
            if except.iter().any(|text| text.path == *path) {
                continue;
            }
            let stamp = stamp(path);
            if stamp.is_some() && stamp == file.stamp {
                continue;
            }
            match read(path) {
                Some(bytes) if blake3::hash(&bytes) == file.hash => file.stamp = stamp,
                _ => changed.push(path.clone()),
            }
        }
        changed.iter().try_for_each(|path| self.close(connection, path))
    }

    fn make_room(&mut self, connection: &LspConnection) -> Result<(), String> {
        while self.open.len() >= OPEN_FILES {
            let Some(oldest) = self.open.iter().min_by_key(|(_, file)| file.used).map(|(path, _)| path.clone()) else { break };
            self.close(connection, &oldest)?;
        }
        Ok(())
    }
}

fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = path.metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// Reads a file. Returns `None` if it is too large or is not a regular file.
fn read(path: &Path) -> Option<Vec<u8>> {
    let metadata = path.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() <= FILE_BYTES as u64)?;
    let bytes = std::fs::read(path).ok()?;
    (bytes.len() as u64 == metadata.len()).then_some(bytes)
}
