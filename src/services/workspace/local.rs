//! Local sessions in the form in which they are uploaded.

use super::chain::ChainScan;
use super::error::WorkspaceError;
use super::head::{Head, HeadArtifact};
use super::machine::Machine;
use crate::ports::Artifacts;
use crate::protocol::{Problem, SessionId};
use crate::services::redaction::RedactText;
use crate::session::{SessionActivity, without_authority};
use crate::store::{ArtifactStore, SessionSummary, Store};
use crate::transfer::export;
use jiff::Timestamp;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The sessions and artifacts on this machine.
#[derive(Clone)]
pub(crate) struct LocalSessions {
    pub store: Store,
    /// Opens the artifact store of a session.
    pub artifacts: Arc<dyn Fn(&SessionId) -> ArtifactStore + Send + Sync>,
    /// Workspace of sessions that are imported.
    pub workspace: PathBuf,
    /// Directory for temporary upload files.
    pub temporary: PathBuf,
    /// Redacts the texts of sessions before they are uploaded.
    pub redact: RedactText,
}

/// Session in the format that `aye sessions export` writes.
pub(super) struct Snapshot {
    /// Temporary file that contains the exported text.
    pub file: File,
    /// Size of the exported text in bytes.
    pub bytes: u64,
    pub digest: String,
    /// Digest of the local data from which the text was created.
    pub source: String,
    pub chain: ChainScan,
    pub title: Option<String>,
    pub workspace: String,
    pub updated: Timestamp,
    /// Whether one of the session's tasks is running on this machine.
    pub busy: bool,
    pub artifacts: Vec<LocalArtifact>,
    /// Notices about artifacts that will not be uploaded.
    pub notices: Vec<String>,
}

/// Artifact of a local session.
pub(super) struct LocalArtifact {
    pub entry: HeadArtifact,
    /// File that contains the artifact, or `None` if the object store already has its content.
    pub path: Option<PathBuf>,
}

impl LocalSessions {
    /// Returns a session for upload, including the digest of its first records, as many as the object store already
    /// has. Artifacts that the object store already has are not read.
    pub(super) async fn snapshot(
        &self,
        id: &SessionId,
        old: Option<&Head>,
        machine: &Machine,
    ) -> Result<Snapshot, WorkspaceError> {
        let (local, id, machine) = (self.clone(), id.clone(), machine.clone());
        let (at, known) = old.map_or((0, Vec::new()), |head| (head.records, head.artifacts.clone()));
        blocking(move || local.read(&id, at, (&known, &machine))).await
    }

    fn read(&self, id: &SessionId, at: u64, (known, machine): (&[HeadArtifact], &Machine)) -> Result<Snapshot, WorkspaceError> {
        let summary = self.store.find(id.as_str())?;
        // The digest is computed before the export, so that a record added during the export changes the digest.
        let source = self.source(&summary, machine)?;
        let failed = |error| {
            let problem = Problem::new(format!("cannot write a temporary file in `{}`", self.temporary.display())).because(error);
            WorkspaceError::local(problem)
        };
        let file = tempfile::tempfile_in(&self.temporary).map_err(failed)?;
        let mut writer = DigestWriter { to: BufWriter::new(file), hasher: blake3::Hasher::new(), bytes: 0 };
        let mut chain = ChainScan::new(at);
        let updated =
            export::write_json(&self.store, &summary, &*self.redact, &mut writer, &mut |time, record| chain.add(time, record))?;
        let DigestWriter { to, hasher, bytes } = writer;
        let file = to.into_inner().map_err(|error| failed(error.into_error()))?;
        let (artifacts, notices) = artifacts(&(self.artifacts)(id), known);
        let busy = is_busy(&summary);
        Ok(Snapshot {
            file,
            bytes,
            digest: hasher.finalize().to_hex().to_string(),
            source,
            chain,
            title: summary.title.as_deref().map(|title| (self.redact)(title)),
            workspace: summary.workspace,
            updated,
            busy,
            artifacts,
            notices,
        })
    }

    /// Returns a digest of the data from which a session is exported. It changes with each record, although the records
    /// themselves are not read.
    fn source(&self, summary: &SessionSummary, machine: &Machine) -> Result<String, WorkspaceError> {
        let id = &summary.session_id;
        let parent = summary.parent.as_ref().map_or("", SessionId::as_str);
        let (position, draft) = (self.store.position(id)?.to_string(), self.store.draft(id)?);
        let state = format!("{:?} {} {}", summary.status, is_busy(summary), summary.created);
        let title = summary.title.as_deref().unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        let version = env!("CARGO_PKG_VERSION");
        let own = [machine.id.as_str(), &position, &draft, &state, title, parent, &summary.workspace, &summary.model, version];
        for part in own {
            hasher.update(part.as_bytes()).update(&[0]);
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Returns whether this machine wrote the head and the session has not changed since. Does not read any records.
    pub(super) async fn is_unchanged(&self, id: &SessionId, head: &Head, machine: &Machine) -> Result<bool, WorkspaceError> {
        let (Some(source), Some(owner)) = (head.source.clone(), &head.owner) else { return Ok(false) };
        if !owner.is(machine) {
            return Ok(false);
        }
        let (local, id, machine) = (self.clone(), id.clone(), machine.clone());
        let (is_marked_busy, known) = (owner.busy, head.artifacts.clone());
        blocking(move || {
            let summary = local.store.find(id.as_str())?;
            if is_busy(&summary) != is_marked_busy || local.source(&summary, &machine)? != source {
                return Ok(false);
            }
            let (artifacts, notices) = artifacts(&(local.artifacts)(&id), &known);
            Ok(notices.is_empty() && artifacts.iter().map(|artifact| &artifact.entry).eq(&known))
        })
        .await
    }

    /// Computes the digests of a session, or returns `None` if the session does not exist on this machine.
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

/// Returns whether one of the session's tasks is running on this machine.
fn is_busy(summary: &SessionSummary) -> bool {
    summary.held_by.is_some() && matches!(summary.status, SessionActivity::Running | SessionActivity::Waiting)
}

/// Writer that also computes the digest and the size of what is written.
struct DigestWriter<W> {
    to: W,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, part: &[u8]) -> std::io::Result<usize> {
        self.to.write_all(part)?;
        self.hasher.update(part);
        self.bytes += part.len() as u64;
        Ok(part.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Returns the artifacts that are available on this machine or already known to the object store, with the digests of
/// their contents. Also returns notices about any others.
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

/// Looks up an artifact by its URI.
pub(super) async fn artifact(store: Arc<dyn Artifacts>, uri: String) -> Result<LocalArtifact, WorkspaceError> {
    blocking(move || {
        let failed = |why: String| WorkspaceError::local(Problem::new(format!("cannot upload `{uri}`")).because(why));
        let stored = store.find(&uri).map_err(|error| failed(error.message))?;
        let digest = digest_of(&stored.path).map_err(failed)?;
        Ok(LocalArtifact { entry: HeadArtifact { digest, artifact: stored.artifact }, path: Some(stored.path) })
    })
    .await
}

/// Returns the content digest that is encoded in the path of a stored artifact.
pub(super) fn digest_of(path: &Path) -> Result<String, String> {
    let name = |path: Option<&std::ffi::OsStr>| path.and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let digest = name(path.parent().and_then(Path::file_name)) + &name(path.file_name());
    if super::layout::is_digest(&digest) { Ok(digest) } else { Err(format!("`{}` has no digest in its name", path.display())) }
}

/// Runs blocking disk work on a separate thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    let failed = |error: tokio::task::JoinError| WorkspaceError::local(Problem::new("cannot read the session").because(error));
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
