//! The language servers of a session.

use super::languages::{LANGUAGES, Language};
use super::limits::{FILE_BYTES, FILES};
use super::server::{FindCommand, LanguageServer, ServerContext};
use super::session::Purpose;
use crate::ports::{BoxFuture, Diagnostics, Launcher, ProposedText};
use crate::protocol::{FileDiagnostics, LanguageServerStatus};
use futures_util::FutureExt;
use futures_util::future::join_all;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Servers for the enabled languages. Each one is started by the first query about a file in its language.
pub(crate) struct LanguageServers {
    /// Directories of the session. Files outside of them are not sent to servers.
    roots: Vec<PathBuf>,
    workspace: PathBuf,
    servers: Vec<LanguageServer>,
}

impl LanguageServers {
    pub(crate) fn new(
        (workspace, roots): (&Path, &[PathBuf]),
        is_enabled: impl Fn(&Language) -> bool,
        launcher: Arc<dyn Launcher>,
        find: FindCommand,
    ) -> Self {
        let environment = Arc::new(ServerContext { workspace: workspace.to_owned(), launcher, find });
        let enabled = LANGUAGES.iter().filter(|language| is_enabled(language));
        let servers = enabled.map(|language| LanguageServer::new(language, Arc::clone(&environment))).collect();
        Self { roots: roots.to_vec(), workspace: workspace.to_owned(), servers }
    }

    async fn check(&self, texts: Vec<ProposedText>, purpose: Purpose) -> Vec<FileDiagnostics> {
        let is_small = |text: &Option<String>| text.as_ref().is_none_or(|text| text.len() <= FILE_BYTES);
        let fits = |text: &ProposedText| {
            self.roots.iter().any(|root| text.path.starts_with(root)) && is_small(&text.before) && is_small(&text.after)
        };
        let texts: Vec<ProposedText> = texts.into_iter().filter(fits).take(FILES).collect();
        let name = |path: &Path| path.strip_prefix(&self.workspace).unwrap_or(path).to_string_lossy().into_owned();
        let queries = self.servers.iter().filter_map(|server| {
            let own: Vec<ProposedText> = texts.iter().filter(|text| server.covers(&text.path)).cloned().collect();
            (!own.is_empty()).then(|| server.check(own, purpose, name))
        });
        join_all(queries).await.into_iter().flatten().collect()
    }
}

impl Diagnostics for LanguageServers {
    fn check_proposal(&self, texts: Vec<ProposedText>) -> BoxFuture<'_, Vec<FileDiagnostics>> {
        self.check(texts, Purpose::Proposal).boxed()
    }

    fn check_saved(&self, texts: Vec<ProposedText>) -> BoxFuture<'_, Vec<FileDiagnostics>> {
        self.check(texts, Purpose::Saved).boxed()
    }

    fn covers(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root)) && self.servers.iter().any(|server| server.covers(path))
    }

    fn statuses(&self) -> Vec<LanguageServerStatus> {
        self.servers.iter().map(LanguageServer::status).collect()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        join_all(self.servers.iter().map(LanguageServer::end)).map(drop).boxed()
    }
}
