//! What the model last saw of each file, by its content: nobody else's change is overwritten as if it had not been made.
//!
//! A time stamp proves nothing: it stays where a tool sets it back, and changes where nothing did. A file is known by the hash of
//! its content; one of more than 64 MB by its size and samples of it.

use crate::protocol::{ErrorCode, Target, ToolError};
use crate::sys::file::Fingerprint;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Of more files than this the one that was looked at longest ago is forgotten, and with it what would be refused.
const MAX_FILES: usize = 4096;

/// The list that all routers of a session share.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    looks: u64,
    known: HashMap<PathBuf, Look>,
}

#[derive(Debug)]
struct Look {
    /// The how manieth it was.
    number: u64,
    content: Fingerprint,
}

impl Seen {
    /// The model is about to be shown this file, or a part of it. To be called before it is read: what changes in between is then
    /// taken for unseen, and never the other way round.
    pub(in crate::tools) fn looks_at(&self, real: &Path) {
        if let Ok(content) = Fingerprint::of_file(real) {
            self.locked().keep(real, content);
        }
    }

    /// The model is shown this content of it, which does not stand on the disk.
    pub(in crate::tools) fn saw(&self, real: &Path, content: Fingerprint) {
        self.locked().keep(real, content);
    }

    /// Whether what stands there is what the model saw last. Files that it never saw pass, and so do those that are gone.
    ///
    /// Before a change that the model need not have read the file for: where it did not stand, it is not `wrote` afterwards, so that
    /// what somebody else did to the file stays unseen.
    pub(in crate::tools) fn stands(&self, real: &Path) -> bool {
        let Some(known) = self.locked().known.get(real).map(|look| look.content) else { return true };
        match Fingerprint::of_file(real) {
            Ok(content) => content == known,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// This content was written for the model.
    pub(in crate::tools) fn wrote(&self, real: &Path, content: Fingerprint) {
        self.locked().keep(real, content);
    }

    /// Does a write of these files that need not have been read for it, and takes note of what stands there afterwards.
    pub(in crate::tools) fn around<T, E>(&self, reals: &[&Path], write: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let stood: Vec<&Path> = reals.iter().copied().filter(|real| self.stands(real)).collect();
        let done = write()?;
        for real in stood {
            self.looks_at(real);
        }
        Ok(done)
    }

    /// Refuses what relies on what the model saw of a file, where that is no longer what stands there. To be called after the file
    /// was read for the change: the change itself compares it again.
    pub(in crate::tools) fn check(&self, target: &Target) -> Result<(), ToolError> {
        if self.stands(&target.real) {
            return Ok(());
        }
        let message = format!("`{}` changed since you read it; nothing was written, read it again", target.given);
        Err(ToolError::new(ErrorCode::Conflict, message))
    }

    fn locked(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    fn keep(&mut self, real: &Path, content: Fingerprint) {
        self.looks += 1;
        self.known.insert(real.to_owned(), Look { number: self.looks, content });
        if self.known.len() > MAX_FILES
            && let Some(oldest) = self.known.iter().min_by_key(|(_, look)| look.number).map(|(path, _)| path.clone())
        {
            self.known.remove(&oldest);
        }
    }
}
