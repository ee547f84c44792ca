//! Tasks that run in a copy of the workspace, each with its own process, session and data directory.
//!
//! A task directory contains the description of the task, the layer over the workspace, and the session's data
//! directory. The actions of the session are recorded only in its journal. No record of a task refers to the real
//! workspace, so recovery after a crash cannot touch the real files.

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
