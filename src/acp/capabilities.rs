//! Capabilities that aye and an editor announce to each other.

use super::client::EditorCapabilities;
use super::host::{Authentication, EditorServer, ServerReach};
use super::rpc::invalid_params;
use agent_client_protocol::Error;
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal, ClientCapabilities, HttpHeader, Implementation,
    InitializeResponse, McpCapabilities, McpServer, PromptCapabilities, SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities, SessionListCapabilities, SessionResumeCapabilities,
};

pub(crate) fn editor_capabilities(client: &ClientCapabilities) -> EditorCapabilities {
    let session = client.session.as_ref();
    EditorCapabilities {
        reads_files: client.fs.read_text_file,
        writes_files: client.fs.write_text_file,
        notices: session.is_some_and(|session| session.notices.is_some()),
        compactions: session.is_some_and(|session| session.compaction.is_some()),
        terminal_sign_in: client.auth.terminal,
    }
}

/// Returns the available authentication methods. Those that need a terminal are offered only to editors that have one.
pub(crate) fn auth_methods(ways: Vec<Authentication>, understands: EditorCapabilities) -> Vec<AuthMethod> {
    let method = |way: Authentication| match way.in_terminal.filter(|_| understands.terminal_sign_in) {
        Some(arguments) => {
            let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
            AuthMethod::Terminal(AuthMethodTerminal::new(way.id, way.name).description(way.description).args(arguments))
        }
        None => AuthMethod::Agent(AuthMethodAgent::new(way.id, way.name).description(way.description)),
    };
    ways.into_iter().map(method).collect()
}

pub(crate) fn answer(version: ProtocolVersion, ways: Vec<AuthMethod>, own: &'static str) -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
        .session_capabilities(sessions);
    InitializeResponse::new(version)
        .agent_capabilities(capabilities)
        .auth_methods(ways)
        .agent_info(Implementation::new("aye", own).title("aye".to_owned()))
}

pub(crate) fn server(server: McpServer) -> Result<EditorServer, Error> {
    let pairs = |headers: Vec<HttpHeader>| headers.into_iter().map(|header| (header.name, header.value)).collect();
    let (name, reach) = match server {
        McpServer::Stdio(server) => {
            let environment = server.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
            (server.name, ServerReach::Program { command: server.command, arguments: server.args, environment })
        }
        McpServer::Http(server) => (server.name, ServerReach::Http { url: server.url, headers: pairs(server.headers) }),
        McpServer::Sse(server) => (server.name, ServerReach::Events { url: server.url, headers: pairs(server.headers) }),
        _ => return Err(invalid_params("unsupported MCP server transport: must be stdio, http or sse")),
    };
    Ok(EditorServer { name, reach })
}
