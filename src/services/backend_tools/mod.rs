//! Back-end tools: tools of an HTTP service that a manifest describes. aye treats them as tools of another server.

mod client;
mod manifest;
mod server;

pub(crate) use manifest::BackendManifest;
pub(crate) use server::WithBackendTools;
