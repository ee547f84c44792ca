//! Diagnostics of language servers about proposed and saved text.

use super::BoxFuture;
use crate::protocol::{FileDiagnostics, LanguageServerStatus};
use std::path::{Path, PathBuf};

/// Text of a file before and after a change. A side without text means that the file does not exist
/// there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProposedText {
    /// Path with symlinks resolved.
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// Language servers of a session. A query returns within its time limit even if a server does not; files without a
/// response are missing from the result. No server is started for files that it does not cover.
pub(crate) trait Diagnostics: Send + Sync {
    /// Returns the diagnostics of an unsaved change. Afterwards, the servers see the files as they are on disk.
    fn check_proposal(&self, texts: Vec<ProposedText>) -> BoxFuture<'_, Vec<FileDiagnostics>>;
    /// Notifies the servers that the change is saved, and returns its diagnostics.
    fn check_saved(&self, texts: Vec<ProposedText>) -> BoxFuture<'_, Vec<FileDiagnostics>>;
    /// Returns whether a server covers the language of a file.
    fn covers(&self, path: &Path) -> bool;
    /// Returns the state of each language server.
    fn statuses(&self) -> Vec<LanguageServerStatus>;
    /// Ends all servers; completes when their processes have exited.
    fn end(&self) -> BoxFuture<'_, ()>;
}
