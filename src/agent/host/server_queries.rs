//! Handles queries about MCP servers: their resources, which are cached briefly, and their prompts.

use crate::agent::limits::{MAX_OFFERED, RESOURCE_CACHE_SECONDS, SERVER_PROMPT_BYTES, SERVER_SECONDS};
use crate::ports::{RemoteError, RemoteServers};
use crate::protocol::{ServerPrompt, ServerResource, ServerState};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Cached list of resources, with the time at which it was retrieved.
type CachedResources = (Instant, Vec<ServerResource>);

/// Cache of server resources, shared by a session and its query handler.
#[derive(Clone, Default)]
pub(super) struct ResourceCache(Arc<std::sync::Mutex<Arc<Mutex<Option<CachedResources>>>>>);

impl ResourceCache {
    /// Empties the cache. A query that is still in progress will no longer fill it.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
    }

    fn current(&self) -> Arc<Mutex<Option<CachedResources>>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Access to a session's servers for queries.
#[derive(Clone)]
pub(super) struct ServerQueries {
    remote: Arc<dyn RemoteServers>,
    offers: ResourceCache,
}

impl ServerQueries {
    pub(super) fn new(remote: Arc<dyn RemoteServers>, offers: ResourceCache) -> Self {
        Self { remote, offers }
    }

    pub(super) async fn prompts(&self) -> Vec<ServerPrompt> {
        with_timeout(self.remote.prompts()).await.unwrap_or_default()
    }

    /// Expands a server's prompt with the given arguments and returns its text.
    pub(super) async fn prompt(&self, server: &str, name: &str, arguments: BTreeMap<String, String>) -> Result<String, String> {
        let arguments: Map<String, Value> = arguments.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        let response: Option<Result<String, RemoteError>> = with_timeout(self.remote.prompt(server, name, arguments)).await;
        let text = response.ok_or_else(timeout_message)?.map_err(|error| error.to_string())?;
        if text.len() > SERVER_PROMPT_BYTES {
            return Err(format!("the prompt text is {} bytes, more than the limit of {SERVER_PROMPT_BYTES}", text.len()));
        }
        Ok(text)
    }

    pub(super) async fn resources(&self, words: &str) -> Vec<ServerResource> {
        // Get the cache before a server starts. A change to a server's state replaces the cache, which ensures that a
        // list from before the change is not reused.
        let offers = self.offers.current();
        if let Some((name, _)) = words.split_once(':') {
            let is_asleep = |state: &ServerState| *state == ServerState::Asleep;
            if self.remote.statuses().iter().any(|status| status.name == name && is_asleep(&status.state)) {
                // A query that names a sleeping server starts that server. Its resources are then included in the
                // list below.
                let _ = with_timeout(self.remote.resources(Some(name))).await;
            }
        }
        matching(self.all_resources(&offers).await, words)
    }

    /// Lists all resources. The list is cached briefly because it is requested on every keystroke.
    async fn all_resources(&self, offers: &Mutex<Option<CachedResources>>) -> Vec<ServerResource> {
        // Concurrent callers wait for the same query.
        let mut kept = offers.lock().await;
        if let Some((asked, all)) = &*kept
            && asked.elapsed() < Duration::from_secs(RESOURCE_CACHE_SECONDS)
        {
            return all.clone();
        }
        // Failures are cached too, so a server that does not respond does not delay every keystroke.
        let all = with_timeout(self.remote.resources(None)).await.and_then(Result::ok).unwrap_or_default();
        *kept = Some((Instant::now(), all.clone()));
        all
    }
}

/// Returns the resources, up to a limit, whose `SERVER:URI` or name contains every word of the query, ignoring case.
/// Resources whose `SERVER:URI` starts with the whole query come first.
fn matching(all: Vec<ServerResource>, words: &str) -> Vec<ServerResource> {
    let words = words.to_lowercase();
    let fits = |resource: &ServerResource| {
        let (address, name) = (format!("{}:{}", resource.server, resource.uri).to_lowercase(), resource.name.to_lowercase());
        words.split_whitespace().all(|word| address.contains(word) || name.contains(word))
    };
    let begins = |resource: &ServerResource| !format!("{}:{}", resource.server, resource.uri).to_lowercase().starts_with(&words);
    let mut found: Vec<ServerResource> = all.into_iter().filter(fits).collect();
    found.sort_by_key(begins);
    found.truncate(MAX_OFFERED);
    found
}

pub(super) async fn with_timeout<T>(asked: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_secs(SERVER_SECONDS), asked).await.ok()
}

pub(super) fn timeout_message() -> String {
    format!("the server did not respond within {SERVER_SECONDS} s")
}
