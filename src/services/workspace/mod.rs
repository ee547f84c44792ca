//! Workspace: sessions and artifacts in an object store, to continue them on another machine.
//!
//! The store has one *head* for each session, a small object that names the history and the artifacts by their digests.
//! Histories and artifacts are written first and never changed; then the head is replaced, if no other machine has
//! replaced it since it was read. So a crash at any point leaves the old state or the new one.

mod bucket;
mod chain;
mod error;
mod fetch;
mod head;
mod layout;
mod list;
mod local;
mod machine;
mod open;
mod pull;
mod push;
mod queue;
#[cfg(test)]
mod tests;

pub(crate) use bucket::Bucket;
pub(crate) use list::{ListedSession, find, list};
pub(crate) use local::LocalSessions;
pub(crate) use machine::Machine;
pub(crate) use open::open;
pub(crate) use pull::{PullOptions, PullResult, pull};
pub(crate) use push::{PushOptions, mark_busy, push, upload_artifact};
pub(crate) use queue::{BATCH, PushQueue, TaskFeed, TaskSignal, push_rows};
