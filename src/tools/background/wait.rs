//! Runs commands from start to end and forwards their output.

use super::Commands;
use super::describe_process_end;
use super::entry::BackgroundCommand;
use crate::ports::RunContext;
use crate::sys::process::{
    CommandSpec, End, FinishedRun, OutputChunk, OutputReceivers, ProcessError, Terminal, TerminalResult, run_with_receivers,
    start_terminal,
};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const CHUNK_BYTES: usize = 64 * 1024;
/// Maximum number of chunks of live output that are waiting to be displayed.
const LIVE_DEPTH: usize = 64;

/// Outcome of running a command in the foreground.
pub(crate) enum WaitOutcome {
    Finished(FinishedRun),
    /// The command was moved to the background.
    Continues(Running),
}

/// Cleanup to perform once a command has ended. It may block on disk I/O, and returns notes for the result.
pub(crate) type After = Box<dyn FnOnce(Option<&FinishedRun>) -> Vec<String> + Send>;

/// Runs a command in the foreground and copies its output to `whole`, until the command ends or the user moves it to
/// the background. Dropping the future kills the command.
pub(crate) async fn run_in_foreground(
    spec: CommandSpec,
    entry: &Arc<BackgroundCommand>,
    whole: Option<mpsc::Sender<OutputChunk>>,
    commands: &Commands,
    context: RunContext,
) -> Result<WaitOutcome, ProcessError> {
    let RunContext { output, kill, interrupt, background, .. } = context;
    let (live, mut pieces) = mpsc::channel(LIVE_DEPTH);
    // Separate tokens, because an interrupt does not affect a command in the background.
    let (unhurried, interrupted) = (CancellationToken::new(), CancellationToken::new());
    let beside =
        OutputReceivers { whole, unhurried: unhurried.clone(), interrupt: interrupted.clone(), ..OutputReceivers::default() };
    let mut running = start_run(spec, entry, live, beside);
    let given_up = entry.kill.clone().drop_guard();
    let (mut may_go, mut may_kill, mut may_interrupt) = (true, true, true);
    loop {
        tokio::select! {
            biased;
            finished = &mut running => {
                while let Ok(text) = pieces.try_recv() {
                    let _ = output.try_send(text);
                }
                return finished.unwrap_or(Err(ProcessError::HelperLost)).map(WaitOutcome::Finished);
            }
            () = kill.cancelled(), if may_kill => {
                may_kill = false;
                entry.kill.cancel();
            }
            () = interrupt.cancelled(), if may_interrupt && may_kill => {
                may_interrupt = false;
                interrupted.cancel();
            }
            () = background.cancelled(), if may_go && may_kill && may_interrupt => {
                may_go = false;
                match commands.admit(entry) {
                    Ok(()) => {
                        unhurried.cancel();
                        given_up.disarm();
                        return Ok(WaitOutcome::Continues(running));
                    }
                    Err(full) => {
                        let _ = output.try_send(format!("[aye: continued here: {}]\n", full.message));
                    }
                }
            }
            Some(text) = pieces.recv() => {
                let _ = output.try_send(text);
            }
        }
    }
}

/// Runs the command of an entry that has already been added to the list.
pub(crate) fn in_background(spec: CommandSpec, entry: &Arc<BackgroundCommand>, after: After) {
    let running = start_run(spec, entry, mpsc::channel(1).0, OutputReceivers::default());
    tokio::spawn(finish(Arc::clone(entry), running, after));
}

/// A running command.
pub(crate) type Running = JoinHandle<Result<FinishedRun, ProcessError>>;

fn start_run(spec: CommandSpec, entry: &Arc<BackgroundCommand>, live: mpsc::Sender<String>, beside: OutputReceivers) -> Running {
    let (tapped, kill) = (Arc::clone(entry), entry.kill.clone());
    let tap = Box::new(move |bytes: &[u8]| {
        tapped.push(bytes);
    });
    tokio::spawn(run_with_receivers(spec, live, kill, OutputReceivers { tap, ..beside }))
}

/// Waits for a background command to end, then cleans up.
pub(crate) async fn finish(entry: Arc<BackgroundCommand>, running: Running, after: After) {
    let finished = running.await.unwrap_or(Err(ProcessError::HelperLost));
    let how = describe_result(finished.as_ref().map(|finished| finished.end));
    finish_run(&entry, how, move || after(finished.as_ref().ok())).await;
}

async fn finish_run(entry: &BackgroundCommand, how: String, after: impl FnOnce() -> Vec<String> + Send + 'static) {
    // The cleanup runs even if its notes can no longer be shown.
    let words = tokio::task::spawn_blocking(after).await.unwrap_or_default();
    entry.end(std::iter::once(how).chain(words).collect::<Vec<_>>().join("; "));
}

/// Starts a command on a terminal and then follows it, on a separate task, until it ends.
pub(crate) async fn session(entry: &Arc<BackgroundCommand>, spec: CommandSpec, after: After) -> Result<(), ProcessError> {
    let terminal = start_terminal(spec, entry.kill.clone()).await?;
    entry.give_keys(terminal.keys.clone());
    tokio::spawn(follow_terminal(Arc::clone(entry), terminal, after));
    Ok(())
}

async fn follow_terminal(entry: Arc<BackgroundCommand>, terminal: Terminal, after: After) {
    let Terminal { mut screen, keys, ending } = terminal;
    let reading = async {
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Ok(count) = screen.read(&mut buffer).await {
            if count == 0 {
                break;
            }
            let answers = entry.push(&buffer[..count]);
            if !answers.is_empty() {
                // A shell would read the responses as the start of its next line.
                super::lock_ignoring_poison(&entry.typed).plain = false;
                let keys = keys.clone();
                // A program that does not read the responses must not block its own output.
                tokio::spawn(async move { keys.write_all(&answers).await });
            }
        }
    };
    let (ended, ()) = tokio::join!(ending, reading);
    let how = describe_result(ended.as_ref().map(|ended| ended.end));
    let blocked = |TerminalResult { denied_hosts, bypasses, .. }: &TerminalResult| {
        let hosts = denied_hosts.iter().map(|denied| format!("{}:{}", denied.host, denied.port));
        hosts.chain(bypasses.iter().map(ToString::to_string)).map(|server| format!("[sandbox: blocked {server}]")).collect()
    };
    let kept_from: Vec<String> = ended.as_ref().map(blocked).unwrap_or_default();
    finish_run(&entry, how, move || kept_from.into_iter().chain(after(None)).collect()).await;
}

fn describe_result(end: Result<End, &ProcessError>) -> String {
    end.map_or_else(ToString::to_string, describe_process_end)
}
