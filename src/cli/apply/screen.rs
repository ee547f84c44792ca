//! Review of the changes on the full screen: the approval prompts of the session, in which files and hunks can be left out.

use super::{Application, Progress};
use crate::agent;
use crate::cli::screen::current_workspace::CurrentWorkspace;
use crate::cli::screen::{TuiChannels, connect, tui_options};
use crate::host::error::CliError;
use crate::host::options::Common;
use crate::host::session_builder::{PreparedSession, StartedSession};
use crate::protocol::{Command, Event, Problem, SessionCommand};
use crate::tui::{self, ModelAccess, SessionHeader, Start, UiOptions};
use tokio::sync::mpsc;

/// Runs the session of the changes behind a screen, which closes when the last call has ended.
///
/// # Errors
/// Returns an error if the terminal fails. The session has then ended too.
pub(super) async fn review(prepared: PreparedSession, common: &Common, application: &Application) -> Result<Progress, CliError> {
    let (place, policy) = (prepared.context().clone(), prepared.policy().clone());
    let here = CurrentWorkspace::new(&place, &policy);
    let options = tui_options::options(&place, &here, common.color);
    let options = UiOptions { closes_with_session: true, memory: false, history: None, ..options };
    let (front, wires) = connect(options, None, String::new());
    let TuiChannels { start, ahead, commands: from_screen, mut queries, events: to_screen } = wires;
    let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
    let (events, from_session) = mpsc::unbounded_channel();
    let session = prepared.start(receive_commands, events, None);
    let header =
        SessionHeader { branch: place.branch(), mode: place.mode, policy: policy.name.clone(), ..SessionHeader::default() };
    // Fails only if the screen has closed.
    let _ = start.send(first_screen(header));
    let _ = commands.send(Command::Prompt { text: application.prompt.clone() }.into()).await;
    let unanswered = tokio::spawn(async move { while queries.recv().await.is_some() {} });
    let relay = tokio::spawn(relay(session, commands, from_session, (from_screen, to_screen)));
    let outcome = tui::run(front).await;
    drop(ahead);
    let progress = relay.await.unwrap_or_default();
    unanswered.abort();
    match outcome {
        Ok(_) => Ok(progress),
        Err(error) => Err(CliError::failed(Problem::new("terminal error").because(error))),
    }
}

fn first_screen(header: SessionHeader) -> Start {
    Start {
        header,
        history: Vec::new(),
        older: None,
        cwd: None,
        model_access: ModelAccess::Ready,
        trust: None,
        is_trusted: false,
        policy_ends: None,
        last_here: None,
        attempt: None,
        is_first: false,
    }
}

/// Passes events to the screen, and decisions to the session, until the session ends. If the screen closes first, the task is
/// cancelled.
async fn relay(
    mut session: StartedSession,
    commands: mpsc::Sender<SessionCommand>,
    mut from_session: mpsc::UnboundedReceiver<Event>,
    (mut from_screen, to_screen): (mpsc::Receiver<SessionCommand>, mpsc::UnboundedSender<Event>),
) -> Progress {
    let mut progress = Progress::default();
    let mut is_open = true;
    loop {
        tokio::select! {
            event = from_session.recv() => {
                let Some(event) = event else { break };
                progress.follow(&event.kind);
                let is_over = event.kind.is_over();
                // Fails only if the screen has closed.
                let _ = to_screen.send(event);
                if is_over {
                    let _ = commands.send(Command::Quit.into()).await;
                }
            }
            command = from_screen.recv(), if is_open => match command {
                Some(SessionCommand::Turn(command)) if is_about_approval(&command) => {
                    let _ = commands.send(command.into()).await;
                }
                None | Some(SessionCommand::Turn(Command::Quit)) => {
                    is_open = false;
                    let _ = commands.send(Command::Kill.into()).await;
                    let _ = commands.send(Command::Quit.into()).await;
                }
                // There is no model to talk to.
                Some(_) => {}
            },
        }
    }
    session.wait_until_ended().await;
    session.close().await;
    progress
}

fn is_about_approval(command: &Command) -> bool {
    command.approval_id().is_some() || matches!(command, Command::Cancel | Command::Finish | Command::Kill)
}
