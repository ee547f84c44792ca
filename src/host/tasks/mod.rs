//! Tasks that run in a copy of the workspace: each has its own process, its own session and its own data directory.
//!
//! A task directory contains the description of the task, the layer over the workspace, and the data directory of the session.
//! What the session did is only in its journal. No record of a task belongs to the real workspace, so that recovery after a crash
//! cannot reach the real files.

pub(crate) mod changes;
pub(crate) mod copy;
pub(crate) mod description;
pub(crate) mod directory;
pub(crate) mod status;
pub(crate) mod worktree;

pub(crate) use changes::TaskChanges;
pub(crate) use description::{CheckResult, CopyKind, TaskDescription, TaskOptions};
pub(crate) use directory::{TaskDirectory, TaskUse};
pub(crate) use status::{TaskState, TaskSummary};
