//! Creates the MCP servers of a session.

use super::token_store;
use crate::host::context::AppContext;
use crate::mcp::auth::TokenCache;
use crate::mcp::{self, McpDeps, ServerVerifier, Spec};
use crate::ports::RemoteAsks;
use crate::tools::ServerLauncher;
use std::path::PathBuf;
use std::sync::Arc;

/// Creates the servers without starting them. `known` is the directory in which their tools are cached.
pub(crate) fn servers(
    app: &AppContext,
    specs: Vec<Spec>,
    launcher: Arc<ServerLauncher>,
    (asks, approval): (Arc<dyn RemoteAsks>, Arc<dyn ServerVerifier>),
    known: PathBuf,
) -> mcp::Servers {
    let wires = McpDeps {
        launcher: Some(launcher),
        asks: Some(asks),
        known: Some(known),
        approval: Some(approval),
        tokens: Some(Arc::new(TokenCache::new(token_store::vault(app)))),
    };
    mcp::Servers::new(specs, wires)
}
