//! How many of the tools that servers offer are listed, told with how they stand.

use crate::ports::{BoxFuture, RemoteCall, RemoteContext, RemoteError, RemoteResult, RemoteServers, RemoteTool};
use crate::protocol::{ServerPrompt, ServerResource, ServerStatus};
use crate::tools;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The servers, each with how many of its tools the policy lists.
pub struct Counted {
    port: Arc<dyn RemoteServers>,
    listed: Mutex<HashMap<String, u64>>,
}

impl Counted {
    pub fn new(port: Arc<dyn RemoteServers>) -> Self {
        Self { port, listed: Mutex::default() }
    }

    pub fn count(&self, tools: Option<&tools::RemoteTools>) {
        let counts = tools.map(tools::RemoteTools::counts).unwrap_or_default();
        let counts = counts.into_iter().map(|(name, listed, _)| (name, listed as u64)).collect();
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }
}

impl RemoteServers for Counted {
    fn statuses(&self) -> Vec<ServerStatus> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let counted =
            |status: ServerStatus| ServerStatus { tools: listed.get(&status.name).copied().unwrap_or_default(), ..status };
        self.port.statuses().into_iter().map(counted).collect()
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.port.changed()
    }

    fn tools(&self) -> Arc<[RemoteTool]> {
        self.port.tools()
    }

    fn notes(&self, server: &str) -> Vec<String> {
        self.port.notes(server)
    }

    fn look(&self) {
        self.port.look();
    }

    fn call(&self, call: RemoteCall, context: RemoteContext) -> BoxFuture<'_, Result<RemoteResult, RemoteError>> {
        self.port.call(call, context)
    }

    fn resources<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ServerResource>, RemoteError>> {
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

    fn keep_off(&self, off: &dyn Fn(&str) -> Option<String>) {
        self.port.keep_off(off);
    }

    fn reconnect(&self, server: &str) {
        self.port.reconnect(server);
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.port.end()
    }
}
