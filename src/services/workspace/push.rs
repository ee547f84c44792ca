//! Pushing a session to the object store, unless another machine owns or has continued it.

use super::bucket::{Bucket, Replaced};
use super::error::{WorkspaceError, WorkspaceProblem};
use super::fetch;
use super::head::{HISTORY_BYTES, Head, HistoryObject, SessionOwner};
use super::layout;
use super::local::{self, LocalArtifact, LocalSessions, Snapshot};
use super::machine::Machine;
use crate::ports::Artifacts;
use crate::protocol::{Problem, SessionId};
use std::io::Seek;
use std::sync::Arc;

/// Maximum number of attempts if other processes keep replacing the head at the same time.
const ATTEMPTS: usize = 4;
/// Maximum number of old histories to examine per push.
const OLD_HISTORIES: usize = 100;
/// Age in milliseconds after which a history that nothing refers to is deleted.
const ORPHAN_MS: i64 = 24 * 60 * 60 * 1000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PushOptions {
    /// Whether to take over a session that another machine owns.
    pub take_over: bool,
}

/// Outcome of a push.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pushed {
    /// Whether the push changed the store.
    pub changed: bool,
    pub records: u64,
    pub notices: Vec<String>,
}

/// Uploads a session to the object store.
pub(crate) async fn push(
    bucket: &Bucket,
    local: &LocalSessions,
    id: &SessionId,
    machine: &Machine,
    options: PushOptions,
) -> Result<Pushed, WorkspaceError> {
    for _ in 0..ATTEMPTS {
        let (old, version) = fetch::head(bucket, id).await?.unzip();
        if let Some(owner) = old.as_ref().and_then(|head| head.owner.as_ref())
            && !owner.is(machine)
            && !options.take_over
        {
            return Err(owned_by_other(id, owner));
        }
        if let Some(head) = &old
            && local.is_unchanged(id, head, machine).await?
            && bucket.has(&layout::history(id, &head.history.digest), head.history.bytes).await?
        {
            return Ok(Pushed { changed: false, records: head.records, notices: Vec::new() });
        }
        let snapshot = local.snapshot(id, old.as_ref(), machine).await?;
        if let Some(head) = &old {
            check_is_continuation(bucket, local, head, &snapshot).await?;
        }
        let head = to_head(id, &snapshot, SessionOwner::new(machine, snapshot.busy))?;
        if old.as_ref().is_some_and(|old| is_same(old, &head)) {
            // Earlier versions may have deleted a history to which another machine was about to refer.
            upload_history(bucket, &head, &snapshot).await?;
            return Ok(Pushed { changed: false, records: head.records, notices: snapshot.notices });
        }
        upload_contents(bucket, &head, &snapshot).await?;
        if bucket.replace(&layout::head(id), version.as_ref(), head.to_bytes()).await? == Replaced::Yes {
            remove_old_histories(bucket, old.as_ref(), &head).await;
            return Ok(Pushed { changed: true, records: head.records, notices: snapshot.notices });
        }
    }
    let problem = Problem::new(format!("cannot push session `{id}`")).because("other processes keep pushing the session");
    Err(WorkspaceError::new(WorkspaceProblem::Temporary, problem.hint("try again when those processes have finished")))
}

/// Records in the object store that one of the session's tasks has started on this machine. Does nothing if the session
/// was never pushed or is already marked as busy.
pub(crate) async fn mark_busy(bucket: &Bucket, id: &SessionId, machine: &Machine) -> Result<(), WorkspaceError> {
    let Some((head, version)) = fetch::head(bucket, id).await? else { return Ok(()) };
    match &head.owner {
        Some(owner) if !owner.is(machine) => return Err(owned_by_other(id, owner)),
        Some(owner) if owner.busy => return Ok(()),
        _ => {}
    }
    let head = Head { owner: Some(SessionOwner::new(machine, true)), ..head };
    bucket.replace(&layout::head(id), Some(&version), head.to_bytes()).await.map(drop)
}

/// Checks that the history in the object store is the start of the history on this machine.
async fn check_is_continuation(
    bucket: &Bucket,
    local: &LocalSessions,
    head: &Head,
    snapshot: &Snapshot,
) -> Result<(), WorkspaceError> {
    if snapshot.chain.start() == Some(head.chain.as_str()) {
        return Ok(());
    }
    // Another version of aye may have encoded the records differently, so the content of the records is compared.
    let count = snapshot.chain.count();
    let there = fetch::history(bucket, head, local.workspace.clone(), count).await?;
    if snapshot.chain.start() == Some(&there.chain.digest()) {
        return Ok(());
    }
    let id = &head.session_id;
    if there.chain.start() == Some(&snapshot.chain.digest()) {
        let problem =
            Problem::new(format!("cannot push session `{id}`")).because("the store has a longer history for the session");
        return Err(WorkspaceError::new(WorkspaceProblem::Conflict, problem.hint(format!("run `aye sessions pull {id}`"))));
    }
    Err(diverged("push", id))
}

/// Returns the error for histories that have diverged. `action` is `push` or `pull`.
pub(super) fn diverged(action: &str, id: &SessionId) -> WorkspaceError {
    let problem = Problem::new(format!("cannot {action} session `{id}`"))
        .because("the session was continued on two machines, and aye does not merge or overwrite histories")
        .hint(format!("run `aye sessions fork {id}` to keep the history of this machine under a new ID"))
        .hint(format!("run `aye sessions pull {id} --fork` to get the history in the store under a new ID"));
    WorkspaceError::new(WorkspaceProblem::Conflict, problem)
}

fn owned_by_other(id: &SessionId, owner: &SessionOwner) -> WorkspaceError {
    let (host, since) = (&owner.machine.host, owner.since.strftime("%Y-%m-%d %H:%M UTC"));
    let problem = Problem::new(format!("cannot push session `{id}`"))
        .because(format!("`{host}` has owned the session since {since}"))
        .hint(format!("run `aye sessions push {id} --take-over` to continue the session here"))
        .hint(format!("run `aye sessions fork {id}` to continue under a new ID"));
    WorkspaceError::new(WorkspaceProblem::Conflict, problem)
}

fn to_head(id: &SessionId, snapshot: &Snapshot, owner: SessionOwner) -> Result<Head, WorkspaceError> {
    let bytes = snapshot.bytes;
    if bytes > HISTORY_BYTES {
        let problem = Problem::new(format!("cannot push session `{id}`"));
        let problem = problem.because(format!("its history is {bytes} bytes; the limit is {HISTORY_BYTES}"));
        return Err(WorkspaceError::local(problem));
    }
    Ok(Head {
        format: Head::FORMAT,
        session_id: id.clone(),
        title: snapshot.title.clone(),
        workspace: snapshot.workspace.clone(),
        updated: snapshot.updated,
        records: snapshot.chain.count(),
        chain: snapshot.chain.digest(),
        history: HistoryObject { digest: snapshot.digest.clone(), bytes },
        artifacts: snapshot.artifacts.iter().map(|artifact| artifact.entry.clone()).collect(),
        owner: Some(owner),
        source: Some(snapshot.source.clone()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Returns whether two heads are equal apart from their timestamps.
fn is_same(old: &Head, new: &Head) -> bool {
    let owner = |head: &Head| head.owner.as_ref().map(|owner| (owner.machine.id.clone(), owner.busy));
    old.history == new.history && old.artifacts == new.artifacts && old.source == new.source && owner(old) == owner(new)
}

/// Uploads whatever the object store does not have yet: first the artifacts, then the history.
async fn upload_contents(bucket: &Bucket, head: &Head, snapshot: &Snapshot) -> Result<(), WorkspaceError> {
    for artifact in &snapshot.artifacts {
        upload_content(bucket, artifact).await?;
    }
    upload_history(bucket, head, snapshot).await
}

/// Uploads the history that a head refers to, unless the object store already has it.
async fn upload_history(bucket: &Bucket, head: &Head, snapshot: &Snapshot) -> Result<(), WorkspaceError> {
    let name = layout::history(&head.session_id, &head.history.digest);
    let file = snapshot.file.try_clone().and_then(|mut file| file.rewind().map(|()| file));
    let file = file.map_err(|error| WorkspaceError::local(Problem::new("cannot read a temporary file").because(error)))?;
    bucket.upload(&name, head.history.bytes, file).await
}

/// Uploads a local artifact, unless the object store already has it. Returns its URL.
pub(crate) async fn upload_artifact(bucket: &Bucket, store: Arc<dyn Artifacts>, uri: String) -> Result<String, WorkspaceError> {
    let artifact = local::artifact(store, uri).await?;
    upload_content(bucket, &artifact).await
}

/// Uploads an artifact's content, unless the object store already has it. Returns its URL.
async fn upload_content(bucket: &Bucket, artifact: &LocalArtifact) -> Result<String, WorkspaceError> {
    let name = layout::artifact(&artifact.entry.digest);
    if let Some(path) = &artifact.path {
        let failed = |error| WorkspaceError::local(Problem::new(format!("cannot read `{}`", path.display())).because(error));
        let opened = path.clone();
        let file = tokio::task::spawn_blocking(move || std::fs::File::open(opened)).await;
        let file = file.unwrap_or_else(|error| Err(error.into())).map_err(failed)?;
        bucket.upload(&name, artifact.entry.artifact.bytes, file).await?;
    }
    Ok(bucket.uri(&name))
}

/// Deletes the history that the new head replaced, and old histories left behind by interrupted pushes. Recent
/// histories are kept, because another process may be about to refer to them.
async fn remove_old_histories(bucket: &Bucket, old: Option<&Head>, head: &Head) {
    let id = &head.session_id;
    let current = layout::history(id, &head.history.digest);
    let replaced = old.map(|old| layout::history(id, &old.history.digest));
    let folder = layout::histories(id);
    let listed = bucket.list(&folder, OLD_HISTORIES).await.unwrap_or_default();
    // Estimate the time by the clock of the store, because the clock of this machine may differ.
    let now = listed.iter().map(|object| object.modified_ms).max().unwrap_or_default();
    for object in listed {
        let name = format!("{folder}/{}", object.file_name);
        let is_replaced = replaced.as_ref() == Some(&name);
        if name != current && (is_replaced || now - object.modified_ms > ORPHAN_MS) {
            bucket.discard(&name).await;
        }
    }
}
