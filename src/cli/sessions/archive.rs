//! `aye sessions archive` and `aye sessions unarchive`: hide a session from lists, or show it again.

use crate::host::console::print_text;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::transfer::format::one_line;

pub(crate) fn run(app: &AppContext, id: &str, archived: bool) -> Result<Exit, CliError> {
    let store = open_store(app)?;
    let summary = store.find(id)?;
    store.archive(&summary.session_id, archived)?;
    let id = one_line(summary.session_id.as_str());
    print_text(&if archived {
        format!("archived session {id}; `aye sessions list --archived` lists it\n")
    } else {
        format!("unarchived session {id}\n")
    });
    Ok(Exit::Completed)
}
