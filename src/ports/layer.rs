//! The run of a command in a copy-on-write layer before anybody is asked, as far as it decides whether anybody is.

use crate::protocol::Action;

/// Whether a command can run in a layer first, and what it did there.
#[derive(Debug, Default)]
pub enum LayerRun {
    /// It is no command, or one that keeps running.
    #[default]
    None,
    Possible,
    /// Why not; who is asked is told.
    Impossible {
        reason: String,
    },
    Ended(LayerEnd),
}

/// What a command did in its layer. Nothing of it has happened yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerEnd {
    /// It was killed, or a limit ended it: none of its effects is kept.
    pub stopped: bool,
    /// What file tools would do for the same, one action for each path outside of build output; `None` if there are too many.
    pub actions: Option<Vec<Action>>,
    /// It did what no edit does: a deletion, a move, a mode, a link.
    pub beyond_edits: bool,
    /// It did what rewinding does not undo, or what runs code when the folder is opened.
    pub beyond_rewind: bool,
    /// Of every effect and the output, in hexadecimal digits.
    pub digest: String,
}
