//! `aye sessions archive` and `unarchive`: hides a session from the lists, and shows it again.

use super::one_line;
use crate::app::exit::Exit;
use crate::app::place::Place;
use crate::app::trouble::Trouble;

pub fn run(place: &Place, id: &str, archived: bool) -> Result<Exit, Trouble> {
    let store = crate::app::open_store(place)?;
    let summary = store.find(id)?;
    store.archive(&summary.session_id, archived)?;
    let id = one_line(summary.session_id.as_str());
    crate::app::say(&if archived {
        format!("archived session {id}; `aye sessions list --archived` lists it\n")
    } else {
        format!("unarchived session {id}\n")
    });
    Ok(Exit::Completed)
}
