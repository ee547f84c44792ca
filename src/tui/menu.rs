//! Completion menu for the word at the cursor, which completes commands after `/` and files after `@`.

use super::picker::ClickResult;
use crate::protocol::{CustomCommand, FoundFile, FoundSymbol};
use std::collections::HashSet;
use std::ops::Range;

/// Maximum number of rows that the menu shows.
pub(crate) const ROWS: u16 = 12;
/// Minimum time, in milliseconds, for which a row must have been visible before it can be chosen.
const SEEN_MS: u64 = 60;

/// Text at the cursor for which there may be completions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typing {
    /// The whole draft, including the slash.
    Command(String),
    /// The text between `@` or `@"` and the cursor. `start` is the character index of the `@` in its line.
    File { words: String, start: usize, quoted: bool },
}

/// Row in the menu, which represents a possible completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Text to be inserted into the draft.
    pub text: String,
    /// Name to be displayed.
    pub name: String,
    pub words: String,
    /// Size of the file or lines in tokens, if known.
    pub tokens: Option<u64>,
    pub then: EnterAction,
}

/// Effect of Enter on a menu row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnterAction {
    /// Runs the command.
    Run,
    /// Inserts the text without sending the draft, because more input is expected after the text.
    Complete,
}

/// State of the menu, and the data from which its rows are made.
#[derive(Debug, Default)]
pub(crate) struct Menu {
    typing: Option<Typing>,
    items: Vec<Item>,
    at: usize,
    top: usize,
    /// Whether the user has moved the highlight with the arrow keys.
    moved: bool,
    /// Text of the row highlighted in the last frame, and the time in milliseconds since which it has been highlighted.
    drawn: Option<(String, u64)>,
    /// First screen row of the menu and number of visible rows, if the menu is on the screen.
    shown: Option<(u16, u16)>,
    /// Whether the user closed the menu with Escape. It stays closed until the user starts another word.
    closed: bool,
    /// Whether Tab was pressed before the search results arrived. If so, the first result is inserted once they arrive.
    completes_when_found: bool,
    /// Search text and results of the most recent file search.
    pub files: Option<(String, Vec<FoundFile>)>,
    /// Search text and results of the most recent symbol search.
    pub symbols: Option<(String, Vec<FoundSymbol>)>,
    /// Search text of the most recent request.
    pub asked: Option<String>,
    /// Names of recently used commands, most recent first.
    pub used: Vec<String>,
    /// Custom commands of the user and the project.
    pub own: Vec<CustomCommand>,
    /// Files that were already reported because they define a custom command with the name of a built-in one.
    pub refused: HashSet<String>,
}

impl Menu {
    pub(crate) fn items(&self) -> &[Item] {
        if self.closed { &[] } else { &self.items }
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.items().is_empty()
    }

    pub(crate) fn typing(&self) -> Option<&Typing> {
        self.typing.as_ref()
    }

    /// Returns the highlighted row, if there is one.
    pub(crate) fn highlighted(&self) -> Option<&Item> {
        self.items().get(self.at)
    }

    /// Returns the highlighted row, provided it has been visible for long enough to be chosen intentionally. `now` is
    /// in milliseconds.
    pub(crate) fn highlighted_if_seen(&self, now: u64) -> Option<&Item> {
        let (text, since) = self.drawn.as_ref()?;
        self.highlighted().filter(|item| item.text == *text && now.saturating_sub(*since) >= SEEN_MS)
    }

    pub(crate) fn is_moved(&self) -> bool {
        self.moved
    }

    /// Sets the text at the cursor. The caller must then set the rows with [`Self::set`].
    pub(crate) fn set_typing(&mut self, typing: Option<Typing>) {
        let same_word = match (&self.typing, &typing) {
            (Some(Typing::Command(_)), Some(Typing::Command(_))) => true,
            (Some(Typing::File { start: before, .. }), Some(Typing::File { start, .. })) => before == start,
            (_, _) => false,
        };
        self.closed &= same_word;
        if self.typing != typing {
            self.at = 0;
            self.top = 0;
            self.moved = false;
            self.drawn = None;
            self.completes_when_found = false;
        }
        if !matches!(typing, Some(Typing::File { .. })) {
            self.asked = None;
        }
        self.typing = typing;
    }

    /// Replaces the rows. If the user has highlighted a row that still exists, it stays highlighted.
    pub(crate) fn set(&mut self, items: Vec<Item>) {
        let marked = self.moved.then(|| self.items.get(self.at).map(|item| item.text.clone())).flatten();
        self.at = marked.and_then(|text| items.iter().position(|item| item.text == text)).unwrap_or(0);
        self.items = items;
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.drawn = None;
        self.completes_when_found = false;
    }

    /// Returns whether results for the text at the cursor have been requested but have not arrived yet.
    pub(crate) fn is_searching(&self) -> bool {
        let Some(Typing::File { words, quoted, .. }) = &self.typing else { return false };
        let answered = |asked: Option<&String>| asked == Some(words);
        let is_answered = if is_symbol(words, *quoted) {
            answered(self.symbols.as_ref().map(|(asked, _)| asked))
        } else {
            answered(self.files.as_ref().map(|(asked, _)| asked))
        };
        !self.closed && self.asked.as_ref() == Some(words) && !is_answered
    }

    /// Makes the first row be chosen as soon as the search results arrive, unless the user types more text before that.
    pub(crate) fn complete_on_results(&mut self) {
        self.completes_when_found = true;
    }

    /// Returns whether Tab was pressed while waiting for the results that have just arrived, and resets that flag.
    pub(crate) fn take_pending_completion(&mut self) -> bool {
        std::mem::take(&mut self.completes_when_found)
    }

    /// Moves the highlight up or down, wrapping around at the ends.
    pub(crate) fn step(&mut self, down: bool) {
        let count = self.items().len();
        if count > 0 {
            self.at = if down { (self.at + 1) % count } else { (self.at + count - 1) % count };
            self.moved = true;
            self.drawn = None;
        }
    }

    /// Returns the range of rows to show, which includes the highlighted row and at most `rows` rows.
    pub(crate) fn window(&mut self, rows: usize) -> Range<usize> {
        let count = self.items().len();
        let rows = rows.min(count);
        self.top = self.top.min(count - rows).clamp((self.at + 1).saturating_sub(rows.max(1)), self.at);
        self.top..self.top + rows
    }

    pub(crate) fn selected_index(&self) -> usize {
        self.at
    }

    /// Highlights the clicked row. If it is already highlighted, reports that it was chosen. Returns `None` if the
    /// click was outside of the menu.
    pub(crate) fn click(&mut self, row: u16) -> Option<ClickResult> {
        let (first, count) = self.shown.filter(|_| self.is_open())?;
        let nth = row.checked_sub(first).filter(|nth| *nth < count)?;
        let at = self.top + usize::from(nth);
        if at == self.at {
            return Some(ClickResult::Taken);
        }
        self.at = at.min(self.items.len().saturating_sub(1));
        self.moved = true;
        self.drawn = None;
        Some(ClickResult::Marked)
    }

    /// Records that the menu is on the screen. `rows` contains its first screen row and its number of rows.
    pub(crate) fn on_drawn(&mut self, rows: (u16, u16), now: u64) {
        self.shown = Some(rows);
        let text = self.highlighted().map(|item| item.text.clone());
        match (&self.drawn, text) {
            (_, None) => self.drawn = None,
            (Some((before, _)), Some(text)) if *before == text => {}
            (_, Some(text)) => self.drawn = Some((text, now)),
        }
    }

    /// Records that the menu is no longer on the screen.
    pub(crate) fn on_hidden(&mut self) {
        self.drawn = None;
        self.shown = None;
    }
}

/// Returns the text at the cursor for which there may be completions, if any. `line` is the current line up to the
/// cursor. `of_server` returns whether the text after an `@` starts with the name of an MCP server.
pub(crate) fn typing(line: &str, draft: &str, of_server: &dyn Fn(&str) -> bool) -> Option<Typing> {
    if let Some(mention) = mention(line, of_server) {
        return Some(mention);
    }
    let is_command = draft.starts_with('/') && !draft.contains('\n');
    is_command.then(|| Typing::Command(draft.to_owned()))
}

fn mention(line: &str, of_server: &dyn Fn(&str) -> bool) -> Option<Typing> {
    let mut found = None;
    let mut before = None;
    for (at, (byte, letter)) in line.char_indices().enumerate() {
        // The agent uses the same rule to find references in a prompt.
        if letter == '@' && before.is_none_or(|one: char| one.is_whitespace() || "([{<\"'`,;".contains(one)) {
            found = Some((at, &line[byte + 1..]));
        }
        before = Some(letter);
    }
    let (start, rest) = found?;
    if let Some(quoted) = rest.strip_prefix('"') {
        let words = quoted.to_owned();
        return (!quoted.contains('"')).then_some(Typing::File { words, start, quoted: true });
    }
    let ends = |one: char| one.is_whitespace() || "\"'`<>()[]{}|,;".contains(one);
    // A `:` is followed by line numbers, and a `#` by line numbers or a symbol. Line numbers are not completed.
    let has_lines = |(path, name): (&str, &str)| {
        let digits = name.strip_prefix(['L', 'l']).unwrap_or(name);
        !path.is_empty() && digits.starts_with(|one: char| one.is_ascii_digit())
    };
    let has_range =
        rest.rsplit_once('#').is_some_and(has_lines) || rest.rsplit_once(':').is_some_and(|(_, range)| is_range(range));
    let is_done = rest.contains(ends) || has_range && !of_server(rest);
    (!is_done).then(|| Typing::File { words: rest.to_owned(), start, quoted: false })
}

/// Returns whether the text after an `@` refers to a symbol.
pub(crate) fn is_symbol(words: &str, quoted: bool) -> bool {
    !quoted && words.contains('#')
}

/// Returns the reference to a range of lines, in the form used in prompts. Returns `None` if the path cannot be written
/// in a prompt.
pub(crate) fn lines(path: &str, first: u32, last: u32) -> Option<String> {
    let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
    path_reference(path).map(|name| format!("{name}:{range}"))
}

fn is_range(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Returns the reference to a path, in the form used in prompts. Returns `None` if the path cannot be written in a
/// prompt.
pub(crate) fn path_reference(path: &str) -> Option<String> {
    let plain = !path.contains(|one: char| one.is_whitespace() || "\"'`<>()[]{}|,;#".contains(one))
        && !path.ends_with(['.', ':', '!', '?'])
        && !path.rsplit_once(':').is_some_and(|(_, range)| is_range(range));
    if plain {
        return Some(format!("@{path}"));
    }
    (!path.contains(['"', '\n'])).then(|| format!("@\"{path}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(words: &str, start: usize, quoted: bool) -> Option<Typing> {
        Some(Typing::File { words: words.to_owned(), start, quoted })
    }

    #[test]
    fn the_command_or_mention_at_the_cursor_is_detected() {
        for (line, expected) in [
            ("@", file("", 0, false)),
            ("look at @src/ma", file("src/ma", 8, false)),
            ("größe (@größe", file("größe", 7, false)),
            ("@\"my no", file("my no", 0, true)),
            ("@\"my notes\" and", None),
            ("me@example.org", None),
            ("@src/main.rs and", None),
            ("@src/main.rs:10-20", None),
            ("@src/main.rs:", None),
            ("@src/main.rs#L1", None),
            ("@src/main.rs#12", None),
            ("@src/main.rs#", file("src/main.rs#", 0, false)),
            ("@src/main.rs#gre", file("src/main.rs#gre", 0, false)),
            ("in @#größe", file("#größe", 3, false)),
            ("@a @b", file("b", 3, false)),
        ] {
            assert_eq!(typing(line, line, &|_| false), expected, "{line}");
        }
        let of_server = |words: &str| words.starts_with("docs:");
        assert_eq!(typing("@docs:", "@docs:", &of_server), file("docs:", 0, false));
        assert_eq!(typing("@docs:x#12", "@docs:x#12", &of_server), file("docs:x#12", 0, false));
        assert_eq!(typing("/mo", "/mo", &|_| false), Some(Typing::Command("/mo".to_owned())));
        assert_eq!(typing("/mo", "/mo\nx", &|_| false), None);
        assert_eq!(typing("/fix @a", "/fix @a", &|_| false), file("a", 5, false));
    }

    #[test]
    fn paths_are_quoted_so_that_mentions_parse_back() {
        for (path, expected) in [
            ("src/main.rs", Some("@src/main.rs")),
            ("docs/größe.md", Some("@docs/größe.md")),
            ("my notes/to do.md", Some("@\"my notes/to do.md\"")),
            ("a(1).txt", Some("@\"a(1).txt\"")),
            ("a:10", Some("@\"a:10\"")),
            ("what?", Some("@\"what?\"")),
            ("a\"b", None),
        ] {
            assert_eq!(path_reference(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_row_is_selectable_only_after_being_seen() {
        let item = |name: &str| Item {
            text: name.to_owned(),
            name: name.to_owned(),
            words: String::new(),
            tokens: None,
            then: EnterAction::Run,
        };
        let mut menu = Menu::default();
        menu.set_typing(Some(Typing::Command("/mo".to_owned())));
        menu.set(vec![item("/mode"), item("/model")]);
        assert!(menu.is_open() && menu.highlighted_if_seen(1000).is_none());
        menu.on_drawn((0, 2), 1000);
        assert!(menu.highlighted_if_seen(1010).is_none());
        assert_eq!(menu.highlighted_if_seen(1100), Some(&item("/mode")));
        menu.step(true);
        assert!(menu.highlighted_if_seen(1200).is_none());
        menu.on_drawn((0, 1), 1200);
        menu.set_typing(Some(Typing::Command("/mod".to_owned())));
        menu.set(vec![item("/mode"), item("/model")]);
        assert!(menu.highlighted_if_seen(9000).is_none(), "another word has another list");
        menu.close();
        assert!(!menu.is_open());
        menu.set_typing(Some(Typing::Command("/mode".to_owned())));
        assert!(!menu.is_open(), "it stays closed while the word goes on");
        menu.set_typing(None);
        menu.set_typing(Some(Typing::Command("/".to_owned())));
        assert!(menu.is_open());
    }
}
