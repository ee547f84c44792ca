//! The models there are, to choose one: what they take and cost, and what keeps one from being used.

use super::format::{dollars, tokens};
use super::onboarding::provider_of_key;
use super::picker::{Column, Picker, PickerResult, Row};
use crate::protocol::{Effort, KeyText, ListedModel, ModelFacts};
use crate::text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const COLUMNS: &[Column] = &[
    Column { head: "model", is_number: false, rank: 0 },
    Column { head: "provider", is_number: false, rank: 2 },
    Column { head: "context", is_number: true, rank: 1 },
    Column { head: "in $/M", is_number: true, rank: 3 },
    Column { head: "out $/M", is_number: true, rank: 3 },
];

pub struct ModelPicker {
    pub picker: Picker,
    listed: Vec<ListedModel>,
    /// Answers that are still to come.
    due: u8,
    /// The one that answers now, and what is known of it: no list has every model.
    current: String,
    in_use: Option<ModelFacts>,
    /// How hard it is to think; changed by the person, or as it is.
    effort: Option<Effort>,
    before: Option<Effort>,
    /// The key of a provider is being typed.
    key: Option<Key>,
}

/// A key as far as it is typed; nothing shows it, and nothing else has it.
struct Key {
    /// The model it is for.
    name: String,
    typed: KeyText,
}

/// A longer one is a file that was taken for a key.
const KEY_BYTES: usize = 8 << 10;

/// What was chosen.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice {
    Nothing,
    Closed,
    Refused(String),
    Other,
    /// A key for the provider of this model, which is to be asked then.
    Key {
        name: String,
        key: KeyText,
    },
    Model {
        name: String,
        /// Said only where the person changed it.
        effort: Option<Effort>,
    },
}

impl ModelPicker {
    /// Waits for two lists: of what is known, and of what the providers say.
    pub fn new(current: &str, in_use: Option<ModelFacts>, effort: Option<Effort>) -> Self {
        let mut picker = Self {
            picker: Picker::new("Models", COLUMNS),
            listed: Vec::new(),
            due: 2,
            current: current.to_owned(),
            in_use: in_use.filter(|facts| !current.is_empty() && facts.name == current),
            effort,
            before: effort,
            key: None,
        };
        picker.refresh();
        picker
    }

    /// A list: what is known already is renewed, what is new stands behind it.
    pub fn listed(&mut self, models: Vec<ListedModel>, notices: &[String]) {
        let first = self.listed.is_empty();
        self.due = self.due.saturating_sub(1);
        for model in models {
            match self.listed.iter_mut().find(|known| known.facts.name == model.facts.name) {
                Some(known) => *known = model,
                None => self.listed.push(model),
            }
        }
        if let Some(facts) = self.in_use.take().filter(|facts| !self.listed.iter().any(|known| known.facts.name == facts.name)) {
            self.listed.insert(0, ListedModel { facts, lacks: None, key_of: None, source: "in use".to_owned() });
        }
        if first {
            // Those that can be used come first; the order of the others stays.
            self.listed.sort_by_key(|model| model.lacks.is_some());
        }
        self.picker.set_notices(notices.iter().map(|notice| line(notice)).collect());
        self.refresh();
        if first {
            let at = self.key.as_ref().map_or(&self.current, |key| &key.name).clone();
            self.picker.highlight(&at);
        }
    }

    pub fn key(&mut self, key: KeyEvent) -> Choice {
        if self.key.is_some() {
            return self.key_of_key(key);
        }
        let turn = match key.code {
            KeyCode::Left => -1,
            KeyCode::Right => 1,
            _ => 0,
        };
        if turn != 0 {
            if self.at().is_some_and(|model| model.facts.reasoning) {
                self.turn_effort(turn);
            }
            return Choice::Nothing;
        }
        let picked = self.picker.key(key);
        // The highlighted one may take no effort.
        self.say();
        match picked {
            PickerResult::Nothing => Choice::Nothing,
            PickerResult::Closed => Choice::Closed,
            PickerResult::Refused(why) => self.ask_for_key(why),
            PickerResult::Other => Choice::Other,
            PickerResult::Chosen(name) => {
                let takes = self.at().is_some_and(|model| model.facts.reasoning);
                Choice::Model { name, effort: self.effort.filter(|_| takes && self.effort != self.before) }
            }
        }
    }

    /// What was pasted is a key where one is asked for, else words to look for.
    pub fn paste(&mut self, words: &str) {
        if self.key.is_none() && provider_of_key(words).is_some() {
            // It is shown nowhere, wherever it is put.
            let Some(name) = self.model_for(words) else {
                "that looks like an API key: highlight its model and press enter".clone_into(&mut self.picker.aside);
                return;
            };
            self.picker.highlight(&name);
            self.ask_for_key_of(&name);
        }
        match &mut self.key {
            Some(key) => {
                let room = KEY_BYTES.saturating_sub(key.typed.0.len());
                key.typed.0.extend(words.trim().chars().filter(|letter| !letter.is_control()).take(room));
                self.show_key();
            }
            None => self.picker.insert(words),
        }
    }

    /// The one that a key is for, of its provider: the highlighted one before others.
    fn model_for(&self, key: &str) -> Option<String> {
        let provider = provider_of_key(key)?;
        let is_of = |model: &&ListedModel| model.facts.name.split('/').next() == Some(provider);
        self.at().filter(is_of).or_else(|| self.listed.iter().find(is_of)).map(|model| model.facts.name.clone())
    }

    /// Of this one, whether it is listed or not.
    pub fn ask_for_key_of(&mut self, name: &str) {
        self.key = Some(Key { name: name.to_owned(), typed: KeyText::default() });
        self.show_key();
    }

    /// Whether what is typed is a key.
    pub fn takes_key(&self) -> bool {
        self.key.is_some()
    }

    /// The highlighted model cannot be asked; where a key is all it lacks, one can be added.
    fn ask_for_key(&mut self, why: String) -> Choice {
        let Some(name) = self.at().filter(|model| model.key_of.is_some()).map(|model| model.facts.name.clone()) else {
            return Choice::Refused(why);
        };
        self.key = Some(Key { name, typed: KeyText::default() });
        self.show_key();
        Choice::Nothing
    }

    fn key_of_key(&mut self, pressed: KeyEvent) -> Choice {
        let Some(key) = &mut self.key else { return Choice::Nothing };
        let ctrl = pressed.modifiers.contains(KeyModifiers::CONTROL);
        match pressed.code {
            KeyCode::Esc => self.key = None,
            KeyCode::Char('c') if ctrl => self.key = None,
            KeyCode::Enter if !key.typed.0.trim().is_empty() => {
                let Key { name, typed } = Key { name: key.name.clone(), typed: std::mem::take(&mut key.typed) };
                return Choice::Key { name, key: typed };
            }
            KeyCode::Backspace => {
                key.typed.0.pop();
            }
            KeyCode::Char('u') if ctrl => key.typed.0.clear(),
            KeyCode::Char('z') if ctrl => return Choice::Other,
            KeyCode::Char(letter) if !ctrl && key.typed.0.len() < KEY_BYTES => key.typed.0.push(letter),
            _ => {}
        }
        self.show_key();
        Choice::Nothing
    }

    /// A sign for each letter: that something was pasted is to be seen.
    fn show_key(&mut self) {
        self.picker.asked = self.key.as_ref().map(|key| {
            let known = self.listed.iter().find(|model| model.facts.name == key.name).and_then(|model| model.key_of.clone());
            let whose = known.unwrap_or_else(|| key.name.split('/').next().unwrap_or_default().to_owned());
            let signs = "*".repeat(key.typed.0.chars().count());
            (format!("API key of {}: ", line(&whose)), signs)
        });
        self.say();
    }

    fn at(&self) -> Option<&ListedModel> {
        let key = &self.picker.at()?.key;
        self.listed.iter().find(|model| model.facts.name == *key)
    }

    /// Through all there are, and no further.
    fn turn_effort(&mut self, by: isize) {
        let last = Effort::ALL.len() - 1;
        let at = self.effort.and_then(|effort| Effort::ALL.iter().position(|one| *one == effort));
        let to = match at {
            Some(at) => at.saturating_add_signed(by).min(last),
            None if by > 0 => 0,
            None => return,
        };
        self.effort = Some(Effort::ALL[to]);
        self.say();
    }

    fn refresh(&mut self) {
        let rows = self.listed.iter().map(|model| row(model, model.facts.name == self.current)).collect();
        self.picker.set_rows(rows);
        self.say();
    }

    fn say(&mut self) {
        if self.key.is_some() {
            "enter save the key · esc back".clone_into(&mut self.picker.aside);
            return;
        }
        if self.at().is_some_and(|model| model.key_of.is_some()) {
            "enter add its API key".clone_into(&mut self.picker.aside);
            return;
        }
        let effort = match (self.at().is_some_and(|model| model.facts.reasoning), self.effort) {
            (false, _) => None,
            (true, Some(effort)) => Some(format!("effort {} · left right change", effort.as_str())),
            (true, None) => Some("right set effort".to_owned()),
        };
        let asks = (self.due > 0).then(|| "loading models".to_owned());
        self.picker.aside = effort.into_iter().chain(asks).collect::<Vec<_>>().join(", ");
    }
}

fn row(model: &ListedModel, is_current: bool) -> Row {
    let ListedModel { facts, lacks, source, .. } = model;
    let (provider, name) = facts.name.split_once('/').unwrap_or(("", facts.name.as_str()));
    let price = |of: fn(&crate::protocol::Price) -> f64| facts.price.map_or_else(|| "?".to_owned(), |price| dollars(of(&price)));
    let output = facts.max_output_tokens.map(|most| format!(", at most {} out", tokens(most))).unwrap_or_default();
    let images = if facts.images { ", accepts images" } else { "" };
    let reasoning = if facts.reasoning { ", has effort levels" } else { "" };
    Row {
        key: facts.name.clone(),
        cells: vec![
            line(name),
            line(provider),
            tokens(facts.context_window),
            price(|price| price.input),
            price(|price| price.output),
        ],
        mark: match (is_current, &model.key_of) {
            (true, _) => "in use",
            (false, Some(_)) => "no key",
            (false, None) => "",
        },
        lacks: lacks.as_deref().map(line),
        detail: format!("{}: {}{output}{images}{reasoning}", line(&facts.name), line(source)),
    }
}

/// As one line that no terminal obeys; what turns the direction of text is shown too.
fn line(words: &str) -> String {
    text::reveal(words).replace(['\n', '\r', '\t'], " ")
}
