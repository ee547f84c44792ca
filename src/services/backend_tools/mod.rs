//! Back-end tools, which are provided by an HTTP service described in a manifest. To the rest of aye, they look like
//! the tools of one more MCP server.

mod client;
mod manifest;
mod server;

pub(crate) use manifest::BackendManifest;
pub(crate) use server::WithBackendTools;
