//! State of the desktop notifications and the terminal's progress indicator.

/// Progress that the terminal shows in its title bar or taskbar entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TerminalProgress {
    #[default]
    None,
    Ended,
    Waits,
}

/// Whether the window is focused, and the state at the time of the last notification.
#[derive(Debug)]
pub(crate) struct Notifications {
    pub is_focused: bool,
    pub waiting: usize,
    pub was_running: bool,
    pub progress: TerminalProgress,
}

impl Default for Notifications {
    fn default() -> Self {
        // The window counts as focused, because some terminals do not report focus.
        Self { is_focused: true, waiting: 0, was_running: false, progress: TerminalProgress::None }
    }
}
