//! Commands on their way from a front end to the session.

use crate::agent;
use crate::protocol::Command;
use tokio::sync::mpsc;

/// Hands on what `answer` gives back; what it keeps, it has answered. It does so also before the session runs.
pub fn relay(
    mut commands: mpsc::Receiver<Command>,
    answer: impl Fn(Command) -> Option<Command> + Send + 'static,
) -> mpsc::Receiver<Command> {
    let (hand_on, handed) = mpsc::channel(agent::CHANNEL_DEPTH);
    tokio::spawn(async move {
        loop {
            let command = tokio::select! {
                command = commands.recv() => command,
                // Nobody takes them any more.
                () = hand_on.closed() => None,
            };
            let Some(command) = command else { return };
            if let Some(command) = answer(command)
                && hand_on.send(command).await.is_err()
            {
                return;
            }
        }
    });
    handed
}
