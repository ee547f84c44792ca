//! First-run setup of the model, approvals, model list and theme, all on one card. No setting is changed until the user
//! saves the card.
//!
//! This module turns input into actions. The panel and the guard of the card are the same as for all other dialogs.

mod recognise;
#[cfg(test)]
mod tests;

pub(crate) use recognise::provider_of as provider_of_key;

use crate::protocol::{Mode, ModelAddress, SecretString, SetupEvent, SetupInfo, SetupRequest, TestOutcome};

/// Maximum length of typed text, in bytes. Anything longer is probably a file that was pasted by mistake.
const TYPED_BYTES: usize = 8 << 10;

/// Notice shown after Escape is pressed for the first time on a card with a model that the user entered.
const REMOVED: &str = "the model that you entered was removed · esc again closes the setup";

/// Values of all settings on the card, the current row, and the line being typed, if any.
#[derive(Debug)]
pub(crate) struct Onboarding {
    pub found: SetupInfo,
    pub page: SetupPage,
    /// Index of the card's current row.
    row: usize,
    pub model: ModelChoice,
    /// Model that the user entered, with its name, server and API key.
    pub own: Option<ModelAddress>,
    /// Index of the approval choice, or `None` to leave approvals as configured.
    pub approvals: Option<usize>,
    /// Whether aye should check daily for changes to the public model list.
    pub looks_daily: bool,
    /// Whether the settings are currently being saved.
    pub waits: bool,
    /// Reason why the last action failed, if it did.
    pub problem: Option<String>,
    pub test: TestState,
    tests: u64,
    pub themes: Vec<String>,
    /// Index of the theme being shown. `theme_before` is the index of the theme that was in use before the setup.
    pub theme: usize,
    theme_before: usize,
}

#[derive(Debug)]
pub(crate) enum SetupPage {
    /// The card with all its rows.
    Card,
    /// A line in which the user enters an API key or a server address.
    Typing(TypedLine),
}

/// Row of the setup card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetupRow {
    Model,
    Approvals,
    ModelList,
    Theme,
}

/// Value of the model row on the setup card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelChoice {
    /// The model that is already configured.
    Keep,
    /// The detected model with this index.
    Found(usize),
    /// The model, API key or server that the user entered.
    Own,
}

/// Line of text that the user is entering.
#[derive(Debug, Default)]
pub(crate) struct TypedLine {
    pub what: TypedInput,
    pub text: SecretString,
    /// Index of the provider to which the typed key belongs, or `None` if the provider is not known yet.
    pub provider: Option<usize>,
    /// Whether the user selected the provider, as opposed to it being detected from the key's prefix.
    pub is_said: bool,
    /// Model and server that the typed key is for.
    pub reach: ModelAddress,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypedInput {
    #[default]
    Key,
    Address,
    /// API key for the server whose address the user entered.
    AddressKey,
}

#[derive(Debug)]
pub(crate) enum TestState {
    Not,
    Runs,
    Done(TestOutcome),
}

/// Choice offered on the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetupChoice {
    /// Saves the settings of all rows.
    Save,
    Key,
    Address,
    Test,
    /// Ends the setup without changing anything.
    Skip,
}

/// Input that the setup handles.
#[derive(Debug, Clone)]
pub(crate) enum SetupInput<'a> {
    Pick(SetupChoice),
    Enter,
    Escape,
    /// Leaves the setup without saving.
    Leave,
    Letter(char),
    Backspace,
    Clear,
    Pasted(&'a str),
    /// Changes the value of the current row, or the provider of the typed key, by this many steps.
    Turn(isize),
    /// Moves by this many rows.
    Move(isize),
    Told(SetupEvent),
}

/// Action that the setup asks its owner to carry out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SetupAction {
    Ask(SetupRequest),
    /// Shows another page. Keys take effect only once the page is on the screen.
    Show,
    /// Updates the text on the current page.
    Words,
    /// Switches the session to this model. `lines` describes the outcome.
    Use {
        model: String,
        lines: Vec<String>,
    },
    Theme(String),
    Notice(&'static str),
    /// Ends the setup. `mode` is the mode to use in sessions, if the user changed the approval choice.
    End {
        mode: Option<Mode>,
        lines: Vec<String>,
    },
}

impl Onboarding {
    /// Creates the setup. `themes` contains the names of all themes, and `theme` is the name of the current one. Each
    /// row starts with the configured value or, if there is none, with the suggested one.
    pub(crate) fn new(found: SetupInfo, themes: Vec<String>, theme: &str) -> Self {
        let theme = themes.iter().position(|name| name == theme).unwrap_or(0);
        let is_new = found.model_now.is_none() && !found.models.is_empty();
        let suggested = found.approvals.iter().position(|choice| choice.suggested);
        Self {
            page: SetupPage::Card,
            row: 0,
            model: if is_new { ModelChoice::Found(0) } else { ModelChoice::Keep },
            own: None,
            approvals: suggested.filter(|_| found.approvals_now.is_none()),
            looks_daily: false,
            found,
            waits: false,
            problem: None,
            test: TestState::Not,
            tests: 0,
            themes,
            theme,
            theme_before: theme,
        }
    }

    /// Returns the rows of the card, in order.
    pub(crate) fn rows(&self) -> Vec<SetupRow> {
        let list = self.found.public_list.as_ref().map(|_| SetupRow::ModelList);
        [SetupRow::Model, SetupRow::Approvals].into_iter().chain(list).chain([SetupRow::Theme]).collect()
    }

    pub(crate) fn current_row(&self) -> SetupRow {
        self.rows().get(self.row).copied().unwrap_or(SetupRow::Model)
    }

    /// Returns the values that the model row can have, in order.
    pub(crate) fn models(&self) -> Vec<ModelChoice> {
        let own = self.own.as_ref().map(|_| ModelChoice::Own);
        let found = (0..self.found.models.len()).map(ModelChoice::Found);
        own.into_iter().chain(found).chain([ModelChoice::Keep]).collect()
    }

    /// Returns the values of the approvals row, in order. The configured choice is `None`, which changes nothing.
    fn approval_values(&self) -> Vec<Option<usize>> {
        let now = self.found.approvals_now.as_ref();
        let choices = self.found.approvals.iter().enumerate();
        choices.map(|(at, choice)| Some(at).filter(|_| now != Some(&choice.name))).collect()
    }

    /// Returns the address of the chosen model, or `None` if the configured model is kept.
    fn chosen_model(&self) -> Option<ModelAddress> {
        match self.model {
            ModelChoice::Keep => None,
            ModelChoice::Found(at) => {
                let found = self.found.models.get(at)?;
                Some(ModelAddress { model: found.model.clone(), ..ModelAddress::default() })
            }
            ModelChoice::Own => self.own.clone(),
        }
    }

    /// Returns whether the user is entering a line of text, which receives all text keys.
    pub(crate) fn types(&self) -> bool {
        matches!(self.page, SetupPage::Typing(_))
    }

    /// Returns whether the line that the user is entering contains any text.
    pub(crate) fn has_typed(&self) -> bool {
        matches!(&self.page, SetupPage::Typing(typing) if !typing.text.0.trim().is_empty())
    }

    /// Returns whether the setup handles pasted text. An API key that is pasted on the card is always treated as a key
    /// and never goes to the draft; while the card is being saved, it is ignored.
    pub(crate) fn accepts_paste(&self, pasted: &str) -> bool {
        match self.page {
            SetupPage::Typing(_) => true,
            SetupPage::Card => recognise::provider_of(pasted).is_some(),
        }
    }

    pub(crate) fn step(&mut self, input: SetupInput<'_>) -> Vec<SetupAction> {
        match input {
            SetupInput::Leave => self.leave(),
            SetupInput::Told(told) => self.apply_answer(told),
            input => match self.page {
                // While the card is being saved, only the response of the host changes it.
                SetupPage::Card if self.waits => Vec::new(),
                SetupPage::Card => self.at_card(&input),
                SetupPage::Typing(_) => self.at_typing(&input),
            },
        }
    }

    fn go_to_page(&mut self, page: SetupPage) -> Vec<SetupAction> {
        self.page = page;
        self.problem = None;
        self.forget_test();
        vec![SetupAction::Show]
    }

    fn forget_test(&mut self) {
        self.test = TestState::Not;
        // A response that arrives later is about another model.
        self.tests += 1;
    }

    fn at_card(&mut self, input: &SetupInput<'_>) -> Vec<SetupAction> {
        match input {
            SetupInput::Pick(SetupChoice::Save) => self.save(),
            SetupInput::Pick(SetupChoice::Key) => self.go_to_page(SetupPage::Typing(TypedLine::default())),
            SetupInput::Pick(SetupChoice::Address) => {
                self.go_to_page(SetupPage::Typing(TypedLine { what: TypedInput::Address, ..TypedLine::default() }))
            }
            SetupInput::Pick(SetupChoice::Test) if !matches!(self.test, TestState::Runs) => self.start_test(),
            // Without this confirmation, the user would have to type the key again.
            SetupInput::Escape if self.own.is_some() => {
                self.own = None;
                if self.model == ModelChoice::Own {
                    self.model = ModelChoice::Keep;
                }
                self.problem = None;
                self.forget_test();
                vec![SetupAction::Notice(REMOVED), SetupAction::Words]
            }
            SetupInput::Pick(SetupChoice::Skip) | SetupInput::Escape => self.leave(),
            SetupInput::Move(by) => {
                self.row = wrap_index(self.row, *by, self.rows().len());
                vec![SetupAction::Words]
            }
            SetupInput::Turn(by) => self.turn_row(*by),
            SetupInput::Pasted(words) => {
                let shown = self.go_to_page(SetupPage::Typing(TypedLine::default()));
                self.push_text(words);
                shown
            }
            _ => Vec::new(),
        }
    }

    /// Changes the value of the current row by `by` steps, wrapping around at the ends.
    fn turn_row(&mut self, by: isize) -> Vec<SetupAction> {
        self.problem = None;
        match self.current_row() {
            SetupRow::Model => {
                let models = self.models();
                let at = models.iter().position(|model| *model == self.model).unwrap_or(0);
                self.model = models.get(wrap_index(at, by, models.len())).copied().unwrap_or(ModelChoice::Keep);
                self.forget_test();
            }
            SetupRow::Approvals => {
                let values = self.approval_values();
                let at = values.iter().position(|value| *value == self.approvals).unwrap_or(0);
                self.approvals = values.get(wrap_index(at, by, values.len())).copied().flatten();
            }
            SetupRow::ModelList => self.looks_daily = !self.looks_daily,
            SetupRow::Theme => {
                self.theme = wrap_index(self.theme, by, self.themes.len());
                let name = self.themes.get(self.theme).cloned().unwrap_or_default();
                return vec![SetupAction::Theme(name), SetupAction::Words];
            }
        }
        vec![SetupAction::Words]
    }

    fn start_test(&mut self) -> Vec<SetupAction> {
        let now = self.found.model_now.clone().map(|model| ModelAddress { model, ..ModelAddress::default() });
        let Some(reach) = self.chosen_model().or(now) else {
            self.problem = Some("There is no model to test: `k` adds an API key.".to_owned());
            return vec![SetupAction::Words];
        };
        self.tests += 1;
        self.test = TestState::Runs;
        vec![SetupAction::Ask(SetupRequest::Test { reach, number: self.tests }), SetupAction::Words]
    }

    /// Starts saving the settings. The model is saved first, because its API key may be rejected.
    fn save(&mut self) -> Vec<SetupAction> {
        self.waits = true;
        self.problem = None;
        match self.chosen_model() {
            Some(reach) => vec![SetupAction::Ask(SetupRequest::Take { reach }), SetupAction::Words],
            None => self.end(),
        }
    }

    fn at_typing(&mut self, input: &SetupInput<'_>) -> Vec<SetupAction> {
        match input {
            SetupInput::Escape => return self.go_to_page(SetupPage::Card),
            SetupInput::Enter => return self.submit_text(),
            SetupInput::Letter(letter) => self.push_text(letter.encode_utf8(&mut [0; 4])),
            SetupInput::Pasted(words) => self.push_text(words),
            SetupInput::Backspace => self.change(|text| {
                text.pop();
            }),
            SetupInput::Clear => self.change(String::clear),
            SetupInput::Turn(by) => self.turn_provider(*by),
            _ => return Vec::new(),
        }
        vec![SetupAction::Words]
    }

    fn end(&mut self) -> Vec<SetupAction> {
        let theme = (self.theme != self.theme_before).then(|| self.themes.get(self.theme).cloned()).flatten();
        let approvals = self.approvals.and_then(|at| self.found.approvals.get(at)).map(|choice| choice.name.clone());
        let looks_daily = self.looks_daily;
        vec![SetupAction::Ask(SetupRequest::End { approvals, theme, looks_daily }), SetupAction::Words]
    }

    /// Ends the setup without changing anything, and restores the previous theme.
    fn leave(&mut self) -> Vec<SetupAction> {
        let before = self.themes.get(self.theme_before).cloned().filter(|_| self.theme != self.theme_before);
        let ask = SetupAction::Ask(SetupRequest::End { approvals: None, theme: None, looks_daily: false });
        before.map(SetupAction::Theme).into_iter().chain([ask, SetupAction::End { mode: None, lines: Vec::new() }]).collect()
    }

    fn apply_answer(&mut self, told: SetupEvent) -> Vec<SetupAction> {
        match told {
            SetupEvent::Found(_) => Vec::new(),
            SetupEvent::Tested { number, outcome } if number == self.tests => {
                self.test = TestState::Done(outcome);
                vec![SetupAction::Words]
            }
            SetupEvent::Tested { .. } => Vec::new(),
            SetupEvent::Taken { model, lines } => {
                // The model is saved now. If saving the other settings fails, it need not be saved again.
                self.model = ModelChoice::Keep;
                self.found.model_now = Some(model.clone());
                [SetupAction::Use { model, lines }].into_iter().chain(self.end()).collect()
            }
            SetupEvent::Ended { mode, lines } => vec![SetupAction::End { mode, lines }],
            SetupEvent::Failed { problem } => {
                self.waits = false;
                self.problem = Some(problem.text());
                vec![SetupAction::Words]
            }
        }
    }

    fn push_text(&mut self, words: &str) {
        self.change(|text| {
            let room = TYPED_BYTES.saturating_sub(text.len());
            text.extend(words.chars().filter(|letter| !letter.is_control()).take(room));
        });
    }

    fn change(&mut self, change: impl FnOnce(&mut String)) {
        self.problem = None;
        let SetupPage::Typing(typing) = &mut self.page else { return };
        change(&mut typing.text.0);
        if typing.what == TypedInput::Key && !typing.is_said {
            let name = recognise::provider_of(&typing.text.0);
            typing.provider = name.and_then(|name| self.found.providers.iter().position(|provider| provider.by == name));
        }
    }

    fn turn_provider(&mut self, by: isize) {
        let count = self.found.providers.len();
        if let SetupPage::Typing(typing) = &mut self.page
            && typing.what == TypedInput::Key
        {
            let first = if by < 0 { count.saturating_sub(1) } else { 0 };
            typing.provider = Some(typing.provider.map_or(first, |at| wrap_index(at, by, count))).filter(|_| count > 0);
            typing.is_said = true;
            self.problem = None;
        }
    }

    /// Makes the model that the user entered the value of the model row.
    fn take_typed(&mut self, reach: ModelAddress) -> Vec<SetupAction> {
        self.own = Some(reach);
        (self.model, self.row) = (ModelChoice::Own, 0);
        self.go_to_page(SetupPage::Card)
    }

    /// Handles Enter in the line that the user is entering.
    fn submit_text(&mut self) -> Vec<SetupAction> {
        let SetupPage::Typing(typing) = &mut self.page else { return Vec::new() };
        let text = typing.text.0.trim().to_owned();
        let mut refuse = |why: &str| {
            self.problem = Some(why.to_owned());
            vec![SetupAction::Words]
        };
        match (typing.what, typing.provider.and_then(|at| self.found.providers.get(at))) {
            (TypedInput::Key | TypedInput::Address, _) if text.is_empty() => Vec::new(),
            (TypedInput::Key, None) => refuse("Choose the provider of this key with left and right."),
            (TypedInput::Key, Some(_)) if text.contains(char::is_whitespace) => refuse("A key cannot contain spaces."),
            (TypedInput::Key, Some(provider)) => {
                let reach = ModelAddress { model: provider.model.clone(), key: Some(SecretString(text)), address: None };
                self.take_typed(reach)
            }
            (TypedInput::Address, _) => {
                let (url, model) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
                if !(url.starts_with("http://") || url.starts_with("https://")) {
                    return refuse("The address must begin with https://, or with http:// for this machine.");
                }
                let reach = ModelAddress { model: model.trim().to_owned(), key: None, address: Some(url.to_owned()) };
                self.go_to_page(SetupPage::Typing(TypedLine { what: TypedInput::AddressKey, reach, ..TypedLine::default() }))
            }
            (TypedInput::AddressKey, _) if text.contains(char::is_whitespace) => refuse("A key cannot contain spaces."),
            (TypedInput::AddressKey, _) => {
                let key = Some(SecretString(text)).filter(|key| !key.0.is_empty());
                let reach = ModelAddress { key, ..std::mem::take(&mut typing.reach) };
                self.take_typed(reach)
            }
        }
    }
}

/// Moves an index below `count` by `by` steps, wrapping around at the ends.
fn wrap_index(at: usize, by: isize, count: usize) -> usize {
    let count = count.max(1);
    at.wrapping_add_signed(by.rem_euclid(count.cast_signed())) % count
}
