//! Full-screen help, with a sheet of the most useful keys and a search over all keys and commands.

mod view;

use super::{Canvas, LayerContext, Reaction, ScreenLayer};
use crate::text;
use crate::tui::input::is_text;
use crate::tui::interface::KeymapFile;
use crate::tui::keymap::{Focus, Keymap};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Help {
    /// Part of the UI that had keyboard focus when the help was opened. Its keys are listed first.
    about: Focus,
    /// Text for which the user is searching.
    pub words: String,
    /// Index of the first visible row.
    top: usize,
    /// Number of rows visible in the last frame.
    page: usize,
}

/// Section of the help: a heading, and keys or commands paired with their descriptions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HelpSection {
    pub head: &'static str,
    pub entries: Vec<(String, String)>,
}

impl Help {
    pub(crate) fn new(about: Focus, words: &str) -> Self {
        Self { about, words: text::clean(words).into_owned(), top: 0, page: 1 }
    }

    /// Changes the search text and scrolls to the top.
    fn search(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.words);
        self.top = 0;
    }

    fn scroll_by(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows);
    }
}

impl ScreenLayer for Help {
    fn covers_questions(&self) -> bool {
        true
    }

    /// Handles a key. A key that cannot be part of the search text closes the help and is passed on to the view below.
    fn key(&mut self, key: KeyEvent, _around: LayerContext) -> Reaction {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = self.page.max(1).cast_signed();
        match key.code {
            KeyCode::Esc | KeyCode::F(1) => return Reaction::Close,
            KeyCode::Char('c') if ctrl => return Reaction::Close,
            // This key opens the help on an empty draft.
            KeyCode::Char('?') if self.words.is_empty() => return Reaction::Close,
            KeyCode::Up => self.scroll_by(-1),
            KeyCode::Down => self.scroll_by(1),
            KeyCode::Char('p') if ctrl => self.scroll_by(-1),
            KeyCode::Char('n') if ctrl => self.scroll_by(1),
            KeyCode::PageUp => self.scroll_by(-page),
            KeyCode::PageDown => self.scroll_by(page),
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = usize::MAX,
            KeyCode::Char('u') if ctrl => self.search(String::clear),
            KeyCode::Backspace => self.search(|words| {
                words.pop();
            }),
            KeyCode::Tab | KeyCode::BackTab => return Reaction::ClosePass,
            _ => match is_text(&key) {
                Some(letter) => self.search(|words| words.push(letter)),
                None if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => return Reaction::ClosePass,
                None => {}
            },
        }
        Reaction::Done
    }

    /// Appends pasted text to the search text.
    fn paste(&mut self, text: &str) -> Reaction {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.search(|filter| filter.push_str(&words));
        Reaction::Done
    }

    fn wheel(&mut self, rows: isize) {
        self.scroll_by(rows);
    }

    fn draw(&mut self, area: Rect, buffer: &mut Buffer, canvas: &Canvas<'_>) -> Option<Position> {
        Some(view::draw(self, area, buffer, canvas))
    }

    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        vec!["type to search", "esc back", "up down pgup pgdn scroll"]
    }
}

/// Describes where the user's key file is and whether it exists.
pub(crate) fn key_file_location(file: &KeymapFile) -> String {
    let path = text::reveal(&file.path);
    match (&file.text, path.is_empty()) {
        (_, true) => "the custom key file".to_owned(),
        (None, false) => format!("{path}: does not exist; all keys are built in"),
        (Some(_), false) => format!("{path}: your custom keys"),
    }
}

/// Entry of the key sheet: a part of the UI, an action and its description.
type SheetKey = (Focus, &'static str, &'static str);

/// Entries of the key sheet, grouped by purpose.
const SHEET: [(&str, &[SheetKey]); 5] = [
    (
        "Write",
        &[
            (Focus::Composer, "send", "send, or queue while a task runs"),
            (Focus::Composer, "new-line", "new line"),
            (Focus::Composer, "commands-files", "commands, files"),
            (Focus::Composer, "own-command", "run a command yourself"),
            (Focus::Composer, "history", "search earlier prompts"),
            (Focus::Composer, "editor", "edit in your editor"),
        ],
    ),
    (
        "Running task",
        &[
            (Focus::Composer, "stop", "stop it"),
            (Focus::Composer, "steer", "send to it now"),
            (Focus::Composer, "background", "command to the background"),
        ],
    ),
    (
        "Approvals",
        &[
            (Focus::Composer, "review", "go to the approval"),
            (Focus::Question, "yes", "approve"),
            (Focus::Question, "no", "deny"),
            (Focus::Question, "preview", "preview the changes"),
            (Focus::Question, "always", "always allow"),
            (Focus::Question, "explain", "details and more keys"),
        ],
    ),
    (
        "Read",
        &[
            (Focus::Composer, "page-up", "scroll"),
            (Focus::Composer, "fold", "fold or unfold outputs"),
            (Focus::Composer, "browse", "browse, search and copy"),
        ],
    ),
    (
        "Session",
        &[
            (Focus::Composer, "palette", "all commands"),
            (Focus::Composer, "model", "change the model"),
            (Focus::Composer, "mode", "change the mode"),
            (Focus::Composer, "go-back", "rewind"),
            (Focus::Composer, "quit", "quit"),
        ],
    ),
];

/// Returns the key sheet with the current key bindings. If an action has several keys, usually only the first is shown.
fn sheet(keymap: &Keymap) -> Vec<HelpSection> {
    let entry = |(focus, action, does): &SheetKey| {
        let row = keymap.rows().iter().find(|row| row.focus == *focus && row.action == *action)?;
        let key = match (row.action.as_str(), row.keys.split_once(' ')) {
            // Text to type, and groups of keys, are shown in full.
            ("commands-files" | "own-command" | "go-back" | "explain", _) | (_, None) => row.keys.clone(),
            (_, Some((first, _))) => first.to_owned(),
        };
        Some((key, (*does).to_owned()))
    };
    SHEET.iter().map(|(head, keys)| HelpSection { head, entries: keys.iter().filter_map(entry).collect() }).collect()
}

/// Returns the section that lists all keys for one part of the UI.
fn keys_section(keymap: &Keymap, focus: Focus) -> HelpSection {
    let rows = keymap.rows().iter().filter(|row| row.focus == focus);
    HelpSection { head: head(focus), entries: rows.map(|row| (row.keys.clone(), row.does.clone())).collect() }
}

/// Returns the help sections, those for `about` first. Only entries for which the name, description or heading matches
/// every word in `words` are included.
pub(crate) fn help_sections(
    keymap: &Keymap,
    about: Focus,
    commands: &[(&str, &str)],
    place: &str,
    words: &str,
) -> Vec<HelpSection> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let keys = |focus: Focus| keys_section(keymap, focus);
    let all = commands.iter().map(|(name, does)| ((*name).to_owned(), (*does).to_owned()));
    let own = vec![("keymap.toml".to_owned(), format!("{place}; see /keys and docs/SCREEN.md. Changes apply at once"))];
    let mut sections: Vec<HelpSection> = about.layers().iter().map(|focus| keys(*focus)).collect();
    sections
        .extend([HelpSection { head: "Commands", entries: all.collect() }, HelpSection { head: "Custom keys", entries: own }]);
    sections.extend(ORDER.into_iter().filter(|focus| !about.layers().contains(focus)).map(keys));
    for section in &mut sections {
        let head = section.head;
        section.entries.retain(|(name, does)| words.iter().all(|word| has(word, [head, name.as_str(), does.as_str()])));
    }
    sections.retain(|section| !section.entries.is_empty());
    sections
}

/// Returns whether any of the texts contains the word. Words with a capital letter are matched case-sensitively,
/// because `N` and `n` are different keys.
fn has(word: &str, texts: [&str; 3]) -> bool {
    if word.chars().any(char::is_uppercase) {
        return texts.iter().any(|text| text.contains(word));
    }
    texts.iter().any(|text| text.to_lowercase().contains(word))
}

/// Order of the sections that follow those for the current part of the UI.
const ORDER: [Focus; 9] = [
    Focus::Question,
    Focus::Composer,
    Focus::Browse,
    Focus::Inbox,
    Focus::List,
    Focus::Reader,
    Focus::Menu,
    Focus::Search,
    Focus::Field,
];

fn head(focus: Focus) -> &'static str {
    match focus {
        Focus::Composer => "Typing [composer]",
        Focus::Menu => "Completion menu [menu]",
        Focus::Search => "Prompt history search [search]",
        Focus::Question => "Approvals and questions [question]",
        Focus::Inbox => "List of pending approvals [inbox]",
        Focus::Field => "Text fields in a form [field]",
        Focus::Browse => "Browsing [browse]",
        Focus::List => "Lists: models, sessions, commands, help [list]",
        Focus::Reader => "Viewing changes and long text [reader]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_on_the_help_sheet_exists_and_there_are_about_twenty() {
        let sheet = sheet(&Keymap::default());
        let named: usize = SHEET.iter().map(|(_, keys)| keys.len()).sum();
        let found: usize = sheet.iter().map(|section| section.entries.len()).sum();
        assert_eq!(named, found);
        assert!((18..=24).contains(&found), "{found}");
    }
}
