//! Commands whose input and output are available as streams while they run.

use super::run::{
    CommandSpec, End, HELPER_END_LIMIT, ProcessError, StartedCommand, StdioMode, StopConditions, start, wait_for_end,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::net::unix::pipe::Sender;
use tokio::process::{ChildStderr, ChildStdout};
use tokio_util::sync::CancellationToken;

/// A running command with its three streams.
pub(crate) struct PipedProcess {
    /// The command's input, which is closed when this is dropped.
    pub input: Sender,
    pub output: ChildStdout,
    pub errors: ChildStderr,
    /// Future that must be polled until the command ends. Dropping it kills all of the command's processes.
    pub ending: BoxFuture<'static, Result<End, ProcessError>>,
}

/// Starts the line, which then runs until it ends on its own or `kill` is cancelled. The time limit in `spec` is
/// ignored.
pub(crate) async fn start_piped(spec: CommandSpec, kill: CancellationToken) -> Result<PipedProcess, ProcessError> {
    let Some(running) = start(&spec, StdioMode::Both, &kill).await? else {
        return Err(ProcessError::NotStarted("stopped before it started".to_owned()));
    };
    let StartedCommand { mut child, mut control, pieces, mut way_out } = running;
    let lacks = |what: &str| ProcessError::NotStarted(format!("the helper provided no {what}"));
    let input = pieces.input.ok_or_else(|| lacks("input"))?;
    let output = child.stdout.take().ok_or_else(|| lacks("output"))?;
    let errors = child.stderr.take().ok_or_else(|| lacks("error output"))?;
    let ending = async move {
        // A program that exchanges messages with aye is killed, never interrupted.
        let stops = StopConditions { kill: &kill, interrupt: &CancellationToken::new() };
        let end = tokio::select! {
            end = wait_for_end(&mut control, std::future::pending(), stops) => end,
            never = way_out.serve() => match never {},
        };
        drop(control);
        let _ = tokio::time::timeout(HELPER_END_LIMIT, child.wait()).await;
        end.map(|reported| reported.end)
    };
    Ok(PipedProcess { input, output, errors, ending: ending.boxed() })
}
