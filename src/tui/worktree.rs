//! Git state of the workspace, for the status row.

/// Git state of the workspace.
#[derive(Debug, Default)]
pub(crate) struct WorktreeState {
    /// Number of files with uncommitted changes.
    pub changed: Option<u64>,
    /// Whether the scan was incomplete, so that there may be more changes.
    pub more: bool,
    /// Output of the user's own status command.
    pub line: Option<String>,
    /// Whether a tool that may have changed a file ended in this step, or a file is being exported.
    pub wrote: bool,
    /// Whether an update is due.
    pub is_due: bool,
}
