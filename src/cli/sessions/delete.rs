//! `aye sessions delete`: deletes a session and all its data.

use crate::host::console::say;
use crate::host::context::Place;
use crate::host::error::Trouble;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::host::stored_sessions::forget;

pub fn run(place: &Place, id: &str) -> Result<Exit, Trouble> {
    let store = open_store(place)?;
    let summary = store.find(id)?;
    forget(&store, place, &summary.session_id)?;
    say(&format!("deleted session {}\n", crate::transfer::format::one_line(summary.session_id.as_str())));
    Ok(Exit::Completed)
}
