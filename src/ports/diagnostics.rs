//! Language server diagnostics for proposed and saved text.

use super::BoxFuture;
use crate::protocol::{FileDiagnostics, LanguageServerStatus};
use std::path::{Path, PathBuf};

/// Text of a file before and after a change. `None` means that the file does not exist at that point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProposedText {
    /// Path with symlinks resolved.
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// A session's language servers. Queries return within a time limit even if a server does not respond; that server's
/// files are then missing from the result. A server is started only when a file in one of its languages is queried.
pub(crate) trait Diagnostics: Send + Sync {
    /// Returns the diagnostics for an unsaved change. Afterwards, the servers use the files on disk again.
    fn check_proposal(&self, texts: Vec<ProposedText>) -> BoxFuture<'_, Vec<FileDiagnostics>>;
    /// Notifies the servers that the change has been saved and returns its diagnostics.
    fn check_saved(&self, texts: Vec<ProposedText>) -> BoxFuture<'_, Vec<FileDiagnostics>>;
    /// Returns whether a server handles the file, based on the file's location and language.
    fn covers(&self, path: &Path) -> bool;
    /// Returns the state of each language server.
    fn statuses(&self) -> Vec<LanguageServerStatus>;
    /// Shuts down all servers. The future completes once their processes have exited.
    fn end(&self) -> BoxFuture<'_, ()>;
}
