//! `aye sessions fork`: creates a new session with the same history.

use crate::host::console::{print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::host::stored_sessions::fork;
use crate::protocol::ForkUntil;
use crate::transfer::format::one_line;

pub(crate) fn run(app: &AppContext, id: &str) -> Result<Exit, CliError> {
    let store = open_store(app)?;
    let summary = store.find(id)?;
    let new = fork(&store, app, &summary.session_id, &ForkUntil::End)?;
    let short = new.as_str().get(..8).unwrap_or(new.as_str());
    print_text(&format!("forked session {}: {}\n", one_line(summary.session_id.as_str()), new));
    warn(format!("to continue: `aye --resume={short}`"));
    Ok(Exit::Completed)
}
