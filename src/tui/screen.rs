//! Screen and terminal: size, theme, symbols, pointer and notifications.

use super::glyphs::Glyphs;
use super::notifications::Notifications;
use super::pointer::Pointer;
use super::terminal::TerminalCapabilities;
use super::theme::Theme;
use ratatui::layout::Size;

/// The user's screen and terminal.
pub(crate) struct Screen {
    pub theme: Theme,
    /// Background colour of the terminal, once reported.
    pub background: Option<(u8, u8, u8)>,
    /// Other capabilities that the terminal reported.
    pub terminal: TerminalCapabilities,
    pub attention: Notifications,
    pub glyphs: Glyphs,
    pub size: Size,
    pub pointer: Pointer,
    /// Whether the screen must be redrawn.
    pub dirty: bool,
    /// Whether the UI runs in line mode, without the keys of the full screen.
    pub in_lines: bool,
}
