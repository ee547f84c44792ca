//! `aye serve`: serves one session to another program over stdio or a socket.

mod connection;
mod session_open;
pub(crate) mod transport;

use crate::host::console::warn;
use crate::host::startup;
use crate::host::startup::start_log;
pub(crate) use connection::Signals;

use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::serve::{FaultCode, Outgoing, RpcError};
use crate::sys::socket::{Peer, SocketListener};
use connection::{Host, SessionEnd};
use session_open::SessionFactory;
use std::path::{Path, PathBuf};
use std::time::Duration;
use transport::ServeClient;

/// Maximum time to wait for remaining reads and writes at exit.
const LEFTOVERS: Duration = Duration::from_secs(2);

/// Endpoint to which the client connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServeEndpoint {
    Stdio,
    Socket(PathBuf),
}

pub(crate) fn run(common: &Common, door: &ServeEndpoint) -> Result<Exit, CliError> {
    let app = AppContext::find(common)?;
    let _log = start_log(&app, common.verbosity);
    let opener = SessionFactory::new(common);
    let runtime = startup::runtime()?;
    let exit = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| CliError::failed(format!("cannot listen for signals: {error}")))?;
        match door {
            ServeEndpoint::Stdio => {
                let client = ServeClient::stdio().map_err(|error| CliError::failed(format!("cannot read stdin: {error}")))?;
                Ok(match Box::pin(Host::new(client, opener).run(&mut signals)).await {
                    SessionEnd::Done | SessionEnd::Gone { .. } => Exit::Completed,
                    SessionEnd::Signalled(exit) => exit,
                })
            }
            ServeEndpoint::Socket(path) => Box::pin(at_socket(path, &opener, &mut signals)).await,
        }
    });
    runtime.shutdown_timeout(LEFTOVERS);
    exit
}

/// Serves one client at a time. If a client disconnects while a task is running, the process exits; otherwise another
/// client may connect.
async fn at_socket(path: &Path, opener: &SessionFactory, signals: &mut Signals) -> Result<Exit, CliError> {
    let listener = SocketListener::bind(path).map_err(|error| {
        let problem = CliError::usage(format!("--socket: {}", error.why));
        error.hint.into_iter().fold(problem, CliError::hint)
    })?;
    warn(format!("listening on `{}`", path.display()));
    loop {
        let stream = tokio::select! {
            peer = listener.accept() => match peer {
                Ok(Peer::Own(stream)) => stream,
                Ok(Peer::Other { stream, uid }) => {
                    transport::refuse(stream, &other_user_response(uid));
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a client");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            exit = signals.next() => return Ok(exit),
        };
        let client = match ServeClient::from_stream(stream) {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client");
                continue;
            }
        };
        let left = {
            let host = Host::new(client, opener.clone());
            let run = host.run(signals);
            tokio::pin!(run);
            loop {
                tokio::select! {
                    left = &mut run => break left,
                    peer = listener.accept() => match peer {
                        Ok(Peer::Own(stream)) => transport::refuse(stream, &busy_response()),
                        Ok(Peer::Other { stream, uid }) => transport::refuse(stream, &other_user_response(uid)),
                        Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                    },
                }
            }
        };
        match left {
            SessionEnd::Done | SessionEnd::Gone { worked: true } => return Ok(Exit::Completed),
            SessionEnd::Signalled(exit) => return Ok(exit),
            SessionEnd::Gone { worked: false } => {}
        }
    }
}

/// Pause after failing to accept a client, for example because no file descriptors are available.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

fn busy_response() -> Outgoing {
    let message = "another client is connected; this host serves one client at a time";
    Outgoing::refusal(RpcError::new(FaultCode::SessionExists, message))
}

fn other_user_response(uid: Option<u32>) -> Outgoing {
    let who = uid.map_or_else(|| "an unknown user".to_owned(), |uid| format!("user {uid}"));
    Outgoing::refusal(RpcError::new(
        FaultCode::InvalidRequest,
        format!("{who} may not use this host: it serves only the user who started it"),
    ))
}
