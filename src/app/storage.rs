//! What aye takes on the disk, and how much of each it may.

use super::logging;
use super::place::Place;
use crate::protocol::SessionId;
use crate::store::{ArtifactStore, Snapshots};
use crate::sys::sandbox::left_bases;
use crate::tools;
use serde::Serialize;
use std::path::Path;

/// One kind of what is kept.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    pub name: &'static str,
    pub bytes: u64,
    pub budget_bytes: u64,
    /// The key of the configuration that sets it.
    pub key: &'static str,
}

impl Place {
    /// What stood where before it was changed.
    pub fn snapshots(&self) -> Snapshots {
        Snapshots::new(&self.directories.data).with_budget(self.settings.retention.snapshots_bytes)
    }

    pub fn artifacts(&self, session: Option<&SessionId>) -> ArtifactStore {
        ArtifactStore::new(&self.directories.data, session).with_budget(self.settings.retention.artifacts_bytes)
    }
}

/// All kinds, as they are now. Nothing is made only to be looked at.
pub fn taken(place: &Place) -> Vec<Taken> {
    let (data, retention) = (&place.directories.data, &place.settings.retention);
    let one = |name, bytes, budget_bytes, key| Taken { name, bytes, budget_bytes, key };
    vec![
        one("sessions", database_bytes(data), retention.sessions_bytes, "retention.sessions_mb"),
        one(
            "artifacts",
            place.artifacts(None).usage().unwrap_or_default().bytes,
            retention.artifacts_bytes,
            "retention.artifacts_mb",
        ),
        one(
            "snapshots",
            place.snapshots().usage().unwrap_or_default().bytes,
            retention.snapshots_bytes,
            "retention.snapshots_mb",
        ),
        one("caches", tools::cache_use(&left_bases(data)).bytes, retention.caches_bytes, "retention.caches_mb"),
        one("logs", logging::bytes(data), retention.logs_bytes, "retention.logs_mb"),
    ]
}

/// The database with the files beside it.
pub fn database_bytes(data: &Path) -> u64 {
    let length = |name: &str| data.join(name).metadata().map_or(0, |metadata| metadata.len());
    ["aye.db", "aye.db-wal", "aye.db-shm"].iter().map(|name| length(name)).sum()
}
