//! Tasks that run in copies of the workspace. Each task has its own process, session and data directory.
//!
//! A task directory contains the task's description, the copy-on-write layer over the workspace, and the session's data
//! directory. The session's actions are recorded only in its own journal. Because none of a task's records refer to the
//! real workspace, recovery after a crash cannot affect the real files.

pub(crate) mod changes;
pub(crate) mod copy;
pub(crate) mod description;
pub(crate) mod directory;
pub(crate) mod status;
pub(crate) mod worktree;

pub(crate) use changes::TaskChanges;
pub(crate) use description::{CheckResult, CopyKind, StartOptions, TaskDescription};
pub(crate) use directory::{TaskDirectory, TaskUse};
pub(crate) use status::TaskSummary;
