//! Adapter that presents back-end tools as an additional server, alongside a session's MCP servers.

use super::client;
use super::manifest::{BackendManifest, BackendTool, TokenReference};
use crate::config::{Credentials, Environment};
use crate::ports::{BoxFuture, RemoteCall, RemoteContext, RemoteError, RemoteResult, RemoteServers, RemoteTool};
use crate::protocol::{BACKEND_SERVER, ServerPrompt, ServerResource, ServerState, ServerStatus};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// A session's MCP servers combined with the back-end tools.
pub(crate) struct WithBackendTools {
    port: Arc<dyn RemoteServers>,
    manifest: BackendManifest,
    environment: Environment,
    credentials: Credentials,
    /// Reason why the back-end tools are unavailable, if the policy lists none of them.
    off: Mutex<Option<String>>,
}

impl WithBackendTools {
    pub(crate) fn new(
        port: Arc<dyn RemoteServers>,
        manifest: BackendManifest,
        environment: Environment,
        credentials: Credentials,
    ) -> Self {
        Self { port, manifest, environment, credentials, off: Mutex::default() }
    }

    /// Returns the longest timeout of any tool in the manifest.
    pub(crate) fn timeout(manifest: &BackendManifest) -> Duration {
        manifest.tools.iter().map(|tool| tool.timeout).max().unwrap_or_default()
    }

    fn off(&self) -> Option<String> {
        self.off.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn token(&self) -> Result<Option<String>, RemoteError> {
        let refused = |message: String| RemoteError::Refused { message };
        match &self.manifest.token {
            None => Ok(None),
            Some(TokenReference::Variable(name)) => {
                let token = self.environment.get(name).map(str::to_owned);
                token.map(Some).ok_or_else(|| refused(format!("the environment variable `{name}` is not set")))
            }
            Some(TokenReference::Saved(name)) => {
                let (credentials, key) = (self.credentials.clone(), name.clone());
                let read = tokio::task::spawn_blocking(move || credentials.secret(&key)).await;
                let secret = read.map_err(|error| refused(error.to_string()))?.map_err(refused)?;
                let secret = secret.ok_or_else(|| refused(format!("no token is saved; run `aye auth login {name}`")))?;
                Ok(Some(secret.reveal().to_owned()))
            }
        }
    }

    async fn call_backend(&self, call: RemoteCall, context: RemoteContext) -> Result<RemoteResult, RemoteError> {
        let unknown = || RemoteError::Unknown { message: format!("`{}` is not in the manifest", call.tool) };
        let BackendTool { tool, timeout } =
            self.manifest.tools.iter().find(|known| known.tool.name == call.tool).ok_or_else(unknown)?;
        if tool.fingerprint != call.fingerprint {
            return Err(RemoteError::Changed { message: format!("the definition of `{}` has changed", call.tool) });
        }
        let token = self.token().await?;
        client::call(&self.manifest.url, token, *timeout, call, context).await
    }
}

impl RemoteServers for WithBackendTools {
    fn statuses(&self) -> Vec<ServerStatus> {
        let mut statuses = self.port.statuses();
        statuses.push(ServerStatus {
            name: BACKEND_SERVER.to_owned(),
            reached_by: format!("POST {}/tools/NAME/invoke", self.manifest.url),
            state: self.off().map_or(ServerState::Ready, |why| ServerState::Off { why }),
            tools: 0,
            offered: self.manifest.tools.len() as u64,
            of_project: false,
            notes: Vec::new(),
        });
        statuses
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.port.changed()
    }

    fn tools(&self) -> Arc<[RemoteTool]> {
        let of_servers = self.port.tools();
        if self.off().is_some() {
            return of_servers;
        }
        of_servers.iter().cloned().chain(self.manifest.tools.iter().map(|tool| tool.tool.clone())).collect()
    }

    fn notes(&self, server: &str) -> Vec<String> {
        if server == BACKEND_SERVER { Vec::new() } else { self.port.notes(server) }
    }

    fn discover(&self) {
        self.port.discover();
    }

    fn call(&self, call: RemoteCall, context: RemoteContext) -> BoxFuture<'_, Result<RemoteResult, RemoteError>> {
        if call.server == BACKEND_SERVER { Box::pin(self.call_backend(call, context)) } else { self.port.call(call, context) }
    }

    fn resources<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ServerResource>, RemoteError>> {
        if server == Some(BACKEND_SERVER) {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        self.port.resources(server)
    }

    fn read_resource<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<RemoteResult, RemoteError>> {
        self.port.read_resource(server, uri)
    }

    fn prompts(&self) -> BoxFuture<'_, Vec<ServerPrompt>> {
        self.port.prompts()
    }

    fn prompt<'a>(
        &'a self,
        server: &'a str,
        name: &'a str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<String, RemoteError>> {
        self.port.prompt(server, name, arguments)
    }

    fn disable_unlisted(&self, off: &dyn Fn(&str) -> Option<String>) {
        *self.off.lock().unwrap_or_else(PoisonError::into_inner) = off(BACKEND_SERVER);
        self.port.disable_unlisted(off);
    }

    fn set_context_window(&self, window_tokens: u64) {
        self.port.set_context_window(window_tokens);
    }

    fn reconnect(&self, server: &str) {
        if server != BACKEND_SERVER {
            self.port.reconnect(server);
        }
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.port.end()
    }
}
