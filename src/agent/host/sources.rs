//! A session's input sources: commands, results of background work, the model's response, servers and timers.

use super::account::Charge;
use super::backpressure::Backpressure;
use super::model_client::ModelClient;
use super::policy_updates::{PolicySource, PolicyUpdate};
use super::server_requests::{ServerEvent, ServerEvents};
use crate::agent::turn::Input;
use crate::protocol::{Command, HostCommand, RunningCommand, SessionCommand};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// Sources that no other part of the host owns.
pub(super) struct InputSources {
    /// Commands from the front end; `None` once it has disconnected.
    pub commands: Option<mpsc::Receiver<SessionCommand>>,
    /// Results of background work.
    pub inputs: mpsc::Receiver<Input>,
    /// List of background commands.
    pub running: Option<watch::Receiver<Vec<RunningCommand>>>,
    pub servers: ServerEvents,
    /// Requests made by reviews and agents, to be counted towards the session.
    pub charges: mpsc::Receiver<Charge>,
    pub room: Backpressure,
}

/// A session's deadlines.
#[derive(Clone, Copy)]
pub(super) struct Timers {
    /// Time at which a command's latest output is next saved.
    pub tail: Option<Instant>,
    /// Time at which the session ends after the user has quit.
    pub deadline: Option<Instant>,
}

/// Event for the host to handle.
pub(super) enum Occurrence {
    Input(Input),
    Command(HostCommand),
    Policy(PolicyUpdate),
    CommandsRunning(Vec<RunningCommand>),
    Server(ServerEvent),
    Charge(Charge),
    TailsDue,
    Deadline,
}

impl InputSources {
    /// Waits for the next occurrence.
    pub(crate) async fn next(&mut self, model: &mut ModelClient, policy: &mut PolicySource, timers: Timers) -> Occurrence {
        loop {
            let has_room = self.room.is_there();
            return tokio::select! {
                command = next_command(&mut self.commands) => {
                    if command.is_none() {
                        self.commands = None;
                        // After the user has quit, a dropped sender must not count as a second quit, which would not
                        // wait for running calls.
                        if timers.deadline.is_some() {
                            continue;
                        }
                    }
                    match command.unwrap_or(SessionCommand::Turn(Command::Quit)) {
                        SessionCommand::Turn(command) => Occurrence::Input(Input::Command(command)),
                        SessionCommand::Host(command) => Occurrence::Command(command),
                    }
                }
                Some(input) = self.inputs.recv() => Occurrence::Input(input),
                Some(update) = policy.next() => Occurrence::Policy(update),
                commands = next_list(&mut self.running) => Occurrence::CommandsRunning(commands),
                event = self.servers.next() => Occurrence::Server(event),
                Some(charge) = self.charges.recv() => Occurrence::Charge(charge),
                delta = model.next(), if has_room => Occurrence::Input(delta),
                () = self.room.wait(), if !has_room => continue,
                () = wait_until(timers.tail) => Occurrence::TailsDue,
                () = wait_until(timers.deadline) => Occurrence::Deadline,
            };
        }
    }
}

async fn wait_until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits for the next command. Never completes if there is no front end.
async fn next_command(commands: &mut Option<mpsc::Receiver<SessionCommand>>) -> Option<SessionCommand> {
    match commands {
        Some(open) => open.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits until the list of background commands changes and returns it. Never completes if there is no such list.
async fn next_list(list: &mut Option<watch::Receiver<Vec<RunningCommand>>>) -> Vec<RunningCommand> {
    if let Some(open) = list
        && open.changed().await.is_ok()
    {
        return open.borrow_and_update().clone();
    }
    *list = None;
    std::future::pending().await
}
