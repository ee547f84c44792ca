//! First-run setup card, with one row per setting and the details of the current row.

use super::dialog_kind::{DialogKind, HintState};
use super::{Body, Choice, ChoiceAction, Dialog, DialogAnswer, Note, choice};
use crate::protocol::{ApprovalsChoice, FileDiffs, FoundModel, ModelAddress, TestOutcome};
use crate::text;
use crate::tui::composer::TextField;
use crate::tui::layers::SAMPLE;
use crate::tui::onboarding::{ModelChoice, Onboarding, SetupChoice, SetupPage, SetupRow, TestState, TypedInput, TypedLine};
use crate::tui::theme::Token;
use crate::tui::typeahead_guard::Confirm;
use std::borrow::Cow;

/// Maximum number of asterisks shown while an API key is typed.
const SIGNS: usize = 24;
/// Number of trailing characters shown of a long API key.
const TAIL: usize = 4;
/// Width, in cells, of the column that names the settings.
const NAME: usize = 11;
/// Marker shown before the current row.
const MARK: &str = "▸";

impl Onboarding {
    pub(crate) fn panel(self: Box<Self>) -> Dialog {
        let (title, reason, choices, body, words) = (self.title(), self.reason(), self.choices(), self.body(), self.field());
        let panel = Dialog::new(self, title, reason, choices, body).in_full_height();
        Dialog { words, ..panel }
    }

    /// Returns the line field of the page, if it has one. API keys are masked.
    pub(crate) fn field(&self) -> Option<TextField> {
        let SetupPage::Typing(typing) = &self.page else { return None };
        let mut field = TextField::new();
        match typing.what {
            TypedInput::Address => field.insert(&text::reveal(&typing.text.0)),
            TypedInput::Key | TypedInput::AddressKey => field.insert(&"*".repeat(typing.text.0.chars().count().min(SIGNS))),
        }
        Some(field)
    }

    pub(crate) fn title(&self) -> String {
        match &self.page {
            SetupPage::Card => "Set up aye".to_owned(),
            SetupPage::Typing(TypedLine { what: TypedInput::Key, .. }) => "API key".to_owned(),
            SetupPage::Typing(TypedLine { what: TypedInput::Address, .. }) => "Your own model server".to_owned(),
            SetupPage::Typing(TypedLine { what: TypedInput::AddressKey, .. }) => "API key for that server (optional)".to_owned(),
        }
    }

    pub(crate) fn reason(&self) -> String {
        match &self.page {
            SetupPage::Card => "Nothing is saved until you press y, then enter.".to_owned(),
            SetupPage::Typing(TypedLine { what: TypedInput::Address, .. }) => {
                "any server with the Chat Completions API; only the address is checked".to_owned()
            }
            SetupPage::Typing(_) => "your input is hidden, and nothing is saved yet".to_owned(),
        }
    }

    fn choices(&self) -> Vec<Choice> {
        let pick = |letter, pick: SetupChoice, words: &str, short: &'static str| {
            // Saving the settings needs a second key.
            let confirm = if pick == SetupChoice::Save { Confirm::LetterThenEnter } else { Confirm::Letter };
            choice(letter, confirm, ChoiceAction::Setup(pick), words.to_owned(), short)
        };
        match &self.page {
            SetupPage::Card => vec![
                pick('y', SetupChoice::Save, "save these settings", "save"),
                pick('k', SetupChoice::Key, "enter an API key", "API key"),
                pick('u', SetupChoice::Address, "use another server, by its address", "server"),
                pick('t', SetupChoice::Test, "test the model: send one small request", "test"),
                pick('s', SetupChoice::Skip, "skip: change nothing", "skip"),
            ],
            SetupPage::Typing(_) => Vec::new(),
        }
    }

    pub(crate) fn body(&self) -> Body {
        let mut notes = Vec::new();
        match &self.page {
            SetupPage::Card => {
                notes.extend(self.row_notes());
                notes.extend(self.problem.iter().map(|problem| Note::new(text::reveal_rows(problem), Token::Danger)));
                if self.waits {
                    notes.push(Note::new("Saving…".to_owned(), Token::Muted));
                }
                notes.extend(self.details().into_iter().map(|words| Note::new(words, Token::Muted)));
            }
            SetupPage::Typing(typing) => {
                let words = self.typing_text(typing);
                notes.extend(words.split('\n').map(|line| Note::new(text::reveal_line(line), Token::Text)));
                notes.extend(self.problem.iter().map(|problem| Note::new(text::reveal_rows(problem), Token::Danger)));
                notes.extend(self.row_notes());
            }
        }
        let is_sample = matches!(self.page, SetupPage::Card) && self.current_row() == SetupRow::Theme;
        let diff = if is_sample { FileDiffs::read(SAMPLE) } else { FileDiffs::default() };
        Body::sample(notes, &diff)
    }

    /// Returns a one-row paragraph for each row of the card.
    fn row_notes(&self) -> Vec<Note> {
        let current = Some(self.current_row()).filter(|_| matches!(self.page, SetupPage::Card));
        let note = |row: SetupRow| {
            let (name, value) = self.row_text(row);
            let (mark, token) = if current == Some(row) { (MARK, Token::Accent) } else { (" ", Token::Text) };
            Note::on_one_row(format!("{mark} {name:NAME$}{value}"), token)
        };
        self.rows().into_iter().map(note).collect()
    }

    /// Returns a setting's name and its displayed value.
    fn row_text(&self, row: SetupRow) -> (&'static str, String) {
        match row {
            SetupRow::Model => ("model", self.model_text()),
            SetupRow::Approvals => {
                let note = |choice: &ApprovalsChoice| match (self.approvals, choice.suggested) {
                    (None, _) => " · current",
                    (Some(_), true) => " · suggested",
                    (Some(_), false) => "",
                };
                let value = self.visible_approvals().map(|choice| text::reveal_line(&choice.title) + note(choice));
                ("approvals", value.unwrap_or_else(|| "no change".to_owned()))
            }
            SetupRow::ModelList => (
                "model list",
                if self.looks_daily { "check daily for a new list" } else { "built-in; no daily check" }.to_owned(),
            ),
            SetupRow::Theme => ("theme", self.themes.get(self.theme).map_or("auto".to_owned(), |name| text::reveal_line(name))),
        }
    }

    /// Returns the chosen approvals, or else the configured ones.
    fn visible_approvals(&self) -> Option<&ApprovalsChoice> {
        let is_visible = |(at, choice): &(usize, &ApprovalsChoice)| match self.approvals {
            Some(chosen) => *at == chosen,
            None => self.found.approvals_now.as_ref() == Some(&choice.name),
        };
        self.found.approvals.iter().enumerate().find(is_visible).map(|(_, choice)| choice)
    }

    fn model_text(&self) -> String {
        match self.model {
            ModelChoice::Keep => match &self.found.model_now {
                Some(model) => format!("{} · current", text::reveal_line(model)),
                None => "none; choose one later".to_owned(),
            },
            ModelChoice::Found(at) => self.found.models.get(at).map_or_else(String::new, |found| {
                format!("{} · {}", text::reveal_line(&found.model), text::reveal_line(&found.by))
            }),
            ModelChoice::Own => self.own.as_ref().map(own_text).unwrap_or_default(),
        }
    }

    /// Returns the lines with details about the current row.
    fn details(&self) -> Vec<String> {
        let mut lines = match self.current_row() {
            SetupRow::Model => self.model_details(),
            SetupRow::Approvals => {
                let about = self.visible_approvals().map(|choice| text::reveal_line(&choice.words));
                let stricter = "A stricter rule in a policy takes precedence. `/mode` changes the mode for one session.";
                about.into_iter().chain([stricter.to_owned(), text::reveal_line(&self.found.sandbox)]).collect()
            }
            SetupRow::ModelList => {
                let list = self.found.public_list.as_deref().map(text::reveal_line).unwrap_or_default();
                vec![format!(
                    "aye has a built-in list of models with their context windows and prices. It can check once a day whether \
                     the public list {list} has changed, and notify you. Nothing is updated without your approval: \
                     `aye models update` shows the changes and asks."
                )]
            }
            SetupRow::Theme => Vec::new(),
        };
        // `t` works in every row.
        if self.current_row() != SetupRow::Model {
            lines.splice(0..0, self.test_lines());
        }
        lines.extend(self.found.other_agents.iter().map(|found| text::reveal_line(found)));
        lines
    }

    fn model_details(&self) -> Vec<String> {
        let own = self.own.as_ref().filter(|_| self.model == ModelChoice::Own);
        let mut lines = own.map(own_details).unwrap_or_default();
        if matches!(self.test, TestState::Not) && self.model == ModelChoice::Own {
            lines.push("Not tested yet.".to_owned());
        }
        lines.extend(self.test_lines());
        let has_key = self.own.as_ref().is_some_and(|own| own.key.is_some());
        if self.model == ModelChoice::Own && has_key {
            lines.push(format!("The key will be saved in {}.", text::reveal_line(&self.found.keys_go_to)));
        }
        lines.extend(self.other_models());
        if self.found.models.is_empty() {
            lines.push(
                "No API key was found in the environment, and no model server on this machine. `aye demo` shows a complete \
                 session without either."
                    .to_owned(),
            );
        }
        lines
    }

    /// Returns the other models that were found, one per line, and the providers for which no API key was found.
    fn other_models(&self) -> Vec<String> {
        let models = self.found.models.iter().enumerate().filter(|(at, _)| self.model != ModelChoice::Found(*at));
        let describe = |found: &FoundModel| format!("{} · {}", text::reveal_line(&found.model), text::reveal_line(&found.by));
        let mut lines: Vec<String> = models.map(|(_, found)| format!("Also found: {}", describe(found))).collect();
        let has_key = |provider: &str| self.found.models.iter().any(|found| found.model.split('/').next() == Some(provider));
        let providers = self.found.providers.iter().filter(|provider| !has_key(&provider.by));
        let names: Vec<String> = providers.map(|provider| text::reveal_line(&provider.by)).collect();
        if !names.is_empty() && !self.found.models.is_empty() {
            lines.push(format!("No key found for {}. `k` adds one.", names.join(", ")));
        }
        lines
    }

    /// Returns the state or the result of the test of the model.
    fn test_lines(&self) -> Vec<String> {
        match &self.test {
            TestState::Not => Vec::new(),
            TestState::Runs => vec!["Testing: one small request was sent…".to_owned()],
            TestState::Done(TestOutcome::Answered { model, latency_ms }) => {
                vec![format!("It works: {} responded in {latency_ms} ms.", text::reveal_line(model))]
            }
            TestState::Done(TestOutcome::Failed { message }) => {
                ["The test failed:".to_owned()].into_iter().chain(message.lines().map(text::reveal_line)).collect()
            }
        }
    }

    fn typing_text(&self, typing: &TypedLine) -> String {
        let letters = typing.text.0.trim().chars().count();
        let counted = if letters == 1 { "1 character".to_owned() } else { format!("{letters} characters") };
        match (typing.what, typing.provider.and_then(|at| self.found.providers.get(at))) {
            (TypedInput::Address, _) => {
                "Example: http://localhost:8000/v1 my-model. Without a model name, the server's first model is used.".to_owned()
            }
            (TypedInput::AddressKey, _) if letters == 0 => "Press Enter to leave it empty.".to_owned(),
            (TypedInput::AddressKey, _) => format!("{counted}\n{}", self.keep_label()),
            (TypedInput::Key, _) if letters == 0 => {
                format!("Paste or type the key. Its prefix identifies the provider.\n{}", self.keep_label())
            }
            (TypedInput::Key, Some(FoundModel { by, model })) => {
                let how = if typing.is_said { "" } else { " (detected)" };
                format!("{counted} · {by}{how} · left right change\nmodel: {model}\n{}", self.keep_label())
            }
            (TypedInput::Key, None) => format!("{counted} · which provider? left right choose\n{}", self.keep_label()),
        }
    }

    fn keep_label(&self) -> String {
        format!("will be saved in {}", self.found.keys_go_to)
    }
}

impl DialogKind for Onboarding {
    fn answer(&mut self, _act: ChoiceAction, _reason: Option<String>) -> Option<DialogAnswer> {
        None
    }

    fn shows_sample(&self) -> bool {
        true
    }

    fn field_when_armed(&self, _current: Option<TextField>) -> Option<TextField> {
        self.field()
    }

    fn field_label(&self) -> Cow<'_, str> {
        match &self.page {
            SetupPage::Typing(TypedLine { what: TypedInput::Address, .. }) => "address: ".into(),
            SetupPage::Typing(_) | SetupPage::Card => "key: ".into(),
        }
    }

    fn key_hints(&self, state: HintState) -> Option<Vec<&'static str>> {
        Some(hints(self, state.is_arming))
    }
}

/// Rebuilds the dialog from the current setup page.
pub(crate) fn refresh_setup(panel: &mut Dialog) {
    let Some(setup) = panel.kind.find::<Onboarding>() else { return };
    let row = setup.rows().iter().position(|row| *row == setup.current_row()).unwrap_or(0);
    let is_card = matches!(setup.page, SetupPage::Card);
    (panel.title, panel.reason, panel.body, panel.words) = (setup.title(), setup.reason(), setup.body(), setup.field());
    // The details of another row must be shown before saving.
    (panel.view.seen, panel.view.saw_all) = (0, false);
    if is_card && panel.view.shown > 0 {
        panel.view.top = panel.view.top.clamp((row + 1).saturating_sub(panel.view.shown), row);
    }
}

/// Returns the key hints for the current page, most useful first.
fn hints(onboarding: &Onboarding, is_arming: bool) -> Vec<&'static str> {
    match &onboarding.page {
        SetupPage::Typing(TypedLine { what: TypedInput::Key, .. }) => {
            vec!["enter next", "esc back", "left right provider", "ctrl+u clear"]
        }
        SetupPage::Typing(_) => vec!["enter next", "esc back", "ctrl+u clear"],
        _ if is_arming => vec!["just opened: keys only highlight", "esc close"],
        SetupPage::Card => vec!["up down row", "left right change", "esc close"],
    }
}

/// Describes a model that the user entered: its server or name, and its API key.
fn own_text(own: &ModelAddress) -> String {
    let key = own.key.as_ref().map_or_else(|| "no key".to_owned(), |key| format!("key: {}", describe_key(&key.0)));
    let model = text::reveal_line(&own.model);
    match &own.address {
        Some(address) if own.model.is_empty() => format!("first model of {} · {key}", text::reveal_line(address)),
        Some(address) => format!("{model} at {} · {key}", text::reveal_line(address)),
        None => format!("{model} · {key}"),
    }
}

/// Returns the server, name and API key of a model that the user entered, one per line.
fn own_details(own: &ModelAddress) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(own.address.as_deref().map(|address| format!("Server: {}", text::reveal_line(address))));
    if !own.model.is_empty() {
        lines.push(format!("Model: {}", text::reveal_line(&own.model)));
    }
    lines.extend(own.key.as_ref().map(|key| format!("Key: {}", describe_key(&key.0))));
    lines
}

/// Describes an API key, such as `51 characters, …k3f9`. For a short key, only its length is given.
fn describe_key(key: &str) -> String {
    let count = key.chars().count();
    let tail: String = key.chars().skip(count.saturating_sub(TAIL)).collect();
    if count > 4 * TAIL { format!("{count} characters, …{tail}") } else { format!("{count} characters") }
}
