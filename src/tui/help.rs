//! Full-screen help with keys and commands, and its search.

use super::keymap::{Focus, Keymap};
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Help {
    /// Focus at the time of opening; its keys come first.
    pub about: Focus,
    /// Search words.
    pub words: String,
    /// Index of the first row shown.
    pub top: usize,
    /// Number of rows shown at once.
    pub page: usize,
}

/// Section of the help: a heading, and pairs of key or command and description.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub head: &'static str,
    pub entries: Vec<(String, String)>,
}

impl Help {
    pub(crate) fn new(about: Focus, words: &str) -> Self {
        Self { about, words: text::clean(words).into_owned(), top: 0, page: 1 }
    }

    /// Changes the search words and scrolls to the first row.
    pub(crate) fn look_for(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.words);
        self.top = 0;
    }

    pub(crate) fn scroll_by(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows);
    }
}

/// Returns the sections, current ones first, with the entries that match all words in their row or heading.
pub(crate) fn sections(keymap: &Keymap, about: Focus, commands: &[(&str, &str)], place: &str, words: &str) -> Vec<Section> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let keys = |focus: Focus| {
        let rows = keymap.rows().iter().filter(|row| row.focus == focus);
        Section { head: head(focus), entries: rows.map(|row| (row.keys.clone(), row.does.clone())).collect() }
    };
    let all = commands.iter().map(|(name, does)| ((*name).to_owned(), (*does).to_owned()));
    let own = vec![("keymap.toml".to_owned(), format!("{place}; see /keys and docs/SCREEN.md. Changes apply at once"))];
    let mut sections: Vec<Section> = about.layers().iter().map(|focus| keys(*focus)).collect();
    sections.extend([Section { head: "Commands", entries: all.collect() }, Section { head: "Custom keys", entries: own }]);
    sections.extend(ORDER.into_iter().filter(|focus| !about.layers().contains(focus)).map(keys));
    for section in &mut sections {
        let head = section.head;
        section.entries.retain(|(name, does)| words.iter().all(|word| has(word, [head, name.as_str(), does.as_str()])));
    }
    sections.retain(|section| !section.entries.is_empty());
    sections
}

/// Returns whether a text contains the word. A word with a capital is case-sensitive, because `N` is another key than
/// `n`.
fn has(word: &str, texts: [&str; 3]) -> bool {
    if word.chars().any(char::is_uppercase) {
        return texts.iter().any(|text| text.contains(word));
    }
    texts.iter().any(|text| text.to_lowercase().contains(word))
}

/// Order of the other sections.
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
        Focus::Field => "Text fields in a question [field]",
        Focus::Browse => "Browsing [browse]",
        Focus::List => "Lists: models, sessions, commands, help [list]",
        Focus::Reader => "Viewing changes and long texts [reader]",
    }
}
