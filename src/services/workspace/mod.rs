//! Workspace: sessions and artifacts in an object store, to continue sessions on another machine.
//!
//! The store contains one *head* for each session, a small object that refers to the history and the artifacts by their
//! digests. Histories and artifacts are written first and never change. Then the head is replaced, unless another
//! machine has replaced it since it was read. After a crash at any point, the store therefore has either the old or the
//! new state.

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
pub(crate) use list::{BucketSession, find, list};
pub(crate) use local::LocalSessions;
pub(crate) use machine::Machine;
pub(crate) use open::open;
pub(crate) use pull::{PullOptions, PullResult, pull};
pub(crate) use push::{PushOptions, mark_busy, push, upload_artifact};
pub(crate) use queue::{BATCH, PushQueue, TaskFeed, TaskSignal, push_rows};
