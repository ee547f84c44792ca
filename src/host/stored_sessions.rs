//! Operations on stored sessions: renaming, forking, deleting, and determining their size and state.

use super::console::warn_all;
use super::context::AppContext;
use super::error::CliError;
use crate::ports::Artifacts;
use crate::protocol::{ForkUntil, SessionId};
use crate::session::SessionActivity;
use crate::store::{SessionSummary, Store};
use crate::sys::sandbox::abandoned_bases;
use crate::tools::forget_undecided;
use crate::transfer;
use crate::transfer::format::one_line;

/// Maximum length of a title in characters.
const TITLE_CHARS: usize = 80;

/// Renames a session. Returns the new title, which is a single line of limited length.
pub(crate) fn rename(store: &Store, id: &SessionId, title: &str) -> Result<String, CliError> {
    let title: String = one_line(title).chars().filter(|letter| !letter.is_control()).take(TITLE_CHARS).collect();
    if title.is_empty() {
        return Err(CliError::usage("the title is empty").hint("enter a title for the session"));
    }
    store.rename(id, &title)?;
    Ok(title)
}

/// Forks a session and returns the ID of the fork. Artifacts that cannot be copied are reported on stderr.
pub(crate) fn fork(store: &Store, app: &AppContext, id: &SessionId, until: &ForkUntil) -> Result<SessionId, CliError> {
    let forked = transfer::fork::fork(store, &|id| app.artifacts(Some(id)), id, until)?;
    warn_all(&forked.notices);
    Ok(forked.session_id)
}

/// Deletes a session and all its data, including the sessions of agents that it started directly or indirectly.
pub(crate) fn forget(store: &Store, app: &AppContext, id: &SessionId) -> Result<(), CliError> {
    let mut agents: Vec<SessionId> = Vec::new();
    let sessions = store.sessions(None)?;
    let mut parents = vec![id.clone()];
    // Include the agents that the agents started.
    while let Some(parent) = parents.pop() {
        let below = sessions.iter().filter(|session| session.of_agent && session.parent.as_ref() == Some(&parent));
        let below = below.map(|session| session.session_id.clone()).filter(|id| !agents.contains(id));
        let below: Vec<SessionId> = below.collect();
        parents.extend(below.iter().cloned());
        agents.extend(below);
    }
    // Claim the session first, because the agents of a session in use are still needed.
    let claim = store.claim(id)?;
    // Delete the deepest agents first: if a deletion fails, the rest can still be found from the session.
    for agent in agents.iter().rev() {
        delete(store, app, agent)?;
    }
    drop(claim);
    delete(store, app, id)
}

/// Deletes a single session and its data.
fn delete(store: &Store, app: &AppContext, id: &SessionId) -> Result<(), CliError> {
    store.delete(id)?;
    delete_outside_store(app, id);
    Ok(())
}

/// Deletes a session's data outside the store. Data that cannot be deleted now will expire later.
pub(crate) fn delete_outside_store(app: &AppContext, id: &SessionId) {
    if let Err(error) = app.snapshots().forget(id) {
        tracing::warn!(%error, "cannot delete the session's snapshots");
    }
    if let Err(error) = app.artifacts(Some(id)).forget() {
        tracing::warn!(%error, "cannot delete the session's artifacts");
    }
    forget_undecided(&abandoned_bases(&app.directories.data), id);
}

/// Returns the total size of a session's artifacts in bytes.
pub(crate) fn artifact_bytes(app: &AppContext, session: &SessionId) -> u64 {
    let artifacts = app.artifacts(Some(session));
    if !artifacts.is_there() {
        return 0;
    }
    artifacts.list().unwrap_or_default().iter().map(|artifact| artifact.bytes).sum()
}

/// Returns the state of a session's unfinished work, or `None` if there is none. If the process that was working on it
/// has died, the state is `interrupted`.
pub(crate) fn open(session: &SessionSummary) -> Option<&'static str> {
    match (session.status, session.held_by) {
        (SessionActivity::Idle, _) => None,
        (SessionActivity::Running, None) => Some("interrupted"),
        (status, _) => Some(status.as_str()),
    }
}
