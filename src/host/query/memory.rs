//! Handles the screen's queries about memory proposals.

use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::memory::Memory;
use crate::protocol::{HostResponse, MemoryRequest};
use crate::store::Store;

/// Performs an action on proposals. The response lists the proposals in their new state.
pub(super) fn respond(app: &AppContext, store: &Store, request: &MemoryRequest) -> Result<HostResponse, CliError> {
    let memory = Memory::for_place(app)?;
    let done = match request {
        MemoryRequest::List => memory.search_prompts(store).map(|()| None),
        MemoryRequest::Apply { id, digest } => memory.apply(id, digest).map(|applied| Some(applied.describe())),
        MemoryRequest::Edit { id, text, target } => {
            memory.edit(id, text.as_deref(), *target).map(|edited| Some(format!("changed {id}; its ID is now {}", edited.id)))
        }
        MemoryRequest::Drop { id } => memory.drop_proposal(id).map(|_| Some(format!("dropped {id}"))),
        MemoryRequest::Add { text, target } => {
            memory.add(text, *target).map(|added| Some(format!("proposed {}; /memory applies it", added.id)))
        }
    };
    // After a failed change, list the proposals in their current state, for example with the new diff after a conflict.
    let (notice, failed) = match done {
        Ok(notice) => (notice, None),
        Err(error) => (None, Some(error.into_problem())),
    };
    Ok(HostResponse::Memory { proposals: memory.list()?, notice, failed })
}
