//! Drives the session of `aye exec`, from its first prompt to its end, and handles signals.

use super::{OutputMode, print_notices};
use crate::agent;
use crate::headless;
use crate::host::end_signals::EndSignals;
use crate::host::exit::Exit;
use crate::host::output_schema::{OutputSchema, REPAIRS};
use crate::host::session_builder::PreparedSession;
use crate::protocol::{Command, Event, EventKind, SessionCommand};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};

/// Maximum time that running tools have to finish after a signal.
const GRACE: Duration = Duration::from_secs(8);

/// Runs the session until its task or goal ends, and prints its events.
pub(super) async fn drive(prepared: PreparedSession, first: Option<Command>, printing: &OutputMode) -> Exit {
    let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
    let (events, receive_events) = mpsc::unbounded_channel();
    let (tell, told) = mpsc::unbounded_channel();
    let mut session = prepared.start(receive_commands, events, None);
    let sets_goal = matches!(first, Some(Command::SetGoal { .. }));
    if let Some(command) = first {
        let _ = commands.send(command.into()).await;
    }
    let task = ExecWatch { commands, tell, schema: printing.schema.clone(), repairs: REPAIRS, goal_runs: sets_goal };
    let watch = tokio::spawn(task.run(receive_events));
    let outcome = print_notices(told, printing, REPAIRS).await;
    let mut signalled = None;
    if outcome != headless::Outcome::OutputClosed {
        signalled = watch.await.unwrap_or(None);
        if signalled.is_none() {
            session.wait_until_ended().await;
        }
    }
    session.close().await;
    signalled.unwrap_or_else(|| outcome.into())
}

/// Forwards a session's events, and ends the session after its task or when a signal arrives.
struct ExecWatch {
    commands: mpsc::Sender<SessionCommand>,
    tell: UnboundedSender<Event>,
    schema: Option<Arc<OutputSchema>>,
    /// Number of times that the model may still correct its response.
    repairs: usize,
    /// Whether a goal is active, in which case the session continues when a task ends.
    goal_runs: bool,
}

impl ExecWatch {
    /// Runs the session. If a signal ended it, returns the corresponding exit code.
    async fn run(mut self, mut events: UnboundedReceiver<Event>) -> Option<Exit> {
        let mut signalled = None;
        let Ok(mut signals) = EndSignals::new() else { return signalled };
        let mut last_call = None;
        loop {
            let event: Option<Event> = tokio::select! {
                event = events.recv() => event,
                exit = signals.next() => { (signalled, self.repairs) = (Some(exit), 0); None }
                () = sleep_until(last_call.unwrap_or_else(Instant::now)), if last_call.is_some() => return signalled,
            };
            match event {
                Some(event) => {
                    let next = self.after_event(&event.kind);
                    let _ = self.tell.send(event);
                    if let Some(command) = next {
                        let _ = self.commands.send(command.into()).await;
                    }
                }
                None if last_call.is_none()
                    && let Some(exit) = signalled =>
                {
                    last_call = Some(Instant::now() + GRACE);
                    // Ctrl+c interrupts the task. Any other signal leaves it paused, so that it can be resumed.
                    let command = if exit == Exit::Interrupted { Command::Cancel } else { Command::Quit };
                    let _ = self.commands.send(command.into()).await;
                }
                None => return signalled,
            }
        }
    }

    /// Returns the command to send after an event, if the event ended a task or a goal.
    fn after_event(&mut self, kind: &EventKind) -> Option<Command> {
        if let EventKind::GoalChanged(goal) = kind {
            let ended = std::mem::replace(&mut self.goal_runs, goal.is_running()) && !goal.is_running();
            return ended.then_some(Command::Quit);
        }
        let continues = self.goal_runs && matches!(kind, EventKind::TaskCompleted { .. });
        (kind.is_over() && !continues).then(|| self.after_task(kind))
    }

    /// Returns the command to send after a task: a prompt that requests a correction, or a command that ends the
    /// session.
    fn after_task(&mut self, end: &EventKind) -> Command {
        let correction = match (end, &self.schema) {
            (EventKind::TaskCompleted { text, .. }, Some(schema)) => schema.correction(text, &mut self.repairs),
            _ => None,
        };
        correction.map_or(Command::Quit, |text| Command::Prompt { text })
    }
}
