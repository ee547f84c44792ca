//! Pulling a session from the object store in order to continue it on this machine.

use super::bucket::{Bucket, ObjectVersion, Replaced};
use super::chain::ChainScan;
use super::error::{WorkspaceError, WorkspaceProblem};
use super::fetch::{self, FetchedHistory};
use super::head::{Head, HeadArtifact, SessionOwner};
use super::layout;
use super::local::LocalSessions;
use super::machine::Machine;
use super::push::diverged;
use crate::ports::{ArtifactWriter, Artifacts, NewArtifact};
use crate::protocol::{Problem, SessionId};
use crate::store::{ArtifactStore, Claim};
use crate::transfer::import::new_id;
use std::io::{Error, Write};

/// Maximum number of attempts if other machines keep pushing the session at the same time.
const ATTEMPTS: usize = 4;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PullOptions {
    /// Whether to take over a session even if its task is running on another machine.
    pub take_over: bool,
    /// Whether to import the history as a separate session with a new ID.
    pub fork: bool,
}

/// Result of a pull on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullResult {
    /// The session did not exist on this machine and was imported.
    New,
    /// New records were appended to the existing session on this machine.
    Extended,
    UpToDate,
    /// Nothing was changed, because this machine has records that the object store does not have yet.
    Ahead,
}

/// Outcome of a pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pulled {
    pub id: SessionId,
    pub result: PullResult,
    /// Number of records in the history.
    pub records: u64,
    pub notices: Vec<String>,
}

/// Session in the object store, and how it compares with the session on this machine.
struct RemoteSession {
    head: Head,
    version: ObjectVersion,
    /// The history, unless the session on this machine already contains all of it.
    history: Option<FetchedHistory>,
    result: PullResult,
    /// Number of records that the session on this machine already has.
    known: usize,
}

/// Imports a session from the object store, or appends its new records to the session on this machine.
pub(crate) async fn pull(
    bucket: &Bucket,
    local: &LocalSessions,
    id: &SessionId,
    machine: &Machine,
    options: PullOptions,
) -> Result<Pulled, WorkspaceError> {
    for _ in 0..ATTEMPTS {
        let Some((head, version)) = fetch::head(bucket, id).await? else { return Err(missing_session_error(bucket, id)) };
        if let Some(owner) = &head.owner
            && owner.busy
            && !owner.is(machine)
            && !options.take_over
            && !options.fork
        {
            return Err(busy(id, owner));
        }
        let claim = if options.fork { None } else { claim(local, id)? };
        let found = match compare(bucket, local, (head, version), options.fork).await {
            Ok(found) => found,
            // A push may have replaced the history after the head was read.
            Err(error) if error.kind == WorkspaceProblem::Missing && is_replaced(bucket, id, &error).await => continue,
            Err(error) => return Err(error),
        };
        let target = if options.fork { new_id() } else { id.clone() };
        let mut notices = download_artifacts(bucket, &(local.artifacts)(&target), &found.head).await?;
        if !options.fork && !take_ownership(bucket, &found, machine).await? {
            continue;
        }
        let (result, records) = (found.result, found.head.records);
        notices.extend(apply(local, claim.as_ref(), found, &target)?);
        return Ok(Pulled { id: target, result, records, notices });
    }
    let problem = Problem::new(format!("cannot pull session `{id}`")).because("another machine keeps pushing the session");
    Err(WorkspaceError::new(WorkspaceProblem::Temporary, problem.hint("try again when that machine has finished")))
}

fn claim(local: &LocalSessions, id: &SessionId) -> Result<Option<Claim>, WorkspaceError> {
    if !crate::transfer::import::is_there(&local.store, id) {
        return Ok(None);
    }
    Ok(Some(local.store.claim(id)?))
}

/// Compares the history in the object store with the session on this machine. Reads it only if this machine may not
/// have all of it.
async fn compare(
    bucket: &Bucket,
    local: &LocalSessions,
    (head, version): (Head, ObjectVersion),
    fork: bool,
) -> Result<RemoteSession, WorkspaceError> {
    let here = if fork { None } else { local.chain(&head.session_id, head.records).await? };
    let count = here.as_ref().map_or(0, |here| here.count());
    let known = usize::try_from(count).unwrap_or(usize::MAX);
    if let Some(result) = here.as_ref().and_then(|here| compare_with_head(here, &head)) {
        return Ok(RemoteSession { head, version, history: None, result, known });
    }
    let history = fetch::history(bucket, &head, local.workspace.clone(), count).await?;
    let result = match &here {
        None => PullResult::New,
        Some(here) if here.digest() == history.chain.digest() => PullResult::UpToDate,
        Some(here) if history.chain.start() == Some(&here.digest()) => PullResult::Extended,
        Some(here) if here.start() == Some(&history.chain.digest()) => PullResult::Ahead,
        Some(_) => return Err(diverged("pull", &head.session_id)),
    };
    Ok(RemoteSession { head, version, history: Some(history), result, known })
}

/// Returns the result of a pull for a session that already contains the whole history of a head, or `None` if the head
/// alone does not show that it does.
fn compare_with_head(here: &ChainScan, head: &Head) -> Option<PullResult> {
    if here.count() == head.records && here.digest() == head.chain {
        return Some(PullResult::UpToDate);
    }
    (here.start() == Some(head.chain.as_str())).then_some(PullResult::Ahead)
}

/// Returns whether the head has been replaced and no longer refers to the history that could not be read.
async fn is_replaced(bucket: &Bucket, id: &SessionId, error: &WorkspaceError) -> bool {
    let Ok(Some((head, _))) = fetch::head(bucket, id).await else { return false };
    !error.problem.what.contains(&layout::history(id, &head.history.digest))
}

/// Records that this machine is continuing the session. Returns `false` if the head was replaced in the meantime.
async fn take_ownership(bucket: &Bucket, found: &RemoteSession, machine: &Machine) -> Result<bool, WorkspaceError> {
    if found.head.owner.as_ref().is_some_and(|owner| owner.is(machine) && !owner.busy) {
        return Ok(true);
    }
    let head = Head { owner: Some(SessionOwner::new(machine, false)), ..found.head.clone() };
    let name = layout::head(&head.session_id);
    Ok(bucket.replace(&name, Some(&found.version), head.to_bytes()).await? == Replaced::Yes)
}

/// Applies the pulled history to the local store in a single transaction. Returns notices for the user.
fn apply(
    local: &LocalSessions,
    claim: Option<&Claim>,
    found: RemoteSession,
    target: &SessionId,
) -> Result<Vec<String>, WorkspaceError> {
    let Some(FetchedHistory { prepared, .. }) = found.history else { return Ok(Vec::new()) };
    let mut foreign = prepared.foreign;
    let is_stored = match (found.result, claim) {
        (PullResult::New, _) => {
            foreign.session.id = target.clone();
            local.store.import(foreign)?
        }
        (PullResult::Extended, Some(claim)) => local.store.extend(claim, foreign, found.known)?,
        (PullResult::Extended | PullResult::UpToDate | PullResult::Ahead, _) => return Ok(Vec::new()),
    };
    if !is_stored {
        let problem = Problem::new(format!("cannot store session `{target}`"))
            .because("another process changed the session at the same time");
        return Err(WorkspaceError::local(problem.hint("pull the session again")));
    }
    Ok(if found.result == PullResult::New { prepared.notices } else { Vec::new() })
}

/// Downloads a session's artifacts. Returns notices about artifacts that the object store does not have.
async fn download_artifacts(bucket: &Bucket, store: &ArtifactStore, head: &Head) -> Result<Vec<String>, WorkspaceError> {
    let listed = if store.is_there() { store.list().unwrap_or_default() } else { Vec::new() };
    let mut notices = Vec::new();
    for entry in &head.artifacts {
        let is_here = listed.iter().any(|artifact| artifact.uri == entry.artifact.uri);
        if !is_here || store.find(&entry.artifact.uri).is_err() {
            match download_artifact(bucket, store, entry).await {
                // The artifact may have expired. The conversation does not need it.
                Err(error) if error.kind == WorkspaceProblem::Missing => {
                    notices.push(format!("skipped an artifact: {}", error.problem));
                }
                downloaded => downloaded?,
            }
        }
    }
    Ok(notices)
}

async fn download_artifact(bucket: &Bucket, store: &ArtifactStore, entry: &HeadArtifact) -> Result<(), WorkspaceError> {
    let HeadArtifact { digest, artifact } = entry;
    let failed = |error: crate::ports::ArtifactError| {
        WorkspaceError::local(Problem::new(format!("cannot store `{}`", artifact.uri)).because(error))
    };
    let new = NewArtifact {
        kind: artifact.kind,
        name: crate::transfer::import::clean_title(&artifact.name),
        content_type: crate::transfer::import::clean_title(&artifact.content_type),
    };
    let mut writer = ArtifactSink(store.begin(new).map_err(failed)?);
    bucket.download(&layout::artifact(digest), digest, artifact.bytes, &mut writer).await?;
    writer.0.finish().map(drop).map_err(failed)
}

/// Writes an artifact, which is discarded unless writing is completed.
struct ArtifactSink(Box<dyn ArtifactWriter>);

impl Write for ArtifactSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes).map(|()| bytes.len()).map_err(|error| Error::other(error.message))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn missing_session_error(bucket: &Bucket, id: &SessionId) -> WorkspaceError {
    let problem =
        Problem::new(format!("cannot pull session `{id}`")).because(format!("`{}` has no such session", bucket.uri("")));
    WorkspaceError::new(WorkspaceProblem::Settings, problem.hint("list the sessions in the store: `aye sessions pull`"))
}

fn busy(id: &SessionId, owner: &SessionOwner) -> WorkspaceError {
    let (host, since) = (&owner.machine.host, owner.since.strftime("%Y-%m-%d %H:%M UTC"));
    let problem = Problem::new(format!("cannot pull session `{id}`"))
        .because(format!("a task has been running on `{host}` since {since}"))
        .hint("wait until the task has ended")
        .hint(format!("if that process no longer exists, run `aye sessions pull {id} --take-over`"))
        .hint(format!("run `aye sessions pull {id} --fork` to get its latest history under a new ID"));
    WorkspaceError::new(WorkspaceProblem::Conflict, problem)
}
