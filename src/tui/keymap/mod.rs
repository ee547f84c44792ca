//! Which key does what: the built-in map, and what the person's `keymap.toml` says instead.
//!
//! The screen is written with the built-in keys. A key that the person gave to an action becomes the first built-in key of that
//! action before anybody sees it, and a built-in key that was taken away becomes one that nobody knows.

mod chord;
mod file;
mod names;
#[cfg(test)]
mod tests;

pub use chord::Chord;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

const BUILT_IN: &str = include_str!("../../../assets/keymap.toml");

/// In the place of a key that an action has not.
const NO_KEY: &str = "(no key)";

/// Who has the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Focus {
    Composer,
    /// The menu at the composer; what it does not know is the composer's.
    Menu,
    /// The search in what was sent before, in the same way.
    Search,
    Question,
    /// The list of all questions.
    Inbox,
    /// Words, lines or a command that are written in a question, or looked for.
    Field,
    Browse,
    /// Models, sessions, commands, prompts to go back to, and the help.
    List,
    /// A diff, or something long.
    Reader,
}

impl Focus {
    pub const ALL: [Self; 9] = [
        Self::Composer,
        Self::Menu,
        Self::Search,
        Self::Question,
        Self::Inbox,
        Self::Field,
        Self::Browse,
        Self::List,
        Self::Reader,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Composer => "composer",
            Self::Menu => "menu",
            Self::Search => "search",
            Self::Question => "question",
            Self::Inbox => "inbox",
            Self::Field => "field",
            Self::Browse => "browse",
            Self::List => "list",
            Self::Reader => "reader",
        }
    }

    /// Who is asked, one after the other, what a key is for.
    pub fn layers(self) -> &'static [Self] {
        match self {
            Self::Menu => &[Self::Menu, Self::Composer],
            Self::Search => &[Self::Search, Self::Composer],
            Self::Composer => &[Self::Composer],
            Self::Question => &[Self::Question],
            Self::Inbox => &[Self::Inbox],
            Self::Field => &[Self::Field],
            Self::Browse => &[Self::Browse],
            Self::List => &[Self::List],
            Self::Reader => &[Self::Reader],
        }
    }

    /// Whether letters are text there, or decide: no action can have one.
    pub fn takes_text(self) -> bool {
        !matches!(self, Self::Browse | Self::Reader)
    }
}

/// What a key is for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    action: String,
    #[serde(default)]
    keys: Vec<String>,
    /// It is typed, not pressed.
    typed: Option<String>,
    does: String,
    /// Whether it stays as it is, whatever a file says.
    #[serde(default)]
    fixed: bool,
}

/// An action with the keys it has now; there may be none left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub focus: Focus,
    pub action: String,
    pub keys: String,
    pub does: String,
}

#[cfg(test)]
impl Row {
    /// Whether it is typed, and no key.
    pub fn is_typed(&self) -> bool {
        let is_it = |action: &Action| (action.focus, &action.entry.action) == (self.focus, &self.action);
        built_in().iter().any(|action| is_it(action) && action.entry.typed.is_some())
    }
}

/// A part of the map while it is made.
struct Action {
    focus: Focus,
    entry: Entry,
    built_in: Vec<Chord>,
    keys: Vec<Chord>,
}

impl Action {
    fn is_fixed(&self) -> bool {
        self.entry.fixed || self.entry.typed.is_some()
    }

    fn shown(&self) -> String {
        match &self.entry.typed {
            Some(typed) => typed.clone(),
            None if self.keys.is_empty() => NO_KEY.to_owned(),
            None => self.keys.iter().map(Chord::to_string).collect::<Vec<_>>().join(" "),
        }
    }
}

#[derive(Debug, Default)]
pub struct Keymap {
    /// Made when it is asked for, where no file changes anything.
    rows: OnceLock<Vec<Row>>,
    /// What a key becomes, where it is not itself.
    changed: HashMap<(Focus, Chord), Option<Chord>>,
    /// All keys that mean something, where any was changed.
    known: HashSet<(Focus, Chord)>,
    /// The built-in keys with much held, where one of that kind was pressed.
    held: OnceLock<HashSet<(Focus, Chord)>>,
    /// What a built-in key is called now, where it was taken away.
    names: HashMap<(Focus, Chord), Option<String>>,
}

/// What of a person's file does not hold.
pub fn problems(text: &str) -> Vec<String> {
    Keymap::new(Some(text)).1
}

impl Keymap {
    /// The built-in map with what a file says of it; and what of the file does not hold, each with its line.
    pub fn new(file: Option<&str>) -> (Self, Vec<String>) {
        let Some(text) = file else { return (Self::default(), Vec::new()) };
        let mut actions = built_in();
        let problems = file::change(&mut actions, text);
        (Self::of(&actions), problems)
    }

    fn of(actions: &[Action]) -> Self {
        let mut map = Self { rows: OnceLock::from(rows(actions)), ..Self::default() };
        for Action { focus, built_in, keys, .. } in actions {
            for gone in built_in.iter().filter(|key| !keys.contains(key)) {
                map.changed.entry((*focus, *gone)).or_insert(None);
                map.names.insert((*focus, *gone), keys.first().map(Chord::to_string));
            }
            for key in keys.iter().filter(|key| !built_in.contains(key)) {
                map.changed.insert((*focus, *key), built_in.first().copied());
            }
        }
        if !map.changed.is_empty() {
            let known = actions.iter().flat_map(|action| action.built_in.iter().map(|chord| (action.focus, *chord)));
            map.known = known.chain(map.changed.keys().copied()).collect();
        }
        map
    }

    /// The key as the screen knows it; one that nobody knows where it does nothing any more.
    pub fn key(&self, focus: Focus, key: KeyEvent) -> KeyEvent {
        let chord = Chord::of(key);
        let known = focus.layers().iter().find(|focus| self.known.contains(&(**focus, chord)));
        let event = match known.map(|focus| self.changed.get(&(*focus, chord))) {
            None if chord.has_much_held() && !self.is_built_in(focus, chord) => KeyEvent::new(KeyCode::Null, KeyModifiers::NONE),
            None | Some(None) => return key,
            Some(Some(Some(other))) => other.event(),
            Some(Some(None)) => KeyEvent::new(KeyCode::Null, KeyModifiers::NONE),
        };
        KeyEvent { kind: key.kind, ..event }
    }

    fn is_built_in(&self, focus: Focus, chord: Chord) -> bool {
        let held = self.held.get_or_init(|| {
            let all =
                built_in().into_iter().flat_map(|action| action.built_in.into_iter().map(move |chord| (action.focus, chord)));
            all.filter(|(_, chord)| chord.has_much_held()).collect()
        });
        focus.layers().iter().any(|focus| held.contains(&(*focus, chord)))
    }

    /// All actions, focus by focus, in the order in which they are told.
    pub fn rows(&self) -> &[Row] {
        self.rows.get_or_init(|| rows(&built_in()))
    }
}

fn rows(actions: &[Action]) -> Vec<Row> {
    let row = |action: &Action| Row {
        focus: action.focus,
        action: action.entry.action.clone(),
        keys: action.shown(),
        does: action.entry.does.clone(),
    };
    actions.iter().map(row).collect()
}

fn built_in() -> Vec<Action> {
    let table: BTreeMap<Focus, Vec<Entry>> = toml::from_str(BUILT_IN).unwrap_or_default();
    let chords = |keys: &[String]| keys.iter().filter_map(|key| Chord::parse(key).ok()).collect::<Vec<_>>();
    let entries = table.into_iter().flat_map(|(focus, entries)| entries.into_iter().map(move |entry| (focus, entry)));
    let action = |(focus, entry): (Focus, Entry)| {
        let built_in = chords(&entry.keys);
        Action { focus, keys: built_in.clone(), built_in, entry }
    };
    entries.map(action).collect()
}
