//! Cache for a policy loaded from a URL: the last valid policy, and what is needed to request only a newer one.

use crate::protocol::Problem;
use crate::sys::file::{self, Existing, write_whole};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Maximum size of the state file in bytes.
const STATE_BYTES: u64 = 64 << 10;

/// Cache files for the last valid policy.
#[derive(Debug, Clone)]
pub(crate) struct PolicyCache {
    directory: PathBuf,
}

/// State stored with the last valid policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CacheState {
    /// Identity of the policy's address and public key.
    pub source: String,
    pub etag: Option<String>,
    pub revision: Option<String>,
    /// Time of the last successful request.
    pub checked: Timestamp,
    /// Notices about the last change that have not been shown in any session yet.
    #[serde(default)]
    pub notices: Vec<String>,
}

impl PolicyCache {
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self { directory: data_dir.join("service-policy") }
    }

    /// Returns the path of the file that contains the last valid policy.
    pub(crate) fn file(&self) -> PathBuf {
        self.directory.join("policy.toml")
    }

    fn state_file(&self) -> PathBuf {
        self.directory.join("state.json")
    }

    /// Returns whether the cache contains a policy from this source that was checked no earlier than `earliest`. A
    /// check time in the future is not accepted.
    pub(crate) fn is_current(&self, source: &str, earliest: Timestamp) -> bool {
        self.state(source).is_some_and(|state| state.checked >= earliest && state.checked <= Timestamp::now())
    }

    /// Returns the notices that have not been shown in any session yet, and marks them as shown.
    pub(crate) fn take_notices(&self, source: &str) -> Vec<String> {
        let Some(mut state) = self.state(source).filter(|state| !state.notices.is_empty()) else { return Vec::new() };
        let notices = std::mem::take(&mut state.notices);
        // If this fails, the notices are shown again.
        let _ = self.store(None, &state);
        notices
    }

    /// Returns whether the cache contains a policy from this source.
    pub(crate) fn is_there(&self, source: &str) -> bool {
        self.state(source).is_some()
    }

    /// Returns the cache state, provided that the cached policy is from this source.
    pub(super) fn state(&self, source: &str) -> Option<CacheState> {
        let bytes = file::read(&self.state_file(), STATE_BYTES).ok()?;
        let state: CacheState = serde_json::from_slice(&bytes).ok()?;
        (state.source == source && self.file().is_file()).then_some(state)
    }

    /// Replaces the policy and then its state. If aye crashes in between, the policy is simply requested again.
    pub(super) fn store(&self, policy: Option<&[u8]>, state: &CacheState) -> Result<(), Problem> {
        let failed = |error: std::io::Error| {
            Problem::new(format!("cannot store the policy in `{}`", self.directory.display())).because(error)
        };
        std::fs::create_dir_all(&self.directory).map_err(failed)?;
        if let Some(policy) = policy {
            write_whole(&self.file(), policy, Existing::Replace).map_err(failed)?;
        }
        let text = serde_json::to_vec(state).unwrap_or_default();
        write_whole(&self.state_file(), &text, Existing::Replace).map_err(failed)
    }
}
