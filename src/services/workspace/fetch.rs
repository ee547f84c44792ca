//! Reading of heads and histories from the store, which are validated before use.

use super::bucket::{Bucket, ObjectVersion};
use super::chain::ChainScan;
use super::error::WorkspaceError;
use super::head::{HEAD_BYTES, Head};
use super::layout;
use super::local::blocking;
use crate::ports::Record;
use crate::protocol::SessionId;
use crate::transfer::import::{self, PreparedImport};
use std::path::PathBuf;

/// Reads the head of a session, or returns `None` if the store does not contain the session.
pub(super) async fn head(bucket: &Bucket, id: &SessionId) -> Result<Option<(Head, ObjectVersion)>, WorkspaceError> {
    let name = layout::head(id);
    let Some((content, version)) = bucket.read(&name, HEAD_BYTES).await? else { return Ok(None) };
    Ok(Some((Head::parse(&content, id, &bucket.uri(&name))?, version)))
}

/// History that has been validated and prepared for import.
pub(super) struct FetchedHistory {
    pub prepared: PreparedImport,
    /// Digests of the records, as computed on this machine.
    pub chain: ChainScan,
}

/// Reads and validates the history that a head refers to. `at` is the number of initial records for which a separate
/// digest is computed.
pub(super) async fn history(bucket: &Bucket, head: &Head, workspace: PathBuf, at: u64) -> Result<FetchedHistory, WorkspaceError> {
    let name = layout::history(&head.session_id, &head.history.digest);
    let uri = bucket.uri(&name);
    let (content, _) = bucket.read(&name, head.history.bytes).await?.ok_or_else(|| bucket.missing(&name))?;
    let head = head.clone();
    blocking(move || check(content, &head, &uri, &workspace, at)).await
}

fn check(
    content: Vec<u8>,
    head: &Head,
    uri: &str,
    workspace: &std::path::Path,
    at: u64,
) -> Result<FetchedHistory, WorkspaceError> {
    let damaged = |why: String| WorkspaceError::damaged(uri, why);
    if content.len() as u64 != head.history.bytes {
        return Err(damaged(format!("truncated: {} of {} bytes", content.len(), head.history.bytes)));
    }
    if blake3::hash(&content).to_hex().as_str() != head.history.digest {
        return Err(damaged("the content does not match its digest".to_owned()));
    }
    let text = String::from_utf8(content).map_err(|_| damaged("not UTF-8 text; expected JSON".to_owned()))?;
    let prepared = import::prepare(workspace, &text).map_err(|problem| damaged(problem.one_line()))?;
    let id = &prepared.foreign.session.id;
    if *id != head.session_id {
        return Err(damaged(format!("the history belongs to session `{}`", crate::transfer::format::one_line(id.as_str()))));
    }
    let mut chain = ChainScan::new(at);
    for written in &prepared.foreign.records {
        chain.add(written.time, &written.record);
    }
    if chain.count() != head.records {
        return Err(damaged(format!("the history has {} records, but its head says {}", chain.count(), head.records)));
    }
    // A record that was unreadable on the other machine is also unreadable here, so the digests agree.
    if chain.digest() != head.chain && prepared.foreign.records.iter().any(|written| written.record == Record::Unreadable) {
        return Err(damaged("this version of aye cannot read all records; update aye".to_owned()));
    }
    Ok(FetchedHistory { prepared, chain })
}
