//! Adds to each MCP server's status the number of its tools that the policy lists.

use crate::ports::{BoxFuture, RemoteCall, RemoteContext, RemoteError, RemoteResult, RemoteServers, RemoteTool};
use crate::protocol::{ServerPrompt, ServerResource, ServerState, ServerStatus};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Size of the context window, in tokens, that is assumed if it is unknown.
const WINDOW_TOKENS: u64 = 128_000;

/// Function that returns whether the policy in effect lists a tool, given the names of the server and the tool.
pub(crate) type ListedCheck = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// MCP servers with the number of tools listed for each, and the context window that limits the size of tool
/// definitions.
pub(crate) struct WithToolCounts {
    port: Arc<dyn RemoteServers>,
    lists: Mutex<ListedCheck>,
    window: watch::Sender<u64>,
}

impl WithToolCounts {
    pub(crate) fn new(port: Arc<dyn RemoteServers>) -> Self {
        Self { port, lists: Mutex::new(Arc::new(|_, _| false)), window: watch::channel(WINDOW_TOKENS).0 }
    }

    /// Returns a receiver for the size, in tokens, of the current model's context window.
    pub(crate) fn window(&self) -> watch::Receiver<u64> {
        self.window.subscribe()
    }

    /// Sets the policy that determines which tools are counted.
    pub(crate) fn set_policy(&self, lists: ListedCheck) {
        *self.lists.lock().unwrap_or_else(PoisonError::into_inner) = lists;
    }
}

impl RemoteServers for WithToolCounts {
    fn statuses(&self) -> Vec<ServerStatus> {
        let lists = Arc::clone(&self.lists.lock().unwrap_or_else(PoisonError::into_inner));
        // Both numbers come from the current list.
        let tools = self.port.tools();
        let counted = |status: ServerStatus| {
            let own = tools.iter().filter(|tool| tool.server == status.name);
            let listed = own.clone().filter(|tool| lists(&tool.server, &tool.name)).count() as u64;
            let offered = match &status.state {
                // A server that is off offers no tools; its last number of tools is kept.
                ServerState::Off { .. } => status.offered,
                _ => own.count() as u64,
            };
            ServerStatus { tools: listed, offered, ..status }
        };
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

    fn discover(&self) {
        self.port.discover();
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

    fn disable_unlisted(&self, off: &dyn Fn(&str) -> Option<String>) {
        self.port.disable_unlisted(off);
    }

    fn set_context_window(&self, window_tokens: u64) {
        let tokens = if window_tokens == 0 { WINDOW_TOKENS } else { window_tokens };
        self.window.send_if_modified(|window| std::mem::replace(window, tokens) != tokens);
    }

    fn reconnect(&self, server: &str) {
        self.port.reconnect(server);
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.port.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{McpDeps, Servers};

    #[test]
    fn window_changes_are_published_and_an_unknown_window_has_the_default_size() {
        let counted = WithToolCounts::new(Arc::new(Servers::new(Vec::new(), McpDeps::default())));
        let mut window = counted.window();
        counted.set_context_window(32_000);
        assert!(window.has_changed().unwrap() && *window.borrow_and_update() == 32_000);
        counted.set_context_window(32_000);
        assert!(!window.has_changed().unwrap());
        counted.set_context_window(0);
        assert_eq!(*window.borrow_and_update(), WINDOW_TOKENS);
    }

    #[test]
    fn a_disabled_server_has_no_listed_or_offered_tools() {
        use crate::mcp::Spec;
        let spec = Spec {
            name: "docs".to_owned(),
            reach: crate::mcp::Reach::Program {
                argv: vec!["x".to_owned()],
                environment: Vec::new(),
                directory: None,
                network: false,
            },
            off: Some("not trusted".to_owned()),
            of_project: true,
            plugin: None,
            retry_attempts: 0,
            retry_delay: std::time::Duration::ZERO,
            start_timeout: std::time::Duration::ZERO,
            call_timeout: std::time::Duration::ZERO,
            tool_timeouts: Vec::new(),
        };
        let counted = WithToolCounts::new(Arc::new(Servers::new(vec![spec], McpDeps::default())));
        counted.set_policy(Arc::new(|_, _| true));
        let status = counted.statuses().remove(0);
        assert_eq!((status.tools, status.offered), (0, 0));
    }
}
