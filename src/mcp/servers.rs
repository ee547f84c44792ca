//! All MCP servers of a session, as seen by the agent.

use super::limits::TERMINATE_TIMEOUT;
use super::resources;
use super::server::{ChangeNotifier, Server};
use super::{Identity, McpDeps, Spec};
use crate::ports::{BoxFuture, RemoteCall, RemoteContext, RemoteError, RemoteResult, RemoteServers, RemoteTool};
use crate::protocol::{ServerPrompt, ServerResource, ServerStatus};
use futures_util::future::join_all;
use serde_json::{Map, Value};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// A session's MCP servers. Cloning is cheap, and all clones share the same servers.
#[derive(Clone)]
pub struct Servers {
    servers: Arc<RwLock<Arc<[Arc<Server>]>>>,
    wires: McpDeps,
    bell: ChangeNotifier,
}

/// How a server's configuration changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerChange {
    Added,
    Removed,
    Changed,
}

impl Servers {
    /// Creates the servers without starting any of them. Apart from the tool cache, nothing is read.
    pub fn new(specs: Vec<Spec>, wires: McpDeps) -> Self {
        let bell = ChangeNotifier::default();
        let servers = specs.into_iter().map(|spec| Server::new(spec, wires.clone(), Arc::clone(&bell))).collect();
        Self { servers: Arc::new(RwLock::new(servers)), wires, bell }
    }

    fn all(&self) -> Arc<[Arc<Server>]> {
        Arc::clone(&self.servers.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the servers, and returns what has changed. Servers whose configuration is the same keep running. Any
    /// others are stopped once their calls have ended, and new servers are started when they are first used.
    pub fn replace(&self, specs: Vec<Spec>) -> Vec<(String, ServerChange)> {
        let before = self.all();
        let of_name = |name: &str| before.iter().find(|server| server.spec.name == name);
        let mut changes = Vec::new();
        let mut now: Vec<Arc<Server>> = Vec::new();
        for spec in specs {
            match of_name(&spec.name) {
                Some(same) if *same.spec == spec => now.push(Arc::clone(same)),
                known => {
                    let entry = if known.is_some() { ServerChange::Changed } else { ServerChange::Added };
                    changes.push((spec.name.clone(), entry));
                    now.push(Server::new(spec, self.wires.clone(), Arc::clone(&self.bell)));
                }
            }
        }
        let gone: Vec<_> = before.iter().filter(|old| !now.iter().any(|new| Arc::ptr_eq(old, new))).cloned().collect();
        let removed = gone.iter().filter(|old| !now.iter().any(|new| new.spec.name == old.spec.name));
        changes.extend(removed.map(|old| (old.spec.name.clone(), ServerChange::Removed)));
        if changes.is_empty() {
            return changes;
        }
        *self.servers.write().unwrap_or_else(PoisonError::into_inner) = now.into();
        for server in gone {
            tokio::spawn(server.retire());
        }
        self.bell.send_modify(|count| *count = count.wrapping_add(1));
        changes
    }

    fn server(&self, name: &str) -> Result<Arc<Server>, RemoteError> {
        self.all()
            .iter()
            .find(|server| server.spec.name == name)
            .cloned()
            .ok_or_else(|| RemoteError::Unknown { message: format!("unknown MCP server `{name}`") })
    }

    /// Returns the name and version that a server reports, if it is connected.
    pub fn identity(&self, name: &str) -> Option<Identity> {
        self.server(name).ok()?.identity()
    }

    /// Calls a tool. If the server is unreachable and the call was not delivered, the call is sent again after
    /// reconnecting. If the server is busy, it is sent again later. A call that the server may have accepted is never
    /// repeated.
    async fn call_now(&self, call: RemoteCall, context: RemoteContext) -> Result<RemoteResult, RemoteError> {
        let server = self.server(&call.server)?;
        let mut delay = server.spec.retry_delay;
        for attempt in 0.. {
            let connection = tokio::select! {
                connection = server.connection() => connection?,
                () = context.cancel.cancelled() => return Err(RemoteError::Cancelled),
                () = tokio::time::sleep(context.timeout) => return Err(RemoteError::Unreachable {
                    message: format!("the server `{}` is still starting; call again", call.server),
                }),
            };
            Self::is_the_same(&server, &call)?;
            let error = match connection.call(call.clone(), &context).await {
                Err(error @ (RemoteError::Unreachable { .. } | RemoteError::OutcomeUnknown { .. })) => {
                    server.mark_unavailable(&connection, &error.to_string());
                    error
                }
                Err(error @ RemoteError::Busy { .. }) => error,
                answer => return answer,
            };
            if attempt >= server.spec.retry_attempts || matches!(error, RemoteError::OutcomeUnknown { .. }) {
                return Err(error);
            }
            tracing::info!(server = %call.server, tool = %call.tool, attempt, %error, "retrying a call that was not sent");
            tokio::select! {
                () = tokio::time::sleep(delay) => delay = delay.saturating_mul(2),
                () = context.cancel.cancelled() => return Err(RemoteError::Cancelled),
            }
        }
        Err(RemoteError::Unknown { message: format!("the call was not sent to the server `{}`", call.server) })
    }

    /// Checks that the tool has not changed since the policy judged this call.
    fn is_the_same(server: &Server, call: &RemoteCall) -> Result<(), RemoteError> {
        match server.tools().iter().find(|tool| tool.name == call.tool) {
            None => {
                let message = format!("the server `{}` no longer offers `{}`", call.server, call.tool);
                Err(RemoteError::Unknown { message })
            }
            Some(tool) if tool.fingerprint != call.fingerprint => {
                let message =
                    format!("the server `{}` changed the definition of `{}`; review it and call again", call.server, call.tool);
                Err(RemoteError::Changed { message })
            }
            Some(_) => Ok(()),
        }
    }
}

impl RemoteServers for Servers {
    fn statuses(&self) -> Vec<ServerStatus> {
        self.all().iter().map(|server| server.status()).collect()
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    fn tools(&self) -> Arc<[RemoteTool]> {
        self.all().iter().flat_map(|server| server.tools().iter().cloned().collect::<Vec<_>>()).collect()
    }

    fn notes(&self, server: &str) -> Vec<String> {
        self.server(server).map(|server| server.notes()).unwrap_or_default()
    }

    fn discover(&self) {
        for server in &*self.all() {
            server.discover();
        }
    }

    fn call(&self, call: RemoteCall, context: RemoteContext) -> BoxFuture<'_, Result<RemoteResult, RemoteError>> {
        Box::pin(self.call_now(call, context))
    }

    fn resources<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ServerResource>, RemoteError>> {
        Box::pin(async move {
            if let Some(name) = server {
                let connection = self.server(name)?.connection().await?;
                return resources::resources(&connection).await;
            }
            let standing: Vec<_> = self.all().iter().filter_map(|server| server.current_connection()).collect();
            let found = join_all(standing.iter().map(|connection| resources::resources(connection))).await;
            Ok(found.into_iter().filter_map(Result::ok).flatten().collect())
        })
    }

    fn read_resource<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<RemoteResult, RemoteError>> {
        Box::pin(async move {
            let connection = self.server(server)?.connection().await?;
            resources::read(&connection, uri).await
        })
    }

    fn prompts(&self) -> BoxFuture<'_, Vec<ServerPrompt>> {
        Box::pin(async move {
            let standing: Vec<_> = self.all().iter().filter_map(|server| server.current_connection()).collect();
            let found = join_all(standing.iter().map(|connection| resources::prompts(connection))).await;
            found.into_iter().filter_map(Result::ok).flatten().collect()
        })
    }

    fn prompt<'a>(
        &'a self,
        server: &'a str,
        name: &'a str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<String, RemoteError>> {
        Box::pin(async move {
            let connection = self.server(server)?.connection().await?;
            resources::prompt(&connection, name, arguments).await
        })
    }

    fn disable_unlisted(&self, off: &dyn Fn(&str) -> Option<String>) {
        for server in &*self.all() {
            server.set_disabled(off(&server.spec.name));
        }
    }

    fn reconnect(&self, server: &str) {
        if let Ok(server) = self.server(server) {
            server.reconnect();
        }
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let servers = self.all();
            let all = join_all(servers.iter().map(|server| server.end()));
            let _ = tokio::time::timeout(TERMINATE_TIMEOUT, all).await;
        })
    }
}
