//! `aye sessions rename`: changes the title of a session.

use crate::host::console::say;
use crate::host::context::Place;
use crate::host::error::Trouble;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::host::stored_sessions::rename;
use crate::transfer::format::one_line;

pub fn run(place: &Place, id: &str, title: &str) -> Result<Exit, Trouble> {
    let store = open_store(place)?;
    let summary = store.find(id)?;
    let title = rename(&store, &summary.session_id, title)?;
    say(&format!("renamed session {} to \"{title}\"\n", one_line(summary.session_id.as_str())));
    Ok(Exit::Completed)
}
