//! Sessions of this machine, in the form in which they are uploaded.

use super::chain::ChainScan;
use super::error::WorkspaceError;
use super::head::{Head, HeadArtifact};
use crate::ports::Artifacts;
use crate::protocol::{Problem, SessionId};
use crate::session::{SessionActivity, without_authority};
use crate::store::{ArtifactStore, Store};
use crate::transfer::export;
use jiff::Timestamp;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sessions and artifacts of this machine.
#[derive(Clone)]
pub(crate) struct LocalSessions {
    pub store: Store,
    /// Function that opens the artifacts of a session.
    pub artifacts: Arc<dyn Fn(&SessionId) -> ArtifactStore + Send + Sync>,
    /// Workspace of new sessions.
    pub workspace: PathBuf,
}

/// Session in the form that `aye sessions export` writes.
pub(super) struct Snapshot {
    pub text: Vec<u8>,
    /// BLAKE3 digest of the text.
    pub digest: String,
    pub chain: ChainScan,
    pub title: Option<String>,
    pub workspace: String,
    pub updated: Timestamp,
    /// Whether a task of the session is running on this machine.
    pub busy: bool,
    pub artifacts: Vec<LocalArtifact>,
    /// Notices about artifacts that are not uploaded.
    pub notices: Vec<String>,
}

/// Artifact of a session.
pub(super) struct LocalArtifact {
    pub entry: HeadArtifact,
    /// File with its content; `None` if the store already contains it.
    pub path: Option<PathBuf>,
}

impl LocalSessions {
    /// Returns a session, with the digest of as many records as the store contains. Does not read artifacts that the
    /// store contains.
    pub(super) async fn snapshot(&self, id: &SessionId, old: Option<&Head>) -> Result<Snapshot, WorkspaceError> {
        let (local, id) = (self.clone(), id.clone());
        let (at, known) = old.map_or((0, Vec::new()), |head| (head.records, head.artifacts.clone()));
        blocking(move || local.read(&id, at, &known)).await
    }

    fn read(&self, id: &SessionId, at: u64, known: &[HeadArtifact]) -> Result<Snapshot, WorkspaceError> {
        let summary = self.store.find(id.as_str())?;
        let checkpoint = export::checkpoint(&self.store, &summary, None)?;
        let mut chain = ChainScan::new(at);
        for written in &checkpoint.aye.records {
            chain.add(written.time, &written.entry);
        }
        let updated = checkpoint.checkpointed_at;
        let text = export::as_json(&checkpoint)?.into_bytes();
        let (artifacts, notices) = artifacts(&(self.artifacts)(id), known);
        Ok(Snapshot {
            digest: blake3::hash(&text).to_hex().to_string(),
            text,
            chain,
            title: summary.title,
            workspace: summary.workspace,
            updated,
            busy: summary.held_by.is_some() && matches!(summary.status, SessionActivity::Running | SessionActivity::Waiting),
            artifacts,
            notices,
        })
    }

    /// Returns the digests of a session; `None` if it does not exist on this machine.
    pub(super) async fn chain(&self, id: &SessionId, at: u64) -> Result<Option<ChainScan>, WorkspaceError> {
        let (local, id) = (self.clone(), id.clone());
        blocking(move || {
            if !crate::transfer::import::is_there(&local.store, &id) {
                return Ok(None);
            }
            let mut chain = ChainScan::new(at);
            local.store.for_each_record(&id, |written| {
                if let Some(record) = without_authority(written.record) {
                    chain.add(written.time, &record);
                }
                ControlFlow::Continue(())
            })?;
            Ok(Some(chain))
        })
        .await
    }
}

/// Returns the artifacts that exist here or in the store, with the digests of their contents.
fn artifacts(store: &ArtifactStore, known: &[HeadArtifact]) -> (Vec<LocalArtifact>, Vec<String>) {
    let (mut found, mut notices) = (Vec::new(), Vec::new());
    if !store.is_there() {
        return (found, notices);
    }
    let known: HashMap<&str, &HeadArtifact> = known.iter().map(|entry| (entry.artifact.uri.as_str(), entry)).collect();
    for artifact in store.list().unwrap_or_default() {
        if let Some(entry) = known.get(artifact.uri.as_str()) {
            found.push(LocalArtifact { entry: HeadArtifact { digest: entry.digest.clone(), artifact }, path: None });
            continue;
        }
        let stored = store.find(&artifact.uri).map_err(|error| error.to_string());
        match stored.and_then(|stored| digest_of(&stored.path).map(|digest| (stored.path, digest))) {
            Ok((path, digest)) => found.push(LocalArtifact { entry: HeadArtifact { digest, artifact }, path: Some(path) }),
            Err(reason) => notices.push(format!("skipped an artifact: {reason}")),
        }
    }
    (found, notices)
}

/// Returns an artifact by its URI.
pub(super) async fn artifact(store: Arc<dyn Artifacts>, uri: String) -> Result<LocalArtifact, WorkspaceError> {
    blocking(move || {
        let failed = |why: String| WorkspaceError::local(Problem::new(format!("cannot upload `{uri}`")).because(why));
        let stored = store.find(&uri).map_err(|error| failed(error.message))?;
        let digest = digest_of(&stored.path).map_err(failed)?;
        Ok(LocalArtifact { entry: HeadArtifact { digest, artifact: stored.artifact }, path: Some(stored.path) })
    })
    .await
}

/// Returns the digest in the path of stored content.
pub(super) fn digest_of(path: &Path) -> Result<String, String> {
    let name = |path: Option<&std::ffi::OsStr>| path.and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let digest = name(path.parent().and_then(Path::file_name)) + &name(path.file_name());
    if super::layout::is_digest(&digest) { Ok(digest) } else { Err(format!("`{}` has no digest in its name", path.display())) }
}

/// Runs work that reads the disk on another thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    let failed = |error: tokio::task::JoinError| WorkspaceError::local(Problem::new("cannot read the session").because(error));
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
