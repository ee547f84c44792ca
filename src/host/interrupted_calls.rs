//! Compares calls that were interrupted in another process with the files on disk.

use crate::ports::RecoveredState;
use crate::protocol::CallId;
use crate::session::SessionState;
use std::collections::HashMap;

/// For each call that was running when the journal ended, returns the state of the files it affects.
pub(crate) fn recovered_states(state: &SessionState) -> HashMap<CallId, RecoveredState> {
    let running = || state.calls().iter().filter(|call| call.is_running());
    let found = |places: &Vec<_>| crate::tools::assess_outcome(places);
    // The session of an agent has its own journal, from which it is resumed.
    let agents = running().filter(|call| crate::tools::is_agent_call(&call.tool_name));
    let agents = agents.map(|call| (call.tool_call_id.clone(), RecoveredState::Resumable));
    let files = running().filter_map(|call| Some((call.tool_call_id.clone(), call.places.as_ref().and_then(found)?)));
    files.chain(agents).collect()
}
