//! Opens the object store that is configured for the sessions of this machine.

use super::context::AppContext;
use super::error::CliError;
use super::nesting::Nesting;
use super::redaction::redactor;
use super::session_services::redact_text;
use crate::protocol::{Problem, SessionId};
use crate::services::workspace::{self, Bucket, LocalSessions, Machine};
use crate::store::{ArtifactStore, Store};
use std::sync::Arc;

/// An object store, and the local data that is uploaded to it.
#[derive(Clone)]
pub(crate) struct SessionUploads {
    pub bucket: Bucket,
    pub local: LocalSessions,
    pub machine: Machine,
}

impl SessionUploads {
    /// Opens the configured object store without sending any requests yet. Returns `None` if no store is configured.
    pub(crate) fn open(app: &AppContext, store: &Store) -> Result<Option<Self>, Problem> {
        let Some(settings) = &app.settings.workspace_store else { return Ok(None) };
        let bucket = workspace::open(settings)?;
        let machine = Machine::this(&app.directories.data)?;
        let (data, budget) = (app.directories.data.clone(), app.settings.retention.artifacts_bytes);
        let policy = app.policy(None, None).map_err(|error| error.into_problem())?;
        let redactor = redactor(app, policy.redactions(), &[]);
        let artifacts = move |id: &SessionId| ArtifactStore::new(&data, Some(id)).with_budget(budget);
        let local = LocalSessions {
            store: store.clone(),
            artifacts: Arc::new(artifacts),
            workspace: app.workspace.clone(),
            temporary: app.directories.data.clone(),
            redact: redact_text(&redactor),
        };
        Ok(Some(Self { bucket, local, machine }))
    }

    /// Opens the object store for a command run by the user.
    pub(crate) fn for_command(app: &AppContext, store: &Store) -> Result<Self, CliError> {
        if Nesting::detect() == Nesting::InsideAye {
            return Err(CliError::usage("a command that aye runs (AYE=1) cannot push or pull sessions"));
        }
        Self::open(app, store).map_err(CliError::failed)?.ok_or_else(|| {
            CliError::usage("no object store is configured")
                .hint("set `services.workspace.url` in config.toml, for example to `s3://BUCKET/PREFIX`")
        })
    }
}
