//! Run of a command in a copy-on-write layer. The effects of the run determine whether the command needs approval.

use crate::protocol::{Action, CommandEnd, ToolError};

/// Whether a command can run in a layer first, and the result if it has done so.
#[derive(Debug, Default)]
pub(crate) enum LayerRun {
    /// The call is not a command, or the command does not end on its own.
    #[default]
    None,
    Possible,
    /// The command cannot run in a layer. The reason is shown with the approval.
    Impossible {
        reason: String,
    },
    Ended(LayerEnd),
}

/// Effects of a command that ran in a layer, before they are applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LayerEnd {
    /// Whether the command was killed or stopped by a limit. If so, its effects are discarded.
    pub stopped: bool,
    /// Error to return to the model if the command was stopped or killed.
    pub error: Option<ToolError>,
    /// How the command ended, if this is known.
    pub ended: Option<CommandEnd>,
    /// File tool actions equivalent to the effects, one for each path outside build output; `None` if there are too
    /// many.
    pub actions: Option<Vec<Action>>,
    /// Whether the command had effects other than edits, such as deletions, moves, mode changes or links.
    pub beyond_edits: bool,
    /// Whether the command had effects that a rewind cannot undo, or wrote files that run code when the folder is
    /// opened.
    pub beyond_rewind: bool,
    /// Hexadecimal digest of all effects and the output.
    pub digest: String,
}
