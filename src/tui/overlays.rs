//! Overlays over the transcript: the help, lists and readers, each while it is open.

use super::browse::Browse;
use super::changes::Changes;
use super::finding::FindingView;
use super::help::Help;
use super::models::ModelPicker;
use super::overview::Overview;
use super::picker::Picker;
use super::sessions::Sessions;
use super::text_viewer::TextViewer;
use super::theme_list::ThemeList;
use super::tree::Tree;

/// Prompt history search.
#[derive(Debug)]
pub(crate) struct Search {
    pub query: String,
    /// Index of the match, counted from the newest.
    pub nth: usize,
    pub found: bool,
    /// Text of the composer before the search.
    pub draft: String,
}

/// Open overlays. `update::focus` decides which overlay has the keyboard.
#[derive(Default)]
pub(crate) struct Overlays {
    /// The help, while it is open and has the keyboard.
    pub help: Option<Help>,
    /// The long text that is shown instead of the transcript.
    pub reading: Option<TextViewer>,
    /// The view of changed files, while it is open and has the keyboard.
    pub changes: Option<Changes>,
    /// Whether the list of changes was requested from the session.
    pub changes_requested: bool,
    /// The open finding of a review, above the list of findings if that is open.
    pub finding: Option<FindingView>,
    /// The model list, while it is open and has the keyboard.
    pub picker: Option<ModelPicker>,
    /// The session list or the command palette, while it is open and has the keyboard.
    pub sessions: Option<Sessions>,
    pub palette: Option<Picker>,
    pub tree: Option<Tree>,
    /// The open overview of the session.
    pub overview: Option<Overview>,
    /// The theme list, which previews each highlighted theme.
    pub themes: Option<ThemeList>,
    pub search: Option<Search>,
    /// Browse mode; the transcript has the keyboard.
    pub browse: Option<Browse>,
}

impl Overlays {
    /// Closes the overlays that would cover a list that is about to open.
    pub(crate) fn make_room(&mut self) {
        self.help = None;
        self.reading = None;
        self.search = None;
    }
}
