//! Run of a command in a copy-on-write layer, to decide by its effects whether it needs approval.

use crate::protocol::{Action, ToolError};

/// Whether a command can first run in a layer, and the result of that run.
#[derive(Debug, Default)]
pub(crate) enum LayerRun {
    /// The call is not a command, or the command does not end on its own.
    #[default]
    None,
    Possible,
    /// A run in a layer is impossible for this reason, which is shown with the approval.
    Impossible {
        reason: String,
    },
    Ended(LayerEnd),
}

/// Effects of a command in its layer. They are not applied yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LayerEnd {
    /// Whether the command was killed or stopped by a limit. Its effects are discarded in that
    /// case.
    pub stopped: bool,
    /// Error for the model, if the command was killed or stopped.
    pub error: Option<ToolError>,
    /// Actions of file tools with the same effects, one for each path outside build output; `None` if there are too
    /// many.
    pub actions: Option<Vec<Action>>,
    /// Whether there are effects beyond edits: deletions, moves, modes or links.
    pub beyond_edits: bool,
    /// Whether there are effects that a rewind does not undo, or files that run code when the folder is opened.
    pub beyond_rewind: bool,
    /// Digest of all effects and the output, as hexadecimal digits.
    pub digest: String,
}
