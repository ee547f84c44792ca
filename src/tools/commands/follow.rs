//! Follows a session from its start to its end, whoever reads it meanwhile.

use super::entry::Entry;
use crate::sys::process::{End, Ended, ProcessError, Spec, Terminal, signal_name, start_terminal};
use std::sync::Arc;

const CHUNK_BYTES: usize = 64 * 1024;

/// Starts the line on a terminal, and follows it.
pub async fn session(entry: &Arc<Entry>, spec: Spec) -> Result<(), ProcessError> {
    let terminal = start_terminal(spec, entry.kill.clone()).await?;
    entry.give_keys(terminal.keys.clone());
    tokio::spawn(follow(Arc::clone(entry), terminal));
    Ok(())
}

async fn follow(entry: Arc<Entry>, terminal: Terminal) {
    let Terminal { mut screen, keys, ending } = terminal;
    let reading = async {
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Ok(count) = screen.read(&mut buffer).await {
            if count == 0 {
                break;
            }
            let answers = entry.push(&buffer[..count]);
            if !answers.is_empty() {
                // A shell would take them for the beginning of its next line.
                super::locked(&entry.typed).plain = false;
                let keys = keys.clone();
                // Who does not read what it asked for must not keep its own output from being read.
                tokio::spawn(async move { keys.write_all(&answers).await });
            }
        }
    };
    let (end, ()) = tokio::join!(ending, reading);
    entry.end(how_it_ended(end.map(|Ended { end, .. }| end)));
}

/// `exit 0`, `killed by SIGKILL`.
pub fn how_it_ended(end: Result<End, ProcessError>) -> String {
    match end {
        Ok(End::Exited(code)) => format!("exit {code}"),
        Ok(End::Signalled(signal)) => format!("killed by {}", signal_name(signal).unwrap_or("a signal")),
        Ok(End::TimedOut) => "killed, its time was over".to_owned(),
        Ok(End::Killed) => "stopped".to_owned(),
        Err(error) => error.to_string(),
    }
}
