//! Connecting to a server, which sets up the transport and performs the handshake.

use super::connection::{Connection, sentence_end};
use super::failure::ConnectFailure;
use super::server_requests::ServerRequests;
use super::transport::{Http, Program, Sse, SseTransportError};
use super::{Header, HttpKind, McpDeps, Reach, Spec};
use crate::ports::ServerProgram;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle_and_ct};
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How to start a session with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandshakeMode {
    /// Try discovery first, and fall back to the handshake if the server does not support discovery.
    Either,
    Handshake,
}

impl HandshakeMode {
    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Handshake => ClientLifecycleMode::Initialize,
            Self::Either => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
        }
    }
}

pub(super) async fn connect(spec: &Arc<Spec>, wires: &McpDeps, greeting: HandshakeMode) -> Result<Connection, ConnectFailure> {
    let stop = CancellationToken::new();
    let stopped_when_given_up = stop.clone().drop_guard();
    let connection = match &spec.reach {
        Reach::Program { argv, environment, directory, network } => {
            let launcher = wires.launcher.as_ref();
            let launcher = launcher.ok_or_else(|| ConnectFailure::Final("server programs are not started here".to_owned()))?;
            let program = ServerProgram {
                server: spec.name.clone(),
                argv: argv.clone(),
                environment: environment.clone(),
                directory: directory.clone(),
                network: *network,
                sees: spec.plugin.iter().map(|plugin| plugin.root.clone()).collect(),
            };
            let (program, transport) = Program::launch(launcher.as_ref(), program).await.map_err(ConnectFailure::Final)?;
            match greet(spec, wires, transport, greeting, &stop).await {
                Ok(running) => Connection::new(Arc::clone(spec), running, stop, Some(program)),
                Err(error) => {
                    program.drain_output().await;
                    let last_words = sentence_end(&program.output_tail());
                    program.end().await;
                    return Err(ConnectFailure::from_start_error(&error).with_suffix(&last_words));
                }
            }
        }
        Reach::Http { url, headers, kind, .. } => {
            let running = connect_http(spec, wires, (url, headers, *kind), greeting, &stop).await?;
            Connection::new(Arc::clone(spec), running, stop, None)
        }
    };
    stopped_when_given_up.disarm();
    Ok(connection)
}

async fn connect_http(
    spec: &Arc<Spec>,
    wires: &McpDeps,
    (url, headers, kind): (&str, &[Header], HttpKind),
    greeting: HandshakeMode,
    stop: &CancellationToken,
) -> Result<RunningService<RoleClient, Arc<ServerRequests>>, ConnectFailure> {
    let http = Http::new(url, Arc::clone(spec), wires.tokens.clone()).map_err(ConnectFailure::Final)?;
    if kind != HttpKind::Sse {
        let configuration = Http::configuration(url, headers).map_err(ConnectFailure::Final)?;
        let transport = StreamableHttpClientTransport::with_client(http.clone(), configuration);
        match greet(spec, wires, transport, greeting, stop).await {
            Ok(running) => return Ok(running),
            Err(_) if kind == HttpKind::Auto && matches!(http.last_rejection(), 400 | 404 | 405) => {}
            Err(error) => return Err(ConnectFailure::from_start_error(&error)),
        }
    }
    let transport = Sse::connect(http.clone(), url, headers).await.map_err(|error| match error {
        SseTransportError::NeedsLogin => ConnectFailure::NeedsLogin,
        SseTransportError::Request(error) => ConnectFailure::Temporary(error.to_string()),
        error => ConnectFailure::Final(error.to_string()),
    })?;
    // Servers with this protocol version do not support discovery.
    greet(spec, wires, transport, HandshakeMode::Handshake, stop).await.map_err(|error| ConnectFailure::from_start_error(&error))
}

async fn greet<T, E, A>(
    spec: &Spec,
    wires: &McpDeps,
    transport: T,
    greeting: HandshakeMode,
    stop: &CancellationToken,
) -> Result<RunningService<RoleClient, Arc<ServerRequests>>, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let talk = Arc::new(ServerRequests::new(&spec.name, wires.asks.clone()));
    serve_client_with_lifecycle_and_ct(talk, transport, greeting.lifecycle(), stop.clone()).await
}
