//! Layers over the conversation (the help, lists and viewers, each in its own module), and the stack of open layers.
//!
//! A layer owns its state and handles its own keys, pasted text and mouse events. It receives only the data needed to
//! draw it, and returns a [`Reaction`], which may contain a request for `update::layers` to carry out. Browse mode and
//! the history search are not layers but modes of the transcript and the composer, respectively.

mod branch_list;
mod changes;
mod command_palette;
mod finding_view;
mod help;
mod memory_list;
mod model_picker;
mod overview;
mod reaction;
mod rewind_list;
mod server_list;
mod session_list;
mod stack;
mod task_list;
mod text_viewer;
mod theme_list;

pub(crate) use branch_list::BranchList;
pub(crate) use changes::ChangesView;
pub(crate) use command_palette::CommandPalette;
pub(crate) use finding_view::{FindingView, description};
pub(crate) use help::{Help, help_sections, key_file_location};
pub(crate) use memory_list::{MemoryList, proposal_details, proposal_heading, proposal_rows};
pub(crate) use model_picker::ModelPicker;
pub(crate) use overview::{Overview, Topic};
pub(crate) use reaction::{LayerRequest, Reaction};
pub(crate) use rewind_list::RewindList;
pub(crate) use server_list::{ServerList, server_details, server_rows};
pub(crate) use session_list::SessionList;
pub(crate) use stack::LayerStack;
pub(crate) use task_list::{TaskList, short_task_id, task_details, task_prompt, task_rows};
pub(crate) use text_viewer::TextViewer;
pub(crate) use theme_list::{AUTO, SAMPLE, ThemeList};

use super::glyphs::Glyphs;
use super::interface::KeymapFile;
use super::keymap::{Focus, Keymap};
use super::picker::{ClickResult, Picker, PickerResult, Row};
use super::theme::Theme;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use std::any::Any;

/// Facts about the screen that affect a layer's key handling and hints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerContext {
    /// Whether the screen is wide enough to show a preview next to a list.
    pub is_wide: bool,
    /// Whether approvals or other dialogs are pending.
    pub has_questions: bool,
}

/// Colours, symbols and key names needed to draw a layer.
pub(crate) struct Canvas<'a> {
    pub theme: &'a Theme,
    pub glyphs: &'a Glyphs,
    pub keymap: &'a Keymap,
    pub key_file: &'a KeymapFile,
}

/// Kind of data that a list shows. When that data changes, the rows of the list are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownList {
    Proposals,
    Servers,
    Tasks,
}

/// View over the conversation. The topmost layer has keyboard focus, unless a dialog is open.
pub(crate) trait ScreenLayer: Any {
    /// Returns the part of the UI whose key bindings apply while the layer has focus.
    fn focus(&self) -> Focus {
        Focus::List
    }

    /// Returns whether the layer covers open dialogs rather than being drawn below them.
    fn covers_questions(&self) -> bool {
        false
    }

    /// Returns whether the layer stays visible above an open dialog.
    fn stays_above_question(&self) -> bool {
        true
    }

    /// Returns whether the layer is drawn in place of the composer.
    fn replaces_composer(&self) -> bool {
        true
    }

    /// Returns the list that makes up the layer, if it is a list.
    fn list(&mut self) -> Option<&mut Picker> {
        None
    }

    /// Handles the choice of the list row whose key is `_row`.
    fn choose(&mut self, _row: &str) -> Reaction {
        Reaction::Done
    }

    /// Handles the choice of an unavailable list row. `_why` is the reason why it is unavailable.
    fn refuse(&mut self, _why: String) -> Reaction {
        Reaction::Done
    }

    /// Handles a key that closes the list.
    fn on_close(&mut self) -> Reaction {
        Reaction::Close
    }

    /// Handles a key for which the list has no use.
    fn on_other_key(&mut self, _key: KeyEvent) -> Reaction {
        Reaction::Pass
    }

    /// Handles a key, which has already been translated to the built-in binding.
    fn key(&mut self, key: KeyEvent, _around: LayerContext) -> Reaction {
        match self.list().map(|list| list.key(key)) {
            None => Reaction::Pass,
            Some(PickerResult::Other) => self.on_other_key(key),
            Some(PickerResult::Nothing) => Reaction::Done,
            Some(PickerResult::Refused(why)) => self.refuse(why),
            Some(PickerResult::Closed) => self.on_close(),
            Some(PickerResult::Chosen(row)) => self.choose(&row),
        }
    }

    /// Returns the kind of data that the list shows, if its rows must be replaced when that data changes.
    fn shown_list(&self) -> Option<ShownList> {
        None
    }

    /// Replaces the rows of the list.
    fn set_rows(&mut self, rows: Vec<Row>) {
        if let Some(list) = self.list() {
            list.set_rows(rows);
        }
    }

    /// Handles pasted text, from which control characters have been removed.
    fn paste(&mut self, text: &str) -> Reaction {
        let Some(list) = self.list() else { return Reaction::Pass };
        list.insert(text);
        Reaction::Done
    }

    /// Scrolls by `rows` rows. In a list, moves the highlight by one row instead.
    fn wheel(&mut self, rows: isize) {
        if let Some(list) = self.list() {
            list.scroll_by(rows.signum());
        }
    }

    /// Handles a click on a screen row. Returns `None` if the layer has no rows that can be clicked.
    fn click(&mut self, row: u16) -> Option<ClickResult> {
        Some(self.list()?.click(row))
    }

    /// Returns the request to make after the highlight has moved to another row, if any.
    fn on_highlight_moved(&mut self) -> Option<LayerRequest> {
        None
    }

    /// Draws the layer. Returns the cursor position if the layer has a cursor.
    fn draw(&mut self, area: Rect, buffer: &mut Buffer, canvas: &Canvas<'_>) -> Option<Position> {
        Some(self.list()?.draw(area, buffer, canvas.theme, canvas.glyphs))
    }

    /// Returns the layer's key hints, most useful first.
    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        vec!["enter select", "esc close", "up down move", "type to filter"]
    }
}
