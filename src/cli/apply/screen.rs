//! Full-screen review of changes. In the session's approval prompts, the user can leave out files and hunks.

use super::{Application, Progress};
use crate::agent;
use crate::cli::screen::current_workspace::CurrentWorkspace;
use crate::cli::screen::{TuiChannels, connect, tui_options};
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::session_builder::{PreparedSession, StartedSession};
use crate::protocol::{Command, ErrorCode, Event, EventKind, HostCommand, Problem, SessionCommand, ToolError};
use crate::tui::{self, ModelAccess, SessionHeader, Start, UiOptions};
use tokio::sync::mpsc;

/// Runs the session in a full-screen UI, which closes once the last call has ended.
///
/// # Errors
/// Returns an error if the terminal fails. The session has ended by then.
pub(super) async fn review(prepared: PreparedSession, common: &Common, application: &Application) -> Result<Progress, CliError> {
    let (app, policy) = (prepared.context().clone(), prepared.policy().clone());
    let here = CurrentWorkspace::new(&app, &policy);
    let options = tui_options::options(&app, &here, common.color);
    let mut options = UiOptions { closes_with_session: true, memory: false, ..options };
    options.history.file = None;
    let (front, wires) = connect(options, None, String::new());
    let TuiChannels { start, ahead, commands: from_screen, mut queries, events: to_screen } = wires;
    let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
    let (events, from_session) = mpsc::unbounded_channel();
    let session = prepared.start(receive_commands, events, None);
    let header = SessionHeader { branch: app.branch(), mode: app.mode, policy: policy.name.clone(), ..SessionHeader::default() };
    // Fails only if the screen has closed.
    let _ = start.send(first_screen(header));
    let _ = commands.send(Command::Prompt { text: application.prompt.clone() }.into()).await;
    let unanswered = tokio::spawn(async move { while queries.recv().await.is_some() {} });
    let relay = tokio::spawn(relay(session, commands, from_session, (from_screen, to_screen)));
    let outcome = tui::run(front).await;
    drop(ahead);
    let progress = relay.await.unwrap_or_else(|error| Progress {
        errors: vec![ToolError::new(ErrorCode::ToolExecutionFailed, format!("the session ended early: {error}"))],
        exit: Some(Exit::Failed),
        ..Progress::default()
    });
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
        task_check: None,
    }
}

/// Forwards events to the screen, and commands concerning the changes to the session, until the session ends. If the
/// screen closes first, ends the task and the session.
async fn relay(
    mut session: StartedSession,
    commands: mpsc::Sender<SessionCommand>,
    mut from_session: mpsc::UnboundedReceiver<Event>,
    (mut from_screen, to_screen): (mpsc::Receiver<SessionCommand>, mpsc::UnboundedSender<Event>),
) -> Progress {
    let mut progress = Progress::default();
    let mut is_open = true;
    let mut ids = None;
    loop {
        tokio::select! {
            event = from_session.recv() => {
                let Some(event) = event else { break };
                ids.get_or_insert_with(|| (event.workspace_id.clone(), event.session_id.clone()));
                progress.follow(&event.kind);
                let is_over = event.kind.is_over();
                // Fails only if the screen has closed.
                let _ = to_screen.send(event);
                if is_over {
                    let _ = commands.send(Command::Quit.into()).await;
                }
            }
            command = from_screen.recv(), if is_open => match command {
                Some(SessionCommand::Turn(command)) if is_for_session(&command) => {
                    let _ = commands.send(command.into()).await;
                }
                None | Some(SessionCommand::Turn(Command::Quit)) => {
                    is_open = false;
                    let _ = commands.send(Command::Kill.into()).await;
                    let _ = commands.send(Command::Quit.into()).await;
                }
                Some(SessionCommand::Host(command @ (HostCommand::Resume | HostCommand::GoOnUnsaved))) => {
                    let _ = commands.send(command.into()).await;
                }
                // The session has no model that could respond to a prompt.
                Some(SessionCommand::Turn(Command::Prompt { .. })) => {
                    if let Some((workspace_id, session_id)) = ids.clone() {
                        let kind = EventKind::notice("this screen only reviews changes");
                        let timestamp = jiff::Timestamp::now();
                        let _ = to_screen.send(Event { workspace_id, session_id, task_id: None, step_id: None, timestamp, kind });
                    }
                }
                Some(_) => {}
            },
        }
    }
    session.wait_until_ended().await;
    session.close().await;
    progress
}

/// Returns whether a command is meant for the session: an approval decision, the end of the task, or a retry after an
/// error.
fn is_for_session(command: &Command) -> bool {
    let about_task = matches!(command, Command::Cancel | Command::Finish | Command::Kill | Command::Continue);
    command.approval_id().is_some() || about_task
}
