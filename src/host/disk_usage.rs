//! Disk space used by aye, and its limits.

use super::context::AppContext;
use super::logging;
use crate::protocol::SessionId;
use crate::store::{ArtifactStore, Snapshots};
use crate::sys::sandbox::abandoned_bases;
use crate::tools;
use serde::Serialize;
use std::path::Path;

/// Disk space used by one kind of data.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageEntry {
    pub name: &'static str,
    pub bytes: u64,
    pub budget_bytes: u64,
    /// Configuration key that sets the limit.
    pub key: &'static str,
}

impl AppContext {
    /// Returns the store of file versions saved for rewinding.
    pub(crate) fn snapshots(&self) -> Snapshots {
        Snapshots::new(&self.directories.data).with_budget(self.settings.retention.snapshots_bytes)
    }

    pub(crate) fn artifacts(&self, session: Option<&SessionId>) -> ArtifactStore {
        ArtifactStore::new(&self.directories.data, session).with_budget(self.settings.retention.artifacts_bytes)
    }
}

/// Returns the disk space currently used by each kind of data. Does not create any files.
pub(crate) fn usage(app: &AppContext) -> Vec<UsageEntry> {
    let (data, retention) = (&app.directories.data, &app.settings.retention);
    let one = |name, bytes, budget_bytes, key| UsageEntry { name, bytes, budget_bytes, key };
    vec![
        one("sessions", database_bytes(data), retention.sessions_bytes, "retention.sessions_mb"),
        one(
            "artifacts",
            app.artifacts(None).usage().unwrap_or_default().bytes,
            retention.artifacts_bytes,
            "retention.artifacts_mb",
        ),
        one("snapshots", app.snapshots().usage().unwrap_or_default().bytes, retention.snapshots_bytes, "retention.snapshots_mb"),
        one("caches", tools::cache_use(&abandoned_bases(data)).bytes, retention.caches_bytes, "retention.caches_mb"),
        one(
            "layers",
            tools::undecided_use(&abandoned_bases(data)).iter().map(|layer| layer.bytes).sum(),
            retention.layers_bytes,
            "retention.layers_mb",
        ),
        one("logs", logging::bytes(data), retention.logs_bytes, "retention.logs_mb"),
    ]
}

/// Returns the combined size, in bytes, of the database and its journal files.
pub(crate) fn database_bytes(data: &Path) -> u64 {
    let length = |name: &str| data.join(name).metadata().map_or(0, |metadata| metadata.len());
    ["aye.db", "aye.db-wal", "aye.db-shm"].iter().map(|name| length(name)).sum()
}
