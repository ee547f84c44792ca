//! `aye sessions rename`: changes the title of a session.

use crate::host::console::print_text;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::host::stored_sessions::rename;
use crate::transfer::format::one_line;

pub(crate) fn run(app: &AppContext, id: &str, title: &str) -> Result<Exit, CliError> {
    let store = open_store(app)?;
    let summary = store.find(id)?;
    let title = rename(&store, &summary.session_id, title)?;
    print_text(&format!("renamed session {} to \"{title}\"\n", one_line(summary.session_id.as_str())));
    Ok(Exit::Completed)
}
