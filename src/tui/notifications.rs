//! State of desktop notifications and of the progress that the terminal shows.

/// Progress state that the terminal shows in its title bar or taskbar entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TerminalProgress {
    #[default]
    None,
    Ended,
    Waits,
}

/// Whether the window has the focus, and the state in the last notification.
#[derive(Debug)]
pub(crate) struct Notifications {
    pub is_focused: bool,
    pub waiting: usize,
    pub was_running: bool,
    pub progress: TerminalProgress,
}

impl Default for Notifications {
    fn default() -> Self {
        // A terminal that does not report focus counts as focused.
        Self { is_focused: true, waiting: 0, was_running: false, progress: TerminalProgress::None }
    }
}
