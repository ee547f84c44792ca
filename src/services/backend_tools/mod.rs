//! Back-end tools: tools of an HTTP service that a manifest describes. For aye, they are the tools of one more server.

mod client;
mod manifest;
mod server;

pub(crate) use manifest::BackendManifest;
pub(crate) use server::WithBackendTools;
