//! `aye sessions rename`: changes the title of a session.

use super::one_line;
use crate::app::exit::Exit;
use crate::app::place::Place;
use crate::app::trouble::Trouble;
use crate::protocol::SessionId;
use crate::store::Store;

/// Maximum characters of a title.
const TITLE_CHARS: usize = 80;

pub fn run(place: &Place, id: &str, title: &str) -> Result<Exit, Trouble> {
    let store = crate::app::open_store(place)?;
    let summary = store.find(id)?;
    let title = rename(&store, &summary.session_id, title)?;
    crate::app::say(&format!("renamed session {} to \"{title}\"\n", one_line(summary.session_id.as_str())));
    Ok(Exit::Completed)
}

/// Renames a session. Returns the new title: a single line of limited length.
pub fn rename(store: &Store, id: &SessionId, title: &str) -> Result<String, Trouble> {
    let title: String = one_line(title).chars().filter(|letter| !letter.is_control()).take(TITLE_CHARS).collect();
    if title.is_empty() {
        return Err(Trouble::usage("the title is empty; give the session a title".to_owned()));
    }
    store.rename(id, &title)?;
    Ok(title)
}
