//! State of the mouse pointer, and the rows that react to clicks.

use super::transcript::EntryCell;
use crossterm::event::MouseEvent;

/// Effect of a click on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Click {
    /// Scrolls to the end of the transcript.
    End,
    /// Opens the pending dialog or, if a dialog is already open, the next one.
    Review,
    /// Shows the planned steps.
    Steps,
}

/// State of the mouse pointer.
#[derive(Debug)]
pub(crate) struct Pointer {
    /// Whether the terminal reports mouse events to aye.
    pub is_captured: bool,
    /// Time, in milliseconds, at which the window last gained focus.
    pub focused: Option<u64>,
    /// Position at which the button was pressed: the index of the entry, and the cell within the entry.
    pub pressed: Option<(usize, EntryCell)>,
    /// Screen rows below the transcript that react to clicks, as of the last frame.
    pub strip: Vec<(u16, Click)>,
    /// Last event of a drag along an edge of the transcript, and the time in milliseconds at which the next scroll step
    /// is due.
    pub edge: Option<(MouseEvent, u64)>,
}

impl Pointer {
    pub(crate) fn new(is_captured: bool) -> Self {
        Self { is_captured, focused: None, pressed: None, strip: Vec::new(), edge: None }
    }

    pub(crate) fn deadline(&self) -> Option<u64> {
        self.edge.map(|(_, at)| at)
    }
}
