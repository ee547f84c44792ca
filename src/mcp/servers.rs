//! All servers of one session, as the agent has them.

use super::bounds::ENDING;
use super::reading;
use super::server::{Bell, Server};
use super::{Identity, Spec, Wires};
use crate::ports::{BoxFuture, RemoteCall, RemoteContext, RemoteError, RemoteResult, RemoteServers, RemoteTool};
use crate::protocol::{ServerPrompt, ServerResource, ServerStatus};
use futures_util::future::join_all;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::watch;

/// Cheap to clone; all clones are the same servers.
#[derive(Clone)]
pub struct Servers {
    servers: Arc<[Arc<Server>]>,
    bell: Bell,
}

impl Servers {
    /// Nothing is started yet; only what was known before is read.
    pub fn new(specs: Vec<Spec>, wires: Wires) -> Self {
        let bell = Bell::default();
        let servers = specs.into_iter().map(|spec| Server::new(spec, wires.clone(), Arc::clone(&bell))).collect();
        Self { servers, bell }
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>, RemoteError> {
        self.servers
            .iter()
            .find(|server| server.spec.name == name)
            .ok_or_else(|| RemoteError::Unknown { message: format!("no server is called `{name}`") })
    }

    /// What a server that is up says it is.
    pub fn identity(&self, name: &str) -> Option<Identity> {
        self.server(name).ok()?.identity()
    }

    async fn call_now(&self, call: RemoteCall, context: RemoteContext) -> Result<RemoteResult, RemoteError> {
        let server = self.server(&call.server)?;
        let connection = tokio::select! {
            connection = server.connection() => connection?,
            () = context.cancel.cancelled() => return Err(RemoteError::Cancelled),
            () = tokio::time::sleep(context.timeout) => return Err(RemoteError::Unreachable {
                message: format!("the server `{}` is still starting; call again", call.server),
            }),
        };
        match server.tools().iter().find(|tool| tool.name == call.tool) {
            None => {
                let message = format!("the server `{}` does not offer `{}` now", call.server, call.tool);
                return Err(RemoteError::Unknown { message });
            }
            Some(tool) if tool.fingerprint != call.fingerprint => {
                let message = format!(
                    "the server `{}` describes `{}` otherwise than before; look at it and call again",
                    call.server, call.tool
                );
                return Err(RemoteError::Changed { message });
            }
            Some(_) => {}
        }
        connection.call(call, &context).await
    }
}

impl RemoteServers for Servers {
    fn statuses(&self) -> Vec<ServerStatus> {
        self.servers.iter().map(|server| server.status()).collect()
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    fn tools(&self) -> Arc<[RemoteTool]> {
        self.servers.iter().flat_map(|server| server.tools().iter().cloned().collect::<Vec<_>>()).collect()
    }

    fn notes(&self, server: &str) -> Vec<String> {
        self.server(server).map(|server| server.notes()).unwrap_or_default()
    }

    fn look(&self) {
        for server in &*self.servers {
            server.look();
        }
    }

    fn call(&self, call: RemoteCall, context: RemoteContext) -> BoxFuture<'_, Result<RemoteResult, RemoteError>> {
        Box::pin(self.call_now(call, context))
    }

    fn resources<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ServerResource>, RemoteError>> {
        Box::pin(async move {
            if let Some(name) = server {
                let connection = self.server(name)?.connection().await?;
                return reading::resources(&connection).await;
            }
            let standing: Vec<_> = self.servers.iter().filter_map(|server| server.standing()).collect();
            let found = join_all(standing.iter().map(|connection| reading::resources(connection))).await;
            Ok(found.into_iter().filter_map(Result::ok).flatten().collect())
        })
    }

    fn read_resource<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<RemoteResult, RemoteError>> {
        Box::pin(async move {
            let connection = self.server(server)?.connection().await?;
            reading::read(&connection, uri).await
        })
    }

    fn prompts(&self) -> BoxFuture<'_, Vec<ServerPrompt>> {
        Box::pin(async move {
            let standing: Vec<_> = self.servers.iter().filter_map(|server| server.standing()).collect();
            let found = join_all(standing.iter().map(|connection| reading::prompts(connection))).await;
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
            reading::prompt(&connection, name, arguments).await
        })
    }

    fn keep_off(&self, off: &dyn Fn(&str) -> Option<String>) {
        for server in &*self.servers {
            server.keep_off(off(&server.spec.name));
        }
    }

    fn reconnect(&self, server: &str) {
        if let Ok(server) = self.server(server) {
            server.reconnect();
        }
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let all = join_all(self.servers.iter().map(|server| server.end()));
            let _ = tokio::time::timeout(ENDING, all).await;
        })
    }
}
