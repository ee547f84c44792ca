//! Dialogs of the first-time setup.

use super::dialog_kind::{DialogKind, HintState};
use super::{Body, Choice, ChoiceAction, Dialog, DialogAnswer, Note, choice};
use crate::protocol::{FileDiffs, FoundModel, ModelAddress, TestOutcome};
use crate::text;
use crate::tui::composer::TextField;
use crate::tui::layers::SAMPLE;
use crate::tui::onboarding::{Onboarding, SetupChoice, SetupPage, TestState, TypedInput, TypedLine};
use crate::tui::theme::Token;
use crate::tui::typeahead_guard::Confirm;
use std::borrow::Cow;

/// Maximum number of asterisks shown for a key, next to its length.
const SIGNS: usize = 24;
/// Number of characters shown from the end of a long key.
const TAIL: usize = 4;

impl Onboarding {
    pub(crate) fn panel(self: Box<Self>) -> Dialog {
        let (title, reason, choices, body, words) = (self.title(), self.reason(), self.choices(), self.body(), self.field());
        let panel = Dialog::new(self, title, reason, choices, body).in_full_height();
        Dialog { words, ..panel }
    }

    /// Returns the line field. A key in it is masked.
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
            SetupPage::Models => "Which model do you want to use?".to_owned(),
            SetupPage::Typing(TypedLine { what: TypedInput::Key, .. }) => "API key".to_owned(),
            SetupPage::Typing(TypedLine { what: TypedInput::Address, .. }) => "Your own model server".to_owned(),
            SetupPage::Typing(TypedLine { what: TypedInput::AddressKey, .. }) => "API key for that server (optional)".to_owned(),
            SetupPage::Model(reach) => match &reach.address {
                Some(address) => format!("Use the server at {}?", text::reveal_line(address)),
                None => format!("Use {}?", text::reveal_line(&reach.model)),
            },
            SetupPage::Approvals => "What should aye ask about?".to_owned(),
            SetupPage::ModelList => "Check daily for a new list of models?".to_owned(),
        }
    }

    pub(crate) fn reason(&self) -> String {
        match &self.page {
            SetupPage::Models => format!("{} · nothing is sent or saved until you confirm", self.place()),
            SetupPage::Typing(TypedLine { what: TypedInput::Address, .. }) => {
                format!("{} · any server with the Chat Completions API; only the address is checked", self.place())
            }
            SetupPage::Typing(_) => format!("{} · your input is hidden, and nothing is saved yet", self.place()),
            SetupPage::Model(_) => format!("{} · nothing is saved yet", self.place()),
            SetupPage::Approvals => format!("{} · press enter to keep the current setting", self.place()),
            SetupPage::ModelList => format!("{} · press enter for no; nothing is fetched unless you choose it", self.place()),
        }
    }

    /// Returns the position of the page: `setup 1 of 3`.
    fn place(&self) -> String {
        let number = match &self.page {
            SetupPage::Models | SetupPage::Typing(_) | SetupPage::Model(_) => 1,
            SetupPage::Approvals => 2,
            SetupPage::ModelList => 3,
        };
        format!("setup {number} of {}", if self.found.public_list.is_some() { 3 } else { 2 })
    }

    fn choices(&self) -> Vec<Choice> {
        let skip = if self.found.model_now.is_some() { "skip: keep the current model" } else { "skip: choose a model later" };
        let pick = |letter, pick, words: String, short: &'static str| {
            choice(letter, Confirm::Letter, ChoiceAction::Setup(pick), words, short)
        };
        match &self.page {
            SetupPage::Models => {
                let models = self.found.models.iter().take(9).zip('1'..).enumerate();
                let models = models.map(|(at, (found, digit))| {
                    let words = format!("{} · {}", text::reveal_line(&found.model), text::reveal_line(&found.by));
                    let name = found.model.rsplit('/').next().unwrap_or_default();
                    let short = text::truncate(&text::reveal_line(name), 20).into_owned();
                    let choice = choice(digit, Confirm::LetterThenEnter, ChoiceAction::Setup(SetupChoice::Model(at)), words, "");
                    Choice { short: short.into(), ..choice }
                });
                let others = [
                    pick('k', SetupChoice::Key, "paste an API key".to_owned(), "API key"),
                    pick('u', SetupChoice::Address, "another server, by its address".to_owned(), "server"),
                    pick('s', SetupChoice::Skip, skip.to_owned(), "skip"),
                ];
                models.chain(others).collect()
            }
            SetupPage::Typing(_) => Vec::new(),
            SetupPage::Model(_) => vec![
                pick('y', SetupChoice::Take, "use it here and in new sessions".to_owned(), "use it"),
                pick('t', SetupChoice::Test, "test: send one small request".to_owned(), "test"),
                pick('b', SetupChoice::Back, "back to the list".to_owned(), "back"),
            ],
            SetupPage::Approvals => {
                let choices = self.found.approvals.iter().zip('1'..).enumerate().map(|(at, (found, digit))| {
                    let suggested = if found.suggested { " · suggested" } else { "" };
                    let words = format!("{}{suggested}", text::reveal_line(&found.title));
                    let choice =
                        choice(digit, Confirm::LetterThenEnter, ChoiceAction::Setup(SetupChoice::Approvals(at)), words, "");
                    Choice { short: text::reveal_line(&found.name).into(), ..choice }
                });
                choices.chain([pick('s', SetupChoice::Skip, "skip: keep the current setting".to_owned(), "skip")]).collect()
            }
            SetupPage::ModelList => {
                let words = "yes: check once a day, and notify me of changes".to_owned();
                let yes = choice('y', Confirm::LetterThenEnter, ChoiceAction::Setup(SetupChoice::LookDaily), words, "yes");
                vec![yes, pick('n', SetupChoice::Skip, "no: use the built-in list".to_owned(), "no")]
            }
        }
    }

    pub(crate) fn body(&self) -> Body {
        let mut words = match &self.page {
            SetupPage::Models => self.models_text(),
            SetupPage::Typing(typing) => self.typing_text(typing),
            SetupPage::Model(reach) => self.model_text(reach),
            SetupPage::Approvals => return self.approvals_body(),
            SetupPage::ModelList => self.model_list_text(),
        };
        if let Some(problem) = &self.problem {
            words = format!("{words}\n\n{problem}");
        }
        Body::from_text(words)
    }

    fn models_text(&self) -> String {
        let now = match &self.found.model_now {
            Some(model) => format!("New sessions use {model}.\n"),
            None => "No model is set up yet.\n".to_owned(),
        };
        let found = if self.found.models.is_empty() {
            "No API key was found in the environment, and no model server on this machine. `aye demo` shows a complete session without either."
        } else {
            "The numbered models below were found in the environment, in saved keys, or on this machine."
        };
        format!("{now}{found}")
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

    fn model_text(&self, reach: &ModelAddress) -> String {
        let mut lines = vec![match &self.test {
            _ if self.waits => "Saving…".to_owned(),
            TestState::Not => "Not tested yet.".to_owned(),
            TestState::Runs => "Testing: one small request was sent…".to_owned(),
            TestState::Done(TestOutcome::Answered { model, latency_ms }) => {
                format!("It works: {model} responded in {latency_ms} ms.")
            }
            TestState::Done(TestOutcome::Failed { message }) => format!("The test failed:\n{message}\n"),
        }];
        if let Some(address) = &reach.address {
            let model = if reach.model.is_empty() { "the first model that the server lists" } else { &reach.model };
            lines.push(format!("address  {address}\nmodel    {model}"));
        }
        match &reach.key {
            Some(key) => lines.push(format!("key      {}; will be saved in {}", describe_key(&key.0), self.found.keys_go_to)),
            None if reach.address.is_some() => lines.push("key      none".to_owned()),
            None => {
                let found = self.found.models.iter().find(|found| found.model == reach.model);
                lines.extend(found.map(|found| format!("source   {}", found.by)));
            }
        }
        lines.join("\n")
    }

    fn model_list_text(&self) -> String {
        let list = self.found.public_list.as_deref().map(text::reveal_line).unwrap_or_default();
        let words = format!(
            "aye has a built-in list of models with their context windows and prices. It can check once a day whether the public \
             list {list} has changed, and notify you. Nothing is updated without your approval: `aye models update` shows the \
             changes and asks."
        );
        if self.waits { format!("{words}\n\nSaving…") } else { words }
    }

    fn approvals_body(&self) -> Body {
        let mut notes = Vec::new();
        for found in &self.found.approvals {
            let is_now = self.found.approvals_now.as_ref() == Some(&found.name);
            let mark = if is_now {
                " · current"
            } else if found.suggested {
                " · suggested"
            } else {
                ""
            };
            notes.push(Note::new(format!("{}{mark}", text::reveal_line(&found.title)), Token::Heading));
            notes.push(Note::new(text::reveal_line(&found.words), Token::Text));
        }
        let words = "A stricter rule in a policy takes precedence. `/mode` changes the mode for one session.";
        notes.push(Note::new(words.to_owned(), Token::Muted));
        notes.push(Note::new(text::reveal_line(&self.found.sandbox), Token::Muted));
        notes.extend(self.found.other_agents.iter().map(|found| Note::new(text::reveal_line(found), Token::Muted)));
        if let Some(problem) = &self.problem {
            notes.push(Note::new(text::reveal_rows(problem), Token::Danger));
        } else if self.waits {
            notes.push(Note::new("Saving…".to_owned(), Token::Muted));
        }
        let theme = self.themes.get(self.theme).map_or("auto", String::as_str);
        notes.push(Note::new(format!("theme {} · left right change", text::reveal_line(theme)), Token::Heading));
        Body::sample(notes, &FileDiffs::read(SAMPLE))
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
            SetupPage::Typing(_) | SetupPage::Models | SetupPage::Model(_) | SetupPage::Approvals | SetupPage::ModelList => {
                "key: ".into()
            }
        }
    }

    fn key_hints(&self, state: HintState) -> Option<Vec<&'static str>> {
        Some(hints(self, state.is_arming))
    }
}

/// Rebuilds the content of the current page.
pub(crate) fn refresh_setup(panel: &mut Dialog) {
    let Some(setup) = panel.kind.find::<Onboarding>() else { return };
    (panel.title, panel.reason, panel.body, panel.words) = (setup.title(), setup.reason(), setup.body(), setup.field());
}

/// Returns the current key hints, most likely first.
fn hints(onboarding: &Onboarding, is_arming: bool) -> Vec<&'static str> {
    match &onboarding.page {
        SetupPage::Typing(TypedLine { what: TypedInput::Key, .. }) => {
            vec!["enter next", "esc back", "left right provider", "ctrl+u clear"]
        }
        SetupPage::Typing(_) => vec!["enter next", "esc back", "ctrl+u clear"],
        _ if is_arming => vec!["just opened: keys only highlight", "esc close"],
        SetupPage::Models => vec!["esc close this step", "up down enter choose", "ctrl+c cancel setup"],
        SetupPage::Model(_) => vec!["esc back", "up down enter choose"],
        SetupPage::ModelList => vec!["enter no", "y then enter yes", "esc back"],
        SetupPage::Approvals if onboarding.found.public_list.is_some() => {
            vec!["enter next", "left right theme", "esc close", "number, then enter", "pgup pgdn scroll"]
        }
        SetupPage::Approvals => vec!["enter finish", "left right theme", "esc close", "number, then enter", "pgup pgdn scroll"],
    }
}

/// Describes a key: `51 characters, …k3f9`, or only its length if it is short.
fn describe_key(key: &str) -> String {
    let count = key.chars().count();
    let tail: String = key.chars().skip(count.saturating_sub(TAIL)).collect();
    if count > 4 * TAIL { format!("{count} characters, …{tail}") } else { format!("{count} characters") }
}
