//! Mouse pointer: its state and its clickable targets.

use super::transcript::EntryCell;
use crossterm::event::MouseEvent;

/// Effect of a mouse click on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Click {
    /// Scroll to the end of the transcript.
    End,
    /// Open the pending dialog, or the next one.
    Review,
    /// Show the planned steps.
    Steps,
}

/// State of the pointer.
#[derive(Debug)]
pub(crate) struct Pointer {
    /// Whether the terminal reports mouse events.
    pub is_captured: bool,
    /// Time at which the window got the focus.
    pub focused: Option<u64>,
    /// Entry and cell in which the button was pressed.
    pub pressed: Option<(usize, EntryCell)>,
    /// Clickable rows below the transcript, as drawn.
    pub strip: Vec<(u16, Click)>,
    /// Last event of a pointer that is held at an edge, and the time of the next scroll.
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
