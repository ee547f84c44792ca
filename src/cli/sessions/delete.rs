//! `aye sessions delete`: deletes a session and all its data.

use crate::host::console::print_text;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::host::stored_sessions::forget;

pub(crate) fn run(app: &AppContext, id: &str) -> Result<Exit, CliError> {
    let store = open_store(app)?;
    let summary = store.find(id)?;
    forget(&store, app, &summary.session_id)?;
    print_text(&format!("deleted session {}\n", crate::transfer::format::one_line(summary.session_id.as_str())));
    Ok(Exit::Completed)
}
