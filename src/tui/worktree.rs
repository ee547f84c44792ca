//! Git state of the workspace, as shown in the status row.

#[derive(Debug, Default)]
pub(crate) struct WorktreeState {
    /// Number of files with uncommitted changes, if it is known.
    pub changed: Option<u64>,
    /// Whether the scan was incomplete, in which case there may be more changes.
    pub more: bool,
    /// Most recent output of the user's own status command.
    pub line: Option<String>,
    /// Whether a tool that may have changed files has completed during this step, or a file is being exported.
    pub wrote: bool,
    /// Whether an update must be requested.
    pub is_due: bool,
}
