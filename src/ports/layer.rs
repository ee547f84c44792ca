//! Run of a command in a copy-on-write layer before approval, to decide whether approval is needed.

use crate::protocol::{Action, ToolError};

/// Whether a command can run in a layer first, and the result of that run.
#[derive(Debug, Default)]
pub(crate) enum LayerRun {
    /// Not a command, or a command that keeps running.
    #[default]
    None,
    Possible,
    /// No run in a layer is possible; the reason is shown with the approval.
    Impossible {
        reason: String,
    },
    Ended(LayerEnd),
}

/// Effects of a command in its layer. They are not applied yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LayerEnd {
    /// Whether the command was killed or stopped by a limit; then no effect is applied.
    pub stopped: bool,
    /// Error of a command that was killed or stopped, for the model.
    pub error: Option<ToolError>,
    /// Actions of file tools with the same effects, one for each path outside build output; `None` if there are too many.
    pub actions: Option<Vec<Action>>,
    /// Whether there are effects beyond edits: deletions, moves, modes or links.
    pub beyond_edits: bool,
    /// Whether there are effects that a rewind does not undo, or files that run code when the folder is opened.
    pub beyond_rewind: bool,
    /// Digest of all effects and the output, as hexadecimal digits.
    pub digest: String,
}
