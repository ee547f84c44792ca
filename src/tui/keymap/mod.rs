//! Key bindings: the built-in ones with the user's `keymap.toml` applied.
//!
//! All handlers use the built-in keys. A key that the user assigned to an action is translated to the first built-in
//! key of that action before it is handled, and a removed built-in key has no effect.

mod chord;
mod file;
mod names;
#[cfg(test)]
mod tests;

pub(crate) use chord::Chord;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

const BUILT_IN: &str = include_str!("../../../assets/keymap.toml");

/// Text shown for an action without keys.
const NO_KEY: &str = "(no key)";

/// Part of the screen that has keyboard focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Focus {
    Composer,
    /// Completion menu of the composer; keys that it does not use go to the composer.
    Menu,
    /// Search in the prompt history; keys that it does not use go to the composer.
    Search,
    Question,
    /// The list of pending dialogs.
    Inbox,
    /// A text, hunk or command field of a dialog, or a search field.
    Field,
    Browse,
    /// The lists of models, sessions, commands and prompts, and the help.
    List,
    /// The viewer of a diff or a long text.
    Reader,
}

impl Focus {
    pub(crate) const ALL: [Self; 9] = [
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

    pub(crate) fn name(self) -> &'static str {
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

    /// Returns the focuses whose bindings apply, in order of precedence.
    pub(crate) fn layers(self) -> &'static [Self] {
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

    /// Returns whether letters are text or choices in this part of the screen, so that no action can be bound to a
    /// letter.
    pub(crate) fn takes_text(self) -> bool {
        !matches!(self, Self::Browse | Self::Reader)
    }
}

/// Key binding as written in the built-in file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyBinding {
    action: String,
    #[serde(default)]
    keys: Vec<String>,
    /// Keys described as typed text, in place of key names.
    typed: Option<String>,
    does: String,
    /// Whether key files cannot reassign the action.
    #[serde(default)]
    fixed: bool,
}

/// Action with its current keys, possibly none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub focus: Focus,
    pub action: String,
    pub keys: String,
    pub does: String,
}

#[cfg(test)]
impl Row {
    /// Returns whether the input is typed text rather than a key.
    pub(crate) fn is_typed(&self) -> bool {
        let is_it = |action: &KeyAction| (action.focus, &action.entry.action) == (self.focus, &self.action);
        built_in_actions().iter().any(|action| is_it(action) && action.entry.typed.is_some())
    }
}

/// Action during the construction of the map.
struct KeyAction {
    focus: Focus,
    entry: KeyBinding,
    built_in: Vec<Chord>,
    keys: Vec<Chord>,
}

impl KeyAction {
    fn is_fixed(&self) -> bool {
        self.entry.fixed || self.entry.typed.is_some()
    }

    fn shown_keys(&self) -> String {
        match &self.entry.typed {
            Some(typed) => typed.clone(),
            None if self.keys.is_empty() => NO_KEY.to_owned(),
            None => self.keys.iter().map(Chord::to_string).collect::<Vec<_>>().join(" "),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Keymap {
    /// Rows, built on demand if the file changes no keys.
    rows: OnceLock<Vec<Row>>,
    /// Translation of changed keys.
    changed: HashMap<(Focus, Chord), Option<Chord>>,
    /// All keys that have a meaning; empty if no key was changed.
    known: HashSet<(Focus, Chord)>,
    /// Built-in keys with several modifiers, collected when such a key is first pressed.
    held: OnceLock<HashSet<(Focus, Chord)>>,
    /// Current names of removed built-in keys.
    names: HashMap<(Focus, Chord), Option<String>>,
}

/// Returns the problems of a user's key file.
pub(crate) fn problems(text: &str) -> Vec<String> {
    Keymap::new(Some(text)).1
}

impl Keymap {
    /// Builds the map from the built-in keys and a file. Also returns the problems of the file, each with its line.
    pub(crate) fn new(file: Option<&str>) -> (Self, Vec<String>) {
        let Some(text) = file else { return (Self::default(), Vec::new()) };
        let mut actions = built_in_actions();
        let problems = file::change(&mut actions, text);
        (Self::for_actions(&actions), problems)
    }

    fn for_actions(actions: &[KeyAction]) -> Self {
        let mut map = Self { rows: OnceLock::from(rows(actions)), ..Self::default() };
        for KeyAction { focus, built_in, keys, .. } in actions {
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

    /// Translates a key to the built-in one. A key without meaning becomes an unknown key.
    pub(crate) fn key(&self, focus: Focus, key: KeyEvent) -> KeyEvent {
        let chord = Chord::from_event(key);
        let known = focus.layers().iter().find(|focus| self.known.contains(&(**focus, chord)));
        let event = match known.map(|focus| self.changed.get(&(*focus, chord))) {
            None if chord.has_extra_modifiers() && !self.is_built_in(focus, chord) => {
                KeyEvent::new(KeyCode::Null, KeyModifiers::NONE)
            }
            None | Some(None) => return key,
            Some(Some(Some(other))) => other.event(),
            Some(Some(None)) => KeyEvent::new(KeyCode::Null, KeyModifiers::NONE),
        };
        KeyEvent { kind: key.kind, ..event }
    }

    fn is_built_in(&self, focus: Focus, chord: Chord) -> bool {
        let held = self.held.get_or_init(|| {
            let all = built_in_actions()
                .into_iter()
                .flat_map(|action| action.built_in.into_iter().map(move |chord| (action.focus, chord)));
            all.filter(|(_, chord)| chord.has_extra_modifiers()).collect()
        });
        focus.layers().iter().any(|focus| held.contains(&(*focus, chord)))
    }

    /// Returns all actions, grouped by focus, in display order.
    pub(crate) fn rows(&self) -> &[Row] {
        self.rows.get_or_init(|| rows(&built_in_actions()))
    }
}

fn rows(actions: &[KeyAction]) -> Vec<Row> {
    let row = |action: &KeyAction| Row {
        focus: action.focus,
        action: action.entry.action.clone(),
        keys: action.shown_keys(),
        does: action.entry.does.clone(),
    };
    actions.iter().map(row).collect()
}

fn built_in_actions() -> Vec<KeyAction> {
    let table: BTreeMap<Focus, Vec<KeyBinding>> = toml::from_str(BUILT_IN).unwrap_or_default();
    let chords = |keys: &[String]| keys.iter().filter_map(|key| Chord::parse(key).ok()).collect::<Vec<_>>();
    let entries = table.into_iter().flat_map(|(focus, entries)| entries.into_iter().map(move |entry| (focus, entry)));
    let action = |(focus, entry): (Focus, KeyBinding)| {
        let built_in = chords(&entry.keys);
        KeyAction { focus, keys: built_in.clone(), built_in, entry }
    };
    entries.map(action).collect()
}
