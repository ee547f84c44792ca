//! Key bindings: the built-in ones, as modified by the user's `keymap.toml`.
//!
//! All key handlers check for built-in keys. Before a key is handled, it is therefore translated: a key that the user
//! assigned to an action becomes the first built-in key of that action. A built-in key that the user has removed does
//! nothing.

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

/// Text shown in place of a key name if an action has no key.
const NO_KEY: &str = "(no key)";

/// Part of the UI that has keyboard focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Focus {
    Composer,
    /// Completion menu of the composer. Keys for which the menu has no use go to the composer.
    Menu,
    /// Prompt history search. Keys for which the search has no use go to the composer.
    Search,
    Question,
    /// List of pending dialogs.
    Inbox,
    /// Text field in a dialog, for example for editing a hunk or command, or a search field.
    Field,
    Browse,
    /// List, such as that of models, sessions, commands or prompts, or the help.
    List,
    /// Viewer for a diff or a long text.
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

    /// Returns the parts of the UI whose bindings apply, in order of precedence.
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

    /// Returns whether letters type text or select choices in this part of the UI. If so, they cannot be bound to
    /// actions.
    pub(crate) fn takes_text(self) -> bool {
        !matches!(self, Self::Browse | Self::Reader)
    }
}

/// Key binding as defined in the built-in key file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyBinding {
    action: String,
    #[serde(default)]
    keys: Vec<String>,
    /// Text that the user types to trigger the action, shown instead of key names.
    typed: Option<String>,
    does: String,
    /// Whether the user's key file is not allowed to change the binding.
    #[serde(default)]
    fixed: bool,
}

/// Action as shown in key lists, with its current keys, if it has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub focus: Focus,
    pub action: String,
    pub keys: String,
    pub does: String,
}

#[cfg(test)]
impl Row {
    /// Returns whether the action is triggered by typing text instead of pressing a key.
    pub(crate) fn is_typed(&self) -> bool {
        let is_it = |action: &KeyAction| (action.focus, &action.entry.action) == (self.focus, &self.action);
        built_in_actions().iter().any(|action| is_it(action) && action.entry.typed.is_some())
    }
}

/// Action and its keys while the key map is being built.
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
    /// Rows for all actions. If the user's file changes no keys, they are built when first needed.
    rows: OnceLock<Vec<Row>>,
    /// Built-in key for each key that the user's file changed, or `None` if that key now does nothing.
    changed: HashMap<(Focus, Chord), Option<Chord>>,
    /// All keys that are bound to an action. Empty if no key was changed.
    known: HashSet<(Focus, Chord)>,
    /// Built-in keys with several modifiers, collected when such a key is pressed for the first time.
    held: OnceLock<HashSet<(Focus, Chord)>>,
    /// Name of the key that replaces each removed built-in key, or `None` if the action no longer has a key.
    names: HashMap<(Focus, Chord), Option<String>>,
}

/// Returns the problems in a user's key file, each with its line number.
pub(crate) fn problems(text: &str) -> Vec<String> {
    Keymap::new(Some(text)).1
}

impl Keymap {
    /// Builds the key map from the built-in bindings and the text of a key file. Also returns the problems in the file,
    /// each with its line number.
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

    /// Translates a key to the built-in key bound to the same action. A key that was removed becomes `KeyCode::Null`.
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

    /// Returns the rows for all actions, grouped by part of the UI, in display order.
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
