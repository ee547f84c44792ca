//! Settings for a policy that is loaded from a URL.

use super::file::{self, Values};
use super::workspace_store::WorkspaceStore;
use super::{ConfigError, address, schema};
use crate::protocol::Problem;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where to load a policy bundle from, and how to verify it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyService {
    pub url: String,
    /// Object store and object name. Absent if the bundle is on a web server.
    pub store: Option<(WorkspaceStore, String)>,
    /// PEM file that contains the public key for verifying bundle signatures.
    pub public_key: Option<String>,
    /// Environment variable that contains the secret with which bundles are signed, used instead of a key pair.
    pub secret_env: Option<String>,
    /// Environment variable that contains a bearer token.
    pub token_env: Option<String>,
    /// Interval between requests during a session.
    pub poll: Duration,
}

impl PolicyService {
    pub(super) fn from_values(values: &Values) -> Result<Option<Self>, ConfigError> {
        let path = |key: &'static str| ["services", "policy", key];
        let Some(url) = file::text(values, &path("url")) else { return Ok(None) };
        let store = if url.starts_with("http:") || url.starts_with("https:") {
            let origin = file::entry(values, &path("url")).map(|entry| entry.origin.to_string()).unwrap_or_default();
            address::check(url)
                .map_err(|problem| ConfigError::single(problem.with_location(format!("{origin}: `services.policy.url`"))))?;
            None
        } else {
            Some(WorkspaceStore::of_object(values, &path("url"), url)?)
        };
        if let (Some(_), Some(secret)) = (file::entry(values, &path("public_key")), file::entry(values, &path("secret_env"))) {
            let problem =
                Problem::new(format!("{}: both `public_key` and `secret_env` are set in `[services.policy]`", secret.origin));
            return Err(ConfigError::single(problem.hint("remove one of them: a bundle has one signature")));
        }
        let text = |key| file::text(values, &path(key)).map(str::to_owned);
        Ok(Some(Self {
            url: url.to_owned(),
            store,
            public_key: text("public_key"),
            secret_env: text("secret_env"),
            token_env: text("token_env"),
            poll: Duration::from_secs(poll_seconds(values)),
        }))
    }

    /// Returns an ID for the combination of source and key, under which policies are cached. `key` is the content of
    /// the public key file, or the secret.
    pub(crate) fn identity(&self, key: Option<&[u8]>) -> String {
        match (self.public_key.as_ref().or(self.secret_env.as_ref()), key) {
            (None, _) => format!("{} unsigned", self.url),
            (Some(path), None) => format!("{} {path} unreadable", self.url),
            (Some(path), Some(key)) => format!("{} {path} {}", self.url, blake3::hash(key).to_hex()),
        }
    }

    /// Returns the path of the public key file, if one is set. A relative path is resolved against `config`, the
    /// directory of `config.toml`, and `~/` refers to the home directory.
    pub(crate) fn public_key_file(&self, config: &Path, home: &Path) -> Option<PathBuf> {
        let path = self.public_key.as_ref()?;
        Some(path.strip_prefix("~/").map_or_else(|| config.join(path), |below| home.join(below)))
    }
}

fn poll_seconds(values: &Values) -> u64 {
    let path = ["services", "policy", "poll_seconds"];
    file::number(values, &path).unwrap_or_else(|| schema::default_number(&path))
}
