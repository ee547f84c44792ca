//! Sessions and artifacts in an object store, which makes it possible to continue sessions on another machine.
//!
//! For each session, the store contains a *head*, a small object that refers to the history and the artifacts by their
//! digests. Histories and artifacts are written first and are never modified. The head is then replaced, unless another
//! machine has replaced it since it was read. If aye crashes at any point, the store therefore contains either the old
//! state or the new one.

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
