//! `aye mcp serve`: offers aye's tools to another agent, subject to the policy, as an MCP server on stdin and stdout.

mod calls;
mod convert;
mod elicitation;
mod handler;
mod progress;
mod scheduler;
mod transport;

use super::serve::Signals;
use super::serve::transport::ServeClient;
use crate::host::console::warn;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;
use crate::host::redaction::redactor;
use crate::host::startup;
use crate::host::startup::start_log;
use crate::host::tool_runner::{Starts, ToolEnvironment, ToolRunner};
use calls::CallService;
use handler::Handler;
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use transport::ClientTransport;

/// Maximum time to wait for the last responses to be sent after the client has closed its side.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time that cancelled calls have to report their end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);
/// Maximum time to wait for remaining reads and writes at exit.
const LEFTOVERS: Duration = Duration::from_secs(2);

/// Approver of calls when aye serves its tools to another agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalMode {
    Nobody,
    /// The client's user.
    Client,
}

pub(crate) fn run(app: &AppContext, common: &Common, asks: ApprovalMode) -> Result<Exit, CliError> {
    let _log = start_log(app, common.verbosity);
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    project.ignored_files_notice().iter().for_each(warn);
    let ground = ToolEnvironment::find(app, common, &project, Starts::Programs)?;
    let set = app.settings.approval.timeout;
    let patience = ground.policy.approval_timeout().map_or(set, |bundle| bundle.min(set));
    let redactor = redactor(&ground.app, ground.policy.redactions(), &[]);
    let artifacts = Arc::new(app.artifacts(None));
    let end = CancellationToken::new();
    let instructions = instructions(app, asks);
    let runtime = startup::runtime()?;
    let exit = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| CliError::failed(format!("cannot listen for signals: {error}")))?;
        let client = ServeClient::stdio().map_err(|error| CliError::failed(format!("cannot read stdin: {error}")))?;
        let calls = Arc::new(CallService::new(ToolRunner::new(ground, None), asks, patience, redactor, artifacts, end));
        let wire = ClientTransport::new(client, Arc::clone(&calls.scheduler));
        let hand = Handler { calls: Arc::clone(&calls), instructions: instructions.into() };
        let exit = serve_until_end(&wire, hand, &mut signals, &calls.end).await;
        calls.shut_down().await;
        wire.close().await;
        Ok(exit)
    });
    runtime.shutdown_timeout(LEFTOVERS);
    exit
}

/// Returns the instructions for the client's model.
fn instructions(app: &AppContext, asks: ApprovalMode) -> String {
    let asked = match asks {
        ApprovalMode::Nobody => "Calls that need approval are denied",
        ApprovalMode::Client => "The client shows calls that need approval to the user",
    };
    format!(
        "Tools for files and commands in `{}`, under a policy set by the user who started this server. {asked}; a \
        denial names its rule, and attempts to work around it are denied too. Paths may be relative to the workspace.",
        app.workspace.display()
    )
}

/// Serves the client until it disconnects or a signal terminates the process.
async fn serve_until_end(wire: &ClientTransport, hand: Handler, signals: &mut Signals, end: &CancellationToken) -> Exit {
    let (over, deaf) = (CancellationToken::new(), wire.disconnected());
    let served = serve(wire.clone(), hand, over.clone());
    tokio::pin!(served);
    let exit = tokio::select! {
        () = &mut served => return Exit::Completed,
        exit = signals.next() => exit,
        () = async {
            deaf.cancelled().await;
            tokio::time::sleep(RESPONSE_TIMEOUT).await;
        } => Exit::Completed,
    };
    // End running commands first, so that their calls still return results.
    end.cancel();
    if exit != Exit::Completed {
        over.cancel();
    }
    tokio::select! {
        () = &mut served => {}
        () = tokio::time::sleep(SHUTDOWN_TIMEOUT) => {}
        _ = signals.next() => {}
    }
    exit
}

/// Serves one session. If the handshake fails, waits for another one, so messages sent before the handshake do not
/// terminate the server.
async fn serve(wire: ClientTransport, hand: Handler, over: CancellationToken) {
    loop {
        match serve_server_with_ct(hand.clone(), wire.clone(), over.clone()).await {
            Ok(service) => {
                if let Err(error) = service.waiting().await {
                    tracing::error!(%error, "the connection ended unexpectedly");
                }
                return;
            }
            Err(ServerInitializeError::ExpectedInitializeRequest(Some(_)) | ServerInitializeError::InitializeFailed(_)) => {}
            Err(error) => return tracing::debug!(%error, "there was no handshake"),
        }
    }
}
