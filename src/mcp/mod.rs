//! MCP client, which connects to tool servers over any transport.

pub(crate) mod auth;
mod connect;
mod connection;
mod content;
mod deps;
mod failure;
mod form;
mod limits;
mod manifest;
mod pattern;
mod request;
mod resources;
mod server;
mod server_requests;
mod servers;
mod spec;
#[cfg(test)]
mod tests;
mod tool_cache;
mod tools;
mod transport;

pub(crate) use connection::Identity;
pub use deps::McpDeps;
pub(crate) use deps::{AuthRefusal, ServerVerifier, Tokens};
pub(crate) use servers::ServerChange;
pub use servers::Servers;
pub(crate) use spec::{Header, PluginFiles};
pub use spec::{HttpKind, Reach, SignIn, Spec};

/// Decodes server output that arrives in these chunks. Returns each message, or an error for each invalid line. Used by
/// `fuzz/`.
#[cfg(feature = "fuzzing")]
pub async fn decode_messages(pieces: &[&[u8]]) -> Vec<Result<String, String>> {
    use rmcp::model::{CallToolResult, ServerJsonRpcMessage};
    let mut messages = Vec::new();
    for line in transport::split_output(pieces).await {
        let message = serde_json::from_slice::<ServerJsonRpcMessage>(&line).map_err(|error| error.to_string());
        if let Ok(ServerJsonRpcMessage::Response(response)) = &message
            && let Ok(result) = serde_json::to_value(&response.result)
            && let Ok(result) = serde_json::from_value::<CallToolResult>(result)
            && let Err(error) = content::convert_call_result(result)
        {
            messages.push(Err(format!("{error:?}")));
        }
        messages.push(message.map(|message| serde_json::to_string(&message).unwrap_or_default()));
    }
    messages
}
