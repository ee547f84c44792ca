//! Listing of the sessions in the store.

use super::bucket::Bucket;
use super::error::WorkspaceError;
use super::fetch;
use super::layout;
use super::machine::Machine;
use crate::protocol::SessionId;
use crate::transfer::import::is_an_id;
use futures_util::StreamExt;
use jiff::Timestamp;
use serde::Serialize;

/// Maximum number of heads to list.
const HEADS: usize = 100_000;
/// Number of heads to read in parallel.
const PARALLEL: usize = 8;

/// Session that is stored in the object store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BucketSession {
    pub session_id: SessionId,
    pub title: Option<String>,
    /// Session directory on the machine that pushed the session.
    pub workspace: String,
    pub updated: Timestamp,
    pub records: u64,
    pub bytes: u64,
    /// Host name of the machine that may continue the session. Absent if any machine may.
    pub host: Option<String>,
    /// Whether that machine is this one.
    pub is_here: bool,
    /// Whether a task is running on `host`.
    pub busy: bool,
}

/// Returns the most recently pushed sessions, newest first, and a notice for each head that cannot be read.
pub(crate) async fn list(
    bucket: &Bucket,
    machine: &Machine,
    most: usize,
) -> Result<(Vec<BucketSession>, Vec<String>), WorkspaceError> {
    let mut heads = bucket.list(layout::HEADS, HEADS).await?;
    heads.sort_by_key(|head| std::cmp::Reverse(head.modified_ms));
    let ids = heads.iter().filter_map(|head| layout::session_of(&head.file_name)).take(most);
    let reads = ids.map(|id| async move { fetch::head(bucket, &id).await });
    let (mut sessions, mut notices) = (Vec::new(), Vec::new());
    let mut reads = futures_util::stream::iter(reads).buffered(PARALLEL);
    while let Some(read) = reads.next().await {
        match read {
            Ok(Some((head, _))) => sessions.push(BucketSession {
                session_id: head.session_id,
                title: head.title,
                workspace: head.workspace,
                updated: head.updated,
                records: head.records,
                bytes: head.history.bytes + head.artifacts.iter().map(|artifact| artifact.artifact.bytes).sum::<u64>(),
                is_here: head.owner.as_ref().is_some_and(|owner| owner.is(machine)),
                busy: head.owner.as_ref().is_some_and(|owner| owner.busy),
                host: head.owner.map(|owner| owner.machine.host),
            }),
            // The head was deleted after it had been listed.
            Ok(None) => {}
            Err(error) => notices.push(error.problem.one_line()),
        }
    }
    Ok((sessions, notices))
}

/// Returns up to `most` sessions whose IDs start with `prefix`.
pub(crate) async fn find(bucket: &Bucket, prefix: &str, most: usize) -> Result<Vec<SessionId>, WorkspaceError> {
    let prefix = prefix.to_ascii_lowercase();
    if is_an_id(&prefix) {
        return Ok(vec![SessionId::new(prefix)]);
    }
    let heads = bucket.list(layout::HEADS, HEADS).await?;
    let ids = heads.iter().filter_map(|head| layout::session_of(&head.file_name));
    Ok(ids.filter(|id| id.as_str().starts_with(&prefix)).take(most).collect())
}
