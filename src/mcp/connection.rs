//! Established connection to an MCP server.

use super::failure::{one_line, truncate};
use super::limits::{NAME_BYTES, SHUTDOWN_TIMEOUT};
use super::request::{Question, RequestTimeout, ask};
use super::server_requests::ServerRequests;
use super::tools::{ToolListing, list};
use super::transport::Program;
use super::{Spec, content};
use crate::ports::{RemoteCall, RemoteContext, RemoteError, RemoteResult};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ProtocolVersion, ServerCapabilities, ServerResult};
use rmcp::service::{Peer, RunningService, ServiceError};
use std::sync::Arc;
use tokio_util::sync::{CancellationToken, DropGuard};

const STDERR_TAIL_LINES: usize = 5;

/// Name and version that a server reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Negotiated protocol version, such as `2025-11-25`.
    pub revision: String,
    pub name: Option<String>,
    pub version: Option<String>,
}

pub(super) struct Connection {
    pub spec: Arc<Spec>,
    pub peer: Peer<RoleClient>,
    pub talk: Arc<ServerRequests>,
    /// Cancelled once either side has closed the connection.
    pub gone: CancellationToken,
    /// Closes the connection when it is cancelled. It is also cancelled when the connection is dropped.
    stop: CancellationToken,
    _stopped_when_dropped: DropGuard,
    program: Option<Program>,
}

impl Connection {
    pub(super) fn new(
        spec: Arc<Spec>,
        running: RunningService<RoleClient, Arc<ServerRequests>>,
        stop: CancellationToken,
        program: Option<Program>,
    ) -> Self {
        let (peer, talk) = (running.peer().clone(), Arc::clone(running.service()));
        let gone = CancellationToken::new();
        let done = gone.clone().drop_guard();
        tokio::spawn(async move {
            let _done = done;
            if let Err(error) = running.waiting().await {
                tracing::warn!(%error, "a connection task failed");
            }
        });
        Self { spec, peer, talk, gone, _stopped_when_dropped: stop.clone().drop_guard(), stop, program }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.is_cancelled() || self.peer.is_transport_closed()
    }

    pub(super) fn capabilities(&self) -> ServerCapabilities {
        self.peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default()
    }

    /// Returns whether the negotiated protocol version includes a handshake.
    pub(super) fn uses_handshake(&self) -> bool {
        self.peer.peer_info().is_none_or(|info| info.protocol_version.has_initialize())
    }

    /// Returns the name and version that the server reports, and the negotiated protocol version.
    pub(super) fn identity(&self) -> Identity {
        let info = self.peer.peer_info();
        let own = info.as_ref().and_then(|info| info.server_info.as_ref());
        let word = |text: &str| Some(one_line(&truncate(text, NAME_BYTES))).filter(|word| !word.is_empty());
        Identity {
            revision: info.as_ref().map(|info| info.protocol_version.to_string()).unwrap_or_default(),
            name: own.and_then(|own| word(&own.name)),
            version: own.and_then(|own| word(&own.version)),
        }
    }

    /// Returns notes about the connection that the user should see.
    pub(super) fn notes(&self) -> Vec<String> {
        let is_oldest = self.peer.peer_info().is_some_and(|info| info.protocol_version == ProtocolVersion::V_2024_11_05);
        let note = "uses the deprecated protocol version 2024-11-05; update the server if you can";
        is_oldest.then(|| note.to_owned()).into_iter().collect()
    }

    pub(super) async fn tools(&self) -> Result<ToolListing, ServiceError> {
        if self.capabilities().tools.is_none() {
            return Ok(ToolListing::default());
        }
        list(&self.peer, &self.spec.name).await
    }

    pub(super) async fn call(&self, call: RemoteCall, context: &RemoteContext) -> Result<RemoteResult, RemoteError> {
        let own = self.spec.tool_timeouts.iter().find(|(tool, _)| *tool == call.tool).map(|(_, timeout)| *timeout);
        let waiting = RequestTimeout {
            timeout: own.map_or(context.timeout, |own| own.min(context.timeout)),
            cancel: context.cancel.clone(),
            output: Some(context.output.clone()),
        };
        let params = CallToolRequestParams::new(call.tool).with_arguments(call.arguments);
        match self.ask(Question::Call(params), &waiting).await? {
            ServerResult::CallToolResult(result) => content::convert_call_result(result),
            _ => Err(self.unreadable()),
        }
    }

    pub(super) async fn ask(&self, question: Question, waiting: &RequestTimeout) -> Result<ServerResult, RemoteError> {
        let answer = ask(&self.spec, &self.peer, &self.talk, question, waiting).await;
        match answer {
            Err(RemoteError::OutcomeUnknown { message }) => {
                let last_words = self.output_tail().await;
                Err(RemoteError::OutcomeUnknown { message: format!("{message}{last_words}") })
            }
            answer => answer,
        }
    }

    pub(super) fn unreadable(&self) -> RemoteError {
        RemoteError::Refused { message: format!("the server `{}` sent a response of an unknown kind", self.spec.name) }
    }

    /// Returns the last output of the server program, worded as the end of a sentence. Empty if there is none.
    pub(super) async fn output_tail(&self) -> String {
        let Some(program) = &self.program else { return String::new() };
        program.drain_output().await;
        sentence_end(&program.output_tail())
    }

    /// Waits until all requests in progress have ended or the connection is gone.
    pub(super) async fn idle(&self) {
        let mut busy = self.talk.subscribe_activity();
        tokio::select! {
            _ = busy.wait_for(|busy| busy.requests == 0) => {}
            () = self.gone.cancelled() => {}
        }
    }

    /// Gives the server time to exit, and then terminates it.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.gone.cancelled()).await;
        if let Some(program) = &self.program {
            program.end().await;
        }
    }
}

pub(super) fn sentence_end(last_words: &str) -> String {
    let lines: Vec<&str> = last_words.lines().collect();
    match one_line(&lines[lines.len().saturating_sub(STDERR_TAIL_LINES)..].join("\n")) {
        said if said.is_empty() => String::new(),
        said => format!("; last output: {said}"),
    }
}
