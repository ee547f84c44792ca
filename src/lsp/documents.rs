//! Open files of a server, with the text that the server sees.

use super::connection::LspConnection;
use super::languages::Language;
use super::limits::{FILE_BYTES, OPEN_FILES};
use crate::ports::ProposedText;
use crate::text::file_uri;
use serde_json::json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Open files of one server.
#[derive(Default)]
pub(super) struct Documents {
    open: HashMap<PathBuf, OpenFile>,
    /// Version of the last text. Versions are never reused, so that responses about another text are recognized.
    last_version: i64,
    /// Counter of uses, to close the least recently used file.
    uses: u64,
}

/// Text of an open file, as the server sees it.
struct OpenFile {
    hash: blake3::Hash,
    version: i64,
    /// State of the connection when the text was sent.
    mark: u64,
    used: u64,
    /// Size and time of the file when its content was last known to be this text.
    stamp: Option<(u64, SystemTime)>,
}

/// Text that a server sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentText {
    pub version: i64,
    pub mark: u64,
}

impl Documents {
    /// Sends this text of a file to the server, unless the server already has it.
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

    /// Makes the server use the file on disk.
    pub(super) fn close(&mut self, connection: &LspConnection, path: &Path) -> Result<(), String> {
        if self.open.remove(path).is_none() {
            return Ok(());
        }
        connection.unfollow(path);
        connection.notify("textDocument/didClose", &json!({ "textDocument": { "uri": file_uri(path) } }))
    }

    /// Closes files whose content on disk differs from the text that the server has, except these.
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

/// Returns the content of a file; `None` if it is too large or not a regular file.
fn read(path: &Path) -> Option<Vec<u8>> {
    let metadata = path.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() <= FILE_BYTES as u64)?;
    let bytes = std::fs::read(path).ok()?;
    (bytes.len() as u64 == metadata.len()).then_some(bytes)
}
