//! List of models, with their limits and prices and, for unavailable models, the reasons why they cannot be used.

use super::{Canvas, LayerContext, LayerRequest, Reaction, ScreenLayer};
use crate::protocol::{Effort, ListedModel, ModelFacts, Price, SecretString};
use crate::text;
use crate::tui::format::{dollars, tokens};
use crate::tui::onboarding::provider_of_key;
use crate::tui::picker::{Column, Picker, PickerResult, Row};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

const COLUMNS: &[Column] = &[
    Column { head: "model", is_number: false, rank: 0 },
    Column { head: "provider", is_number: false, rank: 2 },
    Column { head: "context", is_number: true, rank: 1 },
    Column { head: "in $/M", is_number: true, rank: 3 },
    Column { head: "out $/M", is_number: true, rank: 3 },
];

pub(crate) struct ModelPicker {
    picker: Picker,
    listed: Vec<ListedModel>,
    /// Number of model lists that have been requested but have not arrived yet.
    due: u8,
    /// Name of the current model. `in_use` contains its facts, because the requested lists may not include it.
    current: String,
    in_use: Option<ModelFacts>,
    /// Reasoning effort: the level chosen in this list or, by default, the current level.
    effort: Option<Effort>,
    before: Option<Effort>,
    /// API key that the user is entering, if any.
    key: Option<TypedKey>,
    /// Whether the screen had room for a preview in the last frame. Otherwise, the details are a single line.
    has_preview: bool,
}

/// API key as entered so far. It is never displayed and not stored anywhere else.
struct TypedKey {
    /// Name of the model for which the API key is entered.
    name: String,
    typed: SecretString,
}

/// Maximum length of an API key, in bytes. Anything longer is probably a file that was pasted by mistake.
const KEY_BYTES: usize = 8 << 10;
/// Minimum screen width, in cells, for showing details beside the list. The columns of the list need more than half of it.
const PREVIEW_WIDTH: u16 = 160;

impl ModelPicker {
    /// Creates the list. Two lists of models are expected to arrive: the known ones, and those that the providers
    /// offer.
    pub(crate) fn new(current: &str, in_use: Option<ModelFacts>, effort: Option<Effort>) -> Self {
        let mut picker = Self {
            picker: Picker::new("Models", COLUMNS),
            listed: Vec::new(),
            due: 2,
            current: current.to_owned(),
            in_use: in_use.filter(|facts| !current.is_empty() && facts.name == current),
            effort,
            before: effort,
            key: None,
            has_preview: false,
        };
        picker.refresh();
        picker
    }

    /// Adds the models from a list that has arrived. Models that are already present are updated; others are appended.
    pub(crate) fn add_models(&mut self, models: Vec<ListedModel>, notices: &[String]) {
        let first = self.listed.is_empty();
        self.due = self.due.saturating_sub(1);
        for model in models {
            match self.listed.iter_mut().find(|known| known.facts.name == model.facts.name) {
                Some(known) => *known = model,
                None => self.listed.push(model),
            }
        }
        if let Some(facts) = self.in_use.take().filter(|facts| !self.listed.iter().any(|known| known.facts.name == facts.name)) {
            self.listed.insert(0, ListedModel { facts, source: "in use".to_owned(), ..ListedModel::default() });
        }
        if first {
            // Usable models come first. Otherwise the order does not change.
            self.listed.sort_by_key(|model| model.lacks.is_some());
        }
        self.picker.set_notices(notices.iter().map(|notice| line(notice)).collect());
        self.refresh();
        if first {
            let at = self.key.as_ref().map_or(&self.current, |key| &key.name).clone();
            self.picker.highlight(&at);
        }
    }

    /// Returns the name of a model from the provider to which the API key belongs, preferably the highlighted model.
    /// Returns `None` if the provider is unknown or has no model in the list.
    fn model_for(&self, key: &str) -> Option<String> {
        let provider = provider_of_key(key)?;
        let is_of = |model: &&ListedModel| model.facts.name.split('/').next() == Some(provider);
        self.highlighted().filter(is_of).or_else(|| self.listed.iter().find(is_of)).map(|model| model.facts.name.clone())
    }

    /// Asks for the API key of the model called `name`, even if the model is not in the list.
    pub(crate) fn ask_for_model_key(&mut self, name: &str) {
        self.key = Some(TypedKey { name: name.to_owned(), typed: SecretString::default() });
        self.show_key();
    }

    /// Asks for an API key if that is what the highlighted model lacks. Otherwise, shows the reason why the model
    /// cannot be used.
    fn ask_for_key(&mut self, why: &str) -> Reaction {
        let Some(name) = self.highlighted().filter(|model| model.key_of.is_some()).map(|model| model.facts.name.clone()) else {
            return Reaction::Request(LayerRequest::ShowToast(format!("model not changed: {why} first")));
        };
        self.key = Some(TypedKey { name, typed: SecretString::default() });
        self.show_key();
        Reaction::Done
    }

    /// Handles a key press while the user is entering an API key.
    fn on_key_of_key(&mut self, pressed: KeyEvent) -> Reaction {
        let Some(key) = &mut self.key else { return Reaction::Done };
        let ctrl = pressed.modifiers.contains(KeyModifiers::CONTROL);
        match pressed.code {
            KeyCode::Esc => self.key = None,
            KeyCode::Char('c') if ctrl => self.key = None,
            KeyCode::Enter if !key.typed.0.trim().is_empty() => {
                let TypedKey { name, typed } = TypedKey { name: key.name.clone(), typed: std::mem::take(&mut key.typed) };
                return Reaction::CloseWith(LayerRequest::SaveKey { name, key: typed });
            }
            KeyCode::Backspace => {
                key.typed.0.pop();
            }
            KeyCode::Char('u') if ctrl => key.typed.0.clear(),
            KeyCode::Char('z') if ctrl => return Reaction::Pass,
            KeyCode::Char(letter) if !ctrl && key.typed.0.len() < KEY_BYTES => key.typed.0.push(letter),
            _ => {}
        }
        self.show_key();
        Reaction::Done
    }

    /// Shows one asterisk per character of the API key, so the user can see that a paste has arrived.
    fn show_key(&mut self) {
        self.picker.asked = self.key.as_ref().map(|key| {
            let known = self.listed.iter().find(|model| model.facts.name == key.name).and_then(|model| model.key_of.clone());
            let whose = known.unwrap_or_else(|| key.name.split('/').next().unwrap_or_default().to_owned());
            let signs = "*".repeat(key.typed.0.chars().count());
            (format!("API key of {}: ", line(&whose)), signs)
        });
        self.update_hint();
    }

    /// Returns the highlighted model, if there is one.
    pub(crate) fn highlighted(&self) -> Option<&ListedModel> {
        let key = &self.picker.highlighted()?.key;
        self.listed.iter().find(|model| model.facts.name == *key)
    }

    /// Raises or lowers the reasoning effort by `by` levels, among the levels that the highlighted model supports.
    fn turn_effort(&mut self, by: isize) {
        let Some(facts) = self.highlighted().map(|model| &model.facts) else { return };
        let efforts = facts.supported_efforts();
        let at = self.effort.and_then(|effort| facts.nearest_effort(effort));
        let at = at.and_then(|effort| efforts.iter().position(|one| *one == effort));
        let to = match at {
            Some(at) => at.saturating_add_signed(by),
            None if by > 0 => 0,
            None => return,
        };
        self.effort = efforts.get(to).or(efforts.last()).copied();
        self.update_hint();
    }

    fn refresh(&mut self) {
        let rows = self.listed.iter().map(|model| row(model, model.facts.name == self.current, self.has_preview)).collect();
        self.picker.set_rows(rows);
        self.update_hint();
    }

    fn update_hint(&mut self) {
        if self.key.is_some() {
            "enter save key · esc back".clone_into(&mut self.picker.aside);
            return;
        }
        if self.highlighted().is_some_and(|model| model.key_of.is_some()) {
            "enter add its API key".clone_into(&mut self.picker.aside);
            return;
        }
        let facts = self.highlighted().map(|model| &model.facts).filter(|facts| !facts.supported_efforts().is_empty());
        // Effort that the model would use, which may differ from the chosen level.
        let effort = facts.map(|facts| match self.effort.and_then(|effort| facts.nearest_effort(effort)) {
            Some(effort) => format!("effort {} · left right change", effort.as_str()),
            None => "right set effort".to_owned(),
        });
        let asks = (self.due > 0).then(|| "loading models".to_owned());
        self.picker.aside = effort.into_iter().chain(asks).collect::<Vec<_>>().join(", ");
    }
}

impl ScreenLayer for ModelPicker {
    fn list(&mut self) -> Option<&mut Picker> {
        Some(&mut self.picker)
    }

    fn key(&mut self, key: KeyEvent, _around: LayerContext) -> Reaction {
        if self.key.is_some() {
            return self.on_key_of_key(key);
        }
        let turn = match key.code {
            KeyCode::Left => -1,
            KeyCode::Right => 1,
            _ => 0,
        };
        if turn != 0 {
            if self.highlighted().is_some_and(|model| model.facts.reasoning) {
                self.turn_effort(turn);
            }
            return Reaction::Done;
        }
        let picked = self.picker.key(key);
        // The newly highlighted model may have no effort levels.
        self.update_hint();
        match picked {
            PickerResult::Nothing => Reaction::Done,
            PickerResult::Closed => Reaction::Close,
            PickerResult::Refused(why) => self.ask_for_key(&why),
            // This key opens the list, and closes it again.
            PickerResult::Other if key.code == KeyCode::Char('l') && key.modifiers.contains(KeyModifiers::CONTROL) => {
                Reaction::Close
            }
            PickerResult::Other => Reaction::Pass,
            PickerResult::Chosen(name) => {
                let takes = self.highlighted().is_some_and(|model| model.facts.reasoning);
                let effort = self.effort.filter(|_| takes && self.effort != self.before);
                Reaction::CloseWith(LayerRequest::UseModel { name, effort })
            }
        }
    }

    /// Handles pasted text as part of the API key being entered, as a new API key, or as filter text.
    fn paste(&mut self, words: &str) -> Reaction {
        if self.key.is_none() && provider_of_key(words).is_some() {
            // An API key is never shown, wherever it is pasted.
            let Some(name) = self.model_for(words) else {
                "this looks like an API key; highlight a model from its provider and press enter"
                    .clone_into(&mut self.picker.aside);
                return Reaction::Done;
            };
            self.picker.highlight(&name);
            self.ask_for_model_key(&name);
        }
        match &mut self.key {
            Some(key) => {
                let room = KEY_BYTES.saturating_sub(key.typed.0.len());
                key.typed.0.extend(words.trim().chars().filter(|letter| !letter.is_control()).take(room));
                self.show_key();
            }
            None => self.picker.insert(words),
        }
        Reaction::Done
    }

    fn draw(&mut self, area: Rect, buffer: &mut Buffer, canvas: &Canvas<'_>) -> Option<Position> {
        let has_preview = area.width >= PREVIEW_WIDTH;
        if has_preview != self.has_preview {
            self.has_preview = has_preview;
            self.refresh();
        }
        Some(self.picker.draw(area, buffer, canvas.theme, canvas.glyphs))
    }

    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        if self.key.is_some() {
            return vec!["enter save key", "esc back"];
        }
        vec!["enter select", "esc close", "up down move", "type to filter"]
    }
}

fn row(model: &ListedModel, is_current: bool, has_preview: bool) -> Row {
    let ListedModel { facts, lacks, .. } = model;
    let (provider, name) = facts.name.split_once('/').unwrap_or(("", facts.name.as_str()));
    let price = |of: fn(&Price) -> f64| facts.price.map_or_else(|| "?".to_owned(), |price| dollars(of(&price)));
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
        detail: if has_preview { preview(model) } else { summary(model) },
    }
}

/// Returns a model's details on one line, without those that the list shows.
fn summary(model: &ListedModel) -> String {
    let facts = &model.facts;
    let output = facts.max_output_tokens.map(|most| format!(", max output {}", tokens(most))).unwrap_or_default();
    let images = if facts.images { ", accepts images" } else { "" };
    let efforts = efforts(facts).map(|efforts| format!(", {efforts}")).unwrap_or_default();
    format!("{}: {}{output}{images}{efforts}", line(&facts.name), line(&model.source))
}

/// Returns a model's details, several lines long.
fn preview(model: &ListedModel) -> String {
    let facts = &model.facts;
    let mut lines = vec![format!("{}: {}", line(&facts.name), line(&model.source)), String::new()];
    let output = facts.max_output_tokens.map(|most| format!(", at most {} of output", tokens(most))).unwrap_or_default();
    lines.push(format!("context window {} tokens{output}", tokens(facts.context_window)));
    lines.push(match (facts.price, &facts.price_elsewhere) {
        (Some(price), _) => {
            let assumed = if facts.price_is_assumed { ", as you assumed" } else { "" };
            format!("{} in, {} out per million tokens{assumed}", dollars(price.input), dollars(price.output))
        }
        (None, Some(other)) => {
            let Price { input, output, .. } = other.price;
            format!("price unknown; {} in, {} out as {}", dollars(input), dollars(output), line(&other.model))
        }
        (None, None) => "price unknown".to_owned(),
    });
    lines.extend(
        facts
            .price
            .filter(|price| price.cache_read > 0.0)
            .map(|price| format!("{} per million tokens read from the cache", dollars(price.cache_read))),
    );
    lines.push(efforts(facts).unwrap_or_else(|| "no reasoning effort".to_owned()));
    lines.extend(facts.tools.map(|tools| if tools { "calls tools" } else { "cannot call tools" }.to_owned()));
    lines.push(if facts.images { "accepts images" } else { "text only" }.to_owned());
    lines.extend(model.verified.as_deref().map(|date| format!("checked on {}", line(date))));
    lines.join("\n")
}

/// Returns the reasoning efforts that a model supports, if there are any: `effort low medium high`.
fn efforts(facts: &ModelFacts) -> Option<String> {
    let efforts = facts.supported_efforts();
    let names = efforts.iter().map(|effort| effort.as_str()).collect::<Vec<_>>().join(" ");
    (!efforts.is_empty()).then(|| format!("effort {names}"))
}

/// Returns the text on one line, with control and bidirectional characters made visible.
fn line(words: &str) -> String {
    text::reveal(words).replace(['\n', '\r', '\t'], " ")
}
