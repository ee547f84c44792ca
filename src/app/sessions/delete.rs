//! `aye sessions delete`: deletes a session and all its data.

use crate::app::exit::Exit;
use crate::app::place::Place;
use crate::app::trouble::Trouble;
use crate::protocol::SessionId;
use crate::store::Store;

pub fn run(place: &Place, id: &str) -> Result<Exit, Trouble> {
    let store = crate::app::open_store(place)?;
    let summary = store.find(id)?;
    forget(&store, place, &summary.session_id)?;
    crate::app::say(&format!("deleted session {}\n", super::one_line(summary.session_id.as_str())));
    Ok(Exit::Completed)
}

/// Deletes a session and all its data.
pub fn forget(store: &Store, place: &Place, id: &SessionId) -> Result<(), Trouble> {
    store.delete(id)?;
    forget_beside(place, id);
    Ok(())
}

/// Deletes the data of a session outside the store. Data that cannot be deleted now expires later.
pub fn forget_beside(place: &Place, id: &SessionId) {
    if let Err(error) = place.snapshots().forget(id) {
        tracing::warn!(%error, "cannot delete the snapshots of the session");
    }
    if let Err(error) = place.artifacts(Some(id)).forget() {
        tracing::warn!(%error, "cannot delete the artifacts of the session");
    }
}
