//! Tracks the content of each file as the model last saw it, so that changes made by others are not overwritten
//! unnoticed.
//!
//! Timestamps are not reliable, because tools set them back or change them without changing the file. A file is
//! therefore identified by a hash of its content or, if it is larger than 64 MB, by its size and samples of its
//! content.

use crate::protocol::{ErrorCode, Target, ToolError};
use crate::sys::file::Fingerprint;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of files to track. Beyond that, the file that was seen longest ago is dropped and no longer
/// protected.
const MAX_FILES: usize = 4096;

/// Content of the files that the model has seen, shared by all routers in a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadState(Arc<Mutex<SeenFiles>>);

#[derive(Debug, Default)]
struct SeenFiles {
    looks: u64,
    known: HashMap<PathBuf, ReadEntry>,
}

#[derive(Debug)]
struct ReadEntry {
    /// Sequence number of the entry.
    number: u64,
    content: Fingerprint,
}

impl ReadState {
    /// Records that the model is about to see this file. Must be called before the file is read, so that a change made
    /// in between is considered unseen.
    pub(in crate::tools) fn begin_read(&self, real: &Path) {
        if let Ok(content) = Fingerprint::from_file(real) {
            self.lock_files().keep(real, content);
        }
    }

    /// Records that the model is shown this content, which is not that of the file on disk.
    pub(in crate::tools) fn record_read(&self, real: &Path, content: Fingerprint) {
        self.lock_files().keep(real, content);
    }

    /// Returns whether the file still has the content that the model last saw. Also returns `true` if the model has not
    /// seen the file or if the file does not exist.
    ///
    /// Used before a change that does not require the file to have been read. If this returns `false`, the caller must
    /// not record its write, so that the changes made by others remain unseen.
    pub(in crate::tools) fn is_current(&self, real: &Path) -> bool {
        let Some(known) = self.lock_files().known.get(real).map(|look| look.content) else { return true };
        match Fingerprint::from_file(real) {
            Ok(content) => content == known,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Records that this content was written on the model's behalf.
    pub(in crate::tools) fn record_write(&self, real: &Path, content: Fingerprint) {
        self.lock_files().keep(real, content);
    }

    /// Writes to files that the model need not have read. Afterwards, records the new content of those whose content
    /// the model had last seen or had never seen.
    pub(in crate::tools) fn write_unread<T, E>(&self, reals: &[&Path], write: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let stood: Vec<&Path> = reals.iter().copied().filter(|real| self.is_current(real)).collect();
        let done = write()?;
        for real in stood {
            self.begin_read(real);
        }
        Ok(done)
    }

    /// Rejects a change that is based on outdated content. Must be called after the file has been read for the change.
    /// The change itself compares the file once more.
    pub(in crate::tools) fn check(&self, target: &Target) -> Result<(), ToolError> {
        if self.is_current(&target.real) {
            return Ok(());
        }
        let message = format!("`{}` changed since you read it, so nothing was written; read it again", target.given);
        Err(ToolError::new(ErrorCode::Conflict, message))
    }

    fn lock_files(&self) -> MutexGuard<'_, SeenFiles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SeenFiles {
    fn keep(&mut self, real: &Path, content: Fingerprint) {
        self.looks += 1;
        self.known.insert(real.to_owned(), ReadEntry { number: self.looks, content });
        if self.known.len() > MAX_FILES
            && let Some(oldest) = self.known.iter().min_by_key(|(_, look)| look.number).map(|(path, _)| path.clone())
        {
            self.known.remove(&oldest);
        }
    }
}
