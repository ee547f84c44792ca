//! Head of a session in the store, which identifies its history, its artifacts, and the machine that may continue it.

use super::error::WorkspaceError;
use super::layout;
use super::machine::Machine;
use crate::ports::ARTIFACT_BYTES;
use crate::protocol::{ARTIFACT_SCHEME, Artifact, SessionId};
use crate::transfer::format::one_line;
use crate::transfer::import::is_an_id;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Version of the head format.
const FORMAT: u32 = 1;
/// Maximum size of a head in bytes.
pub(super) const HEAD_BYTES: u64 = 8 << 20;
/// Maximum size of a history in bytes.
pub(super) const HISTORY_BYTES: u64 = 512 << 20;
/// Maximum number of artifacts per session.
const ARTIFACTS: usize = 10_000;
/// Minimum number of hash digits in an artifact URI.
const URI_DIGITS: usize = 12;
/// Maximum length in characters of a text from another machine.
const TEXT_CHARS: usize = 200;

/// Format version of a head, which is checked before anything else is parsed.
#[derive(Deserialize)]
struct Form {
    format: u32,
}

/// Current state of a session in the object store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    pub format: u32,
    pub session_id: SessionId,
    #[serde(default)]
    pub title: Option<String>,
    /// Session directory on the machine that wrote the head.
    pub workspace: String,
    pub updated: Timestamp,
    /// Number of records in the history.
    pub records: u64,
    /// Digest of the records, for checking whether they are the start of a longer history.
    pub chain: String,
    pub history: HistoryObject,
    #[serde(default)]
    pub artifacts: Vec<HeadArtifact>,
    /// Machine that may continue the session. Absent if any machine may.
    #[serde(default)]
    pub owner: Option<SessionOwner>,
    /// Digest of the session data on the owner's machine from which the history was created. It allows changes to be
    /// detected without reading the records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Version of aye that wrote this head.
    pub version: String,
}

/// History, identified by a digest of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HistoryObject {
    /// BLAKE3 digest of the content.
    pub digest: String,
    pub bytes: u64,
}

/// Artifact, with a digest of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HeadArtifact {
    pub digest: String,
    #[serde(flatten)]
    pub artifact: Artifact,
}

/// Machine that is allowed to continue a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionOwner {
    #[serde(flatten)]
    pub machine: Machine,
    /// Start of ownership according to that machine's clock, used only in messages.
    pub since: Timestamp,
    /// Whether a task is running on that machine.
    pub busy: bool,
}

impl SessionOwner {
    pub(super) fn new(machine: &Machine, busy: bool) -> Self {
        Self { machine: machine.clone(), since: Timestamp::now(), busy }
    }

    pub(super) fn is(&self, machine: &Machine) -> bool {
        self.machine.id == machine.id
    }
}

impl Head {
    pub(super) const FORMAT: u32 = FORMAT;

    /// Parses and validates the head of a session.
    pub(super) fn parse(bytes: &[u8], id: &SessionId, uri: &str) -> Result<Self, WorkspaceError> {
        let damaged = |why: String| WorkspaceError::damaged(uri, why);
        let invalid = |error: serde_json::Error| damaged(format!("not the head of a session: {}", one_line(&error.to_string())));
        let form: Form = serde_json::from_slice(bytes).map_err(invalid)?;
        if form.format != FORMAT {
            return Err(damaged(format!(
                "the head has format {}, but this version of aye reads format {FORMAT}; update aye",
                form.format
            )));
        }
        let mut head: Self = serde_json::from_slice(bytes).map_err(invalid)?;
        head.check().map_err(damaged)?;
        if head.session_id != *id || !is_an_id(head.session_id.as_str()) {
            return Err(damaged(format!("the head belongs to session `{}`", short(head.session_id.as_str()))));
        }
        head.title = head.title.as_deref().map(short);
        head.workspace = short(&head.workspace);
        if let Some(owner) = &mut head.owner {
            owner.machine.host = short(&owner.machine.host);
        }
        Ok(head)
    }

    /// Validates all digests and sizes. This must happen before any object is requested by its digest.
    fn check(&self) -> Result<(), String> {
        if !layout::is_digest(&self.history.digest) || !layout::is_digest(&self.chain) {
            return Err("a digest is invalid".to_owned());
        }
        if self.history.bytes > HISTORY_BYTES {
            return Err(format!("the history is {} bytes; the limit is {HISTORY_BYTES}", self.history.bytes));
        }
        if self.artifacts.len() > ARTIFACTS {
            return Err(format!("the head has {} artifacts; the limit is {ARTIFACTS}", self.artifacts.len()));
        }
        let is_named = |artifact: &HeadArtifact| {
            let start = artifact.artifact.uri.strip_prefix(ARTIFACT_SCHEME).filter(|start| start.len() >= URI_DIGITS);
            layout::is_digest(&artifact.digest) && start.is_some_and(|start| artifact.digest.starts_with(start))
        };
        if let Some(wrong) = self.artifacts.iter().find(|artifact| !is_named(artifact)) {
            return Err(format!("the artifact URI `{}` does not match its digest", short(&wrong.artifact.uri)));
        }
        if let Some(huge) = self.artifacts.iter().find(|artifact| artifact.artifact.bytes > ARTIFACT_BYTES) {
            return Err(format!("an artifact is {} bytes; the limit is {ARTIFACT_BYTES}", huge.artifact.bytes));
        }
        Ok(())
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }
}

/// Shortens text from another machine to a single line of limited length.
fn short(text: &str) -> String {
    one_line(text).chars().take(TEXT_CHARS).collect()
}
