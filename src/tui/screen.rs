//! Screen and terminal: size, theme, symbols, pointer and notifications.

use super::glyphs::Glyphs;
use super::notifications::Notifications;
use super::pointer::Pointer;
use super::terminal::TerminalCapabilities;
use super::theme::Theme;
use ratatui::layout::Size;

/// Size and appearance of the screen, and state of the terminal.
pub(crate) struct Screen {
    pub theme: Theme,
    /// Background colour reported by the terminal, as red, green and blue components.
    pub background: Option<(u8, u8, u8)>,
    /// Other capabilities reported by the terminal.
    pub terminal: TerminalCapabilities,
    pub attention: Notifications,
    pub glyphs: Glyphs,
    pub size: Size,
    pub pointer: Pointer,
    /// Whether the screen has to be redrawn.
    pub dirty: bool,
    /// Whether the UI runs in line mode, which has none of the keys of the full-screen UI.
    pub in_lines: bool,
}
