//! `aye sessions delete`: a session and all that is kept of it.

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

/// All that is kept of a session.
pub fn forget(store: &Store, place: &Place, id: &SessionId) -> Result<(), Trouble> {
    store.delete(id)?;
    forget_beside(place, id);
    Ok(())
}

/// Gives up what is kept beside the store of a session that is gone; what cannot be given up now goes with its age.
pub fn forget_beside(place: &Place, id: &SessionId) {
    if let Err(error) = place.snapshots().forget(id) {
        tracing::warn!(%error, "cannot delete the snapshots of the session");
    }
    if let Err(error) = place.artifacts(Some(id)).forget() {
        tracing::warn!(%error, "cannot delete the artifacts of the session");
    }
}
