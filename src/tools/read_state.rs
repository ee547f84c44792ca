//! Content of each file as the model last saw it, so that changes by others are not overwritten unnoticed.
//!
//! Timestamps are not reliable: tools set them back, or change them without changing the file. A file is therefore
//! identified by the hash of its content; a file of more than 64 MB by its size and samples.

use crate::protocol::{ErrorCode, Target, ToolError};
use crate::sys::file::Fingerprint;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of files. Beyond it, the file that was seen longest ago is dropped and no longer protected.
const MAX_FILES: usize = 4096;

/// The list shared by all routers of a session.
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
    /// Records that the model is about to see this file. Must be called before the file is read: a change in between
    /// then counts as unseen, never the reverse.
    pub(in crate::tools) fn begin_read(&self, real: &Path) {
        if let Ok(content) = Fingerprint::from_file(real) {
            self.lock_files().keep(real, content);
        }
    }

    /// Records that the model sees this content, which is not on disk.
    pub(in crate::tools) fn record_read(&self, real: &Path, content: Fingerprint) {
        self.lock_files().keep(real, content);
    }

    /// Returns whether the file still has the content that the model last saw. Unseen and missing files pass.
    ///
    /// Used before a change that does not require reading the file. If it returns false, the file is not recorded as
    /// `wrote` afterwards, so that the changes of others stay unseen.
    pub(in crate::tools) fn is_current(&self, real: &Path) -> bool {
        let Some(known) = self.lock_files().known.get(real).map(|look| look.content) else { return true };
        match Fingerprint::from_file(real) {
            Ok(content) => content == known,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Records that this content was written for the model.
    pub(in crate::tools) fn record_write(&self, real: &Path, content: Fingerprint) {
        self.lock_files().keep(real, content);
    }

    /// Writes files that need not have been read, and records their new content.
    pub(in crate::tools) fn write_unread<T, E>(&self, reals: &[&Path], write: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let stood: Vec<&Path> = reals.iter().copied().filter(|real| self.is_current(real)).collect();
        let done = write()?;
        for real in stood {
            self.begin_read(real);
        }
        Ok(done)
    }

    /// Refuses a change that is based on outdated content. Must be called after the file was read for the change, which
    /// compares the file again itself.
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
